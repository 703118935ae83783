"""A picture of the ratios: one row a case, one mark a peer."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.row import JAXLIB, NUMPY, TORCH, Row

MARKS = {JAXLIB: ("o", "#1f5fa8"), TORCH: ("s", "#d1662f"), NUMPY: ("^", "#5b9a55")}


def write(rows: list[Row], path: Path) -> None:
    """Needs matplotlib; says so and writes nothing without it."""
    try:
        import matplotlib  # noqa: PLC0415 (only the plot needs it)
    except ImportError:
        print("matplotlib is not installed: no plot", file=sys.stderr)
        return
    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "haloc", "svg.fonttype": "none", "font.size": 8}
    from matplotlib import pyplot as plt  # noqa: PLC0415 (after the backend is chosen)

    figure, axes = plt.subplots(figsize=(9, 1.5 + 0.17 * len(rows)))
    for peer, (mark, colour) in MARKS.items():
        points = [(r.ratio(peer), k) for k, r in enumerate(rows)]
        known = [p for p in points if p[0] is not None]
        x, y = zip(*known, strict=True) if known else ((), ())
        axes.scatter(x, y, s=14, marker=mark, c=colour, label=peer)
    for k, row in enumerate(rows):
        if k and row.family != rows[k - 1].family:
            axes.axhline(k - 0.5, color="#bbbbbb", linewidth=0.6)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [r.name for r in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("a peer's time over haloc's (right of the line haloc is faster)")
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.legend(loc="lower right")
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
