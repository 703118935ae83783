"""Pretty forms of while, reduce and scan, which hold regions."""

from __future__ import annotations

import re

from haloc.formats.stablehlo.mlir import (
    Attribute,
    Integer,
    MlirBlock,
    MlirOp,
    MlirRegion,
    MlirType,
    MlirValue,
)
from haloc.formats.stablehlo.text.attributes import parse_dictionary
from haloc.formats.stablehlo.text.forms_own import OWN_FORMS, dense_ints, dictionary
from haloc.formats.stablehlo.text.operations import OperationReader

_APPLIES = re.compile(r"\s*applies\s+([\w.]+)\s+across\s+dimensions\s*=")
_ACROSS = re.compile(r"\s*across\s+dimensions\s*=")
_ITER = re.compile(r"\s*%([\w$.-]+)\s*=\s*")


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
    attributes: dict[str, Attribute] = {"dimensions": dense_ints(cursor.ints())}
    attributes |= dictionary(reader)
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


def _scan(reader: OperationReader, name: str, position: int) -> MlirOp:
    """`(%a) inits (%c) dimension=0 attributes {...} {...} : ...`."""
    cursor = reader.cursor
    inputs = reader.operands_in_parentheses()
    cursor.expect_word("inits")
    inits = reader.operands_in_parentheses()
    cursor.expect_word("dimension")
    cursor.expect("=")
    attributes: dict[str, Attribute] = {"dimension": Integer(cursor.integer())}
    if cursor.accept_word("attributes"):
        attributes |= parse_dictionary(cursor)
    region = reader.region()
    operands = inputs + inits
    results = reader.function_type(name, operands)
    for key, sizes in (
        ("operandSegmentSizes", (len(inputs), len(inits))),
        ("resultSegmentSizes", (len(results) - len(inits), len(inits))),
    ):
        attributes[key] = dense_ints(sizes, "i32")
    return MlirOp(name, operands, attributes, [region], results, None, position)


OWN_FORMS |= {
    "chlo.scan": _scan,
    "stablehlo.reduce": _reduce,
    "stablehlo.while": _while,
}
