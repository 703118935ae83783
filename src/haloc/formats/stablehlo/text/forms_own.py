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
    MlirBlock,
    MlirOp,
    MlirRegion,
    MlirType,
    MlirValue,
    RankedTensor,
    Scalar,
    Struct,
    SymbolRef,
    Tuple,
)
from haloc.formats.stablehlo.text.attributes import (
    parse_attribute,
    parse_conv_dims,
    parse_dictionary,
    parse_struct,
)
from haloc.formats.stablehlo.text.cursor import INT64_MAX
from haloc.formats.stablehlo.text.operations import OperationReader
from haloc.formats.stablehlo.text.types import parse_type

OwnForm = Callable[[OperationReader, str, int], MlirOp]

_RANGE = re.compile(r"\s*(-?\d+)\s*:\s*(-?\d+)(?:\s*:\s*(-?\d+))?")
_FORMAT = re.compile(r"\s*e(\d+)m(\d+)")
_KEYWORD = re.compile(r"\s*(?:,\s*)?([A-Za-z_]\w*)\s*=\s*")
_APPLIES = re.compile(r"\s*applies\s+([\w.]+)\s+across\s+dimensions\s*=")
_ACROSS = re.compile(r"\s*across\s+dimensions\s*=")
_ITER = re.compile(r"\s*%([\w$.-]+)\s*=\s*")
_PAIRS = re.compile(r"\s*\[((?:\s*\[\s*-?\d+\s*,\s*-?\d+\s*\]\s*,?)*)\s*\]")
_WORD = re.compile(r"\s*(\w+)")


def _dense(values: object, element: str = "i64") -> DenseElements:
    array = np.array(values, np.bool_ if element == "i1" else np.int64)
    array.flags.writeable = False
    return DenseElements(RankedTensor(array.shape, element), array)


def _dictionary(reader: OperationReader) -> dict[str, Attribute]:
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
    attributes = _dictionary(reader)
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
    attributes |= _dictionary(reader)
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
        "start_indices": _dense([r[0] for r in ranges]),
        "limit_indices": _dense([r[1] for r in ranges]),
        "strides": _dense([r[2] for r in ranges]),
    }
    attributes |= _dictionary(reader)
    results = reader.function_type(name, [operand])
    return MlirOp(name, [operand], attributes, [], results, None, position)


def _get_tuple_element(reader: OperationReader, name: str, position: int) -> MlirOp:
    cursor = reader.cursor
    operand = reader.operand()
    cursor.expect("[")
    index = cursor.integer()
    cursor.expect("]")
    attributes = {"index": Integer(index, "i32")} | _dictionary(reader)
    results = reader.function_type(name, [operand])
    return MlirOp(name, [operand], attributes, [], results, None, position)


def _tuple(reader: OperationReader, name: str, position: int) -> MlirOp:
    cursor = reader.cursor
    operands = reader.operands()
    attributes = _dictionary(reader)
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
    attributes |= _dictionary(reader)
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
    attributes = _dictionary(reader)
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
    attributes: dict[str, Attribute] = {"name": composite} | _dictionary(reader)
    results = reader.function_type(name, operands)
    return MlirOp(name, operands, attributes, [], results, None, position)


# --- Contractions --------------------------------------------------------------------------------


def _pair(reader: OperationReader) -> tuple[tuple[int, ...], tuple[int, ...]]:
    left = reader.cursor.ints()
    reader.cursor.expect_word("x")
    return left, reader.cursor.ints()


