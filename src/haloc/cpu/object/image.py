"""Images: linked code as one block of bytes that runs wherever it is put.

An image has three parts, each of whole pages: code; constants, with the table of addresses that
loading fills in; variables. What it needs from outside is listed by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields

from haloc.cpu.object.atom import CODE, CONSTANT, VARIABLE, Atom, reachable
from haloc.cpu.object.relocation import (
    ADDRESS,
    CALL,
    PAGE_BYTES,
    STUB_BYTES,
    TABLE,
    rule_of,
    write_stub,
)
from haloc.errors import InternalError, InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Image:
    """machine: "x86_64" or "aarch64". data: the bytes from the start; what follows up to
    size_bytes is zeros. code_bytes and constant_bytes: sizes of the first two parts.
    code_size_bytes: how much of it was generated (without padding). exports: {function: offset}.
    imports: ((symbol, offset at which its address is kept), ...). rebases: ((offset, offset of
    what its address is to be written there), ...).
    """

    machine: str
    data: bytes
    size_bytes: int
    code_bytes: int
    constant_bytes: int
    code_size_bytes: int
    exports: dict[str, int]
    imports: tuple[tuple[str, int], ...]
    rebases: tuple[tuple[int, int], ...]

    def to_bytes(self) -> bytes:
        """A JSON header, a zero byte, the data."""
        header = {name: getattr(self, name) for name in _HEADER}
        return json.dumps(header).encode() + b"\0" + self.data

    @staticmethod
    def from_bytes(stored: bytes) -> Image:
        """What `to_bytes` wrote; InvalidArgumentError for anything else."""
        header, _, data = stored.partition(b"\0")
        try:
            fields = json.loads(header)
            pairs = {k: tuple((a, b) for a, b in fields[k]) for k in ("imports", "rebases")}
            image = Image(**{**fields, **pairs}, data=data)
            if image._fits():
                return image
        except (ValueError, TypeError, KeyError):
            pass
        raise InvalidArgumentError("the object image's header and data do not fit together")

    def _fits(self) -> bool:
        """Whether everything lies where it may."""
        patched = [at for _, at in self.imports] + [at for at, _ in self.rebases]
        writable = range(self.code_bytes, self.size_bytes - 7)
        page = PAGE_BYTES[self.machine]
        parts = (self.code_bytes, self.constant_bytes, self.size_bytes)
        return (
            all(size >= 0 and size % page == 0 for size in parts)
            and max(self.code_bytes + self.constant_bytes, len(self.data)) <= self.size_bytes
            and all(at in writable for at in patched)
            and all(0 <= to < self.size_bytes for _, to in self.rebases)
            and all(0 <= at < self.code_bytes for at in self.exports.values())
        )


_HEADER = tuple(f.name for f in fields(Image) if f.name != "data")


def link(atoms: dict[str, Atom], exports: Iterable[str], machine: str) -> Image:
    """Put the exported functions and all they refer to together. What no atom defines becomes an
    import. KeyError if an exported function is not there."""
    exports = tuple(exports)
    for name in exports:
        atoms[name]
    return _Linking(reachable(atoms, exports), machine).image(exports)


class _Linking:
    def __init__(self, atoms: dict[str, Atom], machine: str):
        self.atoms = atoms
        self.machine = machine
        self.stubs: dict[str, int] = {}
        self.slots: dict[str, int] = {}
        self.places: dict[str, int] = {}
        self._needs()
        self._layout()

    def _needs(self) -> None:
        """Which symbols need a stub or a place in the table of addresses."""
        for atom in self.atoms.values():
            for fixup in atom.fixups:
                needs = rule_of(self.machine, fixup.kind).needs
                is_outside = fixup.target not in self.atoms
                if needs == CALL and is_outside:
                    self.stubs[fixup.target] = 0
                if needs == TABLE or (needs == CALL and is_outside):
                    self.slots[fixup.target] = 0

    def _layout(self) -> None:
        self.end = 0
        self._place(CODE)
        self.code_size_bytes = self.end
        for name in self.stubs:
            self.stubs[name] = self._take(STUB_BYTES, STUB_BYTES)
        self.code_bytes = self._page()
        self._place(CONSTANT)
        for name in self.slots:
            self.slots[name] = self._take(8, 8)
        self.constant_bytes = self._page() - self.code_bytes
        self._place(VARIABLE)
        self._page()

    def _place(self, kind: str) -> None:
        for name, atom in self.atoms.items():
            if atom.kind == kind:
                self.places[name] = self._take(atom.size, atom.align)

    def _take(self, size: int, align: int) -> int:
        start = -(-self.end // align) * align
        self.end = start + size
        return start

    def _page(self) -> int:
        self.end = self._take(0, PAGE_BYTES[self.machine])
        return self.end

    def image(self, exports: tuple[str, ...]) -> Image:
        data = bytearray(self.end)
        imports, rebases = [], []
        for name, atom in self.atoms.items():
            start = self.places[name]
            data[start : start + len(atom.data)] = atom.data
        for name, slot in self.slots.items():
            if name in self.places:
                rebases.append((slot, self.places[name]))
            else:
                imports.append((name, slot))
        for name, place in self.stubs.items():
            write_stub(self.machine, data, place, self.slots[name])
        for name, atom in self.atoms.items():
            self._fix(data, self.places[name], atom, imports, rebases)
        written = max(len(data.rstrip(b"\0")), self.code_size_bytes)
        return Image(
            self.machine,
            bytes(data[:written]),
            self.end,
            self.code_bytes,
            self.constant_bytes,
            self.code_size_bytes,
            {name: self.places[name] for name in exports},
            tuple(imports),
            tuple(rebases),
        )

    def _fix(
        self,
        data: bytearray,
        start: int,
        atom: Atom,
        imports: list[tuple[str, int]],
        rebases: list[tuple[int, int]],
    ) -> None:
        for fixup in atom.fixups:
            rule = rule_of(self.machine, fixup.kind)
            place = start + fixup.offset
            known = self.places.get(fixup.target)
            if rule.needs == ADDRESS:
                if known is None:
                    # The address is the import's; an offset from it never occurs.
                    assert fixup.addend == 0, fixup
                    imports.append((fixup.target, place))
                else:
                    rebases.append((place, known + fixup.addend))
                continue
            if rule.needs == TABLE:
                target = self.slots[fixup.target]
            elif known is not None:
                target = known
            elif rule.needs == CALL:
                target = self.stubs[fixup.target]
            else:
                raise InternalError(f"{atom.name} refers to {fixup.target}, which nothing defines")
            rule.patch(data, place, target + fixup.addend)
