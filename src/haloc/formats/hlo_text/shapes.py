"""Shapes in HLO text. Equal texts give the same `Shape` object, so a module has few of them."""

from __future__ import annotations

import re

from haloc.errors import InvalidArgumentError
from haloc.formats.hlo_text.cursor import Cursor, did_you_mean
from haloc.ir.dtype import ALL_DTYPES, BUFFER, OPAQUE, TOKEN, TUPLE, dtype_from_name
from haloc.ir.shape import UNBOUNDED, Layout, Shape, tuple_shape

ARRAY = r"[a-z][a-z0-9]*\[[^\[\]{}()]*\](?:\s*\{[\d,\s]*(?::(?:[^{}]|\{[^{}]*\})*)?\})?"
"""An array, token or opaque shape, with its layout if it has one."""

_ARRAY = re.compile(ARRAY)
_ARRAY_PARTS = re.compile(
    r"([a-z][a-z0-9]*)\[([^\[\]]*)\]\s*(?:\{([\d,\s]*)(?::((?:[^{}]|\{[^{}]*\})*))?\})?"
)
_DIM = re.compile(r"\s*(?:(<=)?\s*(\d+)|\?|<=\s*\?)\s*")
_TUPLE = re.compile(r"\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)")
"""A tuple shape at most two brackets deep: one match instead of a walk."""
_BUFFER = re.compile(r"b\(")
_LAYOUT_FIELD = re.compile(r"\s*(SC|[A-Z#*])?\s*(\((?:[^()]|\([^()]*\))*\))")
_ELEMENT_NAMES = [d.name for d in ALL_DTYPES if d not in (TUPLE, BUFFER)]

_interned: dict[str, Shape] = {}
_INTERN_LIMIT = 20_000
"""A server that reads modules for ever must not keep every shape it ever saw."""


def parse_shape_at(cursor: Cursor) -> Shape:
    """The shape at the cursor; HloParseError when there is none or it contradicts itself."""
    found = cursor.match(_ARRAY)
    if found:
        shape = _interned.get(found[0])
        return shape if shape is not None else intern_array(cursor, found[0], found.start())
    if cursor.peek("("):
        start = cursor.skip()
        found = cursor.match(_TUPLE)
        text = found[0] if found else cursor.group()
        shape = _interned.get(text)
        if shape is None:
            cursor.pos = start
            shape = _remember(text, _tuple(cursor))
        return shape
    if cursor.match(_BUFFER):
        with cursor.nested("buffer shapes"):
            member = parse_shape_at(cursor)
        cursor.expect(")")
        return Shape(BUFFER, elements=(member,))
    cursor.expected("a shape")


def _tuple(cursor: Cursor) -> Shape:
    cursor.expect("(")
    members: list[Shape] = []
    with cursor.nested("tuple shapes"):
        while not cursor.accept(")"):
            members.append(parse_shape_at(cursor))
            if not cursor.accept(","):
                cursor.expect(")")
                break
    return tuple_shape(*members)


def _remember(text: str, shape: Shape) -> Shape:
    if len(_interned) >= _INTERN_LIMIT:
        _interned.clear()
    _interned[text] = shape
    return shape


def interned_array(text: str) -> Shape | None:
    """The shape of this exact text, if it has been read before."""
    return _interned.get(text)


def intern_array(cursor: Cursor, text: str, start: int) -> Shape:
    """The array shape written as `text` at `start`."""
    try:
        return _remember(text, _array(text))
    except InvalidArgumentError as error:
        cursor.fail_at(error.message, start, start + len(text))


def _array(text: str) -> Shape:
    parts = _ARRAY_PARTS.fullmatch(text)
    assert parts is not None, text
    name, dims_text, order_text, extras = parts.groups()
    if name not in _ELEMENT_NAMES:
        hint = did_you_mean(name, _ELEMENT_NAMES)
        raise InvalidArgumentError(f"unknown element type {name!r}{hint}")
    dtype = dtype_from_name(name)
    dims, dynamic = _dims(dims_text)
    if dtype in (TOKEN, OPAQUE):
        if dims or order_text:
            raise InvalidArgumentError(f"{name} has no dimensions and no layout, found {text!r}")
        return Shape(dtype)
    layout = None
    if order_text is not None:
        layout = _layout(order_text, extras or "", len(dims))
    return Shape(dtype, dims, layout, dynamic)


