"""Protocol buffers without the protobuf package: tables of XLA's messages, and the wire format.

decode(message name, bytes, keep=frozenset()) -> Message
encode(message name, Message) -> bytes
"""

from haloc.formats.proto.wire import UNKNOWN, Message, decode, encode

__all__ = ["UNKNOWN", "Message", "decode", "encode"]
