"""Three judges: a module means the same interpreted, interpreted after the passes, and natively."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from haloc import interpreter
from haloc.codegen import loops
from haloc.cpu import linker
from haloc.cpu.compiler import compile_module
from haloc.formats.hlo_text import parse_module, to_text
from haloc.ir.literal import Value
from haloc.ir.module import HloModule
from haloc.passes.driver import PassOptions
from haloc.passes.pipelines import run_pipeline
from haloc.verifier import verify
from tests.fuzz.shadow import Expected, array_leaves, distance, expected

_GUARD_BYTES = 256
_FILL = 0xCD


class Disagreement(AssertionError):
    """One judge differs from the interpreter."""


def judge(module: HloModule, arguments: Sequence[Value], seed: int = 0) -> None:
    """Raise Disagreement, or what a judge raised, if they do not all agree."""
    verify(module)
    wanted = expected(module, arguments, seed)
    text = to_text(module)
    parsed = parse_module(text)
    if to_text(parsed) != text:
        raise Disagreement("text: printing, parsing and printing again gives another text")
    optimized = module.clone()
    run_pipeline(optimized, "cpu", PassOptions(check=True, seed=seed))
    with np.errstate(all="ignore"):
        compare("passes", array_leaves(interpreter.run(optimized, arguments)), wanted)
    compare("native", run_native(module, arguments), wanted)
    with divided():
        compare("native, divided", run_native(module, arguments), wanted)


@dataclass(frozen=True)
class Judged:
    """What a judge says of a candidate, as `haloc.triage.reduce` wants it."""

    seed: int

    def __call__(self, module: HloModule, arguments: Sequence[Value]) -> str:
        try:
            judge(module, arguments, self.seed)
        except Exception as error:
            return f"{type(error).__name__} {str(error).partition(':')[0]}"
        return ""


@contextmanager
def divided() -> Iterator[None]:
    """Compile so that even the smallest kernels are divided among threads."""
    places = [
        (loops, "PARALLEL_NS"),
        (loops, "UNIT_NS"),
        (linker, "SERIAL_NS"),
        (linker, "GRAIN_NS"),
    ]
    before = [getattr(place, name) for place, name in places]
    for place, name in places:
        setattr(place, name, 0.1)
    try:
        yield
    finally:
        for (place, name), value in zip(places, before):
            setattr(place, name, value)


def run_native(module: HloModule, arguments: Sequence[Value]) -> list[np.ndarray]:
    """Compile and run; results and arena lie between guards that must come out untouched."""
    program = compile_module(module)
    given = [_Block(leaf.nbytes).holding(leaf) for leaf in array_leaves(tuple(arguments))]
    pointers = iter([b.pointer for b in given])
    operands = [next(pointers) if s.is_array else 0 for s in program.parameters]
    results = [_Block(s.byte_size) if s.is_array else None for s in program.results]
    arena = _Block(program.arena_bytes)
    program.run(operands, [b.pointer if b else 0 for b in results], arena.pointer)
    for n, block in enumerate([*given, *results, arena]):
        if block and not block.is_intact:
            raise Disagreement(
                f"native: wrote outside block {n} of {len(given)} arguments, "
                f"{len(results)} results and the arena"
            )
    for n, (block, leaf) in enumerate(zip(given, array_leaves(tuple(arguments)))):
        if block.data.tobytes() != leaf.tobytes():
            raise Disagreement(f"native: changed argument leaf {n}")
    return [
        b.data.view(s.dtype.numpy).reshape(s.dims) for s, b in zip(program.results, results) if b
    ]


class _Block:
    """64-byte aligned memory between two guards."""

    def __init__(self, size_bytes: int):
        self.memory = np.full(size_bytes + 2 * _GUARD_BYTES + 64, _FILL, np.uint8)
        base = self.memory.ctypes.data + _GUARD_BYTES
        self.begin = _GUARD_BYTES + -base % 64
        self.end = self.begin + size_bytes
        self.pointer = self.memory.ctypes.data + self.begin
        self.data = self.memory[self.begin : self.end]

    def holding(self, array: np.ndarray) -> _Block:
        self.data[:] = np.frombuffer(array.tobytes(), np.uint8)
        return self

    @property
    def is_intact(self) -> bool:
        return bool(
            (self.memory[: self.begin] == _FILL).all() and (self.memory[self.end :] == _FILL).all()
        )


def compare(who: str, got: list[np.ndarray], wanted: Expected) -> None:
    if len(got) != len(wanted.values):
        raise Disagreement(f"{who}: {len(got)} results, wanted {len(wanted.values)}")
    for n, (g, w, tolerance) in enumerate(zip(got, wanted.values, wanted.tolerances)):
        if g.dtype != w.dtype or g.shape != w.shape:
            raise Disagreement(f"{who}: result {n} is {g.dtype}{g.shape}, not {w.dtype}{w.shape}")
        wrong = ~(distance(g, w) <= tolerance)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise Disagreement(
                f"{who}: result {n}, {g.dtype}{list(g.shape)}: {int(wrong.sum())} wrong; at "
                f"{list(at)} {g[at]!r}, wanted {w[at]!r} within {tolerance[at]:.3g}"
            )
