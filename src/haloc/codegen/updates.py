"""Ops that write part of an array: dynamic-update-slice, scatter, select-and-scatter.

Their results start out as copies of operands (`Kernel.updates`), or in place of them.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from haloc.codegen.builder import Reg
from haloc.codegen.elemental import Buffer, Elements, emit_region
from haloc.codegen.index import Affine
from haloc.codegen.kernel import PREFIX, Kernel, Phase, joined, kernel_for
from haloc.codegen.kernel_function import KernelFunction
from haloc.codegen.loops import LoopKernel
from haloc.codegen.reduction import register_bytes
from haloc.codegen.scalar import LlvmValue
from haloc.codegen.target import Target
from haloc.codegen.windows import over_window, window_element
from haloc.ir.dtype import PRED, S64
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import WindowDim
from haloc.ops.table import attr


class UpdateKernel(LoopKernel):
    """dynamic-update-slice, alone or as the root of a fusion: computes the update, writes it at
    the clamped start."""

    def __init__(self, instruction: HloInstruction, target: Target):
        body = instruction.attrs.get("calls")
        self.update = instruction if body is None else body.root
        super().__init__(instruction, target)
        self.roots = [self.update.operands[1]]
        self.updated = self.inputs.index(self.update.operands[0])

    def iteration_dims(self) -> tuple[int, ...]:
        return self.update.operands[1].shape.dims

    def written_index(self, elements: Elements, index: tuple[Affine, ...]) -> tuple[Affine, ...]:
        operand, update, *starts = self.update.operands
        scalar = elements.scalar
        place = []
        for i, start, n, m in zip(
            index, starts, operand.shape.dims, update.shape.dims, strict=True
        ):
            first = scalar.to_index(elements.element(start, ()))
            place.append(i + scalar.clamp_index(first, 0, n - m))
        return tuple(place)

    def emit(self) -> Kernel:
        kernel = super().emit()
        # The update may read the array it is written to, if only where it writes.
        read = (
            any(user is not self.update for user in self.inputs[self.updated].users)
            and self.instruction.opcode == "fusion"
        )
        pointwise = self.updated in kernel.in_place
        in_place = (self.updated,) if pointwise or not read else ()
        return replace(kernel, in_place=in_place, updates=(self.updated,))


@kernel_for("dynamic-update-slice")
def emit_dynamic_update_slice(instruction: HloInstruction, target: Target) -> Kernel:
    return UpdateKernel(instruction, target).emit()


@kernel_for("scatter")
def emit_scatter(instruction: HloInstruction, target: Target) -> Kernel:
    """One thread takes the updates in order, which makes the result independent of threads."""
    count = len(instruction.operands) // 2
    updates = tuple(range(count))
    function = KernelFunction(instruction, target)
    if prod(instruction.operands[-1].shape.dims):
        _Scatter(instruction, function, target).emit()
    kernel = function.kernel(Phase(f"{PREFIX}.run"))
    return replace(kernel, in_place=updates, updates=updates)


class _Scatter:
    def __init__(self, instruction: HloInstruction, function: KernelFunction, target: Target):
        self.instruction = instruction
        self.f = function
        count = len(instruction.operands) // 2
        self.indices = instruction.operands[count]
        self.sources = instruction.operands[count + 1 :]
        self.dims = instruction.operands[0].shape.dims
        self.update_dims = self.sources[0].shape.dims
        self.window_dims = attr(instruction, "update_window_dims")
        self.scatter_dims = [d for d in range(len(self.update_dims)) if d not in self.window_dims]
        inserted = set(attr(instruction, "inserted_window_dims"))
        inserted |= set(attr(instruction, "input_batching_dims"))
        self.window_to_operand = [d for d in range(len(self.dims)) if d not in inserted]
        size = max(register_bytes(s.shape.dtype) for s in self.sources)
        self.width = self._width(target.lanes(size))

    def _width(self, lanes: int) -> int:
        """Vectors along the window where its last dimension is the array's last."""
        if not self.window_dims or self.window_to_operand[-1] != len(self.dims) - 1:
            return 1
        n = self.update_dims[self.window_dims[-1]]
        while lanes > n:
            lanes //= 2
        return lanes if self.window_dims[-1] == len(self.update_dims) - 1 else 1

    def emit(self) -> None:
        f = self.f
        with f.nest([self.update_dims[d] for d in self.scatter_dims]) as at:
            starts, inside = self._starts(at)
            sizes = [self.update_dims[d] for d in self.window_dims]
            if not sizes:
                self._update(at, [], starts, inside, None)
                return
            with f.nest(sizes[:-1]) as window:
                self._minor(at, window, sizes[-1], starts, inside)

    def _minor(
        self,
        at: list[Affine],
        window: list[Affine],
        n: int,
        starts: list[Affine],
        inside: LlvmValue,
    ) -> None:
        f, width = self.f, self.width
        f.space.set_width(width)
        lanes, main = f.space.lanes(), n - n % width
        with f.builder.loop(0, main, width) as loop:
            j = f.space.atom(0, main - width, loop.index, width) + lanes
            self._update(at, [*window, j], starts, inside, None)
        if main < n:
            j = lanes + main
            mask = f.scalar.index_in_range(j, 0, n)
            self._update(at, [*window, j], starts, inside, mask)
        f.space.set_width(1)

    def _starts(self, at: list[Affine]) -> tuple[list[Affine], LlvmValue]:
        """The window's first element, and whether the whole window is within bounds."""
        f, i = self.f, self.instruction
        vector_dim = attr(i, "index_vector_dim")
        starts = [f.space.zero] * len(self.dims)
        sizes = [1] * len(self.dims)
        for d, w in zip(self.window_to_operand, self.window_dims, strict=True):
            sizes[d] = self.update_dims[w]
        inside = f.scalar.true()
        for k, d in enumerate(attr(i, "scatter_dims_to_operand_dims")):
            index = list(at)
            if vector_dim < len(self.indices.shape.dims):
                index.insert(vector_dim, f.space.constant(k))
            start = f.scalar.to_index(f.elements.element(self.indices, tuple(index)))
            fits = f.scalar.index_in_range(start, 0, self.dims[d] - sizes[d] + 1)
            inside = f.scalar.and_(inside, fits)
            starts[d] = start
        batching = zip(
            attr(i, "input_batching_dims"), attr(i, "scatter_indices_batching_dims"), strict=True
        )
        for d, b in batching:
            starts[d] = at[b - (b > vector_dim)]
        return starts, inside

    def _update(
        self,
        at: list[Affine],
        window: list[Affine],
        starts: list[Affine],
        inside: LlvmValue,
        mask: LlvmValue | None,
    ) -> None:
        f = self.f
        source = [f.space.zero] * len(self.update_dims)
        for d, a in zip(self.scatter_dims, at, strict=True):
            source[d] = a
        place = list(starts)
        for d, w, a in zip(self.window_to_operand, self.window_dims, window, strict=True):
            source[w] = a
            place[d] = place[d] + a
        new = [f.elements.element(s, tuple(source), mask) for s in self.sources]
        width = f.space.width if any(a.varies_by_lane for a in window) else 1
        pointers = [self._pointer(out, place, window, inside) for out in f.results]
        old = [
            f.scalar.load(p, out.shape.dtype, width, mask, hoist=False)
            for p, out in zip(pointers, f.results, strict=True)
        ]
        combined = emit_region(f.scalar, self.instruction.attrs["to_apply"], [*old, *new])
        for pointer, value, before in zip(pointers, combined, old, strict=True):
            kept = f.scalar.select(inside, f.scalar.splat(value, width), before)
            f.scalar.store(f.scalar.splat(kept, width), pointer, mask)

    def _pointer(
        self, out: Buffer, place: list[Affine], window: list[Affine], inside: LlvmValue
    ) -> Reg:
        """The address to update; out of bounds, that of the window at 0, which is written back."""
        f = self.f
        offset = out.offset(f.space, tuple(place))
        if inside.reg.ref != "true":
            safe = [f.space.zero] * len(self.dims)
            for d, a in zip(self.window_to_operand, window, strict=True):
                safe[d] = a
            lanes = {a: c for a, c in offset.terms.items() if a.lanes}
            scalar_part = Affine(
                f.space, offset.constant, {a: c for a, c in offset.terms.items() if not a.lanes}
            )
            elsewhere = out.offset(f.space, tuple(safe)) - Affine(f.space, 0, lanes)
            chosen = f.builder.op(
                "i64",
                "select i1 {0}, i64 {1}, i64 {2}",
                inside.reg,
                f.space.register(scalar_part),
                f.space.register(elsewhere),
            )
            offset = f.space.atom(0, out.shape.element_count - 1, chosen)
        return f.elements.pointer(out, offset)


