"""`haloc bisect`: name the pass, and the rule, that breaks a program."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from haloc.cli.files import add_input_options, as_arguments, read_inputs, read_program
from haloc.cli.progress import ProgressLine
from haloc.ir.literal import Value
from haloc.ir.module import HloModule
from haloc.passes.pipelines import PIPELINES
from haloc.triage.bisect import Culprit, bisect, wrong_results
from haloc.triage.divergence import Side, compare_outputs, first_divergence, table
from haloc.triage.engine import INTERPRETER, NATIVE, random_values
from haloc.triage.failures import Command
from haloc.verifier import verify

_COLOURS = {"-": "\x1b[31m", "+": "\x1b[32m", "@": "\x1b[36m"}


def run(argv: Sequence[str]) -> int:
    """Exit code 1 when nothing is found to be wrong."""
    options = _parser().parse_args(argv)
    module = read_program(options.file, dict(options.size))
    verify(module)
    if options.input:
        arguments = as_arguments(read_inputs(options, module), module)
    else:
        arguments = random_values([p.shape for p in module.entry.parameters], options.seed)
    if options.test:
        command = Command(options.test, options.timeout)
        is_wrong = lambda changed: bool(command(changed, arguments))  # noqa: E731
    else:
        is_wrong = wrong_results(module, arguments)
    with ProgressLine(f"bisecting {module.name}") as line:

        def told(changed: HloModule) -> bool:
            line("running passes", 0, 0)
            return is_wrong(changed)

        culprit = bisect(module, told, PIPELINES[options.pipeline])
    if culprit is not None:
        print(_report(culprit))
        return 0
    print(f"the program is right after all passes of pipeline {options.pipeline}")
    return 1 if options.test else _judge_native(module, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="haloc bisect",
        description="Name the first pass, and the first application of one of its rules, after "
        "which the interpreter gives other results than for the program as it was.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a program in any format; '-' for stdin")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--mismatch", action="store_true", help="the fault is that results differ (the default)"
    )
    what.add_argument(
        "--test", metavar="CMD", help="the fault shows when CMD exits with 0, given HLO text"
    )
    parser.add_argument("--pipeline", choices=sorted(PIPELINES), default="cpu")
    add_input_options(parser)
    parser.add_argument(
        "--timeout", metavar="S", type=float, default=60.0, help="seconds for one CMD (60)"
    )
    return parser


def _report(culprit: Culprit) -> str:
    lines = [
        f"pass {culprit.pass_name} breaks it: number {culprit.changing_pass} of the "
        f"{culprit.changing_passes} that change the program"
    ]
    if culprit.rule:
        lines.append(f"rule {culprit.rule}: rewrite {culprit.rewrite} of the program")
    if culprit.error:
        lines.append(culprit.error)
    coloured = sys.stdout.isatty()
    for line in culprit.diff():
        colour = _COLOURS.get(line[:1], "") if coloured else ""
        lines.append(f"{colour}{line}\x1b[0m" if colour else line)
    return "\n".join(lines)


def _judge_native(module: HloModule, arguments: Sequence[Value]) -> int:
    """Whether code generation is at fault, and from which instruction on."""
    native, oracle = Side(module, NATIVE), Side(module, INTERPRETER)
    rows = compare_outputs(native, oracle, arguments)
    if all(row.difference.ok for row in rows):
        print("and so is native code")
        return 1
    print("native code (A) is not, beside the interpreter (B): the fault is in code generation")
    print(table(rows))
    row, _ = first_divergence(native, oracle, arguments)
    if row is not None:
        print(f"first to differ when every value is kept:\n{table([row])}")
    return 0
