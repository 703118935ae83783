"""reduce: accumulators in registers, as vectors along whichever dimension is contiguous.

When the result index does not vary by lane, the innermost reduced dimension is spread over lanes
and the lanes are combined at the end in a fixed tree. When it does (column sums), lanes are result
elements and each accumulates on its own. Either way the order of combination is fixed by shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from haloc.analysis.reducers import is_repeatable
from haloc.codegen.builder import Region
from haloc.codegen.elemental import LOOPED, Elements, emit_region
from haloc.codegen.index import Affine
from haloc.codegen.scalar import LlvmValue
from haloc.ir.dtype import F32, DType
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ops.table import Elementwise, attr, op

Combine = Callable[[list[LlvmValue], list[LlvmValue]], list[LlvmValue]]

ROW_VECTORS = 4
"""Vector accumulators of a row reduction: enough to hide the latency of an addition."""


def emit_reduce(
    elements: Elements,
    reduce: HloInstruction,
    index: tuple[Affine, ...],
    mask: LlvmValue | None,
) -> list[LlvmValue]:
    """All results of `reduce` at one result index, in loops at the index's own depth."""
    with at_depth_of(elements, index, mask):
        return _Reduce(elements, reduce, index, mask).emit()


LOOPED["reduce"] = emit_reduce


@contextmanager
def at_depth_of(
    elements: Elements, index: tuple[Affine, ...], mask: LlvmValue | None
) -> Iterator[None]:
    """Put the cursor into the outermost region where index and mask are known: hoists loops."""
    builder = elements.builder
    regions = [builder.root, *(r for i in index if (r := i.region) is not None)]
    if mask is not None and mask.reg.region is not None:
        regions.append(mask.reg.region)
    deepest: Region = max(regions, key=lambda r: r.depth)
    outer, builder.cursor = builder.cursor, deepest
    yield
    builder.cursor = outer


class _Reduce:
    def __init__(
        self,
        elements: Elements,
        reduce: HloInstruction,
        index: tuple[Affine, ...],
        mask: LlvmValue | None,
    ):
        self.elements = elements
        self.mask = mask
        self.scalar = elements.scalar
        self.space = elements.space
        self.index = index
        count = len(reduce.operands) // 2
        self.inputs = reduce.operands[:count]
        self.inits = [elements.element(i, ()) for i in reduce.operands[count:]]
        self.dims = self.inputs[0].shape.dims
        self.reduced = sorted(attr(reduce, "dimensions"))
        self.combine, self.accumulator_dtype = combiner(elements, reduce.attrs["to_apply"])
        self.inits = [self._widen(i) for i in self.inits]
        self.result_dtypes = [i.shape.dtype for i in reduce.operands[count:]]
        self.splittable = is_repeatable(reduce)

    def _widen(self, value: LlvmValue) -> LlvmValue:
        dtype = self.accumulator_dtype
        return value if dtype is None else self.scalar.convert(value, dtype)

    def emit(self) -> list[LlvmValue]:
        by_lane = any(i.varies_by_lane for i in self.index)
        loops = [d for d in self.reduced if self.dims[d] != 1]
        inner = loops[-1] if loops else -1
        spread = (
            not by_lane
            and self.splittable
            and inner == max((d for d, n in enumerate(self.dims) if n != 1), default=-1)
            and self.dims[inner] >= 4
        )
        if 0 in (self.dims[d] for d in self.reduced):
            values = self.inits
        elif spread:
            values = self._rows(loops)
        else:
            if by_lane:
                width = self.space.width
                self.inits = [self.scalar.splat(i, width) for i in self.inits]
            values = self._nest(loops, {}, self.inits, None)
        if self.accumulator_dtype is not None:
            pairs = zip(values, self.result_dtypes, strict=True)
            values = [self.scalar.convert(v, d) for v, d in pairs]
        return values

    # --- Lanes along the innermost reduced dimension -----------------------------------------

    def _rows(self, loops: list[int]) -> list[LlvmValue]:
        n = self.dims[loops[-1]]
        width = self._row_width(n)
        old_width, old_lane = self.space.width, self.space.lane
        self.space.set_width(width)
        start = [self.scalar.splat(i, width) for i in self.inits]
        values = self._nest(loops, {}, start, width)
        self.space.width, self.space.lane = old_width, old_lane
        while values[0].width > 1:
            halves = [self.scalar.split(v) for v in values]
            values = self.combine([low for low, _ in halves], [high for _, high in halves])
        return values

    def _row_width(self, n: int) -> int:
        size = max(register_bytes(i.shape.dtype) for i in self.inputs)
        lanes = self.scalar.target.lanes(size)
        width = lanes * ROW_VECTORS
        while width > lanes and n < 2 * width:
            width //= 2
        while width > n:
            width //= 2
        return max(width, 2)

    # --- Loop nest ------------------------------------------------------------------------------

    def _nest(
        self,
        loops: Sequence[int],
        at: dict[int, Affine],
        carried: list[LlvmValue],
        width: int | None,
    ) -> list[LlvmValue]:
        """Loops over `loops`, outermost first; the last in steps of `width` lanes, if given."""
        if not loops:
            return self._accumulate(at, carried, None)
        d, rest = loops[0], loops[1:]
        n = self.dims[d]
        if rest or width is None:
            return self._loop(n, 1, carried, lambda i, c: self._nest(rest, at | {d: i}, c, width))
        main = n - n % width
        lanes = self.space.lanes()
        if main:
            carried = self._loop(
                main, width, carried, lambda i, c: self._accumulate(at | {d: i + lanes}, c, None)
            )
        if main < n:
            tail = lanes + main
            inside = self.scalar.index_in_range(tail, 0, n)
            carried = self._accumulate(at | {d: tail}, carried, inside)
        return carried

    def _loop(
        self,
        n: int,
        step: int,
        carried: list[LlvmValue],
        body: Callable[[Affine, list[LlvmValue]], list[LlvmValue]],
    ) -> list[LlvmValue]:
        if n == step:
            return body(self.space.zero, carried)
        with self.elements.builder.loop(0, n, step) as loop:
            inside = [carry_value(loop.carry, v) for v in carried]
            i = self.space.atom(0, n - step, loop.index, step)
            after = body(i, inside)
            loop.next(*(r for v in after for r in registers(v)))
        return from_registers(after, loop.results())

    def _accumulate(
        self, at: dict[int, Affine], carried: list[LlvmValue], inside: LlvmValue | None
    ) -> list[LlvmValue]:
        kept = iter(self.index)
        zero = self.space.zero
        full = tuple(
            at.get(d, zero) if d in self.reduced else next(kept) for d in range(len(self.dims))
        )
        mask = self.elements.both(self.mask, inside)
        values = [self._widen(self.elements.element(x, full, mask)) for x in self.inputs]
        width = carried[0].width
        values = [self.scalar.splat(v, width) for v in values]
        if inside is not None:
            pairs = zip(values, self.inits, strict=True)
            values = [self.scalar.select(inside, v, self.scalar.splat(i, width)) for v, i in pairs]
        return [self.scalar.splat(v, width) for v in self.combine(carried, values)]


