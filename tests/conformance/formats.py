"""JAX's primitive harnesses through every format: one answer, whatever they are written in.

    python -m tests.conformance.formats [--processes N] [--part P/N] [--write]

prints what differs from jaxlib and a table of counts; --write puts the table into
docs/conformance.md. A program that reads as one read before is not run twice.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import jax
import jaxlib
import numpy as np
from jaxlib import _jax

import haloc
from haloc import interpreter, xla_client
from haloc.analysis.equality import module_fingerprint
from haloc.errors import UnimplementedError
from haloc.formats.sniff import Format, detect_format
from haloc.ir.module import HloModule
from tests.conformance.compare import flat
from tests.conformance.harness import (
    ENGINES,
    HARNESSES,
    Question,
    difference,
    expected_differences,
    leaves,
    names_of,
    number_of,
    one_line,
)

STABLEHLO_VERSION = "1.17.0"
MODES = ("x32", "x64")
FORMATS = {
    Format.HLO_TEXT: lambda lowered: (
        lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True).encode()
    ),
    Format.HLO_MODULE_PROTO: lambda lowered: lowered.compiler_ir(
        "hlo"
    ).as_serialized_hlo_module_proto(),
    Format.STABLEHLO_TEXT: lambda lowered: lowered.as_text().encode(),
    Format.STABLEHLO_BYTECODE: lambda lowered: _jax.mlir.serialize_portable_artifact(
        lowered.as_text(), STABLEHLO_VERSION
    ),
}
"""By format, what JAX writes of a lowered function."""
EQUAL, LISTED, UNSUPPORTED, DIFFERS = "equal", "listed", "unsupported", "differs"
"""Listed: harness_differences.txt says why it differs. Unsupported: UnimplementedError."""
PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one harness in one format on one engine; told: what differs, in one line."""

    mode: str
    format: str
    engine: str
    name: str
    outcome: str
    told: str = ""


def examine(mode: str, name: str) -> list[Verdict]:
    """One harness through every format on both engines; [] where JAX itself has no answer."""
    harness = HARNESSES[name]
    with jax.enable_x64(mode == "x64"):
        arguments = harness.dyn_args_maker(np.random.RandomState(number_of(name)))
        try:
            wanted = leaves(jax.jit(harness.dyn_fun)(*arguments))
            lowered = jax.jit(harness.dyn_fun, keep_unused=True).lower(*arguments)
            programs = {f: write(lowered) for f, write in FORMATS.items()}
        except Exception:
            return []
        asked = Question("", leaves(arguments), wanted)
    seen: dict[str, dict[str, str]] = {}
    verdicts = []
    for found, data in programs.items():
        told = _answers(name, found, data, asked, seen)
        for engine in ENGINES:
            outcome = _outcome((mode, engine, name), told[engine])
            verdicts.append(Verdict(mode, found.value, engine, name, outcome, told[engine]))
    return verdicts


def _answers(
    name: str, written_in: Format, data: bytes, asked: Question, seen: dict[str, dict[str, str]]
) -> dict[str, str]:
    """By engine, what differs. seen: the answers by fingerprint of the module."""
    try:
        assert detect_format(data) is written_in
        module = haloc.load(data)
        key = module_fingerprint(module)
    except Exception as error:
        return dict.fromkeys(ENGINES, one_line(error))
    if key not in seen:
        seen[key] = {e: difference(name, asked, e, partial(RUN[e], module, asked)) for e in ENGINES}
    return seen[key]


def _run_native(module: HloModule, asked: Question) -> list[np.ndarray]:
    client = xla_client.make_cpu_client()
    executable = client.compile_and_load(module, client.local_devices()[:1])
    buffers = [client.buffer_from_pyval(a) for a in asked.arguments]
    return [np.asarray(r) for r in executable.execute(buffers)]


def _run_interpreted(module: HloModule, asked: Question) -> list[np.ndarray]:
    return flat(interpreter.run(module, asked.arguments))


