"""The pass driver: registry, pipelines as lists, timing, dumps, fuel, and distrust of passes.

A pass is a function `module -> changed` under `@hlo_pass("its-name")`; options are keyword-only.
A pipeline is a list of pass names and `Fixpoint`s. What the driver offers is in `PassOptions`,
what it measured in `PassReport`.
"""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from haloc.analysis.equality import module_fingerprint
from haloc.errors import InternalError, InvalidArgumentError, NotFoundError
from haloc.ir.module import HloModule
from haloc.passes.fuel import Fuel
from haloc.passes.shuffle import shuffle_instructions
from haloc.verifier import verify

PassFunction: TypeAlias = Callable[..., bool]


@dataclass(frozen=True, slots=True)
class HloPass:
    """A registered pass. options: its keyword-only arguments with their defaults.

    equation: the docstring's first line.
    """

    name: str
    run: PassFunction
    options: Mapping[str, Any]
    equation: str


PASSES: dict[str, HloPass] = {}
"""Every pass by name. Filled by the modules that `haloc.passes.pipelines` imports."""


def hlo_pass(name: str) -> Callable[[PassFunction], PassFunction]:
    """Register a pass. Its docstring must begin with the equation it applies."""

    def register(function: PassFunction) -> PassFunction:
        assert name not in PASSES, name
        equation = (function.__doc__ or "").strip().partition("\n")[0]
        assert equation, f"pass {name} has no equation"
        parameters = list(inspect.signature(function).parameters.values())[1:]
        assert all(p.kind is p.KEYWORD_ONLY for p in parameters), name
        options = {p.name: p.default for p in parameters}
        PASSES[name] = HloPass(name, function, options, equation)
        return function

    return register


@dataclass(frozen=True)
class Fixpoint:
    """Run these passes in turn until none of them changes anything."""

    names: tuple[str, ...]
    limit: int

    def __init__(self, *names: str, limit: int = 40):
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "limit", limit)


Pipeline: TypeAlias = "list[str | Fixpoint]"


@dataclass(frozen=True)
class Before:
    """Wherever both stand in a pipeline, every `first` stands before every `second`."""

    first: str
    second: str
    why: str = field(kw_only=True)


def check_order(pipelines: Mapping[str, Pipeline], order: list[Before]) -> None:
    """Raise InternalError for a pass that does not exist or an order constraint that is broken."""
    for constraint in order:
        for name in (constraint.first, constraint.second):
            if name not in PASSES:
                raise InternalError(f"order constraint names the unknown pass {name!r}")
    for pipeline_name, pipeline in pipelines.items():
        steps = [s.names if isinstance(s, Fixpoint) else (s,) for s in pipeline]
        for name in (n for names in steps for n in names):
            if name not in PASSES:
                raise InternalError(f"pipeline {pipeline_name!r} lists the unknown pass {name!r}")
        for c in order:
            last_first = max((i for i, s in enumerate(steps) if c.first in s), default=-1)
            first_second = min(
                (i for i, s in enumerate(steps) if c.second in s), default=len(steps)
            )
            if last_first >= first_second:
                raise InternalError(
                    f"pipeline {pipeline_name!r}: {c.first} must come before {c.second}: {c.why}"
                )


Dump: TypeAlias = Callable[[int, str, HloModule], None]
"""(step number, pass name, module after it). Step 0 is the module before all passes."""


@dataclass(kw_only=True)
class PassOptions:
    """How to run a pipeline.

    enable, disable: regular expressions on whole pass names; a pass runs when `enable` matches
        (empty: all do) and `disable` does not.
    pass_options: keyword arguments by pass name.
    pass_fuel: passes that may change the module; later ones are skipped. rule_fuel: rewrites that
        passes with rules may make, over the whole pipeline. None: no limit.
    disabled_rules: regular expression on rule names.
    verify: verify the module before the pipeline and after each pass that changed it.
    check: for tests: verify, compare each pass's claim with what it did, and shuffle independent
        instructions (by `seed`) before each pass.
    dump: called before the first pass and after each pass that changed the module.
    """

    enable: str = ""
    disable: str = ""
    pass_options: dict[str, dict[str, Any]] = field(default_factory=dict)
    pass_fuel: int | None = None
    rule_fuel: int | None = None
    disabled_rules: str = ""
    verify: bool = False
    check: bool = False
    seed: int = 0
    dump: Dump | None = None


@dataclass(slots=True)
class PassRecord:
    """One run of one pass. Counts are instructions in reachable computations, taken only after
    changes; rule_hits: how often each rule fired."""

    name: str
    time_s: float
    changed: bool
    instructions_before: int
    instructions_after: int
    rule_hits: dict[str, int]


@dataclass(slots=True)
class PassReport:
    """What a pipeline did, pass by pass, in order."""

    passes: list[PassRecord] = field(default_factory=list)
    time_s: float = 0.0

    def rule_hits(self) -> dict[str, int]:
        """Hits of every rule over the whole pipeline."""
        total: dict[str, int] = {}
        for record in self.passes:
            for rule, hits in record.rule_hits.items():
                total[rule] = total.get(rule, 0) + hits
        return total

    def __str__(self) -> str:
        lines = [f"{'pass':32} {'ms':>9}  {'instructions':>16}"]
        for r in self.passes:
            change = f"{r.instructions_before} -> {r.instructions_after}" if r.changed else "-"
            lines.append(f"{r.name:32} {r.time_s * 1e3:9.2f}  {change:>16}")
        return "\n".join([*lines, f"{'all':32} {self.time_s * 1e3:9.2f}"])


