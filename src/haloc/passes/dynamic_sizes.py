"""Sizes of dynamic dimensions as instructions, and what rules of dynamic-padder write with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from haloc.errors import UnimplementedError
from haloc.ir.dtype import PRED, S32
from haloc.ir.module import HloInstruction, copy_annotations
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.expand import Beside
from haloc.ops.window_attrs import WindowDim

Sizes = dict[int, HloInstruction]
"""The sizes, each an s32[], of an array's dynamic dimensions, by dimension."""

SIZE = Shape(S32)


def static(shape: Shape) -> Shape:
    """The shape with all its bounds, and none of its dimensions dynamic."""
    if shape.is_static:
        return shape
    if shape.elements:
        return Shape(shape.dtype, elements=tuple(map(static, shape.elements)))
    return Shape(shape.dtype, shape.dims, shape.layout)


def dynamic_places(shape: Shape) -> list[tuple[int, int]]:
    """(leaf, dimension) of each dynamic dimension."""
    return [
        (n, d)
        for n, leaf in enumerate(shape.leaves())
        for d, dynamic in enumerate(leaf.dynamic)
        if dynamic
    ]


def with_sizes(shape: Shape) -> Shape:
    """(the static shape, s32[], s32[], ...): a dynamic shape where computations hand it on."""
    return tuple_shape(static(shape), *(SIZE for _ in dynamic_places(shape)))


class Padding:
    """One instruction on its way: its operands are static and padded, their sizes are known.

    sizes: of the operands, one `Sizes` each (of an array). shape: the instruction's own, from
    before; its operands' are in `given`. A rule gives the instruction that stands for it from now
    on, static, and the sizes of that.
    """

    def __init__(self, x: HloInstruction, given: list[Shape], sizes: list[Sizes]):
        self.x = x
        self.shape = x.shape
        self.given = given
        self.sizes = sizes
        self.b = Beside(x)

    def refuse(self, what: str) -> NoReturn:
        given = ", ".join(s.to_string(False) for s in self.given)
        raise UnimplementedError(
            f"{self.x.opcode}: {what} of ({given}) -> {self.shape.to_string(False)} "
            "is not run natively; platform 'interpreter' runs it"
        )

    def rebuilt(self, operands: Iterable[HloInstruction], **changed: Any) -> HloInstruction:
        """The instruction on other operands, static."""
        attrs = self.x.attrs | changed
        new = self.b.add(self.x.opcode, static(self.shape), tuple(operands), **attrs)
        copy_annotations(self.x, new)
        return new

    def same(self) -> HloInstruction:
        return self.rebuilt(self.x.operands)

    # --- Scalars -----------------------------------------------------------------------------

    def number(self, value: int) -> HloInstruction:
        return self.b.constant(value, S32)

    def scalar(self, opcode: str, x: HloInstruction, y: HloInstruction | int) -> HloInstruction:
        other = self.number(y) if isinstance(y, int) else y
        return self.b.add(opcode, SIZE, (x, other))

    def size(self, operand: int, dim: int) -> HloInstruction:
        """How many elements operand number `operand` has along `dim`."""
        found = self.sizes[operand].get(dim)
        return self.number(self.given[operand].dims[dim]) if found is None else found

    def window_output_size(self, size: HloInstruction, window: WindowDim) -> HloInstruction:
        """`ops.window_attrs.window_output_size` of a size known at run time."""
        last = self.scalar("maximum", self.scalar("subtract", size, 1), 0)
        holes = self.scalar("multiply", last, window.base_dilation - 1)
        padded = self.scalar(
            "add", self.scalar("add", size, holes), window.padding_low + window.padding_high
        )
        room = self.scalar("subtract", padded, (window.size - 1) * window.window_dilation + 1)
        steps = self.scalar("divide", self.scalar("maximum", room, 0), window.stride)
        fits = self.b.compare(room, self.number(0), "GE")
        return self.b.select(fits, self.scalar("add", steps, 1), self.number(0))

    # --- Arrays ------------------------------------------------------------------------------

    def inside(self, dims: tuple[int, ...], dim: int, size: HloInstruction) -> HloInstruction:
        """Where an array's index along `dim` is below `size`."""
        index = self.b.iota(S32, dims, dim)
        return self.b.compare(index, self.b.broadcast(size, dims, ()), "LT")

    def masked(
        self, operand: int, value: HloInstruction, dims: Iterable[int] | None = None
    ) -> HloInstruction:
        """An operand with the scalar `value` behind the sizes of `dims`, by default of all."""
        x = self.x.operands[operand]
        mask: HloInstruction | None = None
        for dim, size in self.sizes[operand].items():
            if dims is not None and dim not in dims:
                continue
            here = self.inside(x.shape.dims, dim, size)
            if mask is not None:
                here = self.b.add("and", Shape(PRED, x.shape.dims), (mask, here))
            mask = here
        if mask is None:
            return x
        return self.b.select(mask, x, self.b.broadcast(value, x.shape.dims, ()))

    def zero(self, operand: int) -> HloInstruction:
        return self.b.constant(0, self.given[operand].dtype)


Rule = Callable[[Padding], tuple[HloInstruction, Sizes]]


def renumbered(sizes: Sizes, places: Mapping[int, int]) -> Sizes:
    """Sizes of a result, some of whose dimensions are the operand's: {the operand's: its own}."""
    return {places[d]: size for d, size in sizes.items() if d in places}
