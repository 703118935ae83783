"""Images as ELF shared objects: files that any process can `dlopen`, written without a linker.

A file is a page or more of tables, the image, and the dynamic section, each at the address that is
its place in the file. There are no section headers: loaders do not read them, linkers would.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from haloc.cpu.object.elf import MACHINES
from haloc.cpu.object.image import Image
from haloc.cpu.object.relocation import PAGE_BYTES

_SYMBOLIC = {"x86_64": 1, "aarch64": 257}
_RELATIVE = {"x86_64": 8, "aarch64": 1027}
"""Numbers of the relocations for a symbol's address, and for the object's own."""

_HEADER_BYTES, _SEGMENT_BYTES, _SYMBOL_BYTES, _RELOCATION_BYTES = 64, 56, 24, 24
_LOAD, _DYNAMIC, _STACK, _RELRO = 1, 2, 0x6474E551, 0x6474E552
_READ, _WRITE, _EXECUTE = 4, 2, 1
_NEEDED, _HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ, _RELAENT = 1, 4, 5, 6, 7, 8, 9
_STRSZ, _SYMENT, _SONAME = 10, 11, 14
_GLOBAL, _FUNCTION = 1 << 4, 2


def shared_object(image: Image, name: str, needed: Sequence[str] = ()) -> bytes:
    """The file. name: what loaders call it (DT_SONAME). needed: libraries that are loaded with it;
    the image's imports are also looked for in what the process has loaded."""
    page = PAGE_BYTES[image.machine]
    symbols = _Symbols(image, (name, *needed))
    segments = 6
    parts = [symbols.table, symbols.hash, symbols.strings]
    places, end = [], _HEADER_BYTES + segments * _SEGMENT_BYTES
    relocation_count = len(image.imports) + len(image.rebases)
    for part in (*parts, bytes(relocation_count * _RELOCATION_BYTES)):
        places.append(end)
        end = _up(end + len(part), 8)
    start = _up(end, page)
    symbols.relocate(start)
    parts = [symbols.table, symbols.hash, symbols.strings, _relocations(image, symbols, start)]
    dynamic_at = start + image.size_bytes
    dynamic = _dynamic(places, parts, [symbols.place[n] for n in needed], symbols.place[name])
    writable = start + image.code_bytes
    file_end = dynamic_at + len(dynamic)
    headers = [
        _segment(_LOAD, _READ, 0, end, page),
        _segment(_LOAD, _READ | _EXECUTE, start, image.code_bytes, page),
        _segment(_LOAD, _READ | _WRITE, writable, file_end - writable, page),
        _segment(_DYNAMIC, _READ | _WRITE, dynamic_at, len(dynamic), 8),
        _segment(_RELRO, _READ, writable, image.constant_bytes, 1),
        _segment(_STACK, _READ | _WRITE, 0, 0, 16),
    ]
    assert len(headers) == segments
    data = bytearray(file_end)
    _put(data, 0, _file_header(image.machine, segments) + b"".join(headers))
    for place, part in zip(places, parts, strict=True):
        _put(data, place, part)
    _put(data, start, image.data)
    _put(data, dynamic_at, dynamic)
    return bytes(data)


class _Symbols:
    """The image's imports and exports as dynamic symbols, and their names among other strings."""

    def __init__(self, image: Image, strings: Iterable[str]):
        self.imports = sorted({symbol for symbol, _ in image.imports})
        self.exports = image.exports
        self.place: dict[str, int] = {}
        self.strings = b"\0"
        for text in (*self.imports, *self.exports, *strings):
            self.place[text] = len(self.strings)
            self.strings += text.encode() + b"\0"
        self.number = {symbol: 1 + n for n, symbol in enumerate(self.imports)}
        self.hash = _hash_table([*self.imports, *self.exports])
        self.relocate(0)

    def relocate(self, start: int) -> None:
        """Write the table for an image at this address."""
        entries = [struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)]
        for symbol in self.imports:
            entries.append(struct.pack("<IBBHQQ", self.place[symbol], _GLOBAL, 0, 0, 0, 0))
        for symbol, offset in self.exports.items():
            # Any section number but 0 says that the symbol is defined here.
            row = (self.place[symbol], _GLOBAL | _FUNCTION, 0, 1, start + offset, 0)
            entries.append(struct.pack("<IBBHQQ", *row))
        self.table = b"".join(entries)


def _hash_table(symbols: list[str]) -> bytes:
    """System V's, of symbols numbered from 1. There are few: one bucket holds them all."""
    count = len(symbols) + 1
    chain = [0, *range(2, count), 0]
    return struct.pack(f"<{3 + count}I", 1, count, 1, *chain)


def _relocations(image: Image, symbols: _Symbols, start: int) -> bytes:
    symbolic, relative = _SYMBOLIC[image.machine], _RELATIVE[image.machine]
    rows = [
        (start + place, symbols.number[symbol] << 32 | symbolic, 0)
        for symbol, place in image.imports
    ]
    rows += [(start + place, relative, start + target) for place, target in image.rebases]
    return b"".join(struct.pack("<QQq", *row) for row in rows)


def _dynamic(places: list[int], parts: list[bytes], needed: list[int], name: int) -> bytes:
    table, hashes, strings, relocations = places
    rows = [(_NEEDED, n) for n in needed]
    rows += [
        (_SONAME, name),
        (_HASH, hashes),
        (_STRTAB, strings),
        (_STRSZ, len(parts[2])),
        (_SYMTAB, table),
        (_SYMENT, _SYMBOL_BYTES),
        (_RELA, relocations),
        (_RELASZ, len(parts[3])),
        (_RELAENT, _RELOCATION_BYTES),
        (0, 0),
    ]
    return b"".join(struct.pack("<QQ", *row) for row in rows)


def _file_header(machine: str, segments: int) -> bytes:
    number = next(n for n, name in MACHINES.items() if name == machine)
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    shared, version = 3, 1
    sizes = (_HEADER_BYTES, _SEGMENT_BYTES, segments, 64, 0, 0)
    return identity + struct.pack(
        "<HHIQQQI6H", shared, number, version, 0, _HEADER_BYTES, 0, 0, *sizes
    )


def _segment(kind: int, flags: int, place: int, size: int, align: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, flags, place, place, place, size, size, align)


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _put(data: bytearray, place: int, part: bytes) -> None:
    data[place : place + len(part)] = part
