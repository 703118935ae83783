"""HLO protos: reading and writing.

parse_hlo_module_proto(data: bytes) -> HloModule
serialize_hlo_module(module) -> bytes
parse_any_proto(data) -> HloModule      of any message that holds one; proto_kind(data) names it
HloProto, HloSnapshot, HloModuleProtoWithConfig      with .parse(data), .serialize()
"""

from haloc.formats.hlo_proto.containers import (
    HloModuleProtoWithConfig,
    HloProto,
    HloSnapshot,
    parse_any_proto,
    proto_kind,
)
from haloc.formats.hlo_proto.literals import literal_from_bytes, literal_to_bytes
from haloc.formats.hlo_proto.reader import parse_hlo_module_proto
from haloc.formats.hlo_proto.shapes import shape_from_bytes, shape_to_bytes
from haloc.formats.hlo_proto.shardings import sharding_from_bytes, sharding_to_bytes
from haloc.formats.hlo_proto.writer import serialize_hlo_module

__all__ = [
    "HloModuleProtoWithConfig",
    "HloProto",
    "HloSnapshot",
    "literal_from_bytes",
    "literal_to_bytes",
    "parse_any_proto",
    "parse_hlo_module_proto",
    "proto_kind",
    "serialize_hlo_module",
    "shape_from_bytes",
    "shape_to_bytes",
    "sharding_from_bytes",
    "sharding_to_bytes",
]
