"""The pretty forms of ops: most follow one pattern, told by a row of `KEYWORDS`; some their own.

The pattern: operands and `keyword = value` items separated by commas, then an attribute
dictionary, then `:` and the types. Types are written in full, `(a, b) -> c`; as `a, b -> c`; as
one type for all operands and the result; or as `pred, type` and other lists, by op.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

import numpy as np

from haloc.formats.stablehlo.mlir import (
    Attribute,
    DenseElements,
    Enum,
    Integer,
    MlirOp,
    MlirType,
    MlirValue,
    RankedTensor,
)
from haloc.formats.stablehlo.text.attributes import parse_attribute, parse_dictionary
from haloc.formats.stablehlo.text.forms_own import OWN_FORMS, precision_list
from haloc.formats.stablehlo.text.operations import OperationReader, PrettyForms
from haloc.formats.stablehlo.text.types import parse_function_type, parse_type
from haloc.formats.stablehlo.vocabulary import OP_NAMES

_KEYWORD = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*")


def int_array(values: tuple[int, ...]) -> DenseElements:
    """array<i64: ...>."""
    array = np.array(values, np.int64)
    array.flags.writeable = False
    return DenseElements(RankedTensor((len(values),), "i64"), array)


def _ints(reader: OperationReader) -> Attribute:
    return int_array(reader.cursor.ints())


def _i64(reader: OperationReader) -> Attribute:
    return Integer(reader.cursor.integer())


def _attribute(reader: OperationReader) -> Attribute:
    return parse_attribute(reader.cursor)


def _string(reader: OperationReader) -> Attribute:
    return reader.cursor.string()


def _enum(kind: str) -> Callable[[OperationReader], Attribute]:
    return lambda reader: Enum(kind, reader.cursor.word(f"a {kind.replace('_', ' ')}"))


Keyword = tuple[str, Callable[[OperationReader], Attribute]]

KEYWORDS: dict[str, dict[str, Keyword]] = {
    "stablehlo.all_gather": {"dim": ("all_gather_dim", _i64)},
    "stablehlo.broadcast": {"sizes": ("broadcast_sizes", _ints)},
    "stablehlo.broadcast_in_dim": {"dims": ("broadcast_dimensions", _ints)},
    "stablehlo.cholesky": {"lower": ("lower", _attribute)},
    "stablehlo.concatenate": {"dim": ("dimension", _i64)},
    "stablehlo.dot": {"precision": ("precision_config", precision_list)},
    "stablehlo.dynamic_broadcast_in_dim": {"dims": ("broadcast_dimensions", _ints)},
    "stablehlo.dynamic_iota": {"dim": ("iota_dimension", _i64)},
    "stablehlo.dynamic_slice": {"sizes": ("slice_sizes", _ints)},
    "stablehlo.einsum": {"config": ("einsum_config", _string)},
    "stablehlo.fft": {"type": ("fft_type", _enum("fft_type")), "length": ("fft_length", _ints)},
    "stablehlo.get_dimension_size": {"dim": ("dimension", _i64)},
    "stablehlo.iota": {"dim": ("iota_dimension", _i64)},
    "stablehlo.pad": {
        "low": ("edge_padding_low", _ints),
        "high": ("edge_padding_high", _ints),
        "interior": ("interior_padding", _ints),
    },
    "stablehlo.reverse": {"dims": ("dimensions", _ints)},
    "stablehlo.rng": {"distribution": ("rng_distribution", _enum("rng_distribution"))},
    "stablehlo.rng_bit_generator": {"algorithm": ("rng_algorithm", _enum("rng_algorithm"))},
    "stablehlo.set_dimension_size": {"dim": ("dimension", _i64)},
    "stablehlo.transpose": {"dims": ("permutation", _ints)},
    "stablehlo.unary_einsum": {"config": ("einsum_config", _string)},
}
"""Per op: the words before `=`, the attributes they stand for and how their values read."""

_RESULTS_ARE_TYPES = {"stablehlo.optimization_barrier", "sdy.propagation_barrier"}
_OPERANDS_ONLY = {"stablehlo.return", "func.return", "sdy.return", "stablehlo.trace"}
_ONE_TYPE_OF_RESULT = {
    "stablehlo.complex",
    "stablehlo.tuple",
    "stablehlo.after_all",
    "stablehlo.real",
    "stablehlo.imag",
    "stablehlo.clamp",
}
"""Ops whose operands may have other types than the one that is written."""


class Forms(PrettyForms):
    def read(self, reader: OperationReader, name: str, position: int) -> MlirOp:
        own = OWN_FORMS.get(name)
        if own is not None:
            return own(reader, name, position)
        if name not in OP_NAMES:
            near = get_close_matches(name, OP_NAMES, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            end = position + len(name)
            reader.cursor.fail_at(f"unknown operation {name!r}{hint}", position, end)
        return self.pattern(reader, name, position)

    def pattern(self, reader: OperationReader, name: str, position: int) -> MlirOp:
        cursor = reader.cursor
        attributes: dict[str, Attribute] = {}
        operands = reader.operands()
        keywords = KEYWORDS.get(name)
        while keywords is not None:
            back = cursor.pos
            cursor.accept(",")
            found = cursor.match(_KEYWORD)
            if found is None:
                cursor.pos = back
                break
            if found[1] not in keywords:
                wanted = ", ".join(keywords)
                message = f"{name} has no keyword {found[1]!r}, it has {wanted}"
                cursor.fail_at(message, found.start(1), found.end(1))
            key, read = keywords[found[1]]
            if key in attributes:
                message = f"keyword {found[1]!r} is given twice"
                cursor.fail_at(message, found.start(1), found.end(1))
            attributes[key] = read(reader)
        if cursor.peek("{"):
            attributes |= parse_dictionary(cursor)
        results = self.types(reader, name, operands)
        return MlirOp(name, operands, attributes, [], results, None, position)

    def types(
        self, reader: OperationReader, name: str, operands: list[MlirValue]
    ) -> list[MlirValue]:
        """The types at the end of an op; gives its results."""
        cursor = reader.cursor
        if name in _OPERANDS_ONLY and not operands:
            return []
        if not cursor.accept(":"):
            cursor.expected("',' or ':' and a type" if operands else "':' and a type")
        start = cursor.skip()
        if cursor.peek("("):
            function = parse_function_type(cursor)
            reader.check_operands(name, operands, list(function.inputs), start)
            return [MlirValue(t) for t in function.results]
        written = reader.types()
        if cursor.accept("->"):
            self._check_before_arrow(reader, name, operands, written, start)
            if cursor.peek("("):
                cursor.expect("(")
                results = [MlirValue(t) for t in reader.types()]
                cursor.expect(")")
                return results
            return [MlirValue(parse_type(cursor))]
        return self._results(reader, name, operands, written, start)

    def _check_before_arrow(
        self,
        reader: OperationReader,
        name: str,
        operands: list[MlirValue],
        written: list[MlirType],
        start: int,
    ) -> None:
        if len(written) == 1 and len(operands) > 1:
            written = written * len(operands)
        reader.check_operands(name, operands, written, start)

    def _results(
        self,
        reader: OperationReader,
        name: str,
        operands: list[MlirValue],
        written: list[MlirType],
        start: int,
    ) -> list[MlirValue]:
        if name in _OPERANDS_ONLY:
            reader.check_operands(name, operands, written, start)
            return []
        if name in _RESULTS_ARE_TYPES:
            reader.check_operands(name, operands, written, start)
            return [MlirValue(t) for t in written]
        if name == "stablehlo.select" and len(written) == 2:
            types = [written[0], written[1], written[1]]
            reader.check_operands(name, operands, types, start)
            return [MlirValue(written[1])]
        if len(written) != 1:
            reader.cursor.fail_at(
                f"{name} is written with {len(written)} types, expected one, or "
                "(operands) -> results",
                start,
                reader.cursor.pos,
            )
        if name not in _ONE_TYPE_OF_RESULT:
            reader.check_operands(name, operands, written * len(operands), start)
        return [MlirValue(written[0])]
