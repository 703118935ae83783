"""Where two runs on the same inputs first differ: in their outputs, and in which instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.ir.literal import Value
from haloc.ir.module import HloModule
from haloc.triage.compare import Difference, compare
from haloc.triage.engine import Engine, named_leaves


@dataclass(frozen=True, slots=True)
class Side:
    """A module and the way to run it."""

    module: HloModule
    engine: Engine


@dataclass(frozen=True, slots=True)
class Row:
    """One value in both runs. name: "output 0", or the instruction's."""

    name: str
    got: np.ndarray
    wanted: np.ndarray
    difference: Difference


def compare_outputs(a: Side, b: Side, arguments: Sequence[Value]) -> list[Row]:
    """A row for each output; b's is what is wanted.

    Raises InvalidArgumentError when the outputs are not of the same number and types.
    """
    got, wanted = (side.engine.run(side.module, arguments) for side in (a, b))
    kinds = [[f"{x.dtype}{list(x.shape)}" for x in values] for values in (got, wanted)]
    if kinds[0] != kinds[1]:
        raise InvalidArgumentError(
            f"the outputs cannot be compared: A gives {', '.join(kinds[0]) or 'nothing'}, "
            f"B gives {', '.join(kinds[1]) or 'nothing'}"
        )
    rows = enumerate(zip(got, wanted, compare_arrays(got, wanted)))
    return [Row(f"output {n}", g, w, difference) for n, (g, w, difference) in rows]


def compare_arrays(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> list[Difference]:
    """`compare` on each pair."""
    return [compare(g, w) for g, w in zip(got, wanted, strict=True)]


def first_divergence(a: Side, b: Side, arguments: Sequence[Value]) -> tuple[Row | None, int]:
    """(the first value that both runs name alike and that differs, how many were compared).

    In the order in which A computes them. Of an instruction that runs several times, the last
    value counts.
    """
    others = dict(named_leaves(b.engine.values(b.module, arguments)))
    compared = 0
    for name, got in named_leaves(a.engine.values(a.module, arguments)):
        wanted = others.get(name)
        if wanted is None or (got.dtype, got.shape) != (wanted.dtype, wanted.shape):
            continue
        compared += 1
        difference = compare(got, wanted)
        if not difference.ok:
            return Row(name, got, wanted, difference), compared
    return None, compared


def differs(a: Side, b: Side, arguments: Sequence[Value]) -> bool:
    """Whether an output is farther off than rounding explains."""
    return not all(row.difference.ok for row in compare_outputs(a, b, arguments))


def table(rows: Sequence[Row]) -> str:
    """One line a row: verdict, name, type, error, ULPs, and the element that is farthest off."""
    cells = [["", "value", "type", "max error", "ULPs", "farthest at", "A", "B"]]
    for row in rows:
        d = row.difference
        at = "-" if d.at is None else f"[{','.join(map(str, d.at))}]"
        pair = ("-", "-") if d.at is None else (_element(row.got[d.at]), _element(row.wanted[d.at]))
        verdict = "ok" if d.ok else "DIFFERS"
        kind = f"{row.got.dtype}{list(row.got.shape)}"
        error, ulps = f"{d.max_error:.3g}", f"{d.max_ulps:,}"
        cells.append([verdict, row.name, kind, error, ulps, at, *pair])
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = ("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in cells)
    return "\n".join(lines)


def _element(element: np.generic) -> str:
    number = element.item()
    return f"{number:.9g}" if isinstance(number, float) else str(number)
