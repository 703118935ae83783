"""`haloc diff-run`: run two programs, or one in two ways, on the same inputs; show where they part.

Exit code 1 when an output differs by more than rounding explains.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from haloc.cli.files import add_input_options, as_arguments, read_inputs, read_program
from haloc.errors import InvalidArgumentError
from haloc.formats.quote import quoted, source_of
from haloc.interpreter.trace import traced_name
from haloc.ir.module import HloModule
from haloc.triage.divergence import Row, Side, compare_outputs, first_divergence, table
from haloc.triage.engine import INTERPRETER, NATIVE, parse_engine
from haloc.verifier import verify

_WAYS = """\
ways to run:
  native              machine code, as haloc run makes it
  native:O0           with LLVM's optimisation level 0 (to 3)
  native:-fusion      without a pass (haloc opt --list-passes has the names)
  interpreter         NumPy, instruction by instruction
  passes              the interpreter, after all passes
  passes:cse,dce      the interpreter, after these passes
  passes:-fusion      the interpreter, after all passes but one

Two programs both run natively unless told otherwise; one program runs natively as A and in the
interpreter as B.
"""


def run(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    a = Side(read_program(options.a, dict(options.size)), parse_engine(options.run_a or "native"))
    default_b = NATIVE if options.b else INTERPRETER
    engine_b = parse_engine(options.run_b) if options.run_b else default_b
    module_b = read_program(options.b, dict(options.size)) if options.b else a.module
    b = Side(module_b, engine_b)
    for side in (a, b):
        verify(side.module)
    _check_parameters(a.module, b.module)
    arguments = as_arguments(read_inputs(options, a.module), a.module)
    rows = compare_outputs(a, b, arguments)
    print(f"A: {options.a}, {a.engine}\nB: {options.b or options.a}, {b.engine}")
    print(table(rows))
    if all(row.difference.ok for row in rows):
        return 0
    if not options.outputs_only:
        row, compared = first_divergence(a, b, arguments)
        print(_first_text(a, b, row, compared))
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="haloc diff-run",
        description="Run two programs, or one in two ways, on the same inputs, and show where the "
        "results part: outputs, and the first instruction of a common name that differs.",
        epilog=_WAYS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("a", metavar="A", help="a program in any format; '-' for stdin")
    parser.add_argument("b", metavar="B", nargs="?", help="another; without it, A in another way")
    parser.add_argument("--run-a", metavar="WAY", help="how to run A (native)")
    parser.add_argument(
        "--run-b", metavar="WAY", help="how to run B (native; without B, see below)"
    )
    add_input_options(parser)
    parser.add_argument(
        "--outputs-only", action="store_true", help="do not look for the first instruction"
    )
    return parser


def _check_parameters(a: HloModule, b: HloModule) -> None:
    shapes = [[p.shape.to_string(False) for p in m.entry.parameters] for m in (a, b)]
    if shapes[0] != shapes[1]:
        raise InvalidArgumentError(
            f"the programs take different parameters: A {', '.join(shapes[0]) or 'none'}; "
            f"B {', '.join(shapes[1]) or 'none'}"
        )


def _first_text(a: Side, b: Side, row: Row | None, compared: int) -> str:
    """What is known of the first instruction that differs."""
    native = "native" in (a.engine.kind, b.engine.kind)
    how = "  (native code was compiled again, to keep every value)" if native else ""
    if row is None:
        if not compared:
            return "no intermediate value goes by the same name in both"
        return f"the {compared} intermediate values of common names agree{how}"
    lines = [f"first to differ, of values of common names{how}:", table([row])]
    name = row.name.partition("[")[0]
    for side, label in ((a, "A"), (b, "B")):
        for instruction in side.engine.prepared(side.module).instructions():
            if traced_name(instruction) == name:
                source = source_of(instruction)
                place = f"  ({source})" if source else ""
                lines.append(f"{label}: {quoted(instruction)}{place}")
    return "\n".join(lines)
