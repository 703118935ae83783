"""Checks that inference rules share, and the sets of element types that rows are defined on.

Every check raises through `ops.table.invalid`, saying what was given and what was wanted.
"""

from __future__ import annotations

from collections.abc import Sequence

from haloc.ir.dtype import ARRAY_DTYPES, DType, Kind
from haloc.ir.module import HloInstruction
from haloc.ir.shape import UNBOUNDED, Shape
from haloc.ops.table import OPS, invalid

Dtypes = frozenset[DType]


def _of_kind(*kinds: Kind) -> Dtypes:
    return frozenset(d for d in ARRAY_DTYPES if d.kind in kinds)


PRED = _of_kind(Kind.PRED)
SIGNED = _of_kind(Kind.SIGNED)
UNSIGNED = _of_kind(Kind.UNSIGNED)
INTEGER = SIGNED | UNSIGNED
FLOAT = _of_kind(Kind.FLOAT)
COMPLEX = _of_kind(Kind.COMPLEX)
NUMBER = INTEGER | FLOAT | COMPLEX
ANY = NUMBER | PRED

_KIND_WORDS = (
    (PRED, "pred"),
    (SIGNED, "signed integer"),
    (UNSIGNED, "unsigned integer"),
    (FLOAT, "float"),
    (COMPLEX, "complex"),
)


def dtypes_text(dtypes: Dtypes) -> str:
    """ "pred, float or complex"; names where a kind is taken only in part."""
    words: list[str] = []
    for kind, word in _KIND_WORDS:
        if kind <= dtypes:
            words.append(word)
        else:
            words.extend(sorted(d.name for d in kind & dtypes))
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " or " + words[-1]


def spec_name(opcode: str) -> str:
    """The StableHLO spelling of an opcode, with which constraint labels begin."""
    names = {"broadcast": "broadcast_in_dim", "opt-barrier": "optimization_barrier"}
    return names.get(opcode, opcode.replace("-", "_"))


def label(instruction: HloInstruction, constraint: str) -> str:
    """The StableHLO label of a constraint: label(add, "c1") == "add_c1"."""
    return f"{spec_name(instruction.opcode)}_{constraint}"


def dims_text(dims: Sequence[int]) -> str:
    """ "{0,1}": a list of dimensions as HLO text writes it."""
    return "{" + ",".join(map(str, dims)) + "}"


def operand_name(instruction: HloInstruction, number: int) -> str:
    """The row's name for an operand: "lhs", "operand", "start_indices[2]"."""
    names = OPS[instruction.opcode].operands
    if names and names[-1].endswith("*") and number >= len(names) - 1:
        return f"{names[-1][:-1]}[{number - len(names) + 1}]"
    return names[number] if number < len(names) else f"operand {number}"


def check_operand_count(instruction: HloInstruction) -> None:
    """The number of operands is what the row names; a last name with "*" stands for any number."""
    names = OPS[instruction.opcode].operands
    given = len(instruction.operands)
    if names and names[-1].endswith("*"):
        least = len(names) - 1
        if given < least:
            invalid(instruction, f"takes at least {least} operands, {given} given")
    elif given != len(names):
        plural = "operand" if len(names) == 1 else "operands"
        wanted = f"{len(names)} {plural}" + (f" ({', '.join(names)})" if names else "")
        invalid(instruction, f"takes {wanted}, {given} given")


def array_operands(instruction: HloInstruction) -> list[Shape]:
    """The operands' shapes, after checking their number and that all are arrays."""
    check_operand_count(instruction)
    shapes = [o.shape for o in instruction.operands]
    for number, shape in enumerate(shapes):
        if not shape.is_array:
            name = operand_name(instruction, number)
            invalid(instruction, f"{name} must be an array, got {shape}")
    return shapes


def check_dtype(instruction: HloInstruction, number: int, dtypes: Dtypes) -> DType:
    """Operand `number` has one of these element types; which is returned."""
    dtype = instruction.operands[number].shape.dtype
    if dtype not in dtypes:
        name = operand_name(instruction, number)
        invalid(
            instruction,
            f"{name} must be of {dtypes_text(dtypes)} type, got {dtype}",
            label(instruction, f"i{number + 1}"),
        )
    return dtype


