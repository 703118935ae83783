"""Shardy's ops in their pretty forms."""

from __future__ import annotations

import re

from haloc.formats.stablehlo.mlir import (
    Attribute,
    Integer,
    MlirOp,
    MlirValue,
    OtherAttribute,
    SdyManualAxes,
    SdyPerValue,
)
from haloc.formats.stablehlo.text.attributes import parse_dictionary
from haloc.formats.stablehlo.text.forms_own import OWN_FORMS
from haloc.formats.stablehlo.text.operations import OperationReader
from haloc.formats.stablehlo.text.sdy import (
    parse_axis_names,
    parse_mesh,
    parse_sdy_sharding,
    parse_sharding_list,
)

_DIRECTION = re.compile(r"\s*allowed_direction\s*=\s*(NONE|FORWARD|BACKWARD|BOTH)\b")
_GROUP = re.compile(r"\s*group_id\s*=\s*(\d+)")


def _mesh(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`sdy.mesh @mesh = <["x"=2]>`."""
    symbol = reader.cursor.symbol()
    reader.cursor.expect("=")
    attributes: dict[str, Attribute] = {"sym_name": symbol, "mesh": parse_mesh(reader.cursor)}
    if reader.cursor.peek("{"):
        attributes |= parse_dictionary(reader.cursor)
    return MlirOp(name, [], attributes, [], [], None, position)


def _one_type(reader: OperationReader, op: MlirOp) -> MlirOp:
    if reader.cursor.peek("{"):
        op.attributes |= parse_dictionary(reader.cursor)
    reader.cursor.expect(":")
    start = reader.cursor.skip()
    types = reader.types()
    reader.check_operands(op.name, op.operands, types, start)
    if op.name != "sdy.sharding_group":
        op.results = [MlirValue(t) for t in types]
    return op


def _constraint(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`sdy.sharding_constraint %0 <@mesh, [...]> : type`."""
    operand = reader.operand()
    sharding = parse_sdy_sharding(reader.cursor)
    return _one_type(
        reader, MlirOp(name, [operand], {"sharding": sharding}, [], [], None, position)
    )


def _group(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`sdy.sharding_group %0 group_id=1 : type`."""
    operand = reader.operand()
    found = reader.cursor.match(_GROUP)
    if found is None:
        reader.cursor.expected("group_id=N")
    attributes: dict[str, Attribute] = {"group_id": Integer(int(found[1]))}
    return _one_type(reader, MlirOp(name, [operand], attributes, [], [], None, position))


def _barrier(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`sdy.propagation_barrier %0 allowed_direction=FORWARD : type`."""
    operand = reader.operand()
    found = reader.cursor.match(_DIRECTION)
    if found is None:
        reader.cursor.expected("allowed_direction=NONE, FORWARD, BACKWARD or BOTH")
    number = ("NONE", "FORWARD", "BACKWARD", "BOTH").index(found[1])
    attributes: dict[str, Attribute] = {"allowed_direction": Integer(number, "i32")}
    return _one_type(reader, MlirOp(name, [operand], attributes, [], [], None, position))


def _edge(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`sdy.data_flow_edge %0 sharding=<@mesh, [...]> : type`."""
    operand = reader.operand()
    attributes: dict[str, Attribute] = {}
    if reader.cursor.accept_word("sharding"):
        reader.cursor.expect("=")
        attributes["sharding"] = parse_sdy_sharding(reader.cursor)
    return _one_type(reader, MlirOp(name, [operand], attributes, [], [], None, position))


_AXES = {
    "sdy.all_gather": ("gathering_axes", "list_of_axis_ref_lists"),
    "sdy.all_reduce": ("reduction_axes", "axis_ref_list"),
    "sdy.all_slice": ("slicing_axes", "list_of_axis_ref_lists"),
    "sdy.all_to_all": ("params", "all_to_all_param_list"),
    "sdy.reduce_scatter": ("reduce_scatter_axes", "list_of_axis_ref_lists"),
}
"""What stands in front of the operand of a collective: the attribute, and its kind."""


def _collective(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`sdy.all_gather [{}, {"y"}] %0 out_sharding=<@mesh, [...]> : type`."""
    attributes: dict[str, Attribute] = {}
    if name in _AXES:
        key, kind = _AXES[name]
        attributes[key] = OtherAttribute(f"#sdy<{kind}{reader.cursor.group()}>")
    operand = reader.operand()
    reader.cursor.expect_word("out_sharding")
    reader.cursor.expect("=")
    attributes["out_sharding"] = parse_sdy_sharding(reader.cursor)
    return _one_type(reader, MlirOp(name, [operand], attributes, [], [], None, position))


def _manual_computation(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`(%a) in_shardings=[...] out_shardings=[...] manual_axes={"x"} (%arg: t) {...} : ...`."""
    cursor = reader.cursor
    operands = reader.operands_in_parentheses()
    attributes: dict[str, Attribute] = {}
    for key in ("in_shardings", "out_shardings"):
        cursor.expect_word(key)
        cursor.expect("=")
        attributes[key] = SdyPerValue(parse_sharding_list(cursor))
    cursor.expect_word("manual_axes")
    cursor.expect("=")
    attributes["manual_axes"] = SdyManualAxes(parse_axis_names(cursor))
    return _body(reader, MlirOp(name, operands, attributes, [], [], None, position))


def _named_computation(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`<"name">(%a) in_shardings=[...] out_shardings=[...] (%arg: t) {...} : ...`."""
    cursor = reader.cursor
    cursor.expect("<")
    attributes: dict[str, Attribute] = {"name": cursor.string()}
    cursor.expect(">")
    operands = reader.operands_in_parentheses()
    for key in ("in_shardings", "out_shardings"):
        if cursor.accept_word(key):
            cursor.expect("=")
            attributes[key] = SdyPerValue(parse_sharding_list(cursor))
    return _body(reader, MlirOp(name, operands, attributes, [], [], None, position))


def _body(reader: OperationReader, op: MlirOp) -> MlirOp:
    cursor = reader.cursor
    outer = reader.values, reader.defined
    reader.defined = []
    arguments = []
    cursor.expect("(")
    while not cursor.accept(")"):
        arguments.append(reader.argument())
        if not cursor.accept(","):
            cursor.expect(")")
            break
    region = reader.region(terminator="sdy.return")
    reader.leave(outer)
    if region.blocks:
        region.blocks[0].arguments = arguments
    op.regions = [region]
    if cursor.peek("{"):
        op.attributes |= parse_dictionary(cursor)
    op.results = reader.function_type(op.name, op.operands)
    return op


OWN_FORMS |= dict.fromkeys((*_AXES, "sdy.collective_permute"), _collective) | {
    "sdy.data_flow_edge": _edge,
    "sdy.manual_computation": _manual_computation,
    "sdy.mesh": _mesh,
    "sdy.named_computation": _named_computation,
    "sdy.propagation_barrier": _barrier,
    "sdy.reshard": _constraint,
    "sdy.sharding_constraint": _constraint,
    "sdy.sharding_group": _group,
}
