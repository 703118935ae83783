"""One kernel function with its buffers: what emitters with loops of their own start from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod

from haloc.codegen.builder import Builder, Reg
from haloc.codegen.elemental import Buffer, Elements, ElementScalar
from haloc.codegen.index import Affine
from haloc.codegen.kernel import Kernel, Phase
from haloc.codegen.target import Target
from haloc.ir.module import HloInstruction


class KernelFunction:
    """A function under construction over an instruction's operands and result leaves.

    results: buffers of the result leaves. elements: reads the operands. units: the range of work
    units this call does.
    """

    def __init__(self, instruction: HloInstruction, target: Target):
        self.builder = Builder()
        self.scalar = ElementScalar(self.builder, target)
        self.space = self.scalar.space
        shapes = [o.shape for o in instruction.operands] + instruction.shape.leaves()
        root = self.builder.root
        self.buffers = [Buffer(Reg(f"%b{k}", "ptr", root), s) for k, s in enumerate(shapes)]
        inputs: dict[HloInstruction, Buffer] = {}
        for operand, buffer in zip(instruction.operands, self.buffers, strict=False):
            inputs.setdefault(operand, buffer)
        self.elements = Elements(self.scalar, inputs)
        self.results = self.buffers[len(instruction.operands) :]
        self.units = Reg("%begin", "i64", root), Reg("%end", "i64", root)

    @contextmanager
    def nest(self, sizes: Sequence[int]) -> Iterator[list[Affine]]:
        """Loops over `sizes`, outermost first; gives their indices."""
        with ExitStack() as stack:
            at = []
            for n in sizes:
                if n == 1:
                    at.append(self.space.zero)
                    continue
                loop = stack.enter_context(self.builder.loop(0, n))
                at.append(self.space.atom(0, n - 1, loop.index))
            yield at

    @contextmanager
    def each_unit(self, sizes: Sequence[int]) -> Iterator[list[Affine]]:
        """A loop over the units, each one index of an array of dimensions `sizes`."""
        with self.builder.loop(*self.units) as loop:
            yield self.space.unravel(self.space.atom(0, prod(sizes) - 1, loop.index), sizes)

    def kernel(self, phase: Phase) -> Kernel:
        """The finished function as a kernel of one phase."""
        pointers = [Reg(b.base.ref, "ptr") for b in self.buffers]
        parameters = [*pointers, Reg("%scratch", "ptr"), *self.units]
        text = self.builder.function(phase.symbol, parameters)
        return Kernel(text, (phase,), tuple(self.builder.declares), library=self.builder.library)