def _dims(text: str) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    if not text.strip():
        return (), ()
    dims: list[int] = []
    dynamic: list[bool] = []
    for part in text.split(","):
        found = _DIM.fullmatch(part)
        if found is None:
            raise InvalidArgumentError(
                f"found dimension {part.strip()!r}, expected a size such as 4, <=4 or ?"
            )
        dims.append(UNBOUNDED if found[2] is None else int(found[2]))
        dynamic.append(found[2] is None or found[1] is not None)
        if dims[-1] >= 2**63:
            raise InvalidArgumentError(f"dimension {dims[-1]} does not fit in 64 bits")
    return tuple(dims), tuple(dynamic)


def _layout(order_text: str, extras: str, rank: int) -> Layout:
    words = "".join(order_text.split()).split(",") if order_text.strip() else []
    if not all(words):
        raise InvalidArgumentError(f"found layout {{{order_text}}}, expected {{1,0}} or the like")
    order = tuple(map(int, words))
    if sorted(order) != list(range(rank)):
        wanted = ",".join(map(str, range(rank - 1, -1, -1)))
        raise InvalidArgumentError(
            f"layout {{{','.join(words)}}} is not a permutation of the {rank} dimensions"
            f" (row-major is {{{wanted}}})"
        )
    fields: dict[str, str] = {}
    tiles: list[tuple[int, ...]] = []
    splits: list[tuple[int, tuple[int, ...]]] = []
    end, last = 0, ""
    while end < len(extras.rstrip()):
        found = _LAYOUT_FIELD.match(extras, end)
        if found is None:
            raise InvalidArgumentError(f"found {extras[end:].strip()!r} in a layout's annotations")
        end = found.end()
        key, body = found[1] or last, "".join(found[2][1:-1].split())
        if not found[1] and last not in ("T", "SC"):
            raise InvalidArgumentError(f"found {found[2]!r} in a layout, expected a letter before")
        last = key
        if key == "T":
            tiles.append(tuple(-1 if n == "*" else _number(n) for n in body.split(",")))
        elif key == "SC":
            dim, _, at = body.partition(":")
            splits.append((_number(dim), tuple(map(_number, at.split(",")))))
        else:
            fields[key] = body
    return _layout_with(order, fields, tuple(tiles), tuple(splits))


def _layout_with(
    order: tuple[int, ...],
    fields: dict[str, str],
    tiles: tuple[tuple[int, ...], ...],
    splits: tuple[tuple[int, tuple[int, ...]], ...],
) -> Layout:
    layout = Layout(
        order,
        tiles,
        element_size_bits=_number(fields.pop("E", "0")),
        memory_space=_number(fields.pop("S", "0")),
        dim_level_types=fields.pop("D", ""),
        tail_padding=_number(fields.pop("L", "1")),
        split_configs=splits,
        physical_shape=fields.pop("P", ""),
        metadata_prefix_bytes=_number(fields.pop("M", "0")),
        index_type=fields.pop("#", ""),
        pointer_type=fields.pop("*", ""),
    )
    if fields:
        raise InvalidArgumentError(
            f"unknown layout annotation {next(iter(fields))!r}, "
            "expected D, T, L, #, *, E, S, SC, P or M"
        )
    return layout


def _number(text: str) -> int:
    if not text.isdecimal():
        raise InvalidArgumentError(f"found {text!r} in a layout, expected a number")
    return int(text)


def parse_shape(text: str) -> Shape:
    """The shape written in HLO text, such as "f32[4,8]{1,0}" or "(f32[], s32[2]{0})".

    A missing layout means row-major. Raises HloParseError.
    """
    cursor = Cursor(text, "<shape>")
    shape = parse_shape_at(cursor)
    if cursor.skip() < len(cursor.text):
        cursor.expected("end of text")
    return shape