@kernel_for("select-and-scatter")
def emit_select_and_scatter(instruction: HloInstruction, target: Target) -> Kernel:
    """Fill with the initial value; then each source element goes to its window's selected place.

    Units of the second phase are indices of the leading dimensions whose windows are single
    elements: they never meet.
    """
    operand, source, init = instruction.operands
    window = attr(instruction, "window")
    fill = KernelFunction(instruction, target)
    n = operand.shape.element_count
    if n:
        with fill.nest([n]) as (i,):
            value = fill.elements.element(init, ())
            fill.elements.store(value, Buffer(fill.results[0].base, Shape(value.dtype, (n,))), (i,))
    kernel = fill.kernel(Phase(f"{PREFIX}.fill"))
    if not n or not source.shape.element_count:
        return kernel
    f = KernelFunction(instruction, target)
    free = 0
    while free < len(window) and window[free] == WindowDim(1):
        free += 1
    dims = source.shape.dims
    extent = prod(dims[:free])
    cost = 2.0 * source.shape.element_count * prod(w.size for w in window) / extent
    with f.each_unit(dims[:free]) as outer, f.nest(dims[free:]) as inner:
        _select_one(f, instruction, (*outer, *inner))
    return joined(kernel, f.kernel(Phase(f"{PREFIX}.scatter", extent, cost)))


