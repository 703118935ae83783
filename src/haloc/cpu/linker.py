"""Collects kernels into one LLVM module, in which equal functions stand once.

Every function and constant that a kernel defines is named by its content, from the innermost
outwards: equal kernels share everything, and different products share their inner loops.
"""

from __future__ import annotations

import hashlib
import re

from haloc.codegen.kernel import PREFIX, Kernel, Phase

_DEFINITION = re.compile(
    rf"^define [^\n]*?@({PREFIX}[\w.]*)\(.*?^}}\n|^@({PREFIX}[\w.]*) = .*?\n", re.M | re.S
)
_NAME = re.compile(rf"{PREFIX}[\w.]*")


class Linker:
    """The text of a module under construction, and the addresses it needs."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.declares: dict[str, str] = {}
        self.library: dict[str, str] = {}
        self.symbols: dict[str, int] = {}
        self.thunks: dict[str, str] = {}
        self._added: dict[tuple[str, bool], dict[str, str]] = {}

    def add(self, kernel: Kernel, inline: bool = False) -> dict[str, str]:
        """Take in a kernel; returns the final name of each symbol it defines.

        inline: if it is small, its code goes into the function that calls it. Otherwise kernels
        stay apart: one big function takes LLVM far longer than the same code in many.
        """
        inline = inline and len(kernel.text) < INLINE_CHARACTERS
        names = self._added.get((kernel.text, inline))
        if names is None:
            names = self._added[kernel.text, inline] = self._define(kernel.text, inline)
            for line in kernel.declares:
                self.declares.setdefault(_symbol(line), line)
            self.library.update(kernel.library)
            self.symbols.update(kernel.symbols)
        return names

    def _define(self, text: str, inline: bool) -> dict[str, str]:
        """Name each definition by its content, callees first."""
        pending = {m[1] or m[2]: m[0] for m in _DEFINITION.finditer(text)}
        names: dict[str, str] = {}
        while pending:
            calls = {n: set(_NAME.findall(t)) - {n} - names.keys() for n, t in pending.items()}
            ready = [[n] for n in pending if not calls[n]]
            # What is left when none is ready calls each other: named together.
            for group in ready or [list(pending)]:
                self._name_together({n: pending.pop(n) for n in group}, names, inline)
        return names

    def _name_together(self, group: dict[str, str], names: dict[str, str], inline: bool) -> None:
        """Name definitions that refer to nothing unnamed outside the group; add their texts."""
        known = names | {name: f"SELF{k}" for k, name in enumerate(group)}
        bodies = []
        for text in group.values():
            body = _NAME.sub(lambda m: known.get(m[0], m[0]), text)
            body = re.sub(r"^define +(internal +)?", "define internal ", body)
            if inline:
                body = body.replace(") nounwind {", ") nounwind alwaysinline {")
            bodies.append(body)
        digest = hashlib.sha256("".join(bodies).encode()).hexdigest()[:16]
        for k, name in enumerate(group):
            names[name] = f"k{digest}" if len(group) == 1 else f"k{digest}.{k}"
        final = {f"SELF{k}": names[name] for k, name in enumerate(group)}
        for name, body in zip(group, bodies, strict=True):
            self.texts[names[name]] = re.sub(r"SELF\d+", lambda m: final[m[0]], body)

    def thunk(self, symbol: str, pointers: int) -> str:
        """A function (context, begin, end) that calls `symbol` with pointers from an array."""
        name = f"{symbol}.thunk"
        if name not in self.thunks:
            lines = [
                f"define internal void @{name}(ptr %context, i64 %begin, i64 %end) nounwind {{"
            ]
            for k in range(pointers):
                lines.append(f"  %a{k} = getelementptr ptr, ptr %context, i64 {k}")
                lines.append(f"  %p{k} = load ptr, ptr %a{k}")
            arguments = ", ".join(f"ptr %p{k}" for k in range(pointers))
            lines.append(f"  call void @{symbol}({arguments}, i64 %begin, i64 %end)")
            self.thunks[name] = "\n".join([*lines, "  ret void", "}", ""])
        return name

    def text(self, sequencer: str) -> str:
        declares = {_symbol(line): line for line in RUNTIME_DECLARES} | self.declares
        library = [*self.library.values()]
        return "\n".join(
            [*declares.values(), *library, *self.texts.values(), *self.thunks.values(), sequencer]
        )


def _symbol(declare: str) -> str:
    """What a `declare` line declares: lines for one symbol may differ in attributes."""
    start = declare.index("@")
    return declare[start:].partition("(")[0].partition(" ")[0]


RUNTIME_DECLARES = (
    "declare void @haloc_parallel_for(ptr, ptr, i64, i64)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
)

INLINE_CHARACTERS = 4_000
"""Kernels with a shorter text may be inlined."""

SERIAL_NS = 30_000.0
"""Phases estimated to be shorter are run on the calling thread."""

GRAIN_NS = 15_000.0
"""Least work handed to a thread at a time."""


def grain(phase: Phase) -> int | None:
    """Units per hand-out to the pool, or None to run the phase on the calling thread."""
    if phase.extent <= 1 or phase.extent * phase.unit_cost_ns < SERIAL_NS:
        return None
    return max(1, min(phase.extent, int(GRAIN_NS / max(phase.unit_cost_ns, 1e-3))))
