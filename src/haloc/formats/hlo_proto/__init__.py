"""HLO protos: reading and writing.

parse_hlo_module_proto(data: bytes) -> HloModule
serialize_hlo_module(module) -> bytes
"""

from haloc.formats.hlo_proto.reader import parse_hlo_module_proto
from haloc.formats.hlo_proto.writer import serialize_hlo_module

__all__ = ["parse_hlo_module_proto", "serialize_hlo_module"]
