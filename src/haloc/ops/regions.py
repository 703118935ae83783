"""Checks that rows with regions or windows share: signatures, dimension lists."""

from __future__ import annotations

from collections.abc import Sequence

from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.table import attr, invalid


def text(shape: Shape) -> str:
    """A shape as error messages write it: without layout."""
    return shape.to_string(include_layout=False)


def check_region(
    instruction: HloInstruction,
    name: str,
    parameters: Sequence[Shape],
    result: Shape | None,
    label: str = "",
) -> HloComputation:
    """The computation of attribute `name`, whose signature must be parameters -> result.

    result None leaves the result to the caller. Raises VerificationError through `invalid`.
    """
    return check_computation(instruction, name, attr(instruction, name), parameters, result, label)


def check_computation(
    instruction: HloInstruction,
    name: str,
    region: HloComputation,
    parameters: Sequence[Shape],
    result: Shape | None,
    label: str = "",
) -> HloComputation:
    """`check_region` for a computation at hand."""
    given = [p.shape for p in region.parameters]
    wanted = list(parameters)
    same = len(given) == len(wanted) and all(map(Shape.compatible, given, wanted))
    if not same or (result is not None and not region.root.shape.compatible(result)):
        wanted_result = "..." if result is None else text(result)
        invalid(
            instruction,
            f"{name} {region.name} has signature {_signature(given)} -> {text(region.root.shape)}, "
            f"wanted {_signature(wanted)} -> {wanted_result}",
            label,
        )
    return region


def _signature(parameters: Sequence[Shape]) -> str:
    return "(" + ", ".join(map(text, parameters)) + ")"


def scalars(shapes: Sequence[Shape]) -> list[Shape]:
    """Scalar shapes of the same element types."""
    return [Shape(s.dtype) for s in shapes]


def one_or_tuple(shapes: Sequence[Shape]) -> Shape:
    """The shape itself when there is one, else the tuple of them."""
    return shapes[0] if len(shapes) == 1 else tuple_shape(*shapes)


def results(value: object) -> list:  # type: ignore[type-arg]
    """The results of a variadic region or op as a list: a bare value is a list of one."""
    return list(value) if isinstance(value, tuple) else [value]


def check_dims(
    instruction: HloInstruction,
    name: str,
    dims: Sequence[int],
    rank: int,
    range_label: str = "",
    unique_label: str = "",
) -> None:
    """Every entry of a dimension list must be in [0, rank), and none may stand twice."""
    for dim in dims:
        if not 0 <= dim < rank:
            invalid(
                instruction,
                f"{name}={braces(dims)}: dimension {dim} is out of range for rank {rank}",
                range_label,
            )
    if len(set(dims)) != len(dims):
        invalid(instruction, f"{name}={braces(dims)} names a dimension twice", unique_label)


def braces(dims: Sequence[int]) -> str:
    """(0, 1) as HLO text: "{0,1}"."""
    return "{" + ",".join(map(str, dims)) + "}"
