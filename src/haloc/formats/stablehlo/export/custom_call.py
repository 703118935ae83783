"""Calls of code outside the program."""

from __future__ import annotations

import numpy as np

from haloc.errors import HloError
from haloc.formats.stablehlo.export.annotations import annotations
from haloc.formats.stablehlo.export.context import (
    Scope,
    Tree,
    exports,
    refuse_attributes,
    tree_of,
)
from haloc.formats.stablehlo.export.regions import function_of
from haloc.formats.stablehlo.export.types import type_of
from haloc.formats.stablehlo.mlir import (
    Attribute,
    DenseElements,
    Integer,
    RankedTensor,
    Struct,
    SymbolRef,
)
from haloc.formats.stablehlo.text.attributes import read_dictionary
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.custom_call import API_VERSIONS
from haloc.ops.table import attr

_TYPED_FFI = "API_VERSION_TYPED_FFI"


@exports("custom-call")
def _custom_call(scope: Scope, instruction: HloInstruction) -> Tree:
    """A result that is a tuple of one, or holds tuples, stays a tuple."""
    refuse_attributes(instruction, "schedule", "window", "dim_labels")
    attributes: dict[str, Attribute] = {
        "call_target_name": attr(instruction, "custom_call_target"),
        **annotations(instruction),
    }
    if attr(instruction, "custom_call_has_side_effect"):
        attributes["has_side_effect"] = True
    version = attr(instruction, "api_version")
    if version != "API_VERSION_ORIGINAL":
        attributes["api_version"] = Integer(API_VERSIONS.index(version), "i32")
    attributes |= _config(instruction)
    called = attr(instruction, "called_computations")
    if called:
        names = [function_of(scope.program, c) for c in called]
        attributes["called_computations"] = tuple(map(SymbolRef, names))
    shape = instruction.shape
    is_flat = shape.is_tuple and len(shape.elements) != 1
    is_flat = is_flat and not any(e.is_tuple for e in shape.elements)
    shapes = list(shape.elements) if is_flat else [shape]
    attributes |= _layouts(instruction, shapes) | _aliases(instruction)
    types = [type_of(s) for s in shapes]
    made = scope.op("stablehlo.custom_call", scope.operands(instruction), types, attributes)
    return tree_of(shape, made) if is_flat else made[0]


def _config(instruction: HloInstruction) -> dict[str, Attribute]:
    """A dictionary where the call's convention has one, else text."""
    text = instruction.backend_config
    if not text:
        return {}
    if attr(instruction, "api_version") == _TYPED_FFI:
        try:
            return {"backend_config": read_dictionary(text)}
        except HloError:  # XLA's GPU compiler, for one, writes JSON there
            return {"mhlo.backend_config": text}
    return {"backend_config": text}


def _layouts(instruction: HloInstruction, results: list[Shape]) -> dict[str, Attribute]:
    constraints = instruction.attrs.get("operand_layout_constraints")
    if constraints is None:
        return {}
    parts = results
    if len(results) == 1 and results[0].is_tuple:
        parts = list(results[0].elements)
    return {
        "operand_layouts": tuple(map(_layout, constraints)),
        "result_layouts": tuple(map(_layout, parts)),
    }


def _layout(shape: Shape) -> Attribute:
    order = shape.layout.minor_to_major if shape.layout is not None else ()
    return DenseElements(RankedTensor((len(order),), "index"), np.array(order, np.int64))


def _aliases(instruction: HloInstruction) -> dict[str, Attribute]:
    found = []
    for output, operand, inside in attr(instruction, "output_to_operand_aliasing"):
        fields: dict[str, Attribute] = {
            "output_tuple_indices": tuple(output),
            "operand_index": operand,
            "operand_tuple_indices": tuple(inside),
        }
        found.append(Struct("stablehlo.output_operand_alias", fields))
    return {"output_operand_aliases": tuple(found)} if found else {}
