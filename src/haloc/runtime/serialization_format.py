"""The container of a stored executable: a manifest and blocks of bytes under one checksum.

docs/executable-format.md describes it.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any

from haloc.errors import FailedPreconditionError, InvalidArgumentError

MAGIC = b"\x7fHALOC\r\n"
FORMAT_VERSION = 1
"""Raised whenever an executable of an older haloc could be misread or would run differently: the
manifest's fields, the native function's arguments, what its symbols do."""

ALIGNMENT_BYTES = 64
_HEAD = struct.Struct("<8sI32sQ")
"""magic, format version, SHA-256 of all that follows it, size of the manifest"""


def pack(manifest: Mapping[str, Any], blocks: Mapping[str, bytes]) -> bytes:
    """The container. Blocks begin at multiples of 64 bytes, in the order given."""
    places: dict[str, list[int]] = {}
    end = 0
    for name, block in blocks.items():
        start = -(-end // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        places[name] = [start, len(block)]
        end = start + len(block)
    text = json.dumps({**manifest, "blocks": places}, sort_keys=True).encode()
    text += b" " * (-(_HEAD.size + len(text)) % ALIGNMENT_BYTES)
    parts = [text]
    end = 0
    for name, block in blocks.items():
        parts += [bytes(places[name][0] - end), block]
        end = sum(places[name])
    content = struct.pack("<Q", len(text)) + b"".join(parts)
    digest = hashlib.sha256(content).digest()
    return _HEAD.pack(MAGIC, FORMAT_VERSION, digest, len(text)) + content[8:]


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, memoryview]]:
    """(manifest, blocks) of a container.

    InvalidArgumentError for what is none, or is damaged; FailedPreconditionError for one of
    another format version.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise InvalidArgumentError(
            f"not a serialized haloc executable: {len(data)} bytes that begin with "
            f"{bytes(data[: len(MAGIC)])!r}"
        )
    if len(data) < _HEAD.size:
        raise InvalidArgumentError(f"the serialized executable ends after {len(data)} bytes")
    _, version, digest, size = _HEAD.unpack_from(data)
    if version != FORMAT_VERSION:
        age = "newer" if version > FORMAT_VERSION else "older"
        raise FailedPreconditionError(
            f"the serialized executable has format version {version}, written by {age} haloc; "
            f"this one reads version {FORMAT_VERSION}"
        )
    view = memoryview(data)
    if hashlib.sha256(view[_HEAD.size - 8 :]).digest() != digest:
        raise InvalidArgumentError(
            "the serialized executable is damaged or cut off: its checksum does not fit"
        )
    manifest = json.loads(bytes(view[_HEAD.size : _HEAD.size + size]))
    first = _HEAD.size + size
    places = manifest["blocks"].items()
    blocks = {n: view[first + start : first + start + count] for n, (start, count) in places}
    return manifest, blocks