class PassRunner:
    """Runs steps on one module under one set of options; keeps the report."""

    def __init__(self, module: HloModule, options: PassOptions, report: PassReport, total: int):
        self.module = module
        self.options = options
        self.report = report
        self.total = total
        self.fuel = Fuel(options.rule_fuel, options.disabled_rules)
        self.pass_fuel = options.pass_fuel
        self.version = 0  # counts changes, so that a fixpoint need not re-run idle passes
        self._enable = re.compile(options.enable) if options.enable else None
        self._disable = re.compile(options.disable) if options.disable else None
        self._count = instruction_count(module)

    def is_enabled(self, name: str) -> bool:
        if self._enable and not self._enable.fullmatch(name):
            return False
        return not (self._disable and self._disable.fullmatch(name))

    def step(self, position: int, step: str | Fixpoint) -> None:
        if isinstance(step, Fixpoint):
            self.fixpoint(position, step)
        elif self.is_enabled(step):
            self.run(position, step)

    def fixpoint(self, position: int, step: Fixpoint) -> None:
        names = [n for n in step.names if self.is_enabled(n)]
        idle_at: dict[str, int] = {}
        changing: list[str] = []
        for _ in range(step.limit):
            changing = []
            for name in names:
                if idle_at.get(name) == self.version:
                    continue
                if self.run(position, name):
                    changing.append(name)
                else:
                    idle_at[name] = self.version
            if not changing:
                return
        rules = {r: n for p in self.report.passes[-len(names) :] for r, n in p.rule_hits.items()}
        raise InternalError(
            f"passes {', '.join(changing)} still change the module after {step.limit} rounds"
            + (f"; rules of the last round: {rules}" if rules else "")
        )

    def run(self, position: int, name: str) -> bool:
        """Run one pass, with every check that the options ask for; whether it changed anything."""
        if self.pass_fuel is not None and self.pass_fuel <= 0:
            return False
        hlo = _pass(name)
        if self.options.check and not self.module.header.get("is_scheduled"):
            shuffle_instructions(self.module, self.options.seed + len(self.report.passes))
        before = module_fingerprint(self.module) if self.options.check else ""
        self.fuel.start_pass()
        started = time.perf_counter()
        with _note(f"in pass {name!r} (pass {position} of {self.total})"):
            changed = hlo.run(self.module, **self._arguments(hlo))
            self.module.sort()
        elapsed = time.perf_counter() - started
        count = instruction_count(self.module) if changed else self._count
        self.report.passes.append(
            PassRecord(name, elapsed, changed, self._count, count, dict(self.fuel.hits))
        )
        self._count = count
        with _note(f"after pass {name!r} (pass {position} of {self.total})"):
            self._judge(name, changed, before)
        if changed:
            self.version += 1
            if self.pass_fuel is not None:
                self.pass_fuel -= 1
            if self.options.dump:
                self.options.dump(len(self.report.passes), name, self.module)
        return changed

    def _arguments(self, hlo: HloPass) -> dict[str, Any]:
        given = self.options.pass_options.get(hlo.name, {})
        for key in given:
            if key not in hlo.options:
                known = ", ".join(hlo.options) or "none"
                raise InvalidArgumentError(
                    f"pass {hlo.name} has no option {key!r}; it has: {known}"
                )
        if "fuel" in hlo.options:
            return {"fuel": self.fuel, **given}
        return given

    def _judge(self, name: str, changed: bool, before: str) -> None:
        if self.options.check:
            really = module_fingerprint(self.module) != before
            if really != changed:
                raise InternalError(f"pass {name} reported changed={changed}, but {really} is true")
        if changed and (self.options.verify or self.options.check):
            verify(self.module)


def instruction_count(module: HloModule) -> int:
    return sum(len(c) for c in module.computations.values())


def _pass(name: str) -> HloPass:
    try:
        return PASSES[name]
    except KeyError:
        known = ", ".join(sorted(PASSES))
        raise NotFoundError(f"no pass named {name!r}; there are: {known}") from None


@contextmanager
def _note(text: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(text)
        raise


def run_passes(
    module: HloModule,
    pipeline: Pipeline,
    options: PassOptions | None = None,
    report: PassReport | None = None,
) -> PassReport:
    """Run the steps in order on `module`, in place; returns `report`, or a new one, filled.

    Raises NotFoundError for an unknown pass, what a pass raises (with a note that names the pass),
    and InternalError for a fixpoint that does not settle or a pass caught lying.
    """
    options = options or PassOptions()
    report = report if report is not None else PassReport()
    started = time.perf_counter()
    if options.verify or options.check:
        verify(module)
    runner = PassRunner(module, options, report, len(pipeline))
    if options.dump:
        options.dump(0, "before-passes", module)
    for position, step in enumerate(pipeline, 1):
        runner.step(position, step)
    report.time_s += time.perf_counter() - started
    return report
