"""Attribute values and their codecs: one codec serves every written form of an attribute.

A codec's `parse` reads the value after `key=` from a cursor and leaves the cursor behind it;
`format` writes the text that `parse` reads back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, NoReturn, Protocol

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.ir.module import HloComputation
from haloc.ir.shape import Shape


class TokenCursor(Protocol):
    """A position in HLO text. White space and comments are skipped."""

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match at the cursor and step over it; None, without a step, when it does not match."""
        ...

    def accept(self, token: str) -> bool:
        """Step over `token` if it comes next."""
        ...

    def expect(self, token: str) -> None:
        """Step over `token`; HloParseError if anything else comes next."""
        ...

    def integer(self) -> int: ...
    def string(self) -> str:
        """A quoted string, unescaped."""
        ...

    def balanced(self) -> str:
        """The text of a value up to the next comma, newline or closing bracket at its level."""
        ...

    def expected(self, what: str) -> NoReturn:
        """HloParseError "found <next token>, expected <what>"."""
        ...

    def fail(self, message: str, width: int = 0) -> NoReturn:
        """HloParseError at the cursor; a positive `width` marks that many characters before it."""
        ...


class TextCursor(TokenCursor, Protocol):
    """What a codec may ask of the HLO text parser."""

    def shape(self) -> Shape: ...
    def computation(self) -> HloComputation:
        """A computation, by name; it may be defined later in the text."""
        ...


class Codec(Protocol):
    """Reads and writes one kind of attribute value in HLO text (and, later, protos and MLIR)."""

    def parse(self, cursor: TextCursor) -> Any: ...
    def format(self, value: Any) -> str: ...


@dataclass(frozen=True, slots=True)
class WindowDim:
    """One dimension of a window. Dilation 1 means none; padding may be negative."""

    size: int
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    base_dilation: int = 1  # lhs_dilate
    window_dilation: int = 1  # rhs_dilate
    reversal: bool = False


@dataclass(frozen=True, slots=True)
class ConvDims:
    """dim_labels=b01f_01io->b01f: which dimension of each array plays which part."""

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """replica_groups in any of its four spellings; `groups()` gives the explicit lists.

    lists: {{0,1},{2,3}} (or () for {}). iota: (tile dims, reshape dims, transpose perm) of
    [2,2]<=[2,2]T(1,0). mesh: (axes ((name, size), ...), device ids or None, axis refs) of v3.
    """

    lists: tuple[tuple[int, ...], ...] = ()
    iota: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None = None
    mesh: tuple[Any, ...] | None = None

    def groups(self, device_count: int = 0) -> tuple[tuple[int, ...], ...]:
        """The explicit lists; `{}` is one group of all `device_count` participants."""
        if self.iota is not None:
            tile, source, order = self.iota
            ids = np.arange(np.prod(source)).reshape(source).transpose(order).reshape(tile)
            return tuple(tuple(map(int, row)) for row in ids)
        if self.mesh is not None:
            return _mesh_groups(*self.mesh)
        if not self.lists:
            return (tuple(range(device_count)),) if device_count else ()
        return self.lists


