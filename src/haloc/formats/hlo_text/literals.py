"""Literals in HLO text: `1`, `{1, 2}`, `{ { 1, 2 }, { 3, 4 } }`, `( 1, {2, 3} )`, `{...}`.

Reading is fast for a literal that is right: all numbers are picked out at once, and what remains
is compared with the text of the shape's braces. Only when that differs does the slow reader walk
the text, to say what is wrong and where.
"""

from __future__ import annotations

import re
from typing import NoReturn

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.formats.hlo_text.cursor import Cursor
from haloc.formats.hlo_text.numbers import NUMBER, array_from_words, elided, words_from_array
from haloc.ir.literal import Literal, Value
from haloc.ir.shape import Shape

_ELIDED = re.compile(r"\{\s*\.\.\.\s*\}")
_PAIR = re.compile(rf"\(\s*({NUMBER.pattern})\s*,\s*({NUMBER.pattern})\s*\)")
_BLANK = re.compile(r"\s+")
RANK_LIMIT = 64
"""NumPy arrays have no more dimensions."""
ELIDED_LIMIT_BYTES = 1 << 31
"""`{...}` is three characters: they must not take all memory."""
ELIDE_ABOVE = 10
"""Constants of more elements print as {...} when large constants are not wanted."""


def parse_literal(cursor: Cursor, shape: Shape) -> Literal:
    """The literal of `shape` at the cursor. Raises HloParseError at the offending element."""
    return Literal(shape, _value(cursor, shape))


def _value(cursor: Cursor, shape: Shape) -> Value:
    if shape.is_tuple:
        cursor.expect("(")
        members: list[Value] = []
        for i, element in enumerate(shape.elements):
            if i:
                cursor.expect(",")
            members.append(_value(cursor, element))
        cursor.expect(")")
        return tuple(members)
    if not shape.is_array:
        cursor.fail(f"a constant of type {shape.dtype} has no text")
    if shape.dynamic:
        cursor.fail(f"a constant must have a static shape, given {shape.to_string(False)}")
    if shape.rank > RANK_LIMIT:
        cursor.fail(f"a constant has at most {RANK_LIMIT} dimensions, given {shape.rank}")
    return _array(cursor, shape)


def _array(cursor: Cursor, shape: Shape) -> np.ndarray:
    elision = cursor.match(_ELIDED)
    if elision:
        if shape.byte_size > ELIDED_LIMIT_BYTES:
            cursor.fail(f"{shape.to_string(False)} is too large for a constant", len(elision[0]))
        return elided(shape.element_count, shape.dtype).reshape(shape.dims)
    start = cursor.skip()
    flat = _scalar(cursor, shape) if not shape.dims else _fast(cursor, shape)
    if flat is None:
        cursor.pos = start
        words: list[str] = []
        _slow(cursor, shape, 0, words)
        flat = array_from_words(words, shape.dtype)
    return flat.reshape(shape.dims)


def _scalar(cursor: Cursor, shape: Shape) -> np.ndarray | None:
    found = cursor.match(_PAIR if shape.dtype.is_complex else NUMBER)
    if found is None:
        return None
    try:
        words = list(found.groups()) if shape.dtype.is_complex else [found[0]]
        return array_from_words(words, shape.dtype)
    except InvalidArgumentError as error:
        cursor.fail(error.message, len(found[0]))


def _fast(cursor: Cursor, shape: Shape) -> np.ndarray | None:
    """All elements, if the text is exactly right; else None."""
    dims = shape.dims
    depth = dims.index(0) + 1 if 0 in dims else len(dims)
    closing = re.compile(r"\}\s*" * (depth - 1) + r"\}").search(cursor.text, cursor.pos)
    if closing is None:
        return None
    text = _BLANK.sub("", cursor.text[cursor.pos : closing.end()])
    words = NUMBER.findall(text)
    element = "(e,e)" if shape.dtype.is_complex else "e"
    pattern = NUMBER.sub("e", text)
    # Lengths first: the dimensions may be anything, the text is as long as it is.
    if len(pattern) != _braces_length(dims, element) or pattern != _braces(dims, element):
        return None
    try:
        array = array_from_words(words, shape.dtype)
    except InvalidArgumentError:
        return None
    cursor.pos = closing.end()
    return array


