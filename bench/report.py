"""What is written about the rows: tables, the list of what falls short, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import plot
from bench.limits import limit_of
from bench.row import HALOC, JAXLIB, NUMPY, PEERS, TORCH, Row, geometric_mean

BEGIN, END = "<!-- bench -->", "<!-- /bench -->"
RUN_BAR, FLOOR_BAR, COLD_BAR, WARM_BAR = 0.95, 0.85, 0.67, 1.0
"""What falls short: a run slower than this ratio, less of the floor, compilation slower."""


def time_text(s: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if s >= size:
            return f"{s / size:.3g} {unit}"
    return f"{s * 1e6:.3g} µs"


def number(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:.0f}"


def megabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:.3g}"


def cold_ratio(row: Row) -> float | None:
    return _of(row.cold, row.cold)


def warm_ratio(row: Row) -> float | None:
    """Both load what they have stored."""
    return _of(row.warm, row.warm)


def warm_share(row: Row) -> float | None:
    """haloc's warm compilation over jaxlib's cold one."""
    whole = _of(row.cold, row.warm)
    return None if whole is None else 1 / whole


def _of(theirs: dict[str, float], ours: dict[str, float]) -> float | None:
    return theirs[JAXLIB] / ours[HALOC] if JAXLIB in theirs and HALOC in ours else None


def memory_ratio(row: Row) -> float | None:
    both = row.memory.get(JAXLIB), row.memory.get(HALOC)
    return both[0] / both[1] if both[0] and both[1] else None


# --- Tables --------------------------------------------------------------------------------------


def conditions(facts: dict[str, Any]) -> str:
    """Where and how it was measured, in a sentence or two."""
    versions, rates = facts["versions"], facts["rates"]
    known = ", ".join(f"{name} {version}" for name, version in versions.items())
    peaks = ", ".join(f"{v / 1e9:.0f} {k}" for k, v in sorted(facts["peaks"].items()))
    return (
        f"{facts['cpu']}, {facts['threads']} threads for each side, load average "
        f"{facts['load']:.1f} before; Python {facts['python']}, {known}. Best of many calls, in "
        f"turn, in one process. Floor: {rates['read'] / 1e9:.0f} GB/s read, "
        f"{rates['write'] / 1e9:.0f} GB/s written; Gop/s: {peaks}; all measured in the run."
    )


Column = tuple[str, Callable[[Row], float | None]]

COLUMNS: tuple[Column, ...] = (
    ("jaxlib", lambda r: r.ratio(JAXLIB)),
    ("PyTorch", lambda r: r.ratio(TORCH)),
    ("NumPy, SciPy", lambda r: r.ratio(NUMPY)),
    ("best peer", Row.best_peer_ratio),
    ("of the floor", Row.floor_fraction),
    ("compile, cold", cold_ratio),
    ("compile, warm", warm_ratio),
    ("memory", memory_ratio),
)


def summary(rows: list[Row], facts: dict[str, Any]) -> str:
    """Geometric means by family."""
    head = ["programs", "cases", *(name for name, _ in COLUMNS), "slowest beside jaxlib"]
    lines = [conditions(facts), "", *_head(head)]
    families = list(dict.fromkeys(r.family for r in rows))
    for family in families:
        lines.append(_summary_line(family, [r for r in rows if r.family == family]))
    lines.append(_summary_line("**all**", rows))
    shares = [share for r in rows if (share := warm_share(r)) is not None]
    lines += [
        "",
        "Geometric means of a peer's time (memory: jaxlib's bytes) over haloc's: above 1 haloc is "
        "better. Of the floor: 1 is all that the machine can do. Compile, warm: both load what "
        f"they stored; haloc's takes {number(geometric_mean(shares))} of jaxlib's cold compiling.",
        _faults(rows),
    ]
    return "\n".join(lines).rstrip()


def _summary_line(name: str, rows: list[Row]) -> str:
    known = [r for r in rows if r.ratio(JAXLIB) is not None]
    slowest = min(known, key=lambda r: r.ratio(JAXLIB) or 0.0, default=None)
    worst = f"{number(slowest.ratio(JAXLIB))} ({slowest.name})" if slowest else ""
    means = [number(geometric_mean([f(r) for r in rows])) for _, f in COLUMNS]
    return _line([name, str(len(rows)), *means, worst])


def _faults(rows: list[Row]) -> str:
    faults = [f"{r.name} ({_fault(r)})" for r in rows if not r.is_right]
    return f"\nWrong or failed: {'; '.join(faults)}." if faults else ""


def _fault(row: Row) -> str:
    for side in ("process", HALOC, JAXLIB):
        if side in row.failure:
            return f"{side}: {row.failure[side].splitlines()[0][:120]}"
    return f"WRONG: {row.error.get(HALOC, float('nan')):.1e}"


def table(rows: list[Row]) -> str:
    """Every case."""
    heads = ["program", "haloc", *(name for name, _ in COLUMNS[:3]), "median", "of the floor"]
    heads += ["cold", "ratio", "warm", "ratio", "MB", "ratio"]
    lines = []
    for family in dict.fromkeys(r.family for r in rows):
        lines += ["", f"### {family.capitalize() if family[0].islower() else family}", ""]
        lines += _head(heads)
        lines += [_line(_cells(r)) for r in rows if r.family == family]
    return "\n".join(lines)


def _cells(r: Row) -> list[str]:
    name = r.name if r.is_right else f"{r.name} ({_fault(r)})"
    peers = [number(r.ratio(p)) for p in PEERS]
    for k, p in enumerate(PEERS):
        if p in r.wrong:
            peers[k] = f"differs: {r.error[p]:.0e}"
        elif p in r.failure:
            peers[k] = "fails"
    times = [time_text(t[HALOC]) if HALOC in t else "" for t in (r.best, r.cold, r.warm)]
    return [
        name,
        times[0],
        *peers,
        number(r.ratio(JAXLIB, "median")),
        number(r.floor_fraction()),
        times[1],
        number(cold_ratio(r)),
        times[2],
        number(warm_ratio(r)),
        megabytes(r.memory.get(HALOC)),
        number(memory_ratio(r)),
    ]


def _head(names: Iterable[str]) -> list[str]:
    names = list(names)
    return [_line(names), "|" + "---|" * len(names)]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


# --- What falls short ----------------------------------------------------------------------------


def shortfalls(rows: list[Row]) -> str:
    """A line for each case that is slower than a peer or far from the floor: by how much, and what
    limits it."""
    lines = _head(["program", "falls short", "what limits it, what was tried"])
    for row in rows:
        if short := _short(row):
            limit = limit_of(row.family, row.name) or "not looked into yet"
            lines.append(_line([row.name, "; ".join(short), limit]))
    return "\n".join(lines)


def _short(row: Row) -> list[str]:
    short = []
    for peer in PEERS:
        ratio = row.ratio(peer)
        if ratio is not None and ratio < RUN_BAR:
            short.append(f"{number(ratio)} of {peer}")
    fraction = row.floor_fraction()
    if fraction is not None and fraction < FLOOR_BAR and row.floor:
        short.append(f"{number(fraction)} of the floor ({time_text(row.floor)})")
    for name, ratio, bar in (
        ("cold", cold_ratio(row), COLD_BAR),
        ("warm", warm_ratio(row), WARM_BAR),
    ):
        if ratio is not None and ratio < bar:
            short.append(f"{name} compile {number(ratio)}")
    if not row.is_right:
        short.append(_fault(row))
    return short


# --- Files ---------------------------------------------------------------------------------------


def write(rows: list[Row], facts: dict[str, Any], root: Path) -> None:
    """results.json, both READMEs, the plot."""
    folder = root / "bench"
    results = {"facts": facts, "rows": [asdict(r) for r in rows]}
    (folder / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    _replace(root / "README.md", summary(rows, facts))
    parts = [summary(rows, facts), "", "## Every case", table(rows), "", "## What falls short", ""]
    _replace(folder / "README.md", "\n".join([*parts, shortfalls(rows)]))
    plot.write(rows, folder / "ratios.svg")


def _replace(path: Path, content: str) -> None:
    """What stands between the marks of a file."""
    before, rest = path.read_text().split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n{content}\n{END}{after}")
