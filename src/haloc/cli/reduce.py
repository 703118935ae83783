"""`haloc reduce`: the smallest program that still shows a fault."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from haloc.cli.files import add_input_options, as_arguments, read_inputs, read_program
from haloc.cli.progress import ProgressLine
from haloc.errors import InvalidArgumentError
from haloc.formats.hlo_text import to_text
from haloc.ir.literal import Value
from haloc.ir.module import HloModule
from haloc.triage.edits import Program
from haloc.triage.engine import array_leaves, parse_engine, random_values
from haloc.triage.failures import Command, Crash, Mismatch
from haloc.triage.reduce import Failure, reduced
from haloc.triage.worker import Isolated

_EXAMPLES = """\
examples:
  haloc reduce big.hlo --mismatch -o small.hlo
  haloc reduce big.hlo --crash --run native:O0
  haloc reduce big.hlo --test 'sh -c "haloc opt {} 2>&1 | grep -q \\"does not settle\\""'

The command of --test exits with 0 when the program it is given shows the fault. Inputs are random
unless given. Small arguments become constants of the result; larger ones are written beside it.
"""


def run(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    module = read_program(options.file, dict(options.size))
    arguments = _arguments(options, module)
    with _failure(options) as failure, ProgressLine(f"reducing {module.name}") as line:

        def on_step(tried: int, program: Program) -> None:
            line(f"{tried} programs tried, {program.size[0]} operations", 0, 0)

        before = Program(module, arguments)
        after = reduced(module, arguments, failure, on_step=on_step)
        told = failure(after.module.clone(), after.arguments)
        needs_inputs = _needs_inputs(failure, after, told, options.seed)
    text = to_text(after.module)
    if options.output:
        Path(options.output).write_text(text)
    else:
        sys.stdout.write(text)
    print(f"haloc: {told}: {_sizes(before)} became {_sizes(after)}", file=sys.stderr)
    if needs_inputs and not options.test:
        print(_inputs_note(after, options.output), file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="haloc reduce",
        description="Make a program that shows a fault as small as it gets, and print it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a program in any format; '-' for stdin")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--test", metavar="CMD", help="the fault shows when CMD FILE exits with 0")
    what.add_argument(
        "--mismatch", action="store_true", help="the results are not the interpreter's"
    )
    what.add_argument(
        "--crash",
        action="store_true",
        help="the process dies or hangs, or there is an error that is haloc's own",
    )
    parser.add_argument(
        "--run", metavar="WAY", default="native", help="how to run it; see haloc diff-run (native)"
    )
    add_input_options(parser)
    parser.add_argument(
        "--timeout", metavar="S", type=float, default=60.0, help="seconds for one program (60)"
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="write the result there")
    return parser


def _arguments(options: argparse.Namespace, module: HloModule) -> list[Value]:
    if options.input:
        return as_arguments(read_inputs(options, module), module)
    return random_values([p.shape for p in module.entry.parameters], options.seed)


@contextmanager
def _failure(options: argparse.Namespace) -> Iterator[Failure]:
    if options.test:
        yield Command(options.test, options.timeout)
        return
    engine = parse_engine(options.run)
    kind = Crash(engine) if options.crash else Mismatch(engine)
    with Isolated(kind, timeout_s=options.timeout, deaths_count=options.crash) as isolated:
        yield isolated


def _needs_inputs(failure: Failure, program: Program, told: str, seed: int) -> bool:
    """Whether `haloc run --random` would not show the fault."""
    shapes = [p.shape for p in program.module.entry.parameters]
    return failure(program.module.clone(), random_values(shapes, seed)) != told


def _inputs_note(program: Program, output: str | None) -> str:
    """Writes the arguments beside the program, and says how to give them."""
    if output is None:
        return "haloc: it shows only with certain inputs; with -o OUT they are written beside it"
    path = Path(output).with_suffix(".npz")
    if path == Path(output):
        raise InvalidArgumentError(f"{output}: the inputs would be written to the same file")
    leaves = array_leaves(tuple(program.arguments))
    named: dict[str, Any] = {f"argument{n}": np.asarray(leaf) for n, leaf in enumerate(leaves)}
    np.savez(path, **named)
    return f"haloc: it shows with the inputs in {path}: haloc run {output} -i {path} --check"


def _sizes(program: Program) -> str:
    operations, elements, _ = program.size
    return (
        f"{operations} operation{'s' * (operations != 1)} on "
        f"{elements:,} element{'s' * (elements != 1)}"
    )
