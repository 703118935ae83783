"""Collects kernels into one LLVM module: equal kernels once, library functions once."""

from __future__ import annotations

import hashlib
import re

from haloc.codegen.kernel import PREFIX, Kernel, Phase


class Linker:
    """The text of a module under construction, and the addresses it needs."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.declares: dict[str, str] = {}
        self.library: dict[str, str] = {}
        self.symbols: dict[str, int] = {}
        self.thunks: dict[str, str] = {}

    def add(self, kernel: Kernel, inline: bool = False) -> str:
        """Take in a kernel; returns the name that stands for its PREFIX.

        inline: if it is small, its code goes into the function that calls it. Otherwise kernels
        stay apart: one big function takes LLVM far longer than the same code in many.
        """
        digest = hashlib.sha256(kernel.text.encode()).hexdigest()[:16]
        inline = inline and len(kernel.text) < INLINE_CHARACTERS
        name = f"i{digest}" if inline else f"k{digest}"
        if name not in self.texts:
            text = kernel.text.replace(PREFIX, name)
            text = re.sub(r"define +void @", "define internal void @", text)
            if inline:
                text = text.replace(") nounwind {", ") nounwind alwaysinline {")
            self.texts[name] = text
            for line in kernel.declares:
                self.declares.setdefault(_symbol(line), line)
            self.library.update(kernel.library)
            self.symbols.update(kernel.symbols)
        return name

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