def _dot_general(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`%a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [...]`."""
    cursor = reader.cursor
    operands = reader.operands()
    fields: dict[str, Attribute] = {}
    attributes: dict[str, Attribute] = {}
    while found := _KEYWORD.match(cursor.text, cursor.pos):
        cursor.pos = found.end()
        key = found[1]
        if key in ("batching_dims", "contracting_dims"):
            kind = key.removesuffix("_dims")
            left, right = _pair(reader)
            fields[f"lhs_{kind}_dimensions"] = left
            fields[f"rhs_{kind}_dimensions"] = right
        elif key == "precision":
            attributes["precision_config"] = precision_list(reader)
        elif key == "algorithm":
            start = cursor.pos
            attributes["algorithm"] = parse_struct(cursor, "stablehlo", "dot_algorithm", start)
        else:
            wanted = "batching_dims, contracting_dims, precision, algorithm"
            message = f"{name} has no keyword {key!r}, it has {wanted}"
            cursor.fail_at(message, found.start(1), found.end(1))
    given = {name: dims for name, dims in fields.items() if dims}
    attributes["dot_dimension_numbers"] = Struct("stablehlo.dot", given)
    attributes |= _dictionary(reader)
    results = reader.function_type(name, operands)
    return MlirOp(name, operands, attributes, [], results, None, position)


def _convolution(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`(%a, %b) dim_numbers = [...]x[...]->[...], window = {stride = [1], ...} {...}`."""
    cursor = reader.cursor
    operands = reader.operands_in_parentheses()
    cursor.expect_word("dim_numbers")
    cursor.expect("=")
    attributes: dict[str, Attribute] = {"dimension_numbers": parse_conv_dims(cursor)}
    cursor.expect(",")
    cursor.expect_word("window")
    cursor.expect("=")
    attributes |= _window(reader, name)
    attributes |= _dictionary(reader)
    results = reader.function_type(name, operands)
    return MlirOp(name, operands, attributes, [], results, None, position)


_WINDOW = {
    "stride": ("window_strides", "i64"),
    "lhs_dilate": ("lhs_dilation", "i64"),
    "rhs_dilate": ("rhs_dilation", "i64"),
    "reverse": ("window_reversal", "i1"),
}


def _window(reader: OperationReader, name: str) -> dict[str, Attribute]:
    cursor = reader.cursor
    cursor.expect("{")
    found: dict[str, Attribute] = {}
    while not cursor.accept("}"):
        at = cursor.skip()
        key = cursor.word("a window field or '}'")
        cursor.expect("=")
        if key == "pad":
            pairs = cursor.match(_PAIRS)
            if pairs is None:
                cursor.expected("padding such as [[0, 1], [0, 1]]")
            numbers = [int(n) for n in re.findall(r"-?\d+", pairs[1])]
            found["padding"] = _dense(np.array(numbers, np.int64).reshape(-1, 2))
        elif key == "reverse":
            listed = parse_attribute(cursor)
            if not isinstance(listed, tuple):
                cursor.fail_at("reverse is a list of true and false", at, cursor.pos)
            flags = [f.value != 0 if isinstance(f, Integer) else f is True for f in listed]
            found["window_reversal"] = _dense(flags, "i1")
        elif key in _WINDOW:
            found[_WINDOW[key][0]] = _dense(cursor.ints())
        else:
            wanted = ", ".join(["pad", *_WINDOW])
            message = f"unknown window field {key!r} of {name}, expected {wanted}"
            cursor.fail_at(message, at, at + len(key))
        if not cursor.accept(","):
            if not cursor.accept("}"):
                cursor.expected("',' or '}'")
            break
    return found


# --- Regions -------------------------------------------------------------------------------------


def _while(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`(%i = %0, ...) : types cond {...} do {...}`."""
    cursor = reader.cursor
    cursor.expect("(")
    operands: list[MlirValue] = []
    names: list[str] = []
    while not cursor.accept(")"):
        found = cursor.match(_ITER)
        if found is None:
            cursor.expected("an argument such as %iterArg = %0")
        names.append(found[1])
        operands.append(reader.operand())
        if not cursor.accept(","):
            cursor.expect(")")
            break
    types: list[MlirType] = []
    if operands:
        cursor.expect(":")
        start = cursor.skip()
        types = reader.types()
        reader.check_operands(name, operands, types, start)
    attributes: dict[str, Attribute] = {}
    if cursor.accept_word("attributes"):
        attributes = parse_dictionary(cursor)
    regions = []
    for word in ("cond", "do"):
        cursor.expect_word(word)
        # Each region has arguments of its own, under the same names.
        arguments = [MlirValue(t, n) for n, t in zip(names, types)]
        regions.append(reader.region(arguments=arguments))
    results = [MlirValue(t) for t in types]
    return MlirOp(name, operands, attributes, regions, results, None, position)


def _reduce(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`(%a init: %b), ... applies op across dimensions = [0] : ...`, or with a reducer."""
    cursor = reader.cursor
    inputs: list[MlirValue] = []
    inits: list[MlirValue] = []
    while True:
        cursor.expect("(")
        inputs.append(reader.operand())
        cursor.expect_word("init")
        cursor.expect(":")
        inits.append(reader.operand())
        cursor.expect(")")
        if not cursor.accept(","):
            break
    applies = cursor.match(_APPLIES)
    if applies is None and cursor.match(_ACROSS) is None:
        cursor.expected("'applies OP across dimensions =' or 'across dimensions ='")
    attributes: dict[str, Attribute] = {"dimensions": _dense(cursor.ints())}
    attributes |= _dictionary(reader)
    operands = inputs + inits
    results = reader.function_type(name, operands)
    op = MlirOp(name, operands, attributes, [], results, None, position)
    if applies is not None:
        op.regions = [_applied(applies[1], inits, reader, applies.start(1))]
        return op
    cursor.expect_word("reducer")
    op.regions = [_reducer(reader, len(inputs))]
    return op


def _applied(inner: str, inits: list[MlirValue], reader: OperationReader, at: int) -> MlirRegion:
    """The region `applies` leaves out: the op on two scalars."""
    type_ = inits[0].type
    if len(inits) != 1:
        reader.cursor.fail_at("'applies' reduces one array", at, at + len(inner))
    block = MlirBlock([MlirValue(type_, "lhs"), MlirValue(type_, "rhs")])
    op = MlirOp(inner, list(block.arguments), {}, [], [MlirValue(type_)], None, at)
    block.operations = [op, MlirOp("stablehlo.return", op.results, {}, [], [], None, at)]
    return MlirRegion([block])


def _reducer(reader: OperationReader, count: int) -> MlirRegion:
    """`(%x: t, %y: t) (%i: t, %j: t) {...}`: pairs of arguments, one pair an input."""
    cursor = reader.cursor
    outer = reader.values, reader.defined
    reader.defined = []
    firsts: list[MlirValue] = []
    seconds: list[MlirValue] = []
    for _ in range(count):
        cursor.expect("(")
        firsts.append(reader.argument())
        cursor.expect(",")
        seconds.append(reader.argument())
        cursor.expect(")")
    region = reader.region()
    reader.leave(outer)
    if not region.blocks:
        region.blocks = [MlirBlock()]
    region.blocks[0].arguments = firsts + seconds
    return region


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
    attributes |= _dictionary(reader)
    return _finish(reader, MlirOp(name, [operand], attributes, [], [], None, position))


def _token(reader: OperationReader, name: str, position: int) -> MlirOp:
    attributes = _dictionary(reader)
    reader.cursor.expect(":")
    result = MlirValue(parse_type(reader.cursor))
    return MlirOp(name, [], attributes, [], [result], None, position)


def _cast(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`builtin.unrealized_conversion_cast %a : t to u`, `tensor.cast %a : t to u`."""
    cursor = reader.cursor
    operands = reader.operands()
    attributes = _dictionary(reader)
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
    "stablehlo.convolution": _convolution,
    "stablehlo.create_token": _token,
    "stablehlo.custom_call": _call,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.get_tuple_element": _get_tuple_element,
    "stablehlo.partition_id": _token,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.replica_id": _token,
    "stablehlo.slice": _slice,
    "stablehlo.tuple": _tuple,
    "stablehlo.while": _while,
    "tensor.cast": _cast,
}