RUN = dict(zip(ENGINES, (_run_native, _run_interpreted)))


def _outcome(key: tuple[str, str, str], told: str) -> str:
    if not told:
        return EQUAL
    if told.startswith(UnimplementedError.__name__):
        return UNSUPPORTED
    return LISTED if key in expected_differences() else DIFFERS


# --- The table ---------------------------------------------------------------------------------


def examine_all(names: Iterable[tuple[str, str]], processes: int) -> list[Verdict]:
    """Verdicts on (mode, harness) pairs, several at a time; tells what differs as it goes."""
    found: list[Verdict] = []
    chosen = list(names)
    context = get_context("spawn")  # JAX and haloc have threads, which a fork would lose
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_settle) as pool:
        done = pool.map(_examine_pair, chosen, chunksize=16)
        for number, verdicts in enumerate(done, 1):
            for v in verdicts:
                if v.outcome in (UNSUPPORTED, DIFFERS):
                    print(v.mode, v.format, v.engine, v.name, v.told[:300], sep=" | ", flush=True)
            found += verdicts
            if number % 500 == 0:
                print(f"{number} of {len(chosen)}", file=sys.stderr, flush=True)
    return found


def _settle() -> None:
    warnings.simplefilter("ignore")  # JAX's deprecations; overflows while arguments are made
    jax.config.update("jax_platforms", "cpu")


def _examine_pair(pair: tuple[str, str]) -> list[Verdict]:
    return examine(*pair)


HEAD = """# Conformance

Written by `python -m tests.conformance.formats --write`; do not edit.

JAX {jax}'s own harnesses of its primitives, each one that jaxlib {jaxlib} runs on CPU: written by
JAX in every format that haloc reads, read back, run, and compared with jaxlib's answer. x64: the
mode of `jax_enable_x64`. Equal: within the tolerances of `tests/conformance/compare.py`. Listed:
differs, and `tests/conformance/harness_differences.txt` says why. Unsupported: an
`UnimplementedError`. Asked here: {asked} of {total} harnesses, both modes counted.

| format | x64 | engine | harnesses | equal | listed | unsupported | differs |
|---|---|---|---|---|---|---|---|
"""


def page(verdicts: list[Verdict]) -> str:
    """The table of counts, and below it what is unsupported or differs, by name."""
    counts = Counter((v.format, v.mode, v.engine, v.outcome) for v in verdicts)
    asked = len({(v.mode, v.name) for v in verdicts})
    total = sum(len(names_of(mode)) for mode in MODES)
    versions = {"jax": jax.__version__, "jaxlib": jaxlib.__version__}
    lines = [HEAD.format(**versions, asked=asked, total=total)]
    for format in (f.value for f in FORMATS):
        for mode in MODES:
            for engine in ENGINES:
                row = [
                    counts[format, mode, engine, o] for o in (EQUAL, LISTED, UNSUPPORTED, DIFFERS)
                ]
                x64 = "on" if mode == "x64" else "off"
                cells = [format, x64, engine, sum(row), *row]
                lines.append(f"| {' | '.join(map(str, cells))} |\n")
    rest = [v for v in verdicts if v.outcome in (UNSUPPORTED, DIFFERS)]
    if rest:
        lines.append(
            "\n## Unsupported, or different\n\n| harness | where | what |\n|---|---|---|\n"
        )
    places: dict[tuple[str, str], list[str]] = {}
    for v in rest:
        places.setdefault((v.name, v.told[:160]), []).append(f"{v.mode} {v.format} {v.engine}")
    for (name, told), where in places.items():
        lines.append(f"| {name} | {', '.join(where)} | {told.replace('|', '&#124;')} |\n")
    return "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--part", default="0/1", help="P/N: every N-th harness, from the P-th")
    parser.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    names = [(mode, name) for mode in MODES for name in names_of(mode)[part::parts]]
    text = page(examine_all(names, options.processes))
    if options.write:
        PAGE.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
