"""`haloc run`: compile and run a program, check it against the interpreter, time it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from haloc import interpreter
from haloc.cli.files import add_input_options, as_arguments, read_inputs, read_program
from haloc.cli.progress import ProgressLine
from haloc.interpreter import NanGuard
from haloc.ir.module import HloModule
from haloc.triage.compare import compare
from haloc.verifier import verify
from haloc.xla_client import (
    Client,
    LoadedExecutable,
    XlaRuntimeError,
    make_cpu_client,
    make_interpreter_client,
)

_CLIENTS: dict[str, Callable[[], Client]] = {
    "cpu": make_cpu_client,
    "interpreter": make_interpreter_client,
}


def run(argv: Sequence[str]) -> int:
    """Exit code 1 when --check finds a difference."""
    options = _parser().parse_args(argv)
    module = read_program(options.file, dict(options.size))
    values = read_inputs(options, module)
    if options.check_nans or options.check_infs:
        verify(module)
        _guard(module, values, options.check_infs)
    client = _CLIENTS[options.backend]()
    started = time.perf_counter()
    executable = _compile(client, module)
    compile_s = time.perf_counter() - started
    outputs, latencies_s = _measure(client, executable, values, options.repeat)
    if not options.quiet:
        for number, output in enumerate(outputs):
            print(f"output {number}: {_brief(output)}")
    print(f"compile {_time_text(compile_s)}; run {_latency_text(latencies_s)}")
    if options.output:
        named: dict[str, Any] = {f"output{i}": o for i, o in enumerate(outputs)}
        np.savez(options.output, **named)
    return _check(module, values, outputs) if options.check else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="haloc run", description="Compile and run a program.", allow_abbrev=False
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help="HLO text or proto, StableHLO text or bytecode, jax.export artifact; '-' for stdin",
    )
    add_input_options(parser)
    parser.add_argument("--check", action="store_true", help="compare with the interpreter")
    parser.add_argument(
        "--check-nans",
        action="store_true",
        help="first, in the interpreter: name the instruction that makes the first NaN",
    )
    parser.add_argument(
        "--check-infs", action="store_true", help="the same for NaNs and infinities"
    )
    parser.add_argument("--repeat", type=_positive, default=1, metavar="N", help="runs to time (1)")
    parser.add_argument("--backend", choices=sorted(_CLIENTS), default="cpu")
    parser.add_argument("-o", "--output", metavar="FILE.npz", help="write the outputs")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print the outputs")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _guard(module: HloModule, values: list[np.ndarray], infinities: bool) -> None:
    """NonFiniteError where the interpreter finds a NaN (or an infinity) made."""
    guard = NanGuard(infinities=infinities)
    with np.errstate(all="ignore"):
        interpreter.run(module, as_arguments(values, module), guard=guard)
    what = "no NaN and no infinity" if infinities else "no NaN"
    print(f"check: {what} made in {guard.checked} steps")


def _compile(client: Client, module: HloModule) -> LoadedExecutable:
    with ProgressLine(f"compiling {module.name}") as line:
        return client.compile_and_load(module, client.devices()[:1], on_progress=line)


def _measure(
    client: Client, executable: LoadedExecutable, values: list[np.ndarray], repeat: int
) -> tuple[list[np.ndarray], list[float]]:
    """(outputs of the first run, seconds of each run). Arguments are made anew for every run: a
    program may take them over."""
    outputs: list[np.ndarray] = []
    latencies_s: list[float] = []
    layouts = executable.get_parameter_layouts()
    for number in range(repeat):
        arguments = [
            client.buffer_from_pyval(value, force_copy=True, device_layout=layout)
            for value, layout in zip(values, layouts, strict=True)
        ]
        started = time.perf_counter()
        results = executable.execute(arguments)
        for result in results:
            result.block_until_ready()
        latencies_s.append(time.perf_counter() - started)
        if number == 0:
            outputs = [np.array(r) for r in results]
    return outputs, latencies_s


def _check(module: HloModule, values: list[np.ndarray], outputs: list[np.ndarray]) -> int:
    oracle = make_interpreter_client()
    try:
        expected, _ = _measure(oracle, _compile(oracle, module), values, 1)
    except XlaRuntimeError as error:
        error.add_note("in the interpreter, while checking the results")
        raise
    failed = False
    for number, (got, wanted) in enumerate(zip(outputs, expected, strict=True)):
        difference = compare(got, wanted)
        verdict = "ok" if difference.ok else "WRONG"
        allowed = f"{difference.tolerance:g} of the largest value" if difference.tolerance else "0"
        print(f"check output {number}: {verdict}, max error {difference.max_error:.3g} ({allowed})")
        failed |= not difference.ok
    if failed:
        print("haloc: the results differ from the interpreter's", file=sys.stderr)
    return 1 if failed else 0


def _brief(array: np.ndarray) -> str:
    text = np.array2string(array, threshold=12, edgeitems=3, precision=6, separator=", ")
    lines = text.splitlines()
    if len(lines) > 8:
        lines = [*lines[:4], "...", *lines[-3:]]
    head = f"{array.dtype}{list(array.shape)}"
    return f"{head} {lines[0]}" if len(lines) == 1 else "\n".join([head, *lines])


def _latency_text(latencies_s: list[float]) -> str:
    if len(latencies_s) == 1:
        return _time_text(latencies_s[0])
    p50, p90 = (float(np.quantile(latencies_s, q)) for q in (0.5, 0.9))
    return (
        f"p50 {_time_text(p50)}, p90 {_time_text(p90)}, min {_time_text(min(latencies_s))} "
        f"({len(latencies_s)} runs)"
    )


def _time_text(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