_INTS = re.compile(r"\{\s*(-?\d+(?:\s*,\s*-?\d+)*)?\s*\}")
_WORD = re.compile(r"[A-Za-z_][\w.-]*")
_FLOAT = re.compile(r"-?(?:inf|nan|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_INTS_BY_X = re.compile(r"-?\d+(?:x-?\d+)*")
_PADS_BY_X = re.compile(r"-?\d+_-?\d+(?:x-?\d+_-?\d+)*")
_PADDING = re.compile(r"-?\d+_-?\d+(?:_-?\d+)?(?:x-?\d+_-?\d+(?:_-?\d+)?)*")
_DIM_LABELS = re.compile(r"([0-9bf?]{2,})_([0-9io?]{2,})->([0-9bf?]{2,})")
_SLICE = re.compile(r"\[\s*(\d+)\s*:\s*(-?\d+)\s*(?::\s*(-?\d+)\s*)?\]")
_IOTA = re.compile(r"\[([\d,\s]+)\]\s*<=\s*\[([\d,\s]+)\](?:\s*T\(([\d,\s]+)\))?")
_MESH = re.compile(
    r"mesh\[([^\[\]]*)\]\s*"
    r"(?:,\s*device_ids=\(\s*((?:\[[\d,\s]*\]\s*T\([\d,\s]*\))|[\d,\s]*)\)\s*)?,?\s*"
    r"\{([^{}]*)\}"
)
_MESH_AXIS = re.compile(r"\s*['\"]([^'\"]*)['\"]\s*=\s*(\d+)\s*")
_AXIS_REF = re.compile(r"\s*['\"]([^'\"]*)['\"]\s*(?::\s*\((\d+)\)(\d+))?\s*")


def _ints(text: str | None) -> tuple[int, ...]:
    """ "0, 1" -> (0, 1)."""
    return tuple(map(int, text.split(","))) if text and text.strip() else ()


def parse_dims(cursor: TokenCursor) -> tuple[int, ...]:
    """ "{0,1}" -> (0, 1)."""
    found = cursor.match(_INTS)
    return _ints(found[1]) if found else cursor.expected("a list of integers such as {0,1}")


def _commas(values: Any) -> str:
    return ",".join(map(str, values))


@dataclass(frozen=True, slots=True)
class Int:
    """int: `index=0`."""

    def parse(self, cursor: TextCursor) -> int:
        return cursor.integer()

    def format(self, value: int) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class Float:
    """float: `epsilon=0.001`."""

    def parse(self, cursor: TextCursor) -> float:
        found = cursor.match(_FLOAT)
        return float(found[0]) if found else cursor.expected("a number")

    def format(self, value: float) -> str:
        short = f"{value:.6g}"
        return short if np.float32(short) == np.float32(value) else f"{value:.17g}"


@dataclass(frozen=True, slots=True)
class Bool:
    """bool: `is_stable=true`."""

    def parse(self, cursor: TextCursor) -> bool:
        found = cursor.match(_WORD)
        if found and found[0] in ("true", "false"):
            return found[0] == "true"
        if found:
            cursor.fail(f"found {found[0]!r}, expected true or false", len(found[0]))
        cursor.expected("true or false")

    def format(self, value: bool) -> str:
        return "true" if value else "false"


@dataclass(frozen=True, slots=True)
class Name:
    """str, a bare word out of `allowed` (any, when empty): `direction=LT`, `kind=kLoop`."""

    allowed: tuple[str, ...] = ()

    def parse(self, cursor: TextCursor) -> str:
        found = cursor.match(_WORD)
        if not found:
            return cursor.expected(" or ".join(self.allowed) or "a word")
        if self.allowed and found[0] not in self.allowed:
            near = get_close_matches(found[0].upper(), self.allowed, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            wanted = ", ".join(self.allowed)
            cursor.fail(f"found {found[0]!r}, expected one of {wanted}{hint}", len(found[0]))
        return found[0]

    def format(self, value: str) -> str:
        return value


@dataclass(frozen=True, slots=True)
class Text:
    """str, written as a quoted string: `custom_call_target="f"`."""

    def parse(self, cursor: TextCursor) -> str:
        return cursor.string()

    def format(self, value: str) -> str:
        return quote(value)


@dataclass(frozen=True, slots=True)
class Dims:
    """tuple of int: `dimensions={0,1}`."""

    def parse(self, cursor: TextCursor) -> tuple[int, ...]:
        return parse_dims(cursor)

    def format(self, value: tuple[int, ...]) -> str:
        return "{" + _commas(value) + "}"


@dataclass(frozen=True, slots=True)
class OneDim:
    """int, written as a list of one: `dimensions={0}` of concatenate, sort, get-dimension-size."""

    def parse(self, cursor: TextCursor) -> int:
        found = cursor.match(_INTS)
        dims = _ints(found[1]) if found else ()
        if found and len(dims) != 1:
            cursor.fail(f"found {len(dims)} dimensions, expected one", len(found[0]))
        return dims[0] if found else cursor.expected("one dimension such as {0}")

    def format(self, value: int) -> str:
        return "{" + str(value) + "}"


@dataclass(frozen=True, slots=True)
class WindowAttr:
    """tuple of WindowDim: `window={size=3x3 pad=1_1x1_1}`."""

    def parse(self, cursor: TextCursor) -> tuple[WindowDim, ...]:
        fields: dict[str, list[Any]] = {}
        cursor.expect("{")
        while not cursor.accept("}"):
            key = cursor.match(_WORD)
            if not key:
                cursor.expected("a window field or '}'")
            if key[0] not in _WINDOW_FIELDS:
                wanted = ", ".join(_WINDOW_FIELDS)
                cursor.fail(f"unknown window field {key[0]!r}, expected {wanted}", len(key[0]))
            if key[0] in fields:
                cursor.fail(f"window field {key[0]!r} is given twice", len(key[0]))
            cursor.expect("=")
            fields[key[0]] = self._values(cursor, key[0])
        if not fields:
            return ()
        rank = len(next(iter(fields.values())))
        for key_text, values in fields.items():
            if len(values) != rank:
                cursor.fail(f"window has {rank} dimensions, but {key_text} has {len(values)}", 1)
        sizes = fields.get("size", [1] * rank)
        ones, zeros = [1] * rank, [0] * rank
        return tuple(
            WindowDim(size, stride, pad[0], pad[1], lhs, rhs, bool(reverse))
            for size, stride, pad, lhs, rhs, reverse in zip(
                sizes,
                fields.get("stride", ones),
                fields.get("pad", [(0, 0)] * rank),
                fields.get("lhs_dilate", ones),
                fields.get("rhs_dilate", ones),
                fields.get("rhs_reversal", zeros),
            )
        )

    @staticmethod
    def _values(cursor: TextCursor, key: str) -> list[Any]:
        if key == "pad":
            found = cursor.match(_PADS_BY_X)
            if not found:
                cursor.expected("low_high padding a dimension such as 1_1x0_2")
            pairs = [p.split("_") for p in found[0].split("x")]
            return [(int(low), int(high)) for low, high in pairs]
        found = cursor.match(_INTS_BY_X)
        if not found:
            cursor.expected("one number a dimension such as 3x3")
        return [int(n) for n in found[0].split("x")]

    def format(self, value: tuple[WindowDim, ...]) -> str:
        columns = {
            "size": [str(d.size) for d in value],
            "stride": [str(d.stride) for d in value],
            "pad": [f"{d.padding_low}_{d.padding_high}" for d in value],
            "lhs_dilate": [str(d.base_dilation) for d in value],
            "rhs_dilate": [str(d.window_dilation) for d in value],
            "rhs_reversal": [str(int(d.reversal)) for d in value],
        }
        parts = [
            f"{key}={'x'.join(column)}"
            for key, column in columns.items()
            if column and (key == "size" or any(c != _WINDOW_FIELDS[key] for c in column))
        ]
        return "{" + " ".join(parts) + "}"


_WINDOW_FIELDS = {
    "size": "",
    "stride": "1",
    "pad": "0_0",
    "lhs_dilate": "1",
    "rhs_dilate": "1",
    "rhs_reversal": "0",
}
"""Window fields in printing order, with the value that is not printed."""


@dataclass(frozen=True, slots=True)
class DimLabels:
    """ConvDims: `dim_labels=b01f_01io->b01f`."""

    def parse(self, cursor: TextCursor) -> ConvDims:
        found = cursor.match(_DIM_LABELS)
        if not found:
            cursor.expected("dimension labels such as b01f_01io->b01f")
        lhs, rhs, out = found.groups()
        spatial = len(lhs) - 2
        for labels, named in ((lhs, "bf"), (rhs, "io"), (out, "bf")):
            wanted = sorted([*named, *map(str, range(spatial))])
            if sorted(labels) != wanted:
                cursor.fail(
                    f"found {labels!r}, expected the labels {', '.join(wanted)} once each",
                    len(found[0]),
                )

        def places(labels: str) -> tuple[int, ...]:
            return tuple(labels.index(str(d)) for d in range(spatial))

        return ConvDims(
            lhs.index("b"),
            lhs.index("f"),
            places(lhs),
            rhs.index("i"),
            rhs.index("o"),
            places(rhs),
            out.index("b"),
            out.index("f"),
            places(out),
        )

    def format(self, value: ConvDims) -> str:
        def labels(first: tuple[str, int], second: tuple[str, int], spatial: Any) -> str:
            at = {first[1]: first[0], second[1]: second[0]}
            at |= {place: str(d) for d, place in enumerate(spatial)}
            return "".join(at[i] for i in sorted(at))

        lhs = labels(("b", value.input_batch), ("f", value.input_feature), value.input_spatial)
        rhs = labels(
            ("i", value.kernel_input_feature),
            ("o", value.kernel_output_feature),
            value.kernel_spatial,
        )
        out = labels(("b", value.output_batch), ("f", value.output_feature), value.output_spatial)
        return f"{lhs}_{rhs}->{out}"


@dataclass(frozen=True, slots=True)
class Padding:
    """tuple of (low, high, interior) a dimension: `padding=1_1_1x-1_-1_0`."""

    def parse(self, cursor: TextCursor) -> tuple[tuple[int, int, int], ...]:
        found = cursor.match(_PADDING)
        if not found:
            # A scalar has no dimensions to pad: XLA writes `padding=` and nothing behind it.
            return ()
        parts = [tuple(map(int, p.split("_"))) for p in found[0].split("x")]
        return tuple((p[0], p[1], p[2] if len(p) == 3 else 0) for p in parts)

    def format(self, value: tuple[tuple[int, int, int], ...]) -> str:
        if any(interior for _, _, interior in value):
            return "x".join(f"{low}_{high}_{interior}" for low, high, interior in value)
        return "x".join(f"{low}_{high}" for low, high, _ in value)


@dataclass(frozen=True, slots=True)
class Slices:
    """tuple of (start, limit, stride) a dimension: `slice={[0:4:2], [4:8:1]}`."""

    def parse(self, cursor: TextCursor) -> tuple[tuple[int, int, int], ...]:
        cursor.expect("{")
        found: list[tuple[int, int, int]] = []
        if cursor.accept("}"):
            return ()
        while True:
            one = cursor.match(_SLICE)
            if not one:
                cursor.expected("a range such as [0:4] or [0:4:2]")
            found.append((int(one[1]), int(one[2]), int(one[3]) if one[3] else 1))
            if not cursor.accept(","):
                cursor.expect("}")
                return tuple(found)

    def format(self, value: tuple[tuple[int, int, int], ...]) -> str:
        if any(stride != 1 for _, _, stride in value):
            ranges = [f"[{start}:{limit}:{stride}]" for start, limit, stride in value]
        else:
            ranges = [f"[{start}:{limit}]" for start, limit, _ in value]
        return "{" + ", ".join(ranges) + "}"


@dataclass(frozen=True, slots=True)
class Computation:
    """HloComputation: `to_apply=add`."""

    def parse(self, cursor: TextCursor) -> HloComputation:
        return cursor.computation()

    def format(self, value: HloComputation, percent: str = "") -> str:
        return percent + value.name


@dataclass(frozen=True, slots=True)
class Computations:
    """tuple of HloComputation: `branch_computations={b0, b1}`."""

    def parse(self, cursor: TextCursor) -> tuple[HloComputation, ...]:
        cursor.expect("{")
        if cursor.accept("}"):
            return ()
        found = [cursor.computation()]
        while cursor.accept(","):
            found.append(cursor.computation())
        cursor.expect("}")
        return tuple(found)

    def format(self, value: tuple[HloComputation, ...], percent: str = "") -> str:
        return "{" + ", ".join(percent + c.name for c in value) + "}"


@dataclass(frozen=True, slots=True)
class Groups:
    """ReplicaGroups: `replica_groups={{0,1}}`, `[2,2]<=[4]`, `mesh['a'=2] {'a'}`."""

    def parse(self, cursor: TextCursor) -> ReplicaGroups:
        if found := cursor.match(_IOTA):
            tile, source, order = map(_ints, found.groups())
            order = order or tuple(range(len(source)))
            groups = ReplicaGroups(iota=(tile, source, order))
            if len(tile) != 2 or sorted(order) != list(range(len(source))):
                cursor.fail(
                    f"found {found[0]!r}, expected [groups,size]<=[dims]T(permutation)",
                    len(found[0]),
                )
            if np.prod(tile) != np.prod(source):
                cursor.fail(f"{found[0]!r} does not hold as many devices on both sides", 1)
            return groups
        if found := cursor.match(_MESH):
            return ReplicaGroups(mesh=self._mesh(cursor, found))
        lists = _int_lists(cursor)
        return ReplicaGroups(lists=lists)

    @staticmethod
    def _mesh(cursor: TextCursor, found: re.Match[str]) -> tuple[Any, ...]:
        axes = _all_matches(_MESH_AXIS, found[1])
        refs = _all_matches(_AXIS_REF, found[3])
        if axes is None or refs is None:
            cursor.fail("expected mesh['axis'=size,...] {'axis',...}", len(found[0]))
        sizes = tuple((m[1], int(m[2])) for m in axes)
        names = tuple((m[1], int(m[2]), int(m[3])) if m[2] else m[1] for m in refs)
        for ref in names:
            axis = ref if isinstance(ref, str) else ref[0]
            if axis not in dict(sizes):
                cursor.fail(f"axis {axis!r} is not an axis of the mesh", len(found[0]))
        devices = found[2].replace(" ", "") if found[2] else None
        return (sizes, devices, names)

    def format(self, value: ReplicaGroups) -> str:
        if value.iota is not None:
            tile, source, order = value.iota
            turned = order != tuple(range(len(order)))
            suffix = f"T({_commas(order)})" if turned else ""
            return f"[{_commas(tile)}]<=[{_commas(source)}]{suffix}"
        if value.mesh is not None:
            axes, devices, refs = value.mesh
            mesh = ",".join(f"'{name}'={size}" for name, size in axes)
            ids = f", device_ids=({devices})" if devices is not None else ""
            named = (f"'{r}'" if isinstance(r, str) else f"'{r[0]}':({r[1]}){r[2]}" for r in refs)
            return f"mesh[{mesh}]{ids} {{{','.join(named)}}}"
        return _format_int_lists(value.lists)


@dataclass(frozen=True, slots=True)
class Pairs:
    """tuple of (int, int): `source_target_pairs={{0,1},{1,0}}`."""

    def parse(self, cursor: TextCursor) -> tuple[tuple[int, int], ...]:
        lists = _int_lists(cursor)
        for pair in lists:
            if len(pair) != 2:
                cursor.fail(f"found {_format_int_lists((pair,))}, expected pairs {{0,1}}", 1)
        return tuple((a, b) for a, b in lists)

    def format(self, value: tuple[tuple[int, int], ...]) -> str:
        return _format_int_lists(value)


@dataclass(frozen=True, slots=True)
class Words:
    """tuple of bare words: `operand_precision={high,highest}`."""

    allowed: tuple[str, ...] = ()

    def parse(self, cursor: TextCursor) -> tuple[str, ...]:
        cursor.expect("{")
        if cursor.accept("}"):
            return ()
        one = Name(self.allowed)
        found = [one.parse(cursor)]
        while cursor.accept(","):
            found.append(one.parse(cursor))
        cursor.expect("}")
        return tuple(found)

    def format(self, value: tuple[str, ...]) -> str:
        return "{" + ",".join(value) + "}"


@dataclass(frozen=True, slots=True)
class OneShape:
    """Shape: `outfeed_shape=f32[4]{0}`."""

    def parse(self, cursor: TextCursor) -> Shape:
        return cursor.shape()

    def format(self, value: Shape) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class Shapes:
    """tuple of Shape: `operand_layout_constraints={f32[4]{0}}`."""

    def parse(self, cursor: TextCursor) -> tuple[Shape, ...]:
        cursor.expect("{")
        if cursor.accept("}"):
            return ()
        found = [cursor.shape()]
        while cursor.accept(","):
            found.append(cursor.shape())
        cursor.expect("}")
        return tuple(found)

    def format(self, value: tuple[Shape, ...]) -> str:
        return "{" + ", ".join(map(str, value)) + "}"


@dataclass(frozen=True, slots=True)
class Aliasing:
    """tuple of (output index, operand number, operand index): `{{}: (0, {})}`."""

    def parse(self, cursor: TextCursor) -> tuple[Alias, ...]:
        cursor.expect("{")
        found: list[Alias] = []
        if cursor.accept("}"):
            return ()
        dims = Dims()
        while True:
            output = dims.parse(cursor)
            cursor.expect(":")
            cursor.expect("(")
            operand = cursor.integer()
            index: tuple[int, ...] = ()
            if cursor.accept(","):
                index = dims.parse(cursor)
            cursor.expect(")")
            found.append((output, operand, index))
            if not cursor.accept(","):
                cursor.expect("}")
                return tuple(found)

    def format(self, value: tuple[Alias, ...]) -> str:
        dims = Dims()
        entries = (f"{dims.format(o)}: ({n}, {dims.format(i)})" for o, n, i in value)
        return "{" + ", ".join(entries) + "}"


Alias = tuple[tuple[int, ...], int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Bools:
    """tuple of bool: `parameter_replication={true,false}`."""

    def parse(self, cursor: TextCursor) -> tuple[bool, ...]:
        return tuple(word == "true" for word in Words(("true", "false")).parse(cursor))

    def format(self, value: tuple[bool, ...]) -> str:
        return "{" + ",".join("true" if v else "false" for v in value) + "}"


@dataclass(frozen=True, slots=True)
class Raw:
    """str, the text of a brace- or bracket-balanced value kept as it stands."""

    def parse(self, cursor: TextCursor) -> str:
        return cursor.balanced()

    def format(self, value: str) -> str:
        return value


def _int_lists(cursor: TextCursor) -> tuple[tuple[int, ...], ...]:
    """ "{{0,1},{2,3}}"; "{}" is the empty list."""
    cursor.expect("{")
    if cursor.accept("}"):
        return ()
    dims = Dims()
    found = [dims.parse(cursor)]
    while cursor.accept(","):
        found.append(dims.parse(cursor))
    cursor.expect("}")
    return tuple(found)


def _format_int_lists(lists: Any) -> str:
    return "{" + ",".join("{" + _commas(one) + "}" for one in lists) + "}"


def _all_matches(pattern: re.Pattern[str], text: str) -> list[re.Match[str]] | None:
    """One match for each comma-separated part of `text`; None if some part does not match."""
    if not text.strip():
        return []
    found = [pattern.fullmatch(part) for part in text.split(",")]
    return None if None in found else [m for m in found if m]


def _mesh_groups(
    axes: tuple[tuple[str, int], ...], devices: str | None, refs: tuple[Any, ...]
) -> tuple[tuple[int, ...], ...]:
    """Devices that differ only along the axes (or parts of axes) named by `refs`."""
    wanted = [(r, 1, dict(axes)[r]) if isinstance(r, str) else r for r in refs]
    pieces: list[tuple[str, int, int]] = []
    for name, size in axes:
        cuts = {1, size} | {c for n, pre, s in wanted if n == name for c in (pre, pre * s)}
        steps = sorted(cuts)
        pieces += [(name, low, high // low) for low, high in pairwise(steps)]
    wanted_pieces = [
        p for name, pre, size in wanted for p in pieces if p[0] == name and pre <= p[1] < pre * size
    ]
    order = [i for i, p in enumerate(pieces) if p not in wanted_pieces]
    order += [pieces.index(p) for p in wanted_pieces]
    ids = _mesh_devices(axes, devices).reshape([size for _, _, size in pieces])
    group_size = int(np.prod([size for _, _, size in wanted_pieces]))
    return tuple(tuple(map(int, row)) for row in ids.transpose(order).reshape(-1, group_size))


def _mesh_devices(axes: tuple[tuple[str, int], ...], devices: str | None) -> np.ndarray:
    """Device ids of a mesh, flat: explicit, an iota turned by a permutation, or in order."""
    if devices is None:
        return np.arange(int(np.prod([size for _, size in axes])))
    turned = _TURNED.fullmatch(devices)
    if turned is None:
        return np.array(_ints(devices))
    source, order = _ints(turned[1]), _ints(turned[2])
    return np.arange(int(np.prod(source))).reshape(source).transpose(order).reshape(-1)


_TURNED = re.compile(r"\[([\d,\s]*)\]\s*T\(([\d,\s]*)\)")

# --- Strings -----------------------------------------------------------------------------------

_SAFE = re.compile(r"[ !#-&(-\[\]-~]*")
_ESCAPE = re.compile(
    rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_ESCAPED = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_NAMED = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}


def quote(text: str) -> str:
    """A string literal of HLO text: C escapes, other bytes of its UTF-8 form in octal."""
    if _SAFE.fullmatch(text):
        return f'"{text}"'
    raw = text.encode("utf-8", "surrogateescape")
    named = _NAMED
    return (
        '"'
        + "".join(named.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in raw)
        + '"'
    )


def unquote(text: str) -> str:
    """The value of a string literal, given without its quotes. Bytes that are no UTF-8 are kept
    as surrogates, which `quote` writes back. InvalidArgumentError for an unknown escape."""
    if "\\" not in text:
        return text

    def value(found: re.Match[bytes]) -> bytes:
        octal, hexadecimal, short, long, letter = found.groups()
        if octal:
            return bytes([int(octal, 8) & 255])
        if hexadecimal:
            return bytes([int(hexadecimal, 16)])
        if short or long:
            return chr(int(short or long, 16)).encode("utf-8", "surrogatepass")
        character = letter.decode("latin-1")
        if character in "\"'\\?":
            return letter
        if character not in _ESCAPED:
            raise InvalidArgumentError(f"unknown escape \\{character} in a string")
        return bytes([_ESCAPED[character]])

    raw = _ESCAPE.sub(value, text.encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape")
