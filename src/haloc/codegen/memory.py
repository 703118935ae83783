"""Between registers and memory: loads, stores and gathers of every element type.

Addresses are element-aligned. Complex elements are (real, imag) pairs. What memory holds in the
upper bits of a sub-byte element, or beyond bit 0 of a pred, is ignored.
"""

from __future__ import annotations

from haloc.codegen.builder import Reg, const, mangle, vector
from haloc.codegen.scalar_expr import Expr, shape_of
from haloc.codegen.scalar_narrow import decode, encode
from haloc.codegen.scalar_value import (
    LlvmValue,
    ScalarCore,
    is_narrow,
    register_element,
    shuffle,
)
from haloc.ir.dtype import DType


def memory_element(dtype: DType) -> str:
    """LLVM's type of one element (one part, for complex) in memory."""
    if dtype.is_pred:
        return "i8"
    if dtype.is_integer:
        return f"i{max(8, dtype.bits)}"
    if is_narrow(dtype):
        return "i16" if dtype.bits == 16 else "i8"
    return register_element(dtype)


_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}


class Memory(ScalarCore):
    """Loads and stores of `LlvmScalar`."""

    def memory_bytes(self, dtype: DType) -> int:
        """Bytes one element takes in memory: pred and sub-byte types 1, c64 8."""
        return dtype.byte_size

    def load(
        self,
        pointer: Reg,
        dtype: DType,
        width: int = 1,
        mask: LlvmValue | None = None,
        hoist: bool = True,
    ) -> LlvmValue:
        """`width` elements that follow each other from `pointer` on.

        mask (pred, splatted to that width): lanes where it is false are not read and are
        unspecified, though never poison.
        hoist: the load is pure (placed and shared by its operands); False: it runs at the cursor.
        """
        element = memory_element(dtype)
        lanes = self._mask(mask, width)
        if not dtype.is_complex:
            raw = self._load(pointer, vector(element, width), element, lanes, hoist)
            return self._from_memory(raw, dtype)
        pair_mask = None if lanes is None else self._doubled(lanes)
        both = self._load(pointer, f"<{2 * width} x {element}>", element, pair_mask, hoist)
        if width == 1:
            parts = [
                self.builder.op(element, f"extractelement {both.type} {{0}}, i64 {i}", both)
                for i in (0, 1)
            ]
        else:
            parts = [shuffle(self.builder, both, both, range(i, 2 * width, 2)) for i in (0, 1)]
        return LlvmValue(dtype, width, *parts)

    def store(self, value: LlvmValue, pointer: Reg, mask: LlvmValue | None = None) -> None:
        """Write a value's elements from `pointer` on, those where `mask` holds."""
        element = memory_element(value.dtype)
        lanes = self._mask(mask, value.width)
        if value.imag is None:
            self._store(self._to_memory(value), pointer, element, lanes)
            return
        pair_mask = None if lanes is None else self._doubled(lanes)
        both = self._interleave(value.reg, value.imag)
        self._store(both, pointer, element, pair_mask)

    def gather(
        self, base: Reg, offsets: Reg, dtype: DType, width: int, mask: LlvmValue | None = None
    ) -> LlvmValue:
        """Elements at base + offsets, which count elements: i64, or <width x i64>."""
        element = memory_element(dtype)
        lanes = self._mask(mask, width)
        if not dtype.is_complex:
            raw = self._gather(base, offsets, element, lanes)
            return self._from_memory(raw, dtype)
        first = Expr(self.builder, offsets).shl(1)
        parts = [
            self._gather(base, at.reg, element, lanes) for at in (first, first | first.like(1))
        ]
        return LlvmValue(dtype, width, *parts)

    def _mask(self, mask: LlvmValue | None, width: int) -> Reg | None:
        return None if mask is None else self.splat(mask, width).reg

    # --- Raw registers ------------------------------------------------------------------------

    def _from_memory(self, raw: Reg, dtype: DType) -> LlvmValue:
        expr = Expr(self.builder, raw)
        if is_narrow(dtype):
            expr = decode(expr, dtype, self.target)
        else:
            expr = expr.cast("trunc", register_element(dtype))
        return self.wrap(dtype, expr)

    def _to_memory(self, value: LlvmValue) -> Reg:
        expr, dtype = self.real_expr(value), value.dtype
        if is_narrow(dtype):
            return encode(expr, dtype, self.target).reg
        # A sub-byte integer's upper bits in memory are zero, signed or not, as ml_dtypes has it.
        return expr.cast("zext", memory_element(dtype)).reg

    def _load(self, pointer: Reg, type: str, element: str, mask: Reg | None, hoist: bool) -> Reg:
        op = self.builder.op if hoist else self.builder.op_here
        align = _BYTES[element]
        if mask is None:
            return op(type, f"load {type}, ptr {{0}}, align {align}", pointer)
        if not type.startswith("<"):
            one = self._load(pointer, f"<1 x {type}>", element, self._as_vector(mask), hoist)
            return self.builder.op(type, f"extractelement {one.type} {{0}}, i64 0", one)
        masks = vector_of_i1(type)
        name = f"@llvm.masked.load.{mangle(type)}.p0"
        self.builder.declare(f"declare {type} {name}(ptr, {masks}, {type})")
        return op(
            type,
            f"call {type} {name}(ptr align {align} {{0}}, {masks} {{1}}, {type} zeroinitializer)",
            pointer,
            mask,
        )

    def _store(self, raw: Reg, pointer: Reg, element: str, mask: Reg | None) -> None:
        align = _BYTES[element]
        if mask is None:
            self.builder.effect(f"store {raw.type} {{0}}, ptr {{1}}, align {align}", raw, pointer)
            return
        if not raw.type.startswith("<"):
            raw, mask = self._as_vector(raw), self._as_vector(mask)
        masks = vector_of_i1(raw.type)
        name = f"@llvm.masked.store.{mangle(raw.type)}.p0"
        self.builder.declare(f"declare void {name}({raw.type}, ptr, {masks})")
        self.builder.effect(
            f"call void {name}({raw.type} {{0}}, ptr align {align} {{1}}, {masks} {{2}})",
            raw,
            pointer,
            mask,
        )

    def _gather(self, base: Reg, offsets: Reg, element: str, mask: Reg | None) -> Reg:
        width = shape_of(offsets.type)[0]
        at = self.builder.op(
            vector("ptr", width),
            f"getelementptr {element}, ptr {{0}}, {offsets.type} {{1}}",
            base,
            offsets,
        )
        type = vector(element, width)
        if width == 1:
            return self._load(at, type, element, mask, hoist=True)
        masks = f"<{width} x i1>"
        if mask is None:
            mask = const(masks, "splat (i1 true)")
        name = f"@llvm.masked.gather.{mangle(type)}.v{width}p0"
        self.builder.declare(f"declare {type} {name}(<{width} x ptr>, {masks}, {type})")
        return self.builder.op(
            type,
            f"call {type} {name}(<{width} x ptr> align {_BYTES[element]} {{0}}, {masks} {{1}}, "
            f"{type} zeroinitializer)",
            at,
            mask,
        )

    # --- Pairs --------------------------------------------------------------------------------

    def _as_vector(self, reg: Reg) -> Reg:
        type = f"<1 x {reg.type}>"
        return self.builder.op(type, f"insertelement {type} poison, {reg.type} {{0}}, i64 0", reg)

    def _interleave(self, a: Reg, b: Reg) -> Reg:
        """a0 b0 a1 b1 ..."""
        width = shape_of(a.type)[0]
        if width == 1:
            a, b = self._as_vector(a), self._as_vector(b)
        lanes = [lane for i in range(width) for lane in (i, width + i)]
        return shuffle(self.builder, a, b, lanes)

    def _doubled(self, mask: Reg) -> Reg:
        return self._interleave(mask, mask)


def vector_of_i1(type: str) -> str:
    return f"<{shape_of(type)[0]} x i1>"
