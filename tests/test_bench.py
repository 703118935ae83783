"""The bench's report: ratios, what falls short, what failed; every case is there to be measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from bench import report
from bench.cases import all_cases
from bench.machine import CACHED_BYTES, Rates, set_floors
from bench.measure import difference
from bench.row import HALOC, JAXLIB, NUMPY, TORCH, Row


def row(name: str, haloc: float, jaxlib: float, **facts) -> Row:
    times = {HALOC: haloc, JAXLIB: jaxlib}
    return Row("family", name, best=dict(times), median=dict(times), cold=dict(times), **facts)


FACTS = {
    "cpu": "a CPU",
    "threads": 2,
    "load": 0.0,
    "python": "3",
    "versions": {"jaxlib": "1"},
    "rates": {"read": 1e9, "write": 1e9},
    "peaks": {"f32": 1e9},
}


def test_every_case_has_a_name_of_its_own_and_a_family():
    labels = [f"{case.family}: {case.name}" for case in all_cases()]
    assert len(labels) == len(set(labels)) > 100


def test_ratios_count_only_sides_with_the_same_results():
    good = row("good", 1.0, 3.0)
    good.best[TORCH], good.best[NUMPY] = 2.0, 0.5
    good.wrong.append(NUMPY)
    assert good.ratio(JAXLIB) == 3.0
    assert good.ratio(NUMPY) is None
    assert good.best_peer_ratio() == 2.0
    wrong = row("wrong", 1.0, 3.0, wrong=[HALOC])
    assert wrong.ratio(JAXLIB) is None and not wrong.is_right


def test_floors_are_of_bytes_for_large_cases_and_of_arithmetic_for_others():
    large = row("large", 1.0, 1.0, read_bytes=CACHED_BYTES, written_bytes=0)
    small = row("small", 1.0, 1.0, read_bytes=8, flops=4e9)
    free = row("free", 1.0, 1.0, read_bytes=CACHED_BYTES, has_floor=False)
    peaks = set_floors([large, small, free], Rates(read=CACHED_BYTES * 2, write=1.0), {"f32": 8e9})
    assert large.floor == 0.5
    assert small.floor == 0.5 and peaks["f32"] == 8e9
    assert free.floor is None


def test_the_fastest_side_sets_the_peak():
    assert set_floors([row("r", 2.0, 1.0, flops=6.0)], Rates(1.0, 1.0), {"f32": 1.0}) == {"f32": 6}


def test_difference_sees_shapes_types_and_nans():
    one = [np.array([3.0, 4.0], np.float32)]
    assert difference(one, one, True) == 0
    assert difference([np.array([3.0, 4.5], np.float32)], one, True) == pytest.approx(0.1)
    assert difference([np.array([3.0, np.nan], np.float32)], one, True) == float("inf")
    assert difference([np.array([3.0, 4.0])], one, True) == float("inf")
    assert difference([np.array([3.0, 4.0])], one, False) == 0
    assert difference([], one, True) == float("inf")


def test_what_fails_and_what_is_wrong_is_reported(tmp_path: Path):
    rows = [
        row("fast", 1.0, 2.0),
        row("slow", 2.0, 1.0),
        row("differs", 1.0, 1.0, error={HALOC: 0.25}, wrong=[HALOC]),
        Row("family", "crashes", failure={"process": "the process ended (exit code -11)"}),
    ]
    (tmp_path / "bench").mkdir()
    for path in (tmp_path / "README.md", tmp_path / "bench" / "README.md"):
        path.write_text("before\n<!-- bench -->\nstale\n<!-- /bench -->\nafter\n")
    report.write(rows, FACTS, tmp_path)
    top = (tmp_path / "README.md").read_text()
    assert top.startswith("before\n") and top.endswith("\nafter\n") and "stale" not in top
    assert "| family | 4 | 1.00 |" in top
    assert "differs (WRONG: 2.5e-01)" in top and "exit code -11" in top
    full = (tmp_path / "bench" / "README.md").read_text()
    assert "| slow | 0.50 of jaxlib; cold compile 0.50 | not looked into yet |" in full
    assert "| fast |" in full.partition("What falls short")[0]
    assert "| fast |" not in full.partition("What falls short")[2]
    assert len(json.loads((tmp_path / "bench" / "results.json").read_text())["rows"]) == 4
