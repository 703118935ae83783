"""What a fused loop reads and how: found by walking it once without keeping the code.

The walk tells which neighbouring dimensions can be one loop, whether lanes along the minor
dimension read neighbouring elements, and whether a reduction wants the lanes for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from haloc.codegen.builder import Builder, Reg
from haloc.codegen.elemental import Buffer, Elements, ElementScalar
from haloc.codegen.index import Affine, Atom
from haloc.codegen.scalar import LlvmValue
from haloc.codegen.target import Target
from haloc.ir.module import HloInstruction
from haloc.ops.table import attr


@dataclass(frozen=True, slots=True)
class Access:
    """groups: the output's dimensions with more than one element, merged where one loop does
    (each a tuple of neighbouring dimension numbers, outermost first).
    row_reduction: a reduction along contiguous elements depends on the last group.
    transposed: a group along which some buffer is contiguous, while along the last it is not; or
    None.
    pointwise: base registers of the buffers that are only read at the element being written.
    scattered: elements of the last group are not neighbours in the result (an update whose minor
    dimension has one element).
    """

    groups: tuple[tuple[int, ...], ...]
    row_reduction: bool
    transposed: int | None
    pointwise: frozenset[str]
    scattered: bool


class _ProbeScalar(ElementScalar):
    """Notes which atoms are used other than in addresses."""

    def __init__(self, builder: Builder, target: Target):
        super().__init__(builder, target)
        self.pinned: set[Atom] = set()

    def _pin(self, index: Affine) -> None:
        for atom in index.terms:
            if atom.source is not None:
                self._pin(atom.source[0])
            self.pinned.add(atom)

    def from_index(self, index: Affine, dtype):  # type: ignore[no-untyped-def]
        self._pin(index)
        return super().from_index(index, dtype)

    def clamp_index(self, index: Affine, low: int, high: int) -> Affine:
        self._pin(index)
        return super().clamp_index(index, low, high)

    def index_in_range(self, index: Affine, low: int, high: int) -> LlvmValue:
        self._pin(index)
        return super().index_in_range(index, low, high)


class _ProbeElements(Elements):
    """Notes the offsets of loads, and reductions along contiguous elements."""

    def __init__(self, scalar: _ProbeScalar, buffers: dict[HloInstruction, Buffer]):
        super().__init__(scalar, buffers)
        self.offsets: list[Affine] = []
        self.offsets_of: dict[str, set[object]] = {}
        self.row_atoms: set[Atom] = set()

    def load(self, buffer: Buffer, index: tuple[Affine, ...], mask: LlvmValue | None) -> LlvmValue:
        offset = buffer.offset(self.space, index)
        self.offsets.append(offset)
        self.offsets_of.setdefault(buffer.base.ref, set()).add(offset.key)
        for atom in offset.terms:
            if atom.source is not None:
                self.scalar._pin(atom.source[0])  # type: ignore[attr-defined]
        return super().load(buffer, index, mask)

    def elements_of(
        self, instruction: HloInstruction, index: tuple[Affine, ...], mask: LlvmValue | None
    ) -> list[LlvmValue]:
        if instruction.opcode == "reduce" and _reduces_minor(instruction):
            for part in index:
                self.row_atoms.update(part.terms)
        return super().elements_of(instruction, index, mask)


def _reduces_minor(reduce: HloInstruction) -> bool:
    dims = reduce.operands[0].shape.dims
    long = [d for d, n in enumerate(dims) if n > 1]
    return bool(long) and long[-1] in attr(reduce, "dimensions")


def find_access(
    roots: Sequence[HloInstruction],
    dims: tuple[int, ...],
    buffers: dict[HloInstruction, Buffer],
    target: Target,
    place: Callable[[Elements, tuple[Affine, ...]], Affine],
) -> Access:
    """Walk the elements of `roots` (whose results all have dimensions `dims`) at a symbolic index.

    place: the offset of the result element written for an index.
    """
    builder = Builder()
    scalar = _ProbeScalar(builder, target)
    elements = _ProbeElements(scalar, dict(buffers))
    atoms: dict[int, Atom] = {}
    index: list[Affine] = []
    for d, n in enumerate(dims):
        at = scalar.space.atom(0, n - 1, Reg(f"%dim{d}", "i64", builder.root))
        index.append(at)
        if at.terms:
            (atoms[d],) = at.terms
    for root in roots:
        elements.element(root, tuple(index))
    written = place(elements, tuple(index))
    elements.offsets.append(written)
    groups = _merge(dims, atoms, elements.offsets, scalar.pinned)
    minor = atoms.get(groups[-1][-1]) if groups else None
    transposed = None
    for offset in elements.offsets:
        if minor is None or offset.terms.get(minor, 0) in (0, 1):
            continue
        for number, group in enumerate(groups[:-1]):
            if offset.terms.get(atoms[group[-1]]) == 1:
                transposed = number
    pointwise = frozenset(b for b, keys in elements.offsets_of.items() if keys == {written.key})
    scattered = minor is not None and written.terms.get(minor, 0) != 1
    row_reduction = minor in elements.row_atoms
    return Access(tuple(groups), row_reduction, transposed, pointwise, scattered)


def _merge(
    dims: tuple[int, ...], atoms: dict[int, Atom], offsets: list[Affine], pinned: set[Atom]
) -> list[tuple[int, ...]]:
    groups: list[tuple[int, ...]] = []
    for d, n in enumerate(dims):
        if n == 1:
            continue
        if groups and _one_loop(atoms[groups[-1][-1]], atoms[d], n, offsets, pinned):
            groups[-1] = (*groups[-1], d)
        else:
            groups.append((d,))
    return groups


def _one_loop(
    outer: Atom, inner: Atom, size: int, offsets: list[Affine], pinned: set[Atom]
) -> bool:
    """Whether every offset moves by `size` inner steps when the outer index moves by one."""
    if outer in pinned or inner in pinned:
        return False
    return all(o.terms.get(outer, 0) == size * o.terms.get(inner, 0) for o in offsets)
