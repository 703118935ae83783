"""Loop kernels: every element of a fusion's results, by nested loops with vectors inside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import prod

from haloc.codegen.access import Access, find_access
from haloc.codegen.builder import Builder, Reg, i64
from haloc.codegen.elemental import Buffer, Elements, ElementScalar
from haloc.codegen.index import Affine
from haloc.codegen.kernel import PREFIX, Kernel, Phase, joined
from haloc.codegen.reduction import register_bytes
from haloc.codegen.scalar import LlvmValue
from haloc.codegen.target import Target
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.table import op

PARALLEL_NS = 40_000.0
"""Kernels estimated to take longer are divided into units for the worker pool."""

UNIT_NS = 20_000.0
"""Estimated time of one such unit."""

TRANSPOSE_TILE = 64
"""Rows done together when some operand is read across its rows: its cache lines stay in L1."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the output is walked. sizes: of the groups. width: lanes along the last group."""

    access: Access
    sizes: tuple[int, ...]
    width: int
    cost_ns: float


def emit_loop_kernel(instruction: HloInstruction, target: Target) -> Kernel:
    """The kernel of an elementwise or indexed instruction, a reduction, or a fusion of them."""
    return LoopKernel(instruction, target).emit()


class LoopKernel:
    def __init__(self, instruction: HloInstruction, target: Target):
        self.instruction = instruction
        self.target = target
        if instruction.opcode == "fusion":
            body = instruction.attrs["calls"]
            self.inputs = body.parameters
            root = body.root
        else:
            self.inputs = list(instruction.operands)
            root = instruction
        self.roots = list(root.operands) if root.opcode == "tuple" else [root]
        self.input_shapes = [i.shape for i in self.inputs]
        self.output_shapes = instruction.shape.leaves()
        self.dims = self.iteration_dims()

    def iteration_dims(self) -> tuple[int, ...]:
        """Dimensions of what is computed: those of the results."""
        return self.output_shapes[0].dims

    # --- Planning -------------------------------------------------------------------------------

    def plan(self) -> Plan:
        builder = Builder()
        access = find_access(
            self.roots, self.dims, self._buffers(builder)[0], self.target, self._place
        )
        sizes = tuple(prod(self.dims[d] for d in g) for g in access.groups)
        width = self._width(access, sizes)
        return Plan(access, sizes, width, self._cost_ns())

    def _width(self, access: Access, sizes: tuple[int, ...]) -> int:
        if access.row_reduction or access.scattered or not sizes or sizes[-1] < 2:
            return 1
        dtypes = {s.dtype for s in (*self.input_shapes, *self.output_shapes) if s.is_array}
        width = self.target.lanes(max(register_bytes(d) for d in dtypes))
        is_reduction = any(r.opcode in ("reduce", "get-tuple-element") for r in self.roots)
        if is_reduction and sizes[-1] >= 4 * width:
            width *= 4  # whole cache lines of each row, and independent accumulators
        while width // 2 >= sizes[-1]:
            width //= 2
        return width

    def _cost_ns(self) -> float:
        """Rough time on one core: bytes at 10 GB/s, or operations, whichever is more."""
        shapes = [*self.input_shapes, *self.output_shapes]
        moved = sum(s.byte_size for s in shapes) / 10.0
        body = self.instruction.attrs.get("calls")
        work = 0.0
        for inner in body.instructions if body is not None else [self.instruction]:
            cost = op(inner).cost(inner)
            work += cost.flops * 0.1 + cost.transcendentals * 1.0
        return max(moved, work)

    # --- Emission -------------------------------------------------------------------------------

    def emit(self) -> Kernel:
        if prod(self.dims) == 0:
            return self._function(lambda e, out, units: None, [Phase(f"{PREFIX}.run")])
        plan = self.plan()
        return replace(self._emit(plan), in_place=self._in_place(plan))

    def _in_place(self, plan: Plan) -> tuple[int, ...]:
        """Inputs read only where the result is written, whose elements are as large."""
        size = self.output_shapes[0].dtype.byte_size
        return tuple(
            k
            for k, shape in enumerate(self.input_shapes)
            if f"%b{k}" in plan.access.pointwise
            and shape.element_count == prod(self.dims)
            and shape.dtype.byte_size == size
        )

    def _emit(self, plan: Plan) -> Kernel:
        if plan.cost_ns < PARALLEL_NS or not plan.sizes:
            return self._serial(plan)
        if len(plan.sizes) == 1:
            few = plan.sizes[0] < plan.width
            return self._serial(plan) if few else self._flat_parallel(plan)
        return self._outer_parallel(plan)

    def _serial(self, plan: Plan) -> Kernel:
        def body(elements: Elements, outputs: list[Buffer], units: tuple[Reg, Reg]) -> None:
            self._nest(plan, elements, outputs, plan.sizes, [])

        return self._function(body, [Phase(f"{PREFIX}.run", 1, plan.cost_ns)])

    def _flat_parallel(self, plan: Plan) -> Kernel:
        """One loop: units are blocks of whole vectors; what is left over is a second phase."""
        n, width = plan.sizes[0], plan.width
        main = n - n % width
        block = max(width, int(UNIT_NS * n / plan.cost_ns) // width * width)
        extent = -(-main // block)
        cost = plan.cost_ns / extent

        def blocks(elements: Elements, outputs: list[Buffer], units: tuple[Reg, Reg]) -> None:
            builder = elements.builder
            begin = builder.op("i64", f"mul nsw i64 {{0}}, {block}", units[0])
            end = builder.op("i64", f"mul nsw i64 {{0}}, {block}", units[1])
            end = builder.intrinsic("smin", "i64", end, i64(main))
            elements.space.set_width(width)
            with builder.loop(begin, end, width) as loop:
                i = elements.space.atom(0, main - width, loop.index, width)
                self._point(plan, elements, outputs, [i + elements.space.lanes()], None)

        def rest(elements: Elements, outputs: list[Buffer], units: tuple[Reg, Reg]) -> None:
            self._tail(plan, elements, outputs, [])

        kernel = self._function(blocks, [Phase(f"{PREFIX}.run", extent, cost)])
        if main == n:
            return kernel
        tail = self._function(rest, [Phase(f"{PREFIX}.tail")])
        return joined(kernel, tail)

    def _outer_parallel(self, plan: Plan) -> Kernel:
        """Units are indices of the outer groups (tiles of one, when an operand is transposed)."""
        outer, tiled = list(plan.sizes[:-1]), plan.access.transposed
        if tiled is not None and plan.width > 1:
            outer[tiled] = -(-outer[tiled] // TRANSPOSE_TILE)
        extent = prod(outer)

        def body(elements: Elements, outputs: list[Buffer], units: tuple[Reg, Reg]) -> None:
            space = elements.space
            with elements.builder.loop(*units) as loop:
                at = space.unravel(space.atom(0, extent - 1, loop.index), outer)
                if tiled is not None and plan.width > 1:
                    self._tile(plan, elements, outputs, at, tiled)
                else:
                    self._minor(plan, elements, outputs, at)

        return self._function(body, [Phase(f"{PREFIX}.run", extent, plan.cost_ns / extent)])

    def _nest(
        self,
        plan: Plan,
        elements: Elements,
        outputs: list[Buffer],
        sizes: tuple[int, ...],
        at: list[Affine],
    ) -> None:
        """Loops over the groups `sizes`, the last one in vectors."""
        if len(sizes) <= 1:
            self._minor(plan, elements, outputs, at)
            return
        with elements.builder.loop(0, sizes[0]) as loop:
            i = elements.space.atom(0, sizes[0] - 1, loop.index)
            self._nest(plan, elements, outputs, sizes[1:], [*at, i])

    def _tile(
        self, plan: Plan, elements: Elements, outputs: list[Buffer], at: list[Affine], tiled: int
    ) -> None:
        """Vectors outside, the rows of one tile inside."""
        space, builder = elements.space, elements.builder
        n, width = plan.sizes[-1], plan.width
        rows = plan.sizes[tiled]
        first = space.register(at[tiled] * TRANSPOSE_TILE)
        last = builder.op("i64", f"add nsw i64 {{0}}, {TRANSPOSE_TILE}", first)
        last = builder.intrinsic("smin", "i64", last, i64(rows))

        def column(j: Affine, mask: LlvmValue | None) -> None:
            with builder.loop(first, last) as loop:
                i = space.atom(0, rows - 1, loop.index)
                index = [*at[:tiled], i, *at[tiled + 1 :], j]
                self._point(plan, elements, outputs, index, mask)

        space.set_width(width)
        main = n - n % width
        if main:
            with builder.loop(0, main, width) as loop:
                column(space.atom(0, main - width, loop.index, width) + space.lanes(), None)
        if main < n:
            j = space.lanes() + main
            column(j, elements.scalar.index_in_range(j, 0, n))

    def _minor(
        self, plan: Plan, elements: Elements, outputs: list[Buffer], at: list[Affine]
    ) -> None:
        """The last group: whole vectors, then the rest under a mask."""
        space = elements.space
        if not plan.sizes:
            self._point(plan, elements, outputs, at, None)
            return
        n, width = plan.sizes[-1], plan.width
        space.set_width(width)
        main = n - n % width
        if main:
            with ExitStack() as stack:
                i = space.zero
                if main > width:
                    loop = stack.enter_context(elements.builder.loop(0, main, width))
                    i = space.atom(0, main - width, loop.index, width)
                self._point(plan, elements, outputs, [*at, i + space.lanes()], None)
        self._tail(plan, elements, outputs, at)

    def _tail(
        self, plan: Plan, elements: Elements, outputs: list[Buffer], at: list[Affine]
    ) -> None:
        n, width = plan.sizes[-1], plan.width
        if n % width == 0:
            return
        elements.space.set_width(width)
        last = elements.space.lanes() + (n - n % width)
        inside = elements.scalar.index_in_range(last, 0, n)
        self._point(plan, elements, outputs, [*at, last], inside)

    def _point(
        self,
        plan: Plan,
        elements: Elements,
        outputs: list[Buffer],
        at: list[Affine],
        mask: LlvmValue | None,
    ) -> None:
        """Compute and store all results at one position of the groups."""
        index = [elements.space.zero] * len(self.dims)
        for group, i in zip(plan.access.groups, at, strict=True):
            index[group[-1]] = i
        values = [elements.element(root, tuple(index), mask) for root in self.roots]
        if len(self.roots) == 1 and len(outputs) > 1:
            values = elements.elements_of(self.roots[0], tuple(index), mask)
        for value, buffer in zip(values, outputs, strict=True):
            elements.store(value, buffer, self.written_index(elements, tuple(index)), mask)

    def written_index(self, elements: Elements, index: tuple[Affine, ...]) -> tuple[Affine, ...]:
        """Where in the result the value computed at `index` goes."""
        return index

    def _place(self, elements: Elements, index: tuple[Affine, ...]) -> Affine:
        out = Buffer(Reg("%out", "ptr"), self.output_shapes[0])
        return out.offset(elements.space, self.written_index(elements, index))

    # --- The function ---------------------------------------------------------------------------

    def _buffers(self, builder: Builder) -> tuple[dict[HloInstruction, Buffer], list[Buffer]]:
        def buffer(number: int, shape: Shape) -> Buffer:
            return Buffer(Reg(f"%b{number}", "ptr", builder.root), shape)

        inputs: dict[HloInstruction, Buffer] = {}
        for number, (x, shape) in enumerate(zip(self.inputs, self.input_shapes, strict=True)):
            inputs.setdefault(x, buffer(number, shape))
        first = len(self.inputs)
        outputs = [buffer(first + k, s) for k, s in enumerate(self.output_shapes)]
        return inputs, outputs

    def _function(
        self,
        body: Callable[[Elements, list[Buffer], tuple[Reg, Reg]], None],
        phases: list[Phase],
    ) -> Kernel:
        builder = Builder()
        elements = Elements(ElementScalar(builder, self.target), {})
        inputs, outputs = self._buffers(builder)
        elements.buffers = inputs
        units = Reg("%begin", "i64", builder.root), Reg("%end", "i64", builder.root)
        body(elements, outputs, units)
        count = len(self.inputs) + len(outputs)
        pointers = [Reg(f"%b{k}", "ptr") for k in range(count)]
        parameters = [*pointers, Reg("%scratch", "ptr"), *units]
        text = builder.function(phases[0].symbol, parameters)
        return Kernel(text, tuple(phases), tuple(builder.declares), library=builder.library)
