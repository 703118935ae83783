"""Pretty forms of dots and convolutions."""

from __future__ import annotations

import re

import numpy as np

from haloc.formats.stablehlo.mlir import (
    Attribute,
    Integer,
    MlirOp,
    Struct,
)
from haloc.formats.stablehlo.text.attributes import (
    parse_attribute,
    parse_conv_dims,
    parse_struct,
)
from haloc.formats.stablehlo.text.forms_own import (
    OWN_FORMS,
    dense_ints,
    dictionary,
    precision_list,
)
from haloc.formats.stablehlo.text.operations import OperationReader

_KEYWORD = re.compile(r"\s*(?:,\s*)?([A-Za-z_]\w*)\s*=\s*")
_PAIRS = re.compile(r"\s*\[((?:\s*\[\s*-?\d+\s*,\s*-?\d+\s*\]\s*,?)*)\s*\]")


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
    attributes |= dictionary(reader)
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
    attributes |= dictionary(reader)
    results = reader.function_type(name, operands)
    return MlirOp(name, operands, attributes, [], results, None, position)


WINDOW = {
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
            found["padding"] = dense_ints(np.array(numbers, np.int64).reshape(-1, 2))
        elif key == "reverse":
            listed = parse_attribute(cursor)
            if not isinstance(listed, tuple):
                cursor.fail_at("reverse is a list of true and false", at, cursor.pos)
            flags = [f.value != 0 if isinstance(f, Integer) else f is True for f in listed]
            found["window_reversal"] = dense_ints(flags, "i1")
        elif key in WINDOW:
            found[WINDOW[key][0]] = dense_ints(cursor.ints())
        else:
            wanted = ", ".join(["pad", *WINDOW])
            message = f"unknown window field {key!r} of {name}, expected {wanted}"
            cursor.fail_at(message, at, at + len(key))
        if not cursor.accept(","):
            if not cursor.accept("}"):
                cursor.expected("',' or '}'")
            break
    return found


OWN_FORMS |= {
    "stablehlo.convolution": _convolution,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_conv": _convolution,
}
