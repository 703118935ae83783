"""The micro-kernel of few rows or columns: sums along k in vector lanes, added up at the end.

Where k is contiguous in both operands and one of them is too small to repay packing the other, both
are read once, as they lie: matrix times vector, small batch times transposed weights, dot products.
"""

from __future__ import annotations

from haloc.codegen.target import Target
from haloc.cpu.contraction import elements
from haloc.cpu.contraction.micro import Side, TileShape, multiply_add
from haloc.cpu.contraction.pack import zero_of
from haloc.cpu.contraction.text import Code, vector

SUMS_IN_FLIGHT = 8
"""Multiply-adds that must not depend on each other to keep two units of latency four busy."""


def inner_kernel(
    symbol: str,
    shape: TileShape,
    lhs: Side,
    rhs: Side,
    target: Target,
    declares: dict[str, None],
    attributes: str,
) -> str:
    """define internal void @symbol(ptr a, ptr b, i64 kn, ptr tile, i1 first): tile = a . b, where
    k is contiguous in a and b, which have shape.rows rows and shape.vectors columns. kn is all
    of k: `first` is always true."""
    code = Code(declares)
    type, lanes = shape.type, target.lanes(elements.type_bytes(shape.type))
    t = vector(type, lanes)
    cells = [(r, c) for r in range(shape.rows) for c in range(shape.vectors)]
    unroll = max(1, -(-SUMS_IN_FLIGHT // len(cells)))
    whole = code.ins(f"and i64 %kn, {-unroll * lanes}")
    zeros = [(t, zero_of(type, lanes))] * (len(cells) * unroll)
    with code.loop(0, whole, unroll * lanes, zeros) as (k, sums):
        for u in range(unroll):
            at = code.add(k, u * lanes)
            a, b = _operands(code, shape, lhs, rhs, at, lanes)
            for number, (r, c) in enumerate(cells):
                total = sums[u * len(cells) + number]
                total.after = multiply_add(code, target, type, lanes, a[r], b[c], total.ref)
    starts = []
    for number in range(len(cells)):
        parts = [sums[u * len(cells) + number].ref for u in range(unroll)]
        while len(parts) > 1:
            half = len(parts) // 2
            merged = [_add(code, type, lanes, *pair) for pair in zip(parts, parts[half : 2 * half])]
            parts = merged + parts[2 * half :]
        starts.append((type, _sum_of_lanes(code, type, lanes, parts[0])))
    with code.loop(whole, "%kn", 1, starts) as (k, sums):
        a, b = _operands(code, shape, lhs, rhs, k, 1)
        for total, (r, c) in zip(sums, cells, strict=True):
            total.after = multiply_add(code, target, type, 1, a[r], b[c], total.ref)
    for number, total in enumerate(sums):
        slot = code.offset(type, "%tile", number)
        code.store(type, total.ref, slot, elements.type_bytes(type))
    parameters = ["ptr %a", "ptr %b", "i64 %kn", "ptr %tile", "i1 %first"]
    return code.function(symbol, parameters, attributes)


def _operands(
    code: Code, shape: TileShape, lhs: Side, rhs: Side, k: str | int, width: int
) -> tuple[list[str], list[str]]:
    """The rows' and the columns' elements at k, k + 1, ..."""
    found = []
    for name, side, count in (("%a", lhs, shape.rows), ("%b", rhs, shape.vectors)):
        assert side.dtype is not None
        storage = elements.storage_type(side.dtype)
        at = code.offset(storage, name, k)
        pointers = [code.offset(storage, at, x * side.x_step) for x in range(count)]
        found.append([elements.read(code, side.dtype, p, width, shape.type) for p in pointers])
    return found[0], found[1]


def _add(code: Code, type: str, width: int, x: str, y: str) -> str:
    add = {"float": "fadd", "double": "fadd", "i8": "or"}.get(type, "add")
    return code.ins(f"{add} {vector(type, width)} {x}, {y}")


def _sum_of_lanes(code: Code, type: str, lanes: int, value: str) -> str:
    """All lanes added up, halves first."""
    while lanes > 1:
        t, half = vector(type, lanes), lanes // 2
        parts = []
        for first in (0, half):
            mask = ", ".join(f"i32 {first + i}" for i in range(half))
            parts.append(
                code.ins(f"shufflevector {t} {value}, {t} poison, <{half} x i32> <{mask}>")
            )
        lanes = half
        if lanes == 1:
            one = vector(type, 1)
            parts = [code.ins(f"extractelement <1 x {one}> {p}, i64 0") for p in parts]
        value = _add(code, type, lanes, parts[0], parts[1])
    return value
