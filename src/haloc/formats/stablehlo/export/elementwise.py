"""Ops that the rows spell out, and their nearest relatives."""

from __future__ import annotations

from typing import Any

from haloc.formats.stablehlo.convert.elementwise import OPCODES
from haloc.formats.stablehlo.convert.rows import DISTRIBUTION, MISSING, ROWS, dense
from haloc.formats.stablehlo.export.context import Scope, Tree, exports
from haloc.formats.stablehlo.export.types import tensor_of
from haloc.formats.stablehlo.mlir import (
    Attribute,
    DenseElements,
    Enum,
    MlirValue,
    Struct,
)
from haloc.ir.literal import Literal
from haloc.ir.module import HloInstruction
from haloc.ops.raw_attrs import Accuracy
from haloc.ops.table import attr

_SPELLING = {opcode: name for name, opcode in reversed(OPCODES.items())}
"""StableHLO's name; StableHLO's own dialect stands before chlo where both have the op."""

_ROW_OF = {row.opcode: name for name, row in ROWS.items()}


def _same(scope: Scope, instruction: HloInstruction) -> Tree:
    attributes: dict[str, Attribute] = {}
    accuracy = instruction.attrs.get("result_accuracy", "")
    if accuracy:
        attributes["result_accuracy"] = _accuracy(accuracy)
    return scope.emit(_SPELLING[instruction.opcode], instruction, attributes)


exports(*_SPELLING)(_same)


def _accuracy(text: str) -> Struct:
    """HLO's {mode=highest} or {tolerance={atol=..., rtol=..., ulps=...}}."""
    written = Accuracy().to_proto(text, None)  # type: ignore[arg-type]  # it writes no part
    numbers = written.get("tolerance", {"atol": 0.0, "rtol": 0.0, "ulps": 0})
    mode = "TOLERANCE" if "tolerance" in written else ("DEFAULT", "HIGHEST")[written["mode"]]
    fields: dict[str, Any] = {**numbers, "mode": Enum("result_accuracy_mode", mode)}
    return Struct("stablehlo.result_accuracy", fields)


def _row(scope: Scope, instruction: HloInstruction) -> Tree:
    name = _ROW_OF[instruction.opcode]
    return scope.emit(name, instruction, row_attributes(name, instruction))


def row_attributes(name: str, instruction: HloInstruction) -> dict[str, Attribute]:
    """The attributes that the row of a StableHLO op says; defaults are left out."""
    found = {}
    for field in ROWS[name].fields:
        value = attr(instruction, field.hlo)
        if field.default is MISSING or value != field.default:
            found[field.name] = field.form.write(value)
    return found


exports(*_ROW_OF)(_row)


@exports("constant")
def _constant(scope: Scope, instruction: HloInstruction) -> Tree:
    literal = instruction.attrs["literal"]
    values: list[Tree] = [constant(scope, leaf) for leaf in literal.leaves()]
    return tuple(values) if literal.shape.is_tuple else values[0]


def constant(scope: Scope, literal: Literal) -> MlirValue:
    type_ = tensor_of(literal.shape)
    value = DenseElements(type_, literal.array)
    return scope.op("stablehlo.constant", [], [type_], {"value": value})[0]


@exports("compare")
def _compare(scope: Scope, instruction: HloInstruction) -> Tree:
    attributes: dict[str, Attribute] = {
        "comparison_direction": Enum("comparison_direction", attr(instruction, "direction")),
        "compare_type": Enum("comparison_type", _comparison_type(instruction)),
    }
    return scope.emit("stablehlo.compare", instruction, attributes)


def _comparison_type(instruction: HloInstruction) -> str:
    written = instruction.attrs.get("type", "")
    if written:
        return written
    dtype = instruction.operands[0].shape.dtype
    if dtype.is_float or dtype.is_complex:
        return "FLOAT"
    return "SIGNED" if dtype.is_signed else "UNSIGNED"


@exports("rng")
def _rng(scope: Scope, instruction: HloInstruction) -> Tree:
    sizes = dense(instruction.shape.dims)
    shape = scope.op("stablehlo.constant", [], [sizes.type], {"value": sizes})
    attributes: dict[str, Attribute] = {
        "rng_distribution": DISTRIBUTION.write(attr(instruction, "distribution"))
    }
    operands = [*scope.operands(instruction), *shape]
    return scope.emit("stablehlo.rng", instruction, attributes, operands=operands)
