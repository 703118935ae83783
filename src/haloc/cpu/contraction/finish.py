"""Storing a finished tile: the epilogue, rounding, and the result's own strides."""

from __future__ import annotations

from typing import Protocol

from haloc.cpu.contraction import elements
from haloc.cpu.contraction.micro import TileShape
from haloc.cpu.contraction.text import I64, Code, vector
from haloc.cpu.contraction.view import View, added


class Epilogue(Protocol):
    """Maps sums to the values to store, before rounding: the place for bias and activations.

    Called once per code site with `width` consecutive columns of one row: `value` has compute type
    `type` (a vector when width > 1); (g, row, column) is the first one's place in the product.
    Columns of complex products count components. Columns past the last may be in `value`; what
    is made of them is not stored. Must return the same type and touch no memory but its own.
    """

    def apply(
        self, code: Code, value: str, type: str, width: int, place: tuple[I64, I64, I64]
    ) -> str: ...


class Identity:
    """The product as it is."""

    def apply(
        self, code: Code, value: str, type: str, width: int, place: tuple[I64, I64, I64]
    ) -> str:
        return value


IDENTITY = Identity()


def finish_function(
    symbol: str,
    shape: TileShape,
    out: View,
    epilogue: Epilogue,
    declares: dict[str, None],
    attributes: str,
) -> str:
    """define internal void @symbol(ptr tile, ptr out, i64 g, i64 row, i64 column, i64 rows,
    i64 columns): store the tile's first rows and columns at (g, row, column) of the result."""
    code = Code(declares)
    storage = elements.storage_type(out.dtype)
    column_stride = out.stride("k")
    fixed = out.flat_sums(code, "g", "%g")
    start = sum(c.start for c in out.coordinates)
    with code.loop(0, "%rows") as (r, _):
        tile = code.offset(shape.type, "%tile", code.mul(r, shape.columns))
        row = code.add("%row", r)
        sums = added(code, fixed, out.flat_sums(code, "x", row))
        writer = _RowWriter(code, shape, out, epilogue, tile, ("%g", row, "%column"))
        if column_stride is None:
            writer.scattered(sums, start)
        else:
            offset = code.add(out.plain_offset(code, sums), start)
            offset = code.add(offset, code.mul("%column", column_stride))
            line = code.offset(storage, "%out", offset)
            if column_stride == 1 and elements.can_write_vectors(out.dtype) and shape.lanes > 1:
                writer.vectors(line)
            else:
                writer.strided(line, 0, column_stride)
    i64s = [f"i64 %{n}" for n in ("g", "row", "column", "rows", "columns")]
    return code.function(symbol, ["ptr %tile", "ptr %out", *i64s], attributes)


class _RowWriter:
    """Stores one row of a tile."""

    def __init__(
        self,
        code: Code,
        shape: TileShape,
        out: View,
        epilogue: Epilogue,
        tile: str,
        place: tuple[I64, I64, I64],
    ):
        self.code = code
        self.shape = shape
        self.out = out
        self.epilogue = epilogue
        self.tile = tile
        self.place = place
        self.storage = elements.storage_type(out.dtype)
        self.align = out.dtype.real.byte_size

    def _value(self, at: I64, width: int) -> str:
        code, type = self.code, self.shape.type
        slot = code.offset(type, self.tile, at)
        value = code.load(type, slot, elements.type_bytes(type), width)
        g, row, column = self.place
        value = self.epilogue.apply(code, value, type, width, (g, row, code.add(column, at)))
        return elements.rounded(code, self.out.dtype, value, width, type)

    def vectors(self, line: str) -> None:
        code, lanes = self.code, self.shape.lanes
        whole = code.ins(f"and i64 %columns, {-lanes}")
        with code.loop(0, whole, lanes) as (at, _):
            value = self._value(at, lanes)
            code.store(self.storage, value, code.offset(self.storage, line, at), self.align, lanes)
        rest = code.ins(f"icmp slt i64 {whole}, %columns")
        with code.when(rest):
            value = self._value(whole, lanes)
            left = code.ins(f"sub i64 %columns, {whole}")
            t, mask_type = vector(self.storage, lanes), vector("i1", lanes)
            narrow = code.ins(f"trunc i64 {left} to i32")
            spread = code.splat("i32", narrow, lanes)
            numbers = ", ".join(f"i32 {i}" for i in range(lanes))
            mask = code.ins(f"icmp slt {vector('i32', lanes)} <{numbers}>, {spread}")
            slot = code.offset(self.storage, line, whole)
            symbol = f"@llvm.masked.store.v{lanes}{_short(self.storage)}.p0"
            self.code.declares[f"declare void {symbol}({t}, ptr, {mask_type})"] = None
            where = f"ptr align {self.align} {slot}, {mask_type} {mask}"
            code.do(f"call void {symbol}({t} {value}, {where})")

    def strided(self, line: str, begin: I64, stride: int) -> None:
        code = self.code
        with code.loop(begin, "%columns") as (at, _):
            slot = code.offset(self.storage, line, code.mul(at, stride))
            code.store(self.storage, self._value(at, 1), slot, self.align)

    def scattered(self, sums: dict[int, I64], start: int) -> None:
        code = self.code
        with code.loop(0, "%columns") as (at, _):
            columns = self.out.flat_sums(code, "k", code.add("%column", at))
            offset = self.out.plain_offset(code, added(code, sums, columns))
            slot = code.offset(self.storage, "%out", code.add(offset, start))
            code.store(self.storage, self._value(at, 1), slot, self.align)


def _short(type: str) -> str:
    return {"float": "f32", "double": "f64", "half": "f16"}.get(type, type)
