"""`bisect`: the first pass, and the first application of a rule, after which a program is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from haloc.errors import InvalidArgumentError
from haloc.formats.hlo_text import PrintOptions, to_text
from haloc.ir.literal import Value
from haloc.ir.module import HloModule
from haloc.passes.driver import PassOptions, PassReport, Pipeline, run_passes
from haloc.passes.pipelines import PIPELINES
from haloc.triage.divergence import compare_arrays
from haloc.triage.engine import INTERPRETER

IsWrong = Callable[[HloModule], bool]
"""Whether a module that came out of some passes shows the fault."""


@dataclass(frozen=True, slots=True)
class Culprit:
    """Who broke the program.

    pass_name: the pass, changing_pass: its number among those that changed the program, of
    `changing_passes`. rule: the rule, when it has rules; rewrite: the number of its application
    among all rewrites. error: what the pass raised, if that is the fault. before, after: the
    program around it (after: None when the pass raised).
    """

    pass_name: str
    changing_pass: int
    changing_passes: int
    before: HloModule
    after: HloModule | None
    rule: str = ""
    rewrite: int = 0
    error: str = ""

    def diff(self) -> list[str]:
        """The lines that changed, as a unified diff."""
        if self.after is None:
            return []
        short = PrintOptions.short()
        before, after = (to_text(m, short).splitlines() for m in (self.before, self.after))
        return list(difflib.unified_diff(before, after, "before", "after", lineterm="", n=2))


@dataclass(slots=True)
class _Outcome:
    module: HloModule
    report: PassReport = field(default_factory=PassReport)
    error: Exception | None = None

    def rewrites(self) -> int:
        return sum(self.report.rule_hits().values())


class _Runs:
    """The pipeline with some fuel, each time from the beginning."""

    def __init__(self, module: HloModule, pipeline: Pipeline, is_wrong: IsWrong):
        self.module = module
        self.pipeline = pipeline
        self.is_wrong = is_wrong

    def run(self, passes: int | None, rewrites: int | None = None) -> _Outcome:
        outcome = _Outcome(self.module.clone())
        options = PassOptions(pass_fuel=passes, rule_fuel=rewrites)
        try:
            run_passes(outcome.module, self.pipeline, options, outcome.report)
        except Exception as error:
            outcome.error = error
        return outcome

    def is_bad(self, outcome: _Outcome) -> bool:
        return outcome.error is not None or self.is_wrong(outcome.module)


def bisect(
    module: HloModule, is_wrong: IsWrong, pipeline: Pipeline | None = None
) -> Culprit | None:
    """The first pass of the pipeline (default: the CPU's) that leaves the program wrong.

    Halves the passes that change something, then the rewrites of the guilty one. None when the
    program is right after all passes: the fault is elsewhere, in code generation. An exception in a
    pass is a fault. Raises InvalidArgumentError when the program is wrong before all passes.
    """
    runs = _Runs(module, pipeline or PIPELINES["cpu"], is_wrong)
    if is_wrong(module.clone()):
        raise InvalidArgumentError(f"{module.name} shows the fault before any pass has run")
    everything = runs.run(None)
    if not runs.is_bad(everything):
        return None
    changing = sum(r.changed for r in everything.report.passes) + (everything.error is not None)
    number = _first_bad(0, changing, lambda n: runs.is_bad(runs.run(n)))
    before, after = runs.run(number - 1), runs.run(number)
    if after.error is not None:
        name = _failing_pass(after.error)
        return Culprit(name, number, changing, before.module, None, error=_first_line(after.error))
    name = [r.name for r in after.report.passes if r.changed][-1]
    low, high = before.rewrites(), after.rewrites()
    if high <= low:
        return Culprit(name, number, changing, before.module, after.module)
    rewrite = _first_bad(low, high, lambda n: runs.is_bad(runs.run(number, n)))
    outer = runs.run(number, rewrite - 1).module if rewrite - 1 > low else before.module
    rules = runs.run(number, rewrite), runs.run(number, rewrite - 1)
    rule = _added(*(r.report.rule_hits() for r in rules))
    return Culprit(name, number, changing, outer, rules[0].module, rule, rewrite)


def _first_bad(good: int, bad: int, is_bad: Callable[[int], bool]) -> int:
    """A number that is bad whose predecessor is good; `good` and `bad` are known to be so."""
    while bad - good > 1:
        middle = (good + bad) // 2
        if is_bad(middle):
            bad = middle
        else:
            good = middle
    return bad


def _added(after: dict[str, int], before: dict[str, int]) -> str:
    """The rule that fired once more."""
    return next((r for r, hits in after.items() if hits > before.get(r, 0)), "")


def _failing_pass(error: Exception) -> str:
    """From the note that the driver adds: "in pass 'cse' (pass 3 of 20)"."""
    for note in getattr(error, "__notes__", ()):
        for prefix in ("in pass '", "after pass '"):
            if note.startswith(prefix):
                return note.removeprefix(prefix).partition("'")[0]
    return "?"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def wrong_results(module: HloModule, arguments: Sequence[Value]) -> IsWrong:
    """Whether the interpreter's results are others than for `module`, or it fails."""
    wanted = INTERPRETER.run(module, arguments)

    def is_wrong(changed: HloModule) -> bool:
        try:
            got = INTERPRETER.run(changed, arguments)
        except Exception:  # a module that cannot be run is wrong
            return True
        return not all(d.ok for d in compare_arrays(got, wanted))

    return is_wrong
