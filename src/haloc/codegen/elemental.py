"""One element of an instruction, computed through everything fused into it.

`Elements.element(instruction, index)` walks from a result towards the kernel's buffers, asking each
op row how its element is made. The same walk serves scalars and vectors, loops and regions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from haloc.codegen.builder import Builder, Reg, const, vector
from haloc.codegen.index import Affine, IndexSpace
from haloc.codegen.scalar import LlvmScalar, LlvmValue
from haloc.codegen.target import Target
from haloc.errors import UnimplementedError
from haloc.ir.dtype import PRED, S32, S64, DType
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.table import Elementwise, Indexed, op

LoopedEmitter: TypeAlias = (
    "Callable[[Elements, HloInstruction, tuple[Affine, ...], LlvmValue | None], list[LlvmValue]]"
)

LOOPED: dict[str, LoopedEmitter] = {}
"""Ops whose element takes a loop (reduce, reduce-window): opcode -> emitter of all results."""


class ElementScalar(LlvmScalar):
    """The `Scalar` protocol complete: LLVM arithmetic plus index expressions."""

    def __init__(self, builder: Builder, target: Target):
        super().__init__(builder, target)
        self.space = IndexSpace(builder)
        self._first_lane_masks: set[str] = set()

    def true(self) -> LlvmValue:
        return LlvmValue(PRED, 1, const("i1", "true"))

    def select(self, pred: LlvmValue, on_true: LlvmValue, on_false: LlvmValue) -> LlvmValue:
        return on_true if pred.reg.ref == "true" else super().select(pred, on_true, on_false)

    def and_(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        if x.reg.ref == "true":
            return y
        return x if y.reg.ref == "true" else super().and_(x, y)

    def any_lane(self, mask: LlvmValue) -> LlvmValue:
        """pred, width 1: whether any lane is true."""
        if mask.width == 1:
            return mask
        bits = f"i{mask.width}"
        packed = self.builder.op(bits, f"bitcast {mask.reg.type} {{0}} to {bits}", mask.reg)
        return LlvmValue(PRED, 1, self.builder.op("i1", f"icmp ne {bits} {{0}}, 0", packed))

    def index_constant(self, number: int) -> Affine:
        return self.space.constant(number)

    def from_index(self, index: Affine, dtype: DType) -> LlvmValue:
        width = self.space.width if index.varies_by_lane else 1
        reg = self.space.register(index)
        low, high = index.range
        if low >= -(2**31) and high < 2**31:
            t = vector("i32", width)
            narrow = self.builder.op(t, f"trunc {reg.type} {{0}} to {t}", reg)
            return self.convert(LlvmValue(S32, width, narrow), dtype)
        return self.convert(LlvmValue(S64, width, reg), dtype)

    def to_index(self, x: LlvmValue) -> Affine:
        if x.dtype.is_unsigned and x.dtype.bits == 64:
            # Indices are signed; anything this large is out of bounds all the same.
            top = self.constant(x.dtype, 2**63 - 1)
            x = self.minimum(x, top)
        bits = x.dtype.bits
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if not x.dtype.is_signed:
            low, high = 0, min(2**bits, 2**63) - 1
        if x.dtype.is_pred or bits < 64:
            t, source = vector("i64", x.width), x.reg.type
            extend = "sext" if x.dtype.is_signed else "zext"
            reg = self.builder.op(t, f"{extend} {source} {{0}} to {t}", x.reg)
        else:
            reg = x.reg
        return self.space.atom(low, high, reg, lanes=x.width > 1)

    def clamp_index(self, index: Affine, low: int, high: int) -> Affine:
        least, most = index.range
        if low <= least and most <= high:
            return index
        if low == high:
            return self.space.constant(low)
        reg = self.space.register(index)
        lanes = index.varies_by_lane
        width = self.space.width if lanes else 1
        reg = self.builder.intrinsic(
            "smax", reg.type, reg, self.builder.splat(const("i64", low), width)
        )
        reg = self.builder.intrinsic(
            "smin", reg.type, reg, self.builder.splat(const("i64", high), width)
        )
        return self.space.atom(low, high, reg, lanes=lanes)

    def index_in_range(self, index: Affine, low: int, high: int) -> LlvmValue:
        least, most = index.range
        if low <= least and most < high:
            return self.true()
        lanes = index.varies_by_lane
        width = self.space.width if lanes else 1
        # One unsigned comparison tests both bounds.
        shifted = self.space.register(index - low)
        size = self.builder.splat(const("i64", max(high - low, 0)), width)
        t = vector("i1", width)
        inside = self.builder.op(t, f"icmp ult {shifted.type} {{0}}, {{1}}", shifted, size)
        is_lane_number = index.terms == {self.space.lane: 1}
        if is_lane_number and low <= index.constant == high - 1:
            self._first_lane_masks.add(inside.ref)
        return LlvmValue(PRED, width, inside)

    def store(self, value: LlvmValue, pointer: Reg, mask: LlvmValue | None = None) -> None:
        """As in `Memory`. A mask of lane 0 alone is a scalar store, for speed and because LLVM 22
        widens the truncating masked stores of narrow types that have one constant lane: it writes
        behind the element."""
        if mask is not None and mask.reg.ref in self._first_lane_masks and value.width > 1:
            value, mask = self.extract(value, 0), None
        super().store(value, pointer, mask)


@dataclass(frozen=True, slots=True)
class Buffer:
    """A dense row-major array in memory."""

    base: Reg
    shape: Shape

    def offset(self, space: IndexSpace, index: tuple[Affine, ...]) -> Affine:
        """Linear element number of `index`."""
        total = space.zero
        for i, size in zip(index, self.shape.dims, strict=True):
            total = total * size + i
        return space.recombine(total)


class Elements:
    """Elements of instructions, given the buffers some of them live in."""

    def __init__(self, scalar: ElementScalar, buffers: dict[HloInstruction, Buffer]):
        self.scalar = scalar
        self.builder = scalar.builder
        self.space = scalar.space
        self.buffers = buffers
        self.bound: dict[HloInstruction, LlvmValue] = {}
        self._made: dict[tuple[object, ...], LlvmValue] = {}
        self._reductions: dict[tuple[object, ...], list[LlvmValue]] = {}

    def element(
        self,
        instruction: HloInstruction,
        index: tuple[Affine, ...],
        mask: LlvmValue | None = None,
    ) -> LlvmValue:
        """The element at `index`; where `mask` is false, anything (and no fault)."""
        if mask is not None and mask.reg.ref == "true":
            mask = None
        key = (instruction, *(i.key for i in index), mask.reg.ref if mask else None)
        value = self._made.get(key)
        if value is None or not self._visible(value):
            value = self._make(instruction, index, mask)
            self._made[key] = value
        return value

    def _visible(self, value: LlvmValue) -> bool:
        return self.builder.is_visible(value.reg.region)

    def _make(
        self, instruction: HloInstruction, index: tuple[Affine, ...], mask: LlvmValue | None
    ) -> LlvmValue:
        bound = self.bound.get(instruction)
        if bound is not None:
            return bound
        buffer = self.buffers.get(instruction)
        if buffer is not None:
            return self.load(buffer, index, mask)
        if instruction.opcode == "constant":
            return self._constant(instruction, index)
        if instruction.opcode == "get-tuple-element":
            number = instruction.attrs["index"]
            return self.elements_of(instruction.operands[0], index, mask)[number]
        row = op(instruction)
        if isinstance(row.lower, Elementwise):
            values = [
                self.element(o, index if o.shape.dims else (), mask) for o in instruction.operands
            ]
            return row.lower.emit(self.scalar, instruction, *values)
        if isinstance(row.lower, Indexed):
            source = self.buffers.get(instruction.operands[0]) if row.lower.keeps_order else None
            if source is not None:
                view = self.buffers[instruction] = Buffer(source.base, instruction.shape)
                return self.load(view, index, mask)

            def read(
                operand: int, at: tuple[Affine, ...], inside: LlvmValue | None = None
            ) -> LlvmValue:
                return self.element(
                    instruction.operands[operand], tuple(at), self.both(mask, inside)
                )

            return row.lower.emit(self.scalar, instruction, index, read)
        return self.elements_of(instruction, index, mask)[0]

    def both(self, x: LlvmValue | None, y: LlvmValue | None) -> LlvmValue | None:
        if x is None or y is None:
            return x or y
        return self.scalar.and_(x, y)

    def elements_of(
        self, instruction: HloInstruction, index: tuple[Affine, ...], mask: LlvmValue | None
    ) -> list[LlvmValue]:
        """The elements of every result of an instruction with a loop in it, at one index."""
        emit = LOOPED.get(instruction.opcode)
        if emit is None:
            raise UnimplementedError(
                f"{instruction.opcode} inside a fused loop on the cpu backend; "
                f"supported: elementwise and indexed ops, {', '.join(sorted(LOOPED))}"
            )
        if mask is not None and mask.width > 1 and not any(i.varies_by_lane for i in index):
            mask = self.scalar.any_lane(mask)
        key = (instruction, *(i.key for i in index), mask.reg.ref if mask else None)
        values = self._reductions.get(key)
        if values is None or not all(self._visible(v) for v in values):
            values = emit(self, instruction, index, mask)
            self._reductions[key] = values
        return values

    def _constant(self, instruction: HloInstruction, index: tuple[Affine, ...]) -> LlvmValue:
        literal = instruction.attrs["literal"]
        if literal.array.size != 1 and not literal.is_splat:
            raise UnimplementedError(
                f"constant of shape {literal.shape} inside a fused loop: make it an operand"
            )
        return self.scalar.constant(literal.shape.dtype, literal.array.reshape(-1)[0])

    # --- Memory ---------------------------------------------------------------------------------

    def pointer(self, buffer: Buffer, offset: Affine) -> Reg:
        """The address of element `offset` (lane 0's where it varies by lane)."""
        scalar = Affine(
            self.space, offset.constant, {a: c for a, c in offset.terms.items() if not a.lanes}
        )
        size = self.scalar.memory_bytes(buffer.shape.dtype)
        place = self.space.register(scalar)
        return self.builder.op(
            "ptr", f"getelementptr [{size} x i8], ptr {{0}}, i64 {{1}}", buffer.base, place
        )

    def load(self, buffer: Buffer, index: tuple[Affine, ...], mask: LlvmValue | None) -> LlvmValue:
        offset = buffer.offset(self.space, index)
        dtype, width = buffer.shape.dtype, self.space.width
        if not offset.varies_by_lane:
            return self._load_scalar(buffer, offset, mask)
        if offset.lane_stride == 1:
            if mask is not None:
                mask = self.scalar.splat(mask, width)
            return self.scalar.load(self.pointer(buffer, offset), dtype, width, mask)
        if mask is not None:
            mask = self.scalar.splat(mask, width)
        offsets = self.space.register(offset, as_vector=True)
        return self.scalar.gather(buffer.base, offsets, dtype, width, mask)

    def _load_scalar(self, buffer: Buffer, offset: Affine, mask: LlvmValue | None) -> LlvmValue:
        """One element, the same for all lanes. Where the mask forbids it, element 0 is read."""
        if mask is not None:
            allowed = self.scalar.any_lane(mask).reg
            place = self.space.register(offset)
            safe = self.builder.op("i64", "select i1 {0}, i64 {1}, i64 0", allowed, place)
            low, high = offset.range
            offset = self.space.atom(min(low, 0), max(high, 0), safe)
        return self.scalar.load(self.pointer(buffer, offset), buffer.shape.dtype)

    def store(
        self,
        value: LlvmValue,
        buffer: Buffer,
        index: tuple[Affine, ...],
        mask: LlvmValue | None = None,
    ) -> None:
        """Write at `index`, whose lanes (if any) must be contiguous."""
        offset = buffer.offset(self.space, index)
        width = self.space.width if offset.varies_by_lane else 1
        assert not offset.varies_by_lane or offset.lane_stride == 1, "scattered store"
        pointer = self.pointer(buffer, offset)
        self.scalar.store(self.scalar.splat(value, width), pointer, mask)


def emit_region(
    scalar: ElementScalar, computation: HloComputation, arguments: list[LlvmValue]
) -> list[LlvmValue]:
    """A computation of scalars (reducer, comparator, combiner) on values; one value a result."""
    elements = Elements(scalar, {})
    for parameter, value in zip(computation.parameters, arguments, strict=True):
        elements.bound[parameter] = value
    root = computation.root
    results = root.operands if root.opcode == "tuple" else (root,)
    return [elements.element(r, ()) for r in results]
