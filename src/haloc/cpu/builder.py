"""Units of LLVM text to one image: from the cache what it has, the rest compiled by threads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from haloc.codegen.target import Target
from haloc.cpu.disk_cache import DiskCache
from haloc.cpu.jit import compile_text, toolchain
from haloc.cpu.linker import Unit
from haloc.cpu.object.atom import (
    Atom,
    atoms_from_bytes,
    atoms_to_bytes,
    constant_atom,
    reachable,
    split,
)
from haloc.cpu.object.elf import read_elf
from haloc.cpu.object.image import Image, link
from haloc.cpu.pool.threads import default_num_threads

BATCH_CHARACTERS = 16_000
"""Text that is compiled at a time: a module costs LLVM a millisecond by itself."""


class Builder:
    """Compiles the units of one program for a target while the program is still being made.

    `add` what there is; `image` gives the whole. cache: where compiled units are kept, if anywhere.
    """

    def __init__(self, target: Target, level: int, cache: DiskCache | None = None):
        self._target = target
        self._level = level
        self._cache = cache
        self._waiting: list[Unit] = []
        self._jobs: list[Future[dict[str, Atom]]] = []
        self._threads: ThreadPoolExecutor | None = None
        self._atoms: dict[str, Atom] = {}
        machine = f"{target.triple} {target.cpu} {target.feature_string}"
        self._kind = f"{toolchain()}\n{machine}\n{level}\n"

    def add(self, unit: Unit) -> None:
        """Take in a unit: it may be compiled at once, on another thread."""
        self._add_data(unit)
        if self._from_cache(unit):
            return
        self._waiting.append(unit)
        if sum(len(u.text) for u in self._waiting) >= BATCH_CHARACTERS:
            self._submit()

    def image(self, program: Unit, symbol: str) -> Image:
        """Everything that the function `symbol` of the last unit needs, linked."""
        self._add_data(program)
        try:
            self._atoms.update(self._compile(tuple(self._waiting), program))
            for job in self._jobs:
                self._atoms.update(job.result())
        finally:
            self.close()
        return link(self._atoms, (symbol,), self._target.triple.partition("-")[0])

    def _add_data(self, unit: Unit) -> None:
        for name, content in unit.data.items():
            self._atoms[name] = constant_atom(name, content)

    def close(self) -> None:
        """End the threads; what they have not begun is given up."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None

    def _submit(self) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(default_num_threads(), "haloc-compile")
        self._jobs.append(self._threads.submit(self._compile, tuple(self._waiting)))
        self._waiting = []

    def _compile(self, units: tuple[Unit, ...], program: Unit | None = None) -> dict[str, Atom]:
        """Compile and store units; the program's own is stored with the whole, if at all."""
        text = _module(units if program is None else (*units, program))
        object_file = compile_text(text, self._target, self._level)
        atoms = split(read_elf(object_file))
        if self._cache is not None:
            for unit in units:
                self._cache.write("unit", self._key(unit), atoms_to_bytes(_own(unit, atoms)))
        return atoms

    def _from_cache(self, unit: Unit) -> bool:
        if self._cache is None:
            return False
        stored = self._cache.read("unit", self._key(unit))
        if stored is None:
            return False
        try:
            self._atoms.update((atom.name, atom) for atom in atoms_from_bytes(stored))
        except (ValueError, TypeError):
            return False
        return True

    def _key(self, unit: Unit) -> str:
        digest = hashlib.sha256(self._kind.encode())
        about = (unit.declares, unit.constants, unit.inlined)
        for part in (*(text for texts in about for text in texts.values()), unit.text):
            digest.update(part.encode() + b"\0")
        return digest.hexdigest()


def _module(units: tuple[Unit, ...]) -> str:
    """One module of several units."""
    defined = {name for unit in units for name in unit.functions}
    constants = {n: text for unit in units for n, text in unit.constants.items()}
    inlined = {n: text for unit in units for n, text in unit.inlined.items()}
    declares = {n: line for unit in units for n, line in unit.declares.items() if n not in defined}
    texts = [unit.text for unit in units]
    return "\n".join([*declares.values(), *constants.values(), *inlined.values(), *texts])


def _own(unit: Unit, atoms: dict[str, Atom]) -> Iterable[Atom]:
    """A unit's functions and the constants they use, but no functions of other units."""
    constants = {n: a for n, a in atoms.items() if a.kind != "code" or n in unit.functions}
    return reachable(constants, unit.functions).values()
