"""The micro-kernel: one tile of rows x (vectors * lanes) sums, kept in registers over a run of k.

For each k, `vectors` vectors of the right-hand side are loaded, each row's element of the left-hand
side is broadcast, and rows * vectors multiply-adds are done.
"""

from __future__ import annotations

from dataclasses import dataclass

from haloc.codegen.target import Target
from haloc.cpu.contraction import elements
from haloc.cpu.contraction.pack import zero_of
from haloc.cpu.contraction.text import Carried, Code, vector
from haloc.ir.dtype import DType


@dataclass(frozen=True, slots=True)
class TileShape:
    """rows x (vectors * lanes) elements of compute type `type`."""

    type: str
    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    @property
    def elements(self) -> int:
        return self.rows * self.columns


@dataclass(frozen=True, slots=True)
class Side:
    """Where the micro-kernel reads an operand: element steps of x and k from the tile's corner.

    dtype: element type in memory when read unpacked; None when packed in the compute type. The
    right-hand side's x_step is 1 always.
    """

    x_step: int
    k_step: int
    dtype: DType | None = None


def multiply_add(code: Code, target: Target, type: str, width: int, a: str, b: str, c: str) -> str:
    """a * b + c; for i8 (pred) (a and b) or c."""
    t = vector(type, width)
    if type in ("float", "double"):
        # Without the instruction fma would be a library call.
        return code.intrinsic("fma" if target.has("fma") else "fmuladd", t, a, b, c)
    multiply, add = ("and", "or") if type == "i8" else ("mul", "add")
    product = code.ins(f"{multiply} {t} {a}, {b}")
    return code.ins(f"{add} {t} {product}, {c}")


def micro_kernel(
    symbol: str,
    shape: TileShape,
    lhs: Side,
    rhs: Side,
    target: Target,
    declares: dict[str, None],
    attributes: str,
) -> str:
    """define internal void @symbol(ptr a, ptr b, i64 kn, ptr tile, i1 first):
    tile (row-major, dense) = (first ? 0 : tile) + a . b over kn values of k."""
    code = Code(declares)
    t, size = vector(shape.type, shape.lanes), elements.type_bytes(shape.type)
    zero = zero_of(shape.type, shape.lanes)
    slots = [
        code.offset(shape.type, "%tile", r * shape.columns + v * shape.lanes)
        for r in range(shape.rows)
        for v in range(shape.vectors)
    ]
    code.do("br i1 %first, label %start, label %resume")
    code.label("resume")
    olds = [code.load(shape.type, slot, size, shape.lanes) for slot in slots]
    code.do("br label %start")
    code.label("start")
    starts = [code.ins(f"phi {t} [{zero}, %entry], [{old}, %resume]") for old in olds]
    with code.loop(0, "%kn", 1, [(t, s) for s in starts]) as (k, sums):
        _step(code, shape, lhs, rhs, target, k, sums)
    for slot, total in zip(slots, sums, strict=True):
        code.store(shape.type, total.ref, slot, size, shape.lanes)
    parameters = ["ptr %a", "ptr %b", "i64 %kn", "ptr %tile", "i1 %first"]
    return code.function(symbol, parameters, attributes)


def _step(
    code: Code,
    shape: TileShape,
    lhs: Side,
    rhs: Side,
    target: Target,
    k: str,
    sums: list[Carried],
) -> None:
    """One k: sums += column k of a times row k of b."""
    a_type, b_type = (
        shape.type if s.dtype is None else elements.storage_type(s.dtype) for s in (lhs, rhs)
    )
    b = code.offset(b_type, "%b", code.mul(k, rhs.k_step))
    a = code.offset(a_type, "%a", code.mul(k, lhs.k_step))
    bs = [
        _read(code, rhs, code.offset(b_type, b, v * shape.lanes), shape.lanes, shape.type)
        for v in range(shape.vectors)
    ]
    for row in range(shape.rows):
        scalar = _read(code, lhs, code.offset(a_type, a, row * lhs.x_step), 1, shape.type)
        spread = code.splat(shape.type, scalar, shape.lanes)
        for v in range(shape.vectors):
            total = sums[row * shape.vectors + v]
            total.after = multiply_add(
                code, target, shape.type, shape.lanes, spread, bs[v], total.ref
            )


def _read(code: Code, side: Side, pointer: str, width: int, type: str) -> str:
    if side.dtype is None:
        return code.load(type, pointer, elements.type_bytes(type), width)
    return elements.read(code, side.dtype, pointer, width, type)
