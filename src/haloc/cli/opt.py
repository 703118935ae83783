"""`haloc opt`: run passes on a program and print what comes out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from haloc.cli.files import read_program
from haloc.errors import InvalidArgumentError
from haloc.flags import Flags
from haloc.formats.hlo_text import PrintOptions, to_text
from haloc.ir.module import HloModule
from haloc.passes.driver import PASSES, PassOptions, PassReport, Pipeline, run_passes
from haloc.passes.pipelines import PIPELINES
from haloc.verifier import verify


def run(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    if options.list_passes:
        print(_listed())
        return 0
    if options.file is None:
        raise InvalidArgumentError("no FILE given; see haloc opt --help")
    module = read_program(options.file)
    verify(module)
    report = PassReport()
    dump = _show if options.print_after_change or Flags.from_environment().debug >= 5 else None
    pass_options = PassOptions(
        disable=options.disable, pass_fuel=options.pass_fuel, verify=True, dump=dump
    )
    try:
        run_passes(module, _pipeline(options), pass_options, report)
    finally:
        if options.time_passes or Flags.from_environment().debug >= 3:
            print(report, file=sys.stderr)
    text = to_text(module, PrintOptions.short() if options.short else PrintOptions())
    if options.output:
        Path(options.output).write_text(text)
    else:
        sys.stdout.write(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="haloc opt", description="Run passes on an HLO program.", allow_abbrev=False
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="a program in any format; '-' for stdin"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--passes", metavar="A,B", help="these passes, in order, once each")
    what.add_argument("--pipeline", choices=sorted(PIPELINES), help="a whole pipeline (cpu)")
    what.add_argument("--list-passes", action="store_true", help="list passes and pipelines")
    parser.add_argument("--disable", metavar="REGEX", default="", help="passes to leave out")
    parser.add_argument(
        "--pass-fuel", type=int, metavar="N", help="stop after N passes that change something"
    )
    parser.add_argument(
        "--print-after-change", action="store_true", help="show the program after each change"
    )
    parser.add_argument("--time-passes", action="store_true", help="time of each pass, on stderr")
    parser.add_argument("--short", action="store_true", help="leave out layouts and metadata")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the result there")
    return parser


def _pipeline(options: argparse.Namespace) -> Pipeline:
    if options.passes is None:
        return PIPELINES[options.pipeline or "cpu"]
    return [name.strip() for name in options.passes.split(",") if name.strip()]


def _show(step: int, name: str, module: HloModule) -> None:
    title = f"after {name} (step {step})" if step else "before all passes"
    print(f"// --- {title} ---")
    print(to_text(module, PrintOptions.short()))


def _listed() -> str:
    width = max(map(len, PASSES))
    lines = [f"{p.name:{width}}  {p.equation}" for _, p in sorted(PASSES.items())]
    pipelines = [f"{name:{width}}  pipeline of {len(p)} steps" for name, p in PIPELINES.items()]
    return "\n".join([*lines, "", *pipelines])
