"""Dots and convolutions."""

from __future__ import annotations

from typing import Any

from haloc.errors import UnimplementedError
from haloc.formats.stablehlo.convert.contraction import ALGORITHMS, CONV_FIELDS, DOT_FIELDS
from haloc.formats.stablehlo.convert.rows import I64, INTS, dense
from haloc.formats.stablehlo.export.context import Scope, Tree, exports
from haloc.formats.stablehlo.mlir import Attribute, Enum, Scalar, Struct
from haloc.ir.module import HloInstruction
from haloc.ops.table import attr


def _dot_numbers(instruction: HloInstruction) -> dict[str, Any]:
    dims = {name: attr(instruction, hlo) for name, hlo in DOT_FIELDS.items()}
    return {name: value for name, value in dims.items() if value}


def _precision(instruction: HloInstruction) -> dict[str, Attribute]:
    words = attr(instruction, "operand_precision")
    if not words:
        return {}
    return {"precision_config": tuple(Enum("precision", w.upper()) for w in words)}


_TYPES = {word: key for key, word in ALGORITHMS.items()}


def _algorithm(instruction: HloInstruction) -> dict[str, Attribute]:
    word = instruction.attrs.get("algorithm", "")
    if word in ("", "dot_unset"):
        return {}
    any_f8 = word.startswith("dot_any_f8_any_f8_f32")
    if any_f8:
        names = [_f8_name(o) for o in instruction.operands]
        lhs, rhs, accumulation, count = names[0], names[1], "f32", 1
    elif word in _TYPES:
        lhs, rhs, accumulation, count = _TYPES[word]
    else:
        raise UnimplementedError(f"{instruction.opcode}: StableHLO has no algorithm {word}")
    fields: dict[str, Attribute] = {
        "lhs_precision_type": Scalar(lhs),
        "rhs_precision_type": Scalar(rhs),
        "accumulation_type": Scalar(accumulation),
        "lhs_component_count": 1,
        "rhs_component_count": 1,
        "num_primitive_operations": count,
        "allow_imprecise_accumulation": word.endswith("_fast_accum"),
    }
    return {"algorithm": Struct("stablehlo.dot_algorithm", fields)}


def _f8_name(operand: HloInstruction) -> str:
    name = operand.shape.dtype.name
    return f"f{name[1:].upper()}" if name.startswith("f8") else "f8E5M2"


@exports("dot")
def _dot(scope: Scope, instruction: HloInstruction) -> Tree:
    attributes: dict[str, Attribute] = {
        "dot_dimension_numbers": Struct("stablehlo.dot", _dot_numbers(instruction))
    }
    attributes |= _precision(instruction) | _algorithm(instruction)
    return scope.emit("stablehlo.dot_general", instruction, attributes)


@exports("ragged-dot")
def _ragged_dot(scope: Scope, instruction: HloInstruction) -> Tree:
    fields = _dot_numbers(instruction)
    fields["lhs_ragged_dimensions"] = attr(instruction, "lhs_ragged_dims")
    fields["rhs_group_dimensions"] = attr(instruction, "rhs_group_dims")
    attributes: dict[str, Attribute] = {
        "ragged_dot_dimension_numbers": Struct("stablehlo.ragged_dot", fields)
    }
    return scope.emit("chlo.ragged_dot", instruction, attributes | _precision(instruction))


@exports("convolution")
def _convolution(scope: Scope, instruction: HloInstruction) -> Tree:
    labels = attr(instruction, "dim_labels")
    fields = {name: getattr(labels, hlo) for name, hlo in CONV_FIELDS.items()}
    window = attr(instruction, "window")
    attributes: dict[str, Attribute] = {
        "dimension_numbers": Struct("stablehlo.conv", fields),
        "window_strides": INTS.write([w.stride for w in window]),
        "padding": dense([[w.padding_low, w.padding_high] for w in window] or _NO_PAIRS),
        "lhs_dilation": INTS.write([w.base_dilation for w in window]),
        "rhs_dilation": INTS.write([w.window_dilation for w in window]),
        "batch_group_count": I64.write(attr(instruction, "batch_group_count")),
        "feature_group_count": I64.write(attr(instruction, "feature_group_count")),
    }
    if any(w.reversal for w in window):
        attributes["window_reversal"] = dense([w.reversal for w in window], "i1")
    return scope.emit("stablehlo.convolution", instruction, attributes | _precision(instruction))


_NO_PAIRS: Any = dense([[0, 0]]).array[:0]
