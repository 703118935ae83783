"""MLIR types in text. Tensor types are few and written often: each is read once."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from haloc.formats.stablehlo.mlir import (
    Attribute,
    Buffer,
    Function,
    Future,
    MlirType,
    OtherType,
    Quantized,
    RankedTensor,
    Scalar,
    Struct,
    Token,
    Tuple,
    UnrankedTensor,
)
from haloc.formats.stablehlo.text.cursor import INT64_MAX, MlirCursor

_TENSOR = re.compile(r"\s*(tensor<[^<>]*(?:<[^<>]*>)?>)")
_DIMS = re.compile(r"\s*((?:(?:\d+|\?)\s*x\s*)*)")
_UNRANKED = re.compile(r"\s*\*\s*x\s*")
_WORD = re.compile(r"\s*(!?[A-Za-z_][\w$.]*)")
_SCALAR = re.compile(
    r"[su]?i[1-9]\d{0,3}|index|none|tf32|bf16|f(?:16|32|64|80|128)|f\d+E\d+M\d+\w*"
)
_QUANTIZED = re.compile(
    r"\s*<\s*([su]?i\d+)\s*(?:<\s*(-?\d+)\s*:\s*(-?\d+)\s*>)?\s*:\s*(\w+)\s*(?::\s*(\d+))?\s*,\s*"
)
_NUMBER = r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
_SCALE = re.compile(rf"\s*({_NUMBER})\s*(?::\s*(-?\d+))?\s*")
_KNOWN = ["tensor", "tuple", "complex", "memref", "!stablehlo.token", "!quant.uniform", "index"]


def parse_type(cursor: MlirCursor) -> MlirType:
    found = _TENSOR.match(cursor.text, cursor.pos)
    if found is not None:
        known = cursor.types.get(found[1])
        if known is not None:
            cursor.pos = found.end()
            return known
    with cursor.nested("types"):
        return _parse_type(cursor)


def _parse_type(cursor: MlirCursor) -> MlirType:
    start = cursor.skip()
    if cursor.peek("("):
        return parse_function_type(cursor)
    found = _WORD.match(cursor.text, cursor.pos)
    if found is None:
        return cursor.expected("a type")
    word = found[1]
    cursor.pos = found.end()
    if word == "tensor":
        tensor = _tensor(cursor)
        cursor.types[cursor.text[start : cursor.pos]] = tensor
        return tensor
    if _SCALAR.fullmatch(word):
        return Scalar(word)
    reader = _READERS.get(word)
    if reader is not None:
        return reader(cursor)
    if word.startswith("!"):
        return _dialect_type(cursor, word, start)
    near = get_close_matches(word, _KNOWN, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return cursor.fail_at(f"found {word!r}, expected a type{hint}", start, cursor.pos)


def parse_function_type(cursor: MlirCursor) -> Function:
    """`(a, b) -> c` or `(a, b) -> (c, d)`."""
    inputs = _listed(cursor, "(", ")")
    cursor.expect("->")
    if cursor.peek("("):
        return Function(inputs, _listed(cursor, "(", ")"))
    return Function(inputs, (parse_type(cursor),))


def _listed(cursor: MlirCursor, opening: str, closing: str) -> tuple[MlirType, ...]:
    cursor.expect(opening)
    if cursor.accept(closing):
        return ()
    found = [parse_type(cursor)]
    while cursor.accept(","):
        found.append(parse_type(cursor))
    if not cursor.accept(closing):
        cursor.expected(f"',' or {closing!r}")
    return tuple(found)


def _dims(cursor: MlirCursor) -> tuple[int | None, ...]:
    found = _DIMS.match(cursor.text, cursor.pos)
    assert found is not None
    dims = tuple(None if d == "?" else int(d) for d in re.findall(r"\d+|\?", found[1]))
    for dim in dims:
        if dim is not None and dim > INT64_MAX:
            cursor.fail_at(f"the size {dim} does not fit 64 bits", found.start(1), found.end(1))
    cursor.pos = found.end()
    return dims


def _tensor(cursor: MlirCursor) -> MlirType:
    cursor.expect("<")
    if found := _UNRANKED.match(cursor.text, cursor.pos):
        cursor.pos = found.end()
        unranked = UnrankedTensor(_element(cursor))
        cursor.expect(">")
        return unranked
    dims = _dims(cursor)
    element = _element(cursor)
    bounds: tuple[int | None, ...] = ()
    encoding: Attribute | None = None
    if cursor.accept(","):
        at = cursor.skip()
        encoding = cursor.attribute()  # type: ignore[attr-defined]  # of the parser's cursor
        if isinstance(encoding, Struct) and encoding.name == "stablehlo.bounds":
            listed = encoding.fields["bounds"]
            assert isinstance(listed, tuple)
            bounds = tuple(None if b is None else int(b) for b in listed)  # type: ignore
            encoding = None
            if len(bounds) != len(dims):
                message = f"{len(bounds)} bounds are given for {len(dims)} dimensions"
                cursor.fail_at(message, at, cursor.pos)
    if not cursor.accept(">"):
        cursor.expected("'>'")
    return RankedTensor(dims, element, bounds, encoding)


def _element(cursor: MlirCursor) -> str | Quantized:
    at = cursor.skip()
    element = parse_type(cursor)
    if isinstance(element, Scalar):
        return element.name
    if isinstance(element, Quantized):
        return element
    if isinstance(element, OtherType) and element.text == "!stablehlo.string":
        return element.text
    return cursor.fail_at(f"{element} cannot be the element of a tensor", at, cursor.pos)


def _complex(cursor: MlirCursor) -> Scalar:
    cursor.expect("<")
    at = cursor.skip()
    part = parse_type(cursor)
    if part not in (Scalar("f32"), Scalar("f64")):
        cursor.fail_at(f"complex<{part}>: the parts are f32 or f64", at, cursor.pos)
    cursor.expect(">")
    return Scalar(f"complex<{part}>")


def _memref(cursor: MlirCursor) -> Buffer:
    cursor.expect("<")
    dims = _dims(cursor)
    element = _element(cursor)
    cursor.expect(">")
    return Buffer(dims, str(element))


def _uniform(cursor: MlirCursor) -> Quantized:
    found = cursor.match(_QUANTIZED)
    if found is None:
        return cursor.expected("<storage:expressed, scale:zero_point>")
    storage, low, high, expressed, axis = found.groups()
    if storage.startswith("u"):
        storage = "ui" + storage.lstrip("ui")
    pairs: list[tuple[float, int]] = []
    is_list = cursor.accept("{")
    while True:
        scale = cursor.match(_SCALE)
        if scale is None:
            cursor.expected("a scale")
        pairs.append((float(scale[1]), int(scale[2] or 0)))
        if not (is_list and cursor.accept(",")):
            break
    if is_list:
        cursor.expect("}")
    cursor.expect(">")
    return Quantized(
        storage,
        expressed,
        tuple(s for s, _ in pairs),
        tuple(z for _, z in pairs),
        None if axis is None else int(axis),
        None if low is None else int(low),
        None if high is None else int(high),
    )


def _dialect_type(cursor: MlirCursor, word: str, start: int) -> MlirType:
    """`!name`: an alias, or a type of another dialect, kept as text."""
    name = word[1:]
    if name in cursor.type_aliases:
        return resolve_type_alias(cursor, name, start)
    if "." not in name:
        cursor.fail_at(f"type alias {word} is not defined", start, cursor.pos)
    if cursor.text.startswith("<", cursor.pos):
        depth = 0
        for at in range(cursor.pos, len(cursor.text)):
            depth += {"<": 1, ">": -1}.get(cursor.text[at], 0)
            if depth == 0:
                cursor.pos = at + 1
                break
        else:
            cursor.fail("this '<' is not closed", -1)
    return OtherType(cursor.text[start : cursor.pos])


def resolve_type_alias(cursor: MlirCursor, name: str, start: int) -> MlirType:
    key = "!" + name
    if key not in cursor.resolved:
        if key in cursor.resolving:
            cursor.fail_at(f"alias {key} is defined by itself", start, cursor.pos)
        cursor.resolving.add(key)
        back, cursor.pos = cursor.pos, cursor.type_aliases[name]
        cursor.resolved[key] = parse_type(cursor)
        cursor.alias_ends[key] = cursor.pos
        cursor.pos = back
        cursor.resolving.discard(key)
    return cursor.resolved[key]  # type: ignore[return-value]


_READERS: dict[str, Callable[[MlirCursor], MlirType]] = {
    "complex": _complex,
    "tuple": lambda cursor: Tuple(_listed(cursor, "<", ">")),
    "memref": _memref,
    "!stablehlo.token": lambda cursor: Token(),
    "!stablehlo.future": lambda cursor: Future(_listed(cursor, "<", ">")),
    "!mhlo.token": lambda cursor: Token(),
    "!quant.uniform": _uniform,
}
