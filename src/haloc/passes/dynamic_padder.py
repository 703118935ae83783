"""Dynamic dimensions: arrays of all their bounds, with their sizes beside them."""

from __future__ import annotations

from haloc.errors import UnimplementedError
from haloc.ir.dtype import S32
from haloc.ir.module import HloComputation, HloInstruction, HloModule, copy_annotations
from haloc.ir.shape import Shape
from haloc.ops.expand import Beside
from haloc.ops.table import Structure, op
from haloc.passes import dynamic_sums  # noqa: F401  (enters its rules)
from haloc.passes.driver import hlo_pass
from haloc.passes.dynamic_rules import RULES, elementwise
from haloc.passes.dynamic_sizes import Padding, Sizes, dynamic_places, static, with_sizes

TUPLES = ("tuple", "get-tuple-element", "opt-barrier")
"""Ops whose sizes are those of their operands, leaf by leaf."""


@hlo_pass("dynamic-padder")
def dynamic_padder(module: HloModule) -> bool:
    """x[<=n] => (x[n], size); what stands behind the size is masked where an op would see it

    The entry's parameters and result must be static. Computations hand a dynamic value on as the
    tuple (value, sizes...). UnimplementedError for an op that has no rule, by name.
    """
    computations = [c for c in module.post_order() if any(map(_is_dynamic, c.instructions))]
    if not computations:
        return False
    entry = module.entry
    for what, shape in [
        *((f"parameter {n}", p.shape) for n, p in enumerate(entry.parameters)),
        ("the result", entry.root.shape),
    ]:
        if not shape.is_static:
            raise UnimplementedError(
                f"{what} of {module.name} is {shape.to_string(False)}: a dynamic shape at the "
                "entry is not run natively; haloc.interpreter.run runs it"
            )
    for computation in computations:
        _Padder(computation).run()
    return True


def _is_dynamic(instruction: HloInstruction) -> bool:
    return not instruction.shape.is_static or instruction.opcode in (
        "set-dimension-size",
        "dynamic-reshape",
    )


class _Padder:
    """Goes through one computation and replaces what is dynamic.

    known: of each instruction that stands in a dynamic one's place, the shape that one had, and the
    sizes, one `Sizes` a leaf of it.
    """

    def __init__(self, computation: HloComputation):
        self.computation = computation
        self.known: dict[HloInstruction, tuple[Shape, list[Sizes]]] = {}

    def run(self) -> None:
        for x in self.computation.instructions:
            if _is_dynamic(x) or not all(self._shape(o).is_static for o in x.operands):
                new, sizes = self._padded(x)
                self.known[new] = (x.shape, sizes)
                x.replace_uses_with(new)
                self.computation.remove(x)
        root = self.computation.root
        if not self._shape(root).is_static:
            self.computation.root = self._handed_on(Beside(root), root)
        self.computation.sort()

    def _shape(self, x: HloInstruction) -> Shape:
        return self.known[x][0] if x in self.known else x.shape

    def _sizes(self, x: HloInstruction) -> list[Sizes]:
        return self.known[x][1] if x in self.known else [{} for _ in x.shape.leaves()]

    def _handed_on(self, b: Beside, x: HloInstruction) -> HloInstruction:
        """(x, sizes...) for another computation."""
        shape, leaves = self._shape(x), self._sizes(x)
        bounds = shape.leaves()
        sizes = [
            leaves[n].get(d) or b.constant(bounds[n].dims[d], S32) for n, d in dynamic_places(shape)
        ]
        return b.tuple(x, *sizes)

    def _received(
        self, b: Beside, whole: HloInstruction, shape: Shape
    ) -> tuple[HloInstruction, list[Sizes]]:
        """What `_handed_on` gives, taken apart."""
        leaves: list[Sizes] = [{} for _ in shape.leaves()]
        for place, (n, d) in enumerate(dynamic_places(shape)):
            leaves[n][d] = b.element(whole, 1 + place)
        return b.element(whole, 0), leaves

    def _padded(self, x: HloInstruction) -> tuple[HloInstruction, list[Sizes]]:
        """What stands for x, static, and the sizes of its leaves."""
        leaves = [self._sizes(o) for o in x.operands]
        if x.opcode == "parameter":
            b = Beside(x)
            whole = b.add("parameter", with_sizes(x.shape), (), **x.attrs)
            return self._received(b, whole, x.shape)
        if x.opcode in TUPLES:
            shape = static(x.shape)
            return Beside(x).add(x.opcode, shape, x.operands, **x.attrs), _of_tuple(x, leaves)
        if op(x).lower is Structure.CONTROL:
            return self._control(x)
        rule = elementwise if op(x).is_elementwise else RULES.get(x.opcode)
        given = [self._shape(o) for o in x.operands]
        if rule is None or not all(s.is_array for s in given):
            return Padding(x, given, []).refuse("a dynamic shape")
        new, sizes = rule(Padding(x, given, [dict(of_array[0]) for of_array in leaves]))
        return new, [dict(sizes) for _ in x.shape.leaves()]

    def _control(self, x: HloInstruction) -> tuple[HloInstruction, list[Sizes]]:
        b = Beside(x)
        operands = [o if self._shape(o).is_static else self._handed_on(b, o) for o in x.operands]
        shape = x.shape if x.shape.is_static else with_sizes(x.shape)
        new = b.add(x.opcode, shape, operands, **x.attrs)
        copy_annotations(x, new)
        if x.shape.is_static:
            return new, [{} for _ in shape.leaves()]
        return self._received(b, new, x.shape)


def _of_tuple(x: HloInstruction, leaves: list[list[Sizes]]) -> list[Sizes]:
    """The sizes of a tuple's leaves, or of those of the element that is taken from one."""
    if x.opcode != "get-tuple-element":
        return [sizes for of_operand in leaves for sizes in of_operand]
    elements = x.operands[0].shape.elements
    start = sum(len(e.leaves()) for e in elements[: x.attrs["index"]])
    return leaves[0][start : start + len(x.shape.leaves())]
