"""Atoms: the smallest pieces that linking moves, a function or a constant with what it refers to.

Generated modules put each function and each named global into a section of its own; a section is
an atom. Constants that LLVM made itself (`.rodata.cst16` and the like) are an atom each, named by
their content, so that an object file falls apart into functions that can be kept, cached and linked
one by one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from haloc.cpu.object.elf import (
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_MERGE,
    SHF_STRINGS,
    SHF_WRITE,
    STT_SECTION,
    ObjectFile,
    Section,
)
from haloc.errors import InternalError

CODE, CONSTANT, VARIABLE = "code", "constant", "variable"


@dataclass(frozen=True, slots=True)
class Fixup:
    """A place in an atom that depends on where things end up. kind: ELF's relocation number on
    the machine; target: an atom's name, or a symbol that no atom defines."""

    offset: int
    kind: int
    target: str
    addend: int


@dataclass(frozen=True, slots=True)
class Atom:
    """kind: CODE, CONSTANT or VARIABLE. size: in memory; what `data` does not fill is zeros."""

    name: str
    kind: str
    align: int
    size: int
    data: bytes
    fixups: tuple[Fixup, ...] = ()


def constant_atom(name: str, data: bytes, align: int = 64) -> Atom:
    """Bytes that code refers to as `@name`."""
    return Atom(name, CONSTANT, align, len(data), data)


def split(object_file: ObjectFile) -> dict[str, Atom]:
    """The atoms of an object file, by name."""
    return _Splitter(object_file).atoms()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A range of a section that becomes an atom. name: empty until its content is known."""

    section: int
    start: int
    size: int
    name: str


class _Splitter:
    def __init__(self, object_file: ObjectFile):
        self.object = object_file
        self.pieces: dict[int, dict[int, _Piece]] = {}
        self.whole_only = self._referred_to_by_section()

    def atoms(self) -> dict[str, Atom]:
        names = {s.section: s.name for s in self.object.symbols if not s.is_local and s.section}
        for number, section in enumerate(self.object.sections):
            if (
                section.flags & SHF_ALLOC
                and section.size
                and not section.name.startswith(".eh_frame")
            ):
                self.pieces[number] = self._pieces(number, section, names.get(number, ""))
        # What has no name is named by its content, which is what it refers to as well.
        self.named: dict[_Piece, str] = {}
        found = {}
        for pieces in self.pieces.values():
            for piece in pieces.values():
                atom = self._atom(piece)
                found[atom.name] = atom
        return found

    def _referred_to_by_section(self) -> set[int]:
        """Sections with references to an offset from their start: not to be taken apart, for what
        lies at the offset that an instruction adds up to is not known."""
        symbols = self.object.symbols
        return {
            symbols[r.symbol].section
            for section in self.object.sections
            for r in section.relocations
            if symbols[r.symbol].kind == STT_SECTION
        }

    def _pieces(self, number: int, section: Section, name: str) -> dict[int, _Piece]:
        is_table = section.flags & SHF_MERGE and not section.flags & SHF_STRINGS
        if not is_table or number in self.whole_only:
            return {0: _Piece(number, 0, section.size, name)}
        size = section.entry_size
        return {at: _Piece(number, at, size, "") for at in range(0, section.size, size)}

    def _atom(self, piece: _Piece) -> Atom:
        section = self.object.sections[piece.section]
        inside = [
            r for r in section.relocations if piece.start <= r.offset < piece.start + piece.size
        ]
        fixups = []
        for r in inside:
            target, extra = self._target(r.symbol)
            fixups.append(Fixup(r.offset - piece.start, r.kind, target, r.addend + extra))
        return Atom(
            self._name(piece),
            CODE
            if section.flags & SHF_EXECINSTR
            else VARIABLE
            if _is_variable(section)
            else CONSTANT,
            section.align,
            piece.size,
            section.data[piece.start : piece.start + piece.size],
            tuple(fixups),
        )

    def _target(self, number: int) -> tuple[str, int]:
        """What a symbol stands for: an atom's name, and an offset in it."""
        symbol = self.object.symbols[number]
        if symbol.section == 0:
            return symbol.name, 0
        pieces = self.pieces.get(symbol.section)
        if pieces is None:
            raise InternalError(f"code refers to {symbol.name!r} in a section that is not loaded")
        start = max(s for s in pieces if s <= symbol.value)
        return self._name(pieces[start]), symbol.value - start

    def _name(self, piece: _Piece) -> str:
        if piece.name:
            return piece.name
        name = self.named.get(piece)
        if name is None:
            section = self.object.sections[piece.section]
            if _is_variable(section):
                # Equal constants may be one; variables of different objects never.
                name = self.named[piece] = f"variable.{section.name}.{self._object_digest()}"
                return name
            data = section.data[piece.start : piece.start + piece.size]
            digest = hashlib.sha256(f"{section.align}\n".encode() + data)
            for r in section.relocations:
                if piece.start <= r.offset < piece.start + piece.size:
                    target, extra = self._target(r.symbol)
                    digest.update(f"{r.offset - piece.start} {r.kind} {target} {extra}\n".encode())
            name = self.named[piece] = f"constant.{digest.hexdigest()[:24]}"
        return name

    def _object_digest(self) -> str:
        digest = hashlib.sha256()
        for section in self.object.sections:
            digest.update(section.data)
        return digest.hexdigest()[:24]


def _is_variable(section: Section) -> bool:
    """Not so .data.rel.ro: constants that contain addresses, written once when they are loaded."""
    return bool(section.flags & SHF_WRITE) and not section.name.startswith(".data.rel.ro")


def reachable(atoms: dict[str, Atom], roots: Iterable[str]) -> dict[str, Atom]:
    """The roots and what they refer to, as far as `atoms` has it, in the order met."""
    found: dict[str, Atom] = {}
    waiting = list(roots)[::-1]
    while waiting:
        name = waiting.pop()
        atom = atoms.get(name)
        if atom is None or name in found:
            continue
        found[name] = atom
        waiting.extend(f.target for f in reversed(atom.fixups))
    return found


# --- Bytes ---------------------------------------------------------------------------------------


def atoms_to_bytes(atoms: Iterable[Atom]) -> bytes:
    """A JSON header, a zero byte, the atoms' data."""
    listed = list(atoms)
    header = [
        [a.name, a.kind, a.align, a.size, len(a.data)]
        + [[f.offset, f.kind, f.target, f.addend] for f in a.fixups]
        for a in listed
    ]
    return b"\0".join([json.dumps(header).encode(), b"".join(a.data for a in listed)])


def atoms_from_bytes(data: bytes) -> list[Atom]:
    """What `atoms_to_bytes` wrote; ValueError for anything else."""
    header, separator, content = data.partition(b"\0")
    if not separator:
        raise ValueError("no header")
    atoms, at = [], 0
    for name, kind, align, size, length, *fixups in json.loads(header):
        fixed = tuple(Fixup(*f) for f in fixups)
        atoms.append(Atom(name, kind, align, size, content[at : at + length], fixed))
        at += length
    if at != len(content):
        raise ValueError(f"{len(content)} bytes of data, of which {at} belong to an atom")
    return atoms