def check_same_dtype(instruction: HloInstruction, numbers: Sequence[int], constraint: str) -> DType:
    """The operands of these numbers share one element type, which is returned."""
    shapes = [instruction.operands[n].shape for n in numbers]
    for number, shape in zip(numbers[1:], shapes[1:]):
        if shape.dtype is not shapes[0].dtype:
            first, other = operand_name(instruction, numbers[0]), operand_name(instruction, number)
            invalid(
                instruction,
                f"{other} is of type {shape.dtype}, {first} of type {shapes[0].dtype}; "
                "they must be the same",
                label(instruction, constraint),
            )
    return shapes[0].dtype


def common_shape(instruction: HloInstruction, numbers: Sequence[int], constraint: str) -> Shape:
    """The one set of dimensions that these operands share, with the first one's element type.

    Where one is dynamic the result is: an unbounded size gives way to a known one, and a bounded
    dimension stays bounded.
    """
    result = instruction.operands[numbers[0]].shape
    for number in numbers[1:]:
        other = instruction.operands[number].shape
        if other.dims == result.dims and other.dynamic == result.dynamic:
            continue
        merged = _merge(result, other)
        if merged is None:
            first, second = operand_name(instruction, numbers[0]), operand_name(instruction, number)
            invalid(
                instruction,
                f"{first} {result.to_string(False)} and {second} {other.to_string(False)} "
                "must have the same dimensions",
                label(instruction, constraint),
            )
        result = merged
    return result


def _merge(a: Shape, b: Shape) -> Shape | None:
    if a.rank != b.rank:
        return None
    dims, dynamic = [], []
    flags = zip(a.dynamic or (False,) * a.rank, b.dynamic or (False,) * b.rank)
    for x, y, (x_dynamic, y_dynamic) in zip(a.dims, b.dims, flags):
        if UNBOUNDED in (x, y):
            dims.append(y if x == UNBOUNDED else x)
            dynamic.append(y_dynamic if x == UNBOUNDED else x_dynamic)
        elif x == y:
            dims.append(x)
            dynamic.append(x_dynamic or y_dynamic)
        else:
            return None
    return Shape(a.dtype, tuple(dims), a.layout, tuple(dynamic))


def dynamic_flags(shape: Shape) -> tuple[bool, ...]:
    """One flag a dimension, also for a static shape."""
    return shape.dynamic or (False,) * shape.rank


def check_static(instruction: HloInstruction, *shapes: Shape) -> None:
    """No shape has an unbounded dimension."""
    for shape in shapes:
        if UNBOUNDED in shape.dims:
            invalid(instruction, f"the shape {shape} has a dimension of unknown size")


def check_scalar(instruction: HloInstruction, number: int, constraint: str) -> None:
    shape = instruction.operands[number].shape
    if shape.rank:
        name = operand_name(instruction, number)
        invalid(
            instruction,
            f"{name} must be a scalar, got {shape.to_string(False)}",
            label(instruction, constraint),
        )


def check_unique(
    instruction: HloInstruction, what: str, dims: Sequence[int], constraint: str
) -> None:
    if len(set(dims)) != len(dims):
        invalid(
            instruction, f"{what}={dims_text(dims)} has duplicates", label(instruction, constraint)
        )


def check_sorted(
    instruction: HloInstruction, what: str, dims: Sequence[int], constraint: str
) -> None:
    if list(dims) != sorted(dims):
        invalid(
            instruction, f"{what}={dims_text(dims)} is not sorted", label(instruction, constraint)
        )


def check_dims_in_range(
    instruction: HloInstruction, what: str, dims: Sequence[int], rank: int, constraint: str
) -> None:
    """Every dimension number is in [0, rank)."""
    if not all(0 <= d < rank for d in dims):
        invalid(
            instruction,
            f"{what}={dims_text(dims)} names dimensions outside [0, {rank})",
            label(instruction, constraint),
        )


def check_length(
    instruction: HloInstruction, what: str, values: Sequence[object], wanted: int, constraint: str
) -> None:
    if len(values) != wanted:
        invalid(
            instruction,
            f"{what} has {len(values)} entries, wanted {wanted}",
            label(instruction, constraint),
        )
