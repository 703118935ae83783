"""The pass and the rule that break a program are named, with what they changed."""

from __future__ import annotations

import pytest

from haloc.errors import InvalidArgumentError
from haloc.formats.hlo_text import parse_module
from haloc.ir.module import HloInstruction
from haloc.passes.driver import PASSES, HloPass
from haloc.triage.bisect import bisect, wrong_results
from haloc.triage.engine import random_values
from tests.triage.faults import PROGRAM, broken_rule


@pytest.fixture
def module():
    return parse_module(PROGRAM)


@pytest.fixture
def is_wrong(module):
    return wrong_results(module, random_values([p.shape for p in module.entry.parameters], 0))


def test_a_right_program(module, is_wrong):
    assert bisect(module, is_wrong) is None


def test_the_rule(module, is_wrong):
    with broken_rule():
        culprit = bisect(module, is_wrong)
    assert (culprit.pass_name, culprit.rule) == ("algebraic-simplifier", "broken")
    assert 1 <= culprit.changing_pass <= culprit.changing_passes
    removed = [line for line in culprit.diff()[2:] if line.startswith("-")]
    added = [line for line in culprit.diff()[2:] if line.startswith("+")]
    assert len(removed) >= 1 and " atan2(" in removed[0]
    assert len(added) >= 1 and " subtract(" in added[0]


def test_a_rule_that_fires_late_among_others():
    """Only one of many rewrites is wrong: the number is that rewrite's."""
    lines = [f"n{k} = f32[4] negate({'x' if k == 0 else f'n{k - 1}'})" for k in range(20)]
    text = "ENTRY e { x = f32[4] parameter(0)\n" + "\n".join(lines)
    text += "\na = f32[4] atan2(n19, x)\nROOT r = f32[4] add(a, n18) }"
    module = parse_module(text)
    arguments = random_values([p.shape for p in module.entry.parameters], 0)
    with broken_rule():
        culprit = bisect(module, wrong_results(module, arguments))
    assert culprit.rule == "broken" and culprit.rewrite >= 2
    assert not any("negate" in line for line in culprit.diff()[2:] if line.startswith("+"))


def test_a_pass_without_rules(module, is_wrong, monkeypatch):
    def negate_first_result(module):
        root = module.entry.root
        first = root.operands[0]
        if first.opcode == "negate":
            return False
        negated = module.entry.add(HloInstruction("negate", first.shape, [first]))
        module.entry.root = root.replace(operands=[negated, *root.operands[1:]])
        return True

    wrong = HloPass("cse", negate_first_result, {}, "x => -x")
    monkeypatch.setitem(PASSES, "cse", wrong)
    culprit = bisect(module, is_wrong, ["dce", "cse", "dce"])
    assert culprit.pass_name == "cse" and not culprit.rule
    assert any("negate" in line for line in culprit.diff() if line.startswith("+"))


def test_a_pass_that_fails(module, is_wrong, monkeypatch):
    def fail(module):
        raise KeyError("lost")

    monkeypatch.setitem(PASSES, "cse", HloPass("cse", fail, {}, "x => x"))
    culprit = bisect(module, is_wrong)
    assert culprit.pass_name == "cse" and culprit.error == "KeyError: 'lost'"
    assert culprit.after is None and culprit.diff() == []


def test_wrong_from_the_start(module):
    with pytest.raises(InvalidArgumentError, match="shows the fault before any pass"):
        bisect(module, lambda m: True)
