"""Attributes with an entry a dimension: windows, dimension labels, padding, slices."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from haloc.ops.codec import WORD, ProtoReader, ProtoWriter, TextCursor

_INTS_BY_X = re.compile(r"-?\d+(?:x-?\d+)*")
_PADS_BY_X = re.compile(r"-?\d+_-?\d+(?:x-?\d+_-?\d+)*")
_PADDING = re.compile(r"-?\d+_-?\d+(?:_-?\d+)?(?:x-?\d+_-?\d+(?:_-?\d+)?)*")
_DIM_LABELS = re.compile(r"([0-9bf?]{2,})_([0-9io?]{2,})->([0-9bf?]{2,})")
_SLICE = re.compile(r"\[\s*(\d+)\s*:\s*(-?\d+)\s*(?::\s*(-?\d+)\s*)?\]")


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


_CONV_FIELDS = tuple(f.name for f in fields(ConvDims))
_DIMENSION = ("dimension", "dimensions")
"""How names of convolution dimensions end in protos: one dimension, several."""


@dataclass(frozen=True, slots=True)
class WindowAttr:
    """tuple of WindowDim: `window={size=3x3 pad=1_1x1_1}`."""

    proto_zero: ClassVar[Any] = ()

    def from_proto(self, data: list[Any], reader: ProtoReader) -> tuple[WindowDim, ...]:
        return tuple(
            WindowDim(
                d.get("size", 0),
                d.get("stride", 0),
                d.get("padding_low", 0),
                d.get("padding_high", 0),
                d.get("base_dilation", 0),
                d.get("window_dilation", 0),
                d.get("window_reversal", False),
            )
            for d in data
        )

    def to_proto(self, value: tuple[WindowDim, ...], writer: ProtoWriter) -> list[Any]:
        return [
            {("window_reversal" if k == "reversal" else k): v for k, v in asdict(d).items()}
            for d in value
        ]

    def parse(self, cursor: TextCursor) -> tuple[WindowDim, ...]:
        fields: dict[str, list[Any]] = {}
        cursor.expect("{")
        while not cursor.accept("}"):
            key = cursor.match(WORD)
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

    proto_zero: ClassVar[Any] = None

    def from_proto(self, data: Any, reader: ProtoReader) -> ConvDims:
        found: dict[str, Any] = {}
        for name in _CONV_FIELDS:
            value = (data or {}).get(f"{name}_{_DIMENSION[name.endswith('spatial')]}", None)
            found[name] = tuple(value or ()) if name.endswith("spatial") else value or 0
        dims = ConvDims(**found)
        for places in (
            (dims.input_batch, dims.input_feature, *dims.input_spatial),
            (dims.kernel_input_feature, dims.kernel_output_feature, *dims.kernel_spatial),
            (dims.output_batch, dims.output_feature, *dims.output_spatial),
        ):
            if sorted(places) != list(range(len(dims.input_spatial) + 2)):
                reader.fail(f"convolution dimensions {places} are not 0, 1, 2, ... in some order")
        return dims

    def to_proto(self, value: ConvDims, writer: ProtoWriter) -> Any:
        return {
            f"{name}_{_DIMENSION[name.endswith('spatial')]}": places
            for name, places in asdict(value).items()
        }

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


_PADDING_KEYS = ("edge_padding_low", "edge_padding_high", "interior_padding")
_SLICE_KEYS = ("start", "limit", "stride")


@dataclass(frozen=True, slots=True)
class Padding:
    """tuple of (low, high, interior) a dimension: `padding=1_1_1x-1_-1_0`."""

    proto_zero: ClassVar[Any] = ()

    def from_proto(self, data: list[Any], reader: ProtoReader) -> tuple[Any, ...]:
        return tuple(tuple(d.get(key, 0) for key in _PADDING_KEYS) for d in data)

    def to_proto(self, value: tuple[tuple[int, int, int], ...], writer: ProtoWriter) -> list[Any]:
        return [dict(zip(_PADDING_KEYS, d, strict=True)) for d in value]

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

    proto_zero: ClassVar[Any] = ()

    def from_proto(self, data: list[Any], reader: ProtoReader) -> tuple[Any, ...]:
        return tuple(tuple(d.get(key, 0) for key in _SLICE_KEYS) for d in data)

    def to_proto(self, value: tuple[tuple[int, int, int], ...], writer: ProtoWriter) -> list[Any]:
        return [dict(zip(_SLICE_KEYS, d, strict=True)) for d in value]

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
