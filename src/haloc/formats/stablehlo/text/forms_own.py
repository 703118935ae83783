"""Ops whose pretty form follows no common pattern, one function each."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from haloc.formats.stablehlo.mlir import (
    Attribute,
    DenseElements,
    Enum,
    Float,
    Integer,
    MlirOp,
    MlirType,
    MlirValue,
    RankedTensor,
    Scalar,
    SymbolRef,
    Tuple,
)
from haloc.formats.stablehlo.text.attributes import parse_attribute, parse_dictionary
from haloc.formats.stablehlo.text.cursor import INT64_MAX
from haloc.formats.stablehlo.text.operations import OperationReader
from haloc.formats.stablehlo.text.types import parse_type

OwnForm = Callable[[OperationReader, str, int], MlirOp]

_RANGE = re.compile(r"\s*(-?\d+)\s*:\s*(-?\d+)(?:\s*:\s*(-?\d+))?")
_FORMAT = re.compile(r"\s*e(\d+)m(\d+)")


def dense_ints(values: object, element: str = "i64") -> DenseElements:
    array = np.array(values, {"i1": np.bool_, "i32": np.int32}.get(element, np.int64))
    array.flags.writeable = False
    return DenseElements(RankedTensor(array.shape, element), array)


def dictionary(reader: OperationReader) -> dict[str, Attribute]:
    return parse_dictionary(reader.cursor) if reader.cursor.peek("{") else {}


def precision_list(reader: OperationReader) -> Attribute:
    """`[DEFAULT, HIGH]`."""
    cursor = reader.cursor
    cursor.expect("[")
    found: list[Attribute] = []
    while not cursor.accept("]"):
        found.append(Enum("precision", cursor.word("a precision")))
        if not cursor.accept(","):
            cursor.expect("]")
            break
    return tuple(found)


def _constant(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`stablehlo.constant dense<...> : type`."""
    cursor = reader.cursor
    attributes = dictionary(reader)
    at = cursor.skip()
    value = parse_attribute(cursor)
    result: MlirType
    if isinstance(value, DenseElements):
        result = value.type
    elif isinstance(value, Integer | Float) and name == "arith.constant":
        result = Scalar(value.type)
    elif isinstance(value, bool) and name == "arith.constant":
        result = Scalar("i1")
    else:
        cursor.fail_at(f"{name} needs dense<...> : tensor<...>", at, cursor.pos)
    if name != "arith.constant" and cursor.accept(":"):  # of quantized constants
        result = parse_type(cursor)
    attributes["value"] = value
    return MlirOp(name, [], attributes, [], [MlirValue(result)], None, position)


