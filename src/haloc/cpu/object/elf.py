"""Relocatable ELF object files, as far as LLVM writes them for us: 64-bit, little-endian."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from haloc.errors import InternalError

MACHINES = {62: "x86_64", 183: "aarch64"}

SHT_SYMTAB, SHT_RELA, SHT_NOBITS = 2, 4, 8
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_MERGE, SHF_STRINGS = 1, 2, 4, 16, 32
STT_SECTION = 3
STB_LOCAL = 0


@dataclass(slots=True)
class Section:
    """data is empty for a section of zeros, whose size says how many."""

    name: str
    kind: int
    flags: int
    size: int
    align: int
    entry_size: int
    data: bytes
    relocations: list[Relocation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Symbol:
    """section: its number, 0 if the symbol is defined elsewhere. value: offset in the section."""

    name: str
    section: int
    value: int
    kind: int
    is_local: bool


@dataclass(frozen=True, slots=True)
class Relocation:
    """kind: the machine's number for it. symbol: its number."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(slots=True)
class ObjectFile:
    """machine: as in MACHINES."""

    machine: str
    sections: list[Section]
    symbols: list[Symbol]


def read_elf(data: bytes) -> ObjectFile:
    """InternalError for anything but a relocatable ELF file of a machine in MACHINES."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise InternalError(f"LLVM's object file starts with {data[:6]!r}, not as 64-bit ELF does")
    kind, machine = struct.unpack_from("<HH", data, 16)
    if kind != 1 or machine not in MACHINES:
        raise InternalError(f"object file of type {kind} for ELF machine {machine}")
    (table,) = struct.unpack_from("<Q", data, 40)
    _, count, names = struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
    sections = []
    for name, kind, flags, _, offset, size, _, _, align, entry_size in headers:
        content = b"" if kind == SHT_NOBITS else data[offset : offset + size]
        text = _string(data, headers[names][4] + name)
        sections.append(Section(text, kind, flags, size, max(1, align), entry_size, content))
    symbols: list[Symbol] = []
    for header, section in zip(headers, sections, strict=True):
        if section.kind == SHT_SYMTAB:
            symbols = _symbols(data, section.data, headers[header[6]][4])
        elif section.kind == SHT_RELA:
            sections[header[7]].relocations.extend(_relocations(section.data))
    return ObjectFile(MACHINES[machine], sections, symbols)


def _string(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


def _symbols(data: bytes, table: bytes, strings: int) -> list[Symbol]:
    symbols = []
    for name, info, _, section, value, _ in struct.iter_unpack("<IBBHQQ", table):
        # Section numbers from 0xff00 are no sections: absolute symbols, the file's name.
        place = section if section < 0xFF00 else 0
        text = _string(data, strings + name)
        symbols.append(Symbol(text, place, value, info & 15, info >> 4 == STB_LOCAL))
    return symbols


def _relocations(table: bytes) -> list[Relocation]:
    return [
        Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend)
        for offset, info, addend in struct.iter_unpack("<QQq", table)
    ]