def _braces(dims: tuple[int, ...], element: str) -> str:
    """ "{{e,e},{e,e}}": what a literal of these dimensions looks like without its numbers."""
    text = element
    for size in reversed(dims):
        text = "{" + ",".join([text] * size) + "}"
    return text


def _braces_length(dims: tuple[int, ...], element: str) -> int:
    length = len(element)
    for size in reversed(dims):
        length = size * length + max(size - 1, 0) + 2
    return length


def _slow(cursor: Cursor, shape: Shape, depth: int, words: list[str]) -> None:
    """Append the words of one sub-array, or say what is wrong."""
    if depth == len(shape.dims):
        words.extend(_element(cursor, shape))
        return
    size = shape.dims[depth]
    if not cursor.peek("{"):
        cursor.expected(f"'{{' of dimension {depth} of {shape.to_string(False)}")
    cursor.expect("{")
    for i in range(size):
        if cursor.peek("}"):
            _wrong_count(cursor, shape, depth, f"only {i}")
        if i:
            cursor.expect(",")
            if cursor.peek("}"):
                _wrong_count(cursor, shape, depth, f"only {i}")
        _slow(cursor, shape, depth + 1, words)
    cursor.accept(",")  # XLA allows one after the last element
    if not cursor.peek("}"):
        _wrong_count(cursor, shape, depth, "more")
    cursor.expect("}")


def _wrong_count(cursor: Cursor, shape: Shape, depth: int, seen: str) -> NoReturn:
    wanted = shape.dims[depth]
    cursor.fail(
        f"expected {wanted} elements in dimension {depth} of {shape.to_string(False)}, found {seen}"
    )


def _element(cursor: Cursor, shape: Shape) -> list[str]:
    is_complex = shape.dtype.is_complex
    found = cursor.match(_PAIR if is_complex else NUMBER)
    if found is None:
        if cursor.peek("{"):
            rank = len(shape.dims)
            cursor.fail(f"found '{{' inside the {rank} dimensions of {shape.to_string(False)}")
        cursor.expected(f"a {shape.dtype} number" + (" (real, imaginary)" if is_complex else ""))
    words = list(found.groups()) if is_complex else [found[0]]
    try:
        array_from_words(words, shape.dtype)
    except InvalidArgumentError as error:
        cursor.fail(error.message, len(found[0]))
    return words


# --- Writing -----------------------------------------------------------------------------------


def literal_text(literal: Literal, print_large: bool = True) -> str:
    """The text inside `constant(...)`, on one line as XLA prints it."""
    return _value_text(literal.shape, literal.value, print_large)


def _value_text(shape: Shape, value: Value, print_large: bool) -> str:
    if isinstance(value, tuple):
        pairs = zip(shape.elements, value, strict=True)
        members = ", ".join(_value_text(s, v, print_large) for s, v in pairs)
        return f"( {members} )"
    if value is None:
        return ""
    if not print_large and shape.element_count > ELIDE_ABOVE:
        return "{...}"
    words = words_from_array(value, shape.dtype, truth_words=not shape.dims)
    return words[0] if not shape.dims else _nest(words, shape.dims)


def _nest(words: list[str], dims: tuple[int, ...]) -> str:
    """Braces around rows, then around rows of rows: blanks inside all but `{1, 2}` at rank 1."""
    if len(dims) == 1:
        return "{" + ", ".join(words) + "}"
    if not words:
        return _nest_empty(dims)
    size = dims[-1]
    blank = " " if size > 1 else ""
    rows = (words[i : i + size] for i in range(0, len(words), size))
    texts = ["{" + blank + ", ".join(row) + blank + "}" for row in rows]
    for size in reversed(dims[:-1]):
        texts = ["{ " + ", ".join(texts[i : i + size]) + " }" for i in range(0, len(texts), size)]
    return texts[0]


def _nest_empty(dims: tuple[int, ...]) -> str:
    if len(dims) == 1:
        return "{}"
    return "{ " + ", ".join([_nest_empty(dims[1:])] * dims[0]) + " }"