# --- Reducers ----------------------------------------------------------------------------------


def combiner(elements: Elements, region: HloComputation) -> tuple[Combine, DType | None]:
    """How to combine two lists of values, and a wider type to accumulate in, if any.

    A single add or multiply of a narrow float type accumulates in f32: one rounding at the end
    instead of one a step.
    """
    scalar = elements.scalar
    root = region.root
    parameters = region.parameters
    lower = op(root).lower
    if (
        isinstance(lower, Elementwise)
        and set(root.operands) == set(parameters)
        and len(parameters) == 2
    ):
        flipped = root.operands[0] is not parameters[0]
        dtype = root.shape.dtype
        narrow = dtype.is_float and dtype.bits < 32 and root.opcode in ("add", "multiply")

        def combine(x: list[LlvmValue], y: list[LlvmValue]) -> list[LlvmValue]:
            pair = (y[0], x[0]) if flipped else (x[0], y[0])
            return [lower.emit(scalar, root, *pair)]

        return combine, (F32 if narrow else None)
    return lambda x, y: emit_region(scalar, region, [*x, *y]), None


# --- Values and registers ----------------------------------------------------------------------


def register_bytes(dtype: DType) -> int:
    """Bytes of one element in a register: narrow floats are held as f32, complex as two."""
    if dtype.is_float and dtype.bits < 32:
        return 4
    if dtype.is_complex:
        return dtype.bits // 16
    return max(1, dtype.bits // 8)


def registers(value: LlvmValue) -> list:
    return [value.reg] if value.imag is None else [value.reg, value.imag]


def carry_value(carry: Callable, value: LlvmValue) -> LlvmValue:
    reg = carry(value.reg)
    return LlvmValue(value.dtype, value.width, reg, value.imag and carry(value.imag))


def from_registers(like: list[LlvmValue], regs: list) -> list[LlvmValue]:
    """The registers of `results()` as values of the same kinds as `like`."""
    source = iter(regs)
    values = []
    for value in like:
        reg = next(source)
        imag = None if value.imag is None else next(source)
        values.append(LlvmValue(value.dtype, value.width, reg, imag))
    return values