def _compare(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`stablehlo.compare LT, %a, %b, FLOAT : ...`."""
    cursor = reader.cursor
    at = cursor.skip()
    direction = cursor.word("a comparison direction")
    if direction not in ("EQ", "NE", "GE", "GT", "LE", "LT"):
        message = f"found {direction!r}, expected one of EQ, NE, GE, GT, LE, LT"
        cursor.fail_at(message, at, cursor.pos)
    cursor.expect(",")
    operands = reader.operands()
    attributes: dict[str, Attribute] = {
        "comparison_direction": Enum("comparison_direction", direction)
    }
    if cursor.accept(","):
        at = cursor.skip()
        kind = cursor.word("a comparison type")
        if kind not in ("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED", "NOTYPE"):
            message = f"found {kind!r}, expected one of FLOAT, TOTALORDER, SIGNED, UNSIGNED"
            cursor.fail_at(message, at, cursor.pos)
        attributes["compare_type"] = Enum("comparison_type", kind)
    attributes |= dictionary(reader)
    results = reader.function_type(name, operands)
    return MlirOp(name, operands, attributes, [], results, None, position)


def _slice(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`stablehlo.slice %a [0:4:2, 1:3] : ...`."""
    cursor = reader.cursor
    operand = reader.operand()
    cursor.expect("[")
    ranges: list[tuple[int, int, int]] = []
    while not cursor.accept("]"):
        found = cursor.match(_RANGE)
        if found is None:
            cursor.expected("a range such as 0:4 or 0:4:2")
        start, limit, stride = int(found[1]), int(found[2]), int(found[3] or 1)
        if max(abs(start), abs(limit), abs(stride)) > INT64_MAX:
            cursor.fail_at("a number does not fit 64 bits", found.start(1), found.end())
        ranges.append((start, limit, stride))
        if not cursor.accept(","):
            cursor.expect("]")
            break
    attributes: dict[str, Attribute] = {
        "start_indices": dense_ints([r[0] for r in ranges]),
        "limit_indices": dense_ints([r[1] for r in ranges]),
        "strides": dense_ints([r[2] for r in ranges]),
    }
    attributes |= dictionary(reader)
    results = reader.function_type(name, [operand])
    return MlirOp(name, [operand], attributes, [], results, None, position)


def _get_tuple_element(reader: OperationReader, name: str, position: int) -> MlirOp:
    cursor = reader.cursor
    operand = reader.operand()
    cursor.expect("[")
    index = cursor.integer()
    cursor.expect("]")
    attributes = {"index": Integer(index, "i32")} | dictionary(reader)
    results = reader.function_type(name, [operand])
    return MlirOp(name, [operand], attributes, [], results, None, position)


def _tuple(reader: OperationReader, name: str, position: int) -> MlirOp:
    cursor = reader.cursor
    operands = reader.operands()
    attributes = dictionary(reader)
    cursor.expect(":")
    at = cursor.skip()
    result = parse_type(cursor)
    if not isinstance(result, Tuple):
        cursor.fail_at(f"the result of {name} is a tuple<...>, not {result}", at, cursor.pos)
    reader.check_operands(name, operands, list(result.members), at)
    return MlirOp(name, operands, attributes, [], [MlirValue(result)], None, position)


def _reduce_precision(reader: OperationReader, name: str, position: int) -> MlirOp:
    cursor = reader.cursor
    operand = reader.operand()
    cursor.expect(",")
    cursor.expect_word("format")
    cursor.expect("=")
    found = cursor.match(_FORMAT)
    if found is None:
        cursor.expected("a format such as e5m10")
    attributes: dict[str, Attribute] = {
        "exponent_bits": Integer(int(found[1]), "i32"),
        "mantissa_bits": Integer(int(found[2]), "i32"),
    }
    attributes |= dictionary(reader)
    return _finish(reader, MlirOp(name, [operand], attributes, [], [], None, position))


def _finish(reader: OperationReader, op: MlirOp) -> MlirOp:
    """Types of an op with one type for all, or in full."""
    op.results = reader.forms.types(reader, op.name, op.operands)  # type: ignore[attr-defined]
    return op


def _call(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`call @f(%a) : ...` and `stablehlo.custom_call @f(%a) {...} : ...`."""
    cursor = reader.cursor
    target = cursor.symbol()
    operands = reader.operands_in_parentheses()
    attributes = dictionary(reader)
    if name == "func.call":
        attributes["callee"] = SymbolRef(target)
    else:
        attributes["call_target_name"] = target
    results = reader.function_type(name, operands)
    return MlirOp(name, operands, attributes, [], results, None, position)


def _composite(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`stablehlo.composite "chlo.top_k" %a {...} : ...`."""
    composite = reader.cursor.string()
    operands = reader.operands()
    attributes: dict[str, Attribute] = {"name": composite} | dictionary(reader)
    results = reader.function_type(name, operands)
    return MlirOp(name, operands, attributes, [], results, None, position)


# --- Other dialects ------------------------------------------------------------------------------


def _top_k(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`chlo.top_k(%a, k = 2) : type -> (type, type)`."""
    cursor = reader.cursor
    cursor.expect("(")
    operand = reader.operand()
    cursor.expect(",")
    cursor.expect_word("k")
    cursor.expect("=")
    attributes: dict[str, Attribute] = {"k": Integer(cursor.integer())}
    if cursor.accept(","):
        cursor.expect_word("largest")
        cursor.expect("=")
        attributes["largest"] = parse_attribute(cursor)
    cursor.expect(")")
    attributes |= dictionary(reader)
    return _finish(reader, MlirOp(name, [operand], attributes, [], [], None, position))


def _token(reader: OperationReader, name: str, position: int) -> MlirOp:
    attributes = dictionary(reader)
    reader.cursor.expect(":")
    result = MlirValue(parse_type(reader.cursor))
    return MlirOp(name, [], attributes, [], [result], None, position)


def _cast(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`builtin.unrealized_conversion_cast %a : t to u`, `tensor.cast %a : t to u`."""
    cursor = reader.cursor
    operands = reader.operands()
    attributes = dictionary(reader)
    cursor.expect(":")
    start = cursor.skip()
    reader.check_operands(name, operands, reader.types(), start)
    cursor.expect_word("to")
    results = [MlirValue(t) for t in reader.types()]
    return MlirOp(name, operands, attributes, [], results, None, position)


def _nested(reader: OperationReader, name: str, position: int) -> MlirOp:
    return reader.cursor.fail_at(
        f"{name} stands inside another operation", position, position + len(name)
    )


OWN_FORMS: dict[str, OwnForm] = {
    "arith.constant": _constant,
    "builtin.module": _nested,
    "builtin.unrealized_conversion_cast": _cast,
    "chlo.constant": _constant,
    "chlo.top_k": _top_k,
    "func.call": _call,
    "func.func": _nested,
    "sdy.constant": _constant,
    "stablehlo.compare": _compare,
    "stablehlo.composite": _composite,
    "stablehlo.constant": _constant,
    "stablehlo.create_token": _token,
    "stablehlo.custom_call": _call,
    "stablehlo.get_tuple_element": _get_tuple_element,
    "stablehlo.partition_id": _token,
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.replica_id": _token,
    "stablehlo.slice": _slice,
    "stablehlo.tuple": _tuple,
    "tensor.cast": _cast,
}
