"""Attributes kept as text that have a structure in protos: result_accuracy, domain."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from haloc.errors import InvalidArgumentError
from haloc.ir.sharding import parse_sharding
from haloc.ops.attrs import Float, Raw
from haloc.ops.codec import ProtoReader, ProtoWriter

_TOLERANCE = re.compile(
    r"\{\s*tolerance=\{\s*atol=([^,{}]+),\s*rtol=([^,{}]+),\s*ulps=(-?\d+)\s*\}\s*\}"
)
_DOMAIN = re.compile(r'\{\s*kind="sharding"\s*,\s*entry=(\{.*\})\s*,\s*exit=(\{.*\})\s*\}')
# XLA takes the two in text from the user's side and the operand's side, in protos the other way.
_SHARDINGS = ("domain_exit_sharding", "domain_entry_sharding")


@dataclass(frozen=True, slots=True)
class Accuracy(Raw):
    """str: `{mode=highest}`, `{tolerance={atol=0,rtol=0.1,ulps=1}}`."""

    proto_zero: ClassVar[Any] = {}

    def from_proto(self, data: Any, reader: ProtoReader) -> str | None:
        if "tolerance" in data:
            given = data["tolerance"]
            atol, rtol = (Float().format(given.get(key, 0.0)) for key in ("atol", "rtol"))
            return f"{{tolerance={{atol={atol},rtol={rtol},ulps={given.get('ulps', 0)}}}}}"
        mode = data.get("mode", 0)
        if mode not in (0, 1):
            reader.fail(f"result_accuracy has mode {mode}, expected 0 (default) or 1 (highest)")
        return "{mode=highest}" if mode else None

    def to_proto(self, value: str, writer: ProtoWriter) -> Any:
        if not value or value in ("{mode=highest}", "{mode=default}"):
            return {"mode": int(value == "{mode=highest}")}
        found = _TOLERANCE.fullmatch(value)
        try:
            atol, rtol = (float(found[i]) for i in (1, 2))  # type: ignore[index]
        except (TypeError, ValueError):
            raise InvalidArgumentError(f"result_accuracy={value} is not understood") from None
        return {"tolerance": {"atol": atol, "rtol": rtol, "ulps": int(found[3])}}  # type: ignore[index]


@dataclass(frozen=True, slots=True)
class Domain(Raw):
    """str: `{kind="sharding", entry={maximal device=0}, exit={maximal device=1}}`."""

    proto_zero: ClassVar[Any] = {}
    proto_fields: ClassVar[tuple[str, ...]] = _SHARDINGS

    def from_proto(self, data: Any, reader: ProtoReader) -> str | None:
        if not any(name in data for name in _SHARDINGS):
            return None
        entry, leave = (reader.sharding(data.get(name, b"")) for name in _SHARDINGS)
        return f'{{kind="sharding", entry={entry}, exit={leave}}}'

    def to_proto(self, value: str, writer: ProtoWriter) -> Any:
        found = _DOMAIN.fullmatch(value)
        if found is None:
            raise InvalidArgumentError(f"domain={value} is not understood")
        shardings = (parse_sharding(found[i]) for i in (1, 2))
        return {name: writer.sharding(s) for name, s in zip(_SHARDINGS, shardings, strict=True)}


_STATISTIC = re.compile(r"([^=,{}]+)=([^=,{}]+)")


@dataclass(frozen=True, slots=True)
class Statistics(Raw):
    """str: `{visualizing_index=0,a=2}`."""

    proto_zero: ClassVar[Any] = {}

    def from_proto(self, data: Any, reader: ProtoReader) -> str | None:
        if not data:
            return None
        pairs = [
            f"{s.get('stat_name', '')}={Float().format(s.get('stat_val', 0.0))}"
            for s in data.get("statistics", ())
        ]
        index = data.get("stat_index_to_visualize", 0)
        return "{" + ",".join([f"visualizing_index={index}", *pairs]) + "}"

    def to_proto(self, value: str, writer: ProtoWriter) -> Any:
        pairs = dict(_STATISTIC.findall(value))
        try:
            return {
                "stat_index_to_visualize": int(pairs.pop("visualizing_index", "0")),
                "statistics": [
                    {"stat_name": name.strip(), "stat_val": float(number)}
                    for name, number in pairs.items()
                ],
            }
        except ValueError:
            raise InvalidArgumentError(f"statistics={value} is not understood") from None
