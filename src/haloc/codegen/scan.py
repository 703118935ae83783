"""Cumulative reduce-window: running sums (cumsum, cumprod, cummax, ...) in one pass.

JAX writes a cumulative sum of n elements as a reduce-window whose window is n long and padded by
n - 1: taken literally, n² steps. Each result is its neighbour combined with one more element.
"""

from __future__ import annotations

from math import prod

from haloc.codegen.index import Affine
from haloc.codegen.kernel import PREFIX, Kernel, Phase, kernel_for
from haloc.codegen.kernel_function import KernelFunction
from haloc.codegen.loops import emit_loop_kernel
from haloc.codegen.reduction import (
    carry_value,
    combiner,
    register_bytes,
    registers,
)
from haloc.codegen.scalar import LlvmValue
from haloc.codegen.target import Target
from haloc.ir.module import HloInstruction
from haloc.ops.table import attr

SHORTEST = 8
"""Windows shorter than this are quicker written out, in vectors."""


def scanned_dimension(instruction: HloInstruction) -> tuple[int, bool] | None:
    """(dimension, whether from its end) of a reduce-window that is a running combination."""
    dims = instruction.operands[0].shape.dims
    found: tuple[int, bool] | None = None
    for d, (w, n) in enumerate(zip(attr(instruction, "window"), dims, strict=True)):
        padding = (w.padding_low, w.padding_high)
        if (w.stride, w.base_dilation, w.window_dilation, w.reversal) != (1, 1, 1, False):
            return None
        if w.size == 1 and padding == (0, 0):
            continue
        if found is not None or w.size != n or padding not in ((n - 1, 0), (0, n - 1)):
            return None
        found = d, padding[1] > 0
    return found if found is not None and dims[found[0]] >= SHORTEST else None


@kernel_for("reduce-window")
def emit_reduce_window(instruction: HloInstruction, target: Target) -> Kernel:
    """A running combination in one pass, any other window by loops over its positions."""
    scanned = scanned_dimension(instruction) if instruction.opcode == "reduce-window" else None
    if scanned is None or prod(instruction.operands[0].shape.dims) == 0:
        return emit_loop_kernel(instruction, target)
    return _Scan(instruction, target, *scanned).emit()


class _Scan:
    """Lines along dimension `d`; vectors of lines side by side where `d` is not the minor one."""

    def __init__(self, instruction: HloInstruction, target: Target, d: int, from_end: bool):
        self.instruction = instruction
        self.d = d
        self.from_end = from_end
        self.function = KernelFunction(instruction, target)
        self.builder = self.function.builder
        self.scalar = self.function.scalar
        self.space = self.function.space
        self.elements = self.function.elements
        self.results = self.function.results
        shapes = [b.shape for b in self.function.buffers]
        self.dims = shapes[0].dims
        widest = max(register_bytes(s.dtype) for s in shapes)
        is_minor = prod(self.dims[d + 1 :]) == 1
        self.width = 1 if is_minor else min(target.lanes(widest), self._power_of_two())

    def _power_of_two(self) -> int:
        """The smallest one that covers the minor dimension."""
        return 1 << (self.dims[-1] - 1).bit_length()

    def emit(self) -> Kernel:
        outer = [1 if k == self.d else n for k, n in enumerate(self.dims)]
        self.space.set_width(self.width)
        if self.width > 1:
            outer[-1] = -(-outer[-1] // self.width)
        extent = prod(outer)
        with self.function.each_unit(outer) as at:
            mask = None
            if self.width > 1:
                at[-1] = at[-1] * self.width + self.space.lanes()
                mask = self.scalar.index_in_range(at[-1], 0, self.dims[-1])
            self._line(at, mask)
        cost_ns = 2.0 * len(self.results) * prod(self.dims) / self.width / extent
        return self.function.kernel(Phase(f"{PREFIX}.run", extent, cost_ns))

    def _line(self, at: list[Affine], mask: LlvmValue | None) -> None:
        """All results along dimension `d`, at the other dimensions' indices `at`."""
        elements, scalar = self.elements, self.scalar
        count = len(self.results)
        inputs, init_operands = (
            self.instruction.operands[:count],
            self.instruction.operands[count:],
        )
        combine, wide = combiner(elements, self.instruction.attrs["to_apply"])
        start = [scalar.splat(elements.element(i, ()), self.width) for i in init_operands]
        if wide is not None:
            start = [scalar.convert(v, wide) for v in start]
        n = self.dims[self.d]
        with self.builder.loop(0, n) as loop:
            carried = [carry_value(loop.carry, v) for v in start]
            k = self.space.atom(0, n - 1, loop.index)
            index = list(at)
            index[self.d] = k * -1 + (n - 1) if self.from_end else k
            values = [elements.element(x, tuple(index), mask) for x in inputs]
            if wide is not None:
                values = [scalar.convert(v, wide) for v in values]
            values = [scalar.splat(v, self.width) for v in values]
            after = [scalar.splat(v, self.width) for v in combine(carried, values)]
            for value, out in zip(after, self.results, strict=True):
                value = scalar.convert(value, out.shape.dtype)
                elements.store(value, out, tuple(index), mask)
            loop.next(*(r for v in after for r in registers(v)))
