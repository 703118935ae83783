"""The process that measures: what crashes or hangs in a case ends this one, not the bench."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from bench.machine import Rates, measured_peaks, measured_rates
from bench.row import Row


@dataclass(frozen=True)
class Settings:
    """cache: an empty folder. budget_s: how long the sides of a case run in turn."""

    cache: Path
    budget_s: float
    threads: int


@dataclass(frozen=True)
class Greeting:
    """What a worker says first. names: (family, name) of each case. peaks: flop/s by type."""

    names: list[tuple[str, str]]
    rates: Rates
    peaks: dict[str, float]


def serve(link: Connection, settings: Settings) -> None:
    """Send a greeting, then the row of each number received, until None."""
    from bench.cases import all_cases  # noqa: PLC0415 (only who measures imports JAX)
    from bench.measure import Bench  # noqa: PLC0415

    cases = all_cases()
    names = [(case.family, case.name) for case in cases]
    link.send(Greeting(names, measured_rates(settings.threads), measured_peaks()))
    bench = Bench(settings.cache, settings.budget_s, settings.threads)
    while (number := link.recv()) is not None:
        try:
            link.send(bench.measure(cases[number]))
        except Exception as error:  # JAX itself, making the program
            case = cases[number]
            row = Row(case.family, case.name)
            row.failure["process"] = f"{type(error).__name__}: {error}"[:500]
            link.send(row)


class Worker:
    """A process that `serve`s, replaced by another when it has ended."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._link, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self._settings), daemon=True)
        self._process.start()
        theirs.close()
        self.greeting: Greeting = self._link.recv()

    def rows(self, numbers: list[int], limit_s: float) -> Iterator[Row]:
        """The row of each case. limit_s: after which a case is given up."""
        for number in numbers:
            try:
                self._link.send(number)
                if not self._link.poll(limit_s):
                    raise TimeoutError(f"no result after {limit_s:.0f} s")
                yield self._link.recv()
            except (EOFError, OSError, TimeoutError) as error:
                self._process.kill()
                self._process.join()
                row = Row(*self.greeting.names[number])
                what = str(error) if isinstance(error, TimeoutError) else "the process ended"
                row.failure["process"] = f"{what} (exit code {self._process.exitcode})"
                print(f"{row.name}: {row.failure['process']}", file=sys.stderr)
                yield row
                self._start()

    def close(self) -> None:
        self._link.send(None)
        self._process.join(10)
