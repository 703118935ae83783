"""Collects kernels as units of LLVM text, in which equal functions stand once.

Every function and constant that a kernel defines is named by its content, from the innermost
outwards: equal kernels share everything, and different products share their inner loops. Each
function and constant has a section of its own, so that it can be linked by itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from haloc.codegen.fast_math import relaxed
from haloc.codegen.kernel import PREFIX, Kernel, Phase
from haloc.cpu.arena import ALIGNMENT

_DEFINITION = re.compile(
    rf"^define [^\n]*?@({PREFIX}[\w.]*)\(.*?^}}\n|^@({PREFIX}[\w.]*) = .*?\n", re.M | re.S
)
_NAME = re.compile(rf"{PREFIX}[\w.]*")
_REFERENCE = re.compile(r"@([\w.$]+)")


@dataclass(frozen=True, slots=True)
class Unit:
    """Functions that are compiled together. functions: their names. inlined: definitions that are
    inlined into them, by name. constants: definitions of the constants they refer to, by name.
    declares: lines for what is defined elsewhere. data: what of that is bytes."""

    functions: tuple[str, ...]
    text: str
    inlined: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    declares: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, bytes] = field(default_factory=dict)


class Linker:
    """The units of a program under construction, and the addresses it needs.

    on_unit is given each unit as soon as there is one; `program_unit` is the last. fast_math:
    LLVM's flags for the kernels' float arithmetic.
    """

    def __init__(
        self, on_unit: Callable[[Unit], None] = lambda unit: None, fast_math: str = ""
    ) -> None:
        self._fast_math = fast_math
        self.texts: dict[str, str] = {}
        self.declares: dict[str, str] = {_symbol(line): line for line in RUNTIME_DECLARES}
        self.symbols: dict[str, int] = {}
        self._on_unit = on_unit
        self._constants: dict[str, str] = {}
        self._data: dict[str, bytes] = {}
        self._inlined: dict[str, str] = {}
        self._added: dict[tuple[object, ...], dict[str, str]] = {}

    def add(self, kernel: Kernel, inline: bool = False) -> dict[str, str]:
        """Take in a kernel; returns the final name of each symbol it defines.

        inline: if it is small, its code goes into the function that calls it. Otherwise kernels
        stay apart: one big function takes LLVM far longer than the same code in many.
        """
        inline = inline and len(kernel.text) < INLINE_CHARACTERS
        data = {symbol: self._data_name(content) for symbol, content in kernel.data.items()}
        key = kernel.text, inline, *data.values()
        names = self._added.get(key)
        if names is None:
            for line in kernel.declares:
                self.declares.setdefault(_symbol(line), line)
            self.symbols.update(kernel.symbols)
            for symbol, text in kernel.library.items():
                if symbol[1:] not in self.texts:
                    self._take(symbol[1:], relaxed(text, self._fast_math))
                    self._emit((symbol[1:],))
            known = len(self.texts)
            text = relaxed(kernel.text, self._fast_math)
            names = self._added[key] = self._define(text, inline, data)
            self._emit(tuple(self.texts)[known:])
        return names

    def _data_name(self, content: bytes) -> str:
        name = f"k{hashlib.sha256(content).hexdigest()[:16]}"
        self._data[name] = content
        line = f"@{name} = external hidden constant [{len(content)} x i8], align {ALIGNMENT}"
        self.declares[f"@{name}"] = line
        return name

    def _define(self, text: str, inline: bool, data: Mapping[str, str]) -> dict[str, str]:
        """Name each definition by its content, callees first. data: names that are known."""
        pending = {m[1] or m[2]: m[0] for m in _DEFINITION.finditer(text)}
        names = dict(data)
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
            body = re.sub(r"SELF\d+", lambda m: final[m[0]], body)
            self._take(names[name], body)

    def _take(self, name: str, text: str) -> None:
        if _is_inlined(text):
            self.texts[name] = self._inlined[name] = text
            return
        self.texts[name] = text = _exported(text)
        if text.startswith("@"):
            self._constants[name] = text
        else:
            self.declares[f"@{name}"] = _declared(text)

    def _emit(self, names: tuple[str, ...]) -> None:
        functions = tuple(n for n in names if n not in self._constants and n not in self._inlined)
        if functions:
            text = "".join(self.texts[n] for n in functions)
            self._on_unit(self._unit(functions, text, self._inlined_into(text)))

    def _inlined_into(self, text: str) -> dict[str, str]:
        """The definitions that are inlined into `text`, and into them."""
        found: dict[str, str] = {}
        waiting = [text]
        while waiting:
            for name in _REFERENCE.findall(waiting.pop()):
                if name in self._inlined and name not in found:
                    found[name] = self._inlined[name]
                    waiting.append(found[name])
        return found

    def _unit(self, functions: tuple[str, ...], text: str, inlined: dict[str, str]) -> Unit:
        referred = dict.fromkeys(_REFERENCE.findall("".join([*inlined.values(), text])))
        constants = {n: self._constants[n] for n in referred if n in self._constants}
        declares = {
            n: self.declares[f"@{n}"]
            for n in referred
            if n not in functions and n not in inlined and f"@{n}" in self.declares
        }
        data = {n: self._data[n] for n in referred if n in self._data}
        return Unit(functions, text, inlined, constants, declares, data)

    def thunk(self, symbol: str, pointers: int) -> str:
        """A function (context, begin, end) that calls `symbol` with pointers from an array."""
        name = f"{symbol}.thunk"
        if name not in self.texts:
            lines = [
                f"define internal void @{name}(ptr %context, i64 %begin, i64 %end) nounwind {{"
            ]
            for k in range(pointers):
                lines.append(f"  %a{k} = getelementptr ptr, ptr %context, i64 {k}")
                lines.append(f"  %p{k} = load ptr, ptr %a{k}")
            arguments = ", ".join(f"ptr %p{k}" for k in range(pointers))
            lines.append(f"  call void @{symbol}({arguments}, i64 %begin, i64 %end)")
            self._take(name, "\n".join([*lines, "  ret void", "}", ""]))
            self._emit((name,))
        return name

    def program_unit(self, name: str, sequence: str) -> Unit:
        """The program's own function, with the kernels that are inlined into it."""
        return self._unit((name,), _exported(sequence), self._inlined)

    def text(self, sequence: str) -> str:
        """Everything, for reading."""
        return "\n".join([*self.texts.values(), sequence])


def _is_inlined(text: str) -> bool:
    return "alwaysinline" in text.partition("\n")[0]


def _exported(text: str) -> str:
    """A definition in a section of its own, which other object files can refer to."""
    if text.startswith("@"):
        name, _, rest = text.partition(" = ")
        kind = "variable" if re.match(r"(\w+ )*?global ", rest) else "constant"
        rest = re.sub(r"^(private |internal )", "", rest.rstrip())
        value, align, bytes = rest.rpartition(", align ")
        if not bytes.isdigit():
            value, align, bytes = rest, "", ""
        return f'{name} = hidden {value}, section ".{kind}.{name[1:]}"{align}{bytes}\n'
    head, brace, body = text.partition(" {\n")
    head = re.sub(r"^define (internal |noundef )?", "define hidden ", head)
    name = _REFERENCE.search(head)
    assert name is not None, head
    return f'{head} section ".text.{name[1]}"{brace}{body}'


def _declared(text: str) -> str:
    """The `declare` line of a function's definition."""
    head = text.partition(" {\n")[0].partition(" section ")[0]
    return re.sub(r"^define (hidden |internal )?", "declare hidden ", head)


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