def _select_one(f: KernelFunction, instruction: HloInstruction, at: tuple[Affine, ...]) -> None:
    operand, source, _ = instruction.operands
    window = attr(instruction, "window")
    scalar, space = f.scalar, f.space
    dtype = operand.shape.dtype
    out = f.results[0]
    start = [scalar.constant(dtype, 0), scalar.constant(S64, 0), scalar.constant(PRED, False)]

    def step(position: tuple[Affine, ...], carried: list[LlvmValue]) -> list[LlvmValue]:
        best, where, found = carried
        inside, place = window_element(f.elements, window, operand.shape.dims, at, position)
        value = f.elements.element(operand, place, inside)
        (keep,) = emit_region(scalar, instruction.attrs["select"], [best, value])
        take = scalar.and_(inside, scalar.not_(scalar.and_(found, keep)))
        offset = LlvmValue(S64, 1, space.register(out.offset(space, place)))
        return [
            scalar.select(take, value, best),
            scalar.select(take, offset, where),
            scalar.or_(found, inside),
        ]

    _, where, found = over_window(f.elements, [w.size for w in window], start, step)
    # A window with no element in it selects nothing: element 0 is written back then.
    safe = scalar.select(found, where, scalar.constant(S64, 0))
    pointer = f.elements.pointer(out, space.atom(0, out.shape.element_count - 1, safe.reg))
    old = scalar.load(pointer, dtype, hoist=False)
    new = f.elements.element(source, at)
    (value,) = emit_region(scalar, instruction.attrs["scatter"], [old, new])
    scalar.store(scalar.select(found, value, old), pointer)
