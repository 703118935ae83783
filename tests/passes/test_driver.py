"""The driver: registry, order, fixpoints, fuel, checks, notes, dumps."""

import pytest

from haloc.errors import HloError, InternalError, InvalidArgumentError, NotFoundError
from haloc.formats.hlo_text import parse_module, to_text
from haloc.passes import driver
from haloc.passes.driver import (
    PASSES,
    Before,
    Fixpoint,
    PassOptions,
    check_order,
    hlo_pass,
    run_passes,
)
from haloc.passes.pipelines import PIPELINES, run_pipeline

TEXT = """
HloModule m

ENTRY main {
  x = f32[4] parameter(0)
  one = f32[] constant(1)
  ones = f32[4] broadcast(one), dimensions={}
  a = f32[4] multiply(x, ones)
  n = f32[4] negate(a)
  m = f32[4] negate(n)
  ROOT r = f32[4] abs(m)
}
"""


@pytest.fixture
def module():
    return parse_module(TEXT)


@pytest.fixture
def temporary_passes(monkeypatch):
    monkeypatch.setattr(driver, "PASSES", dict(PASSES))


def test_pipeline_simplifies_and_reports(module):
    report = run_pipeline(module, "cpu", PassOptions(check=True))
    assert [i.opcode for i in module.entry.instructions] == ["parameter", "abs"]
    assert report.rule_hits() == {"multiply-by-one": 1, "involution": 1}
    simplifier = next(r for r in report.passes if r.name == "algebraic-simplifier")
    assert simplifier.changed
    assert (simplifier.instructions_before, simplifier.instructions_after) == (7, 2)
    assert report.time_s >= sum(r.time_s for r in report.passes)
    assert "7 -> 2" in str(report)


def test_every_pass_begins_with_its_equation():
    for hlo in PASSES.values():
        assert "=>" in hlo.equation, hlo.name


def test_unknown_names(module):
    with pytest.raises(NotFoundError, match="no pipeline named 'gpuu'; there are: canonical, cpu"):
        run_pipeline(module, "gpuu")
    with pytest.raises(NotFoundError, match=r"no pass named 'dcee'; there are: .*\bdce\b"):
        run_passes(module, ["dcee"])


def test_unknown_option(module):
    options = PassOptions(pass_options={"constant-folding": {"max_byte": 1}})
    with pytest.raises(InvalidArgumentError, match="has no option 'max_byte'; it has: max_bytes"):
        run_passes(module, ["constant-folding"], options)


def test_options_reach_the_pass():
    text = """
HloModule m

ENTRY main {
  a = s32[1,4] constant({ {1, 2, 3, 4} })
  ROOT r = s32[4,4] dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
"""
    for limit, folded in ((8, False), (4096, True)):
        module = parse_module(text)
        options = PassOptions(pass_options={"constant-folding": {"max_bytes": limit}})
        run_passes(module, ["constant-folding"], options)
        assert (module.entry.root.opcode == "constant") is folded


def test_disable_and_enable_by_regular_expression(module):
    report = run_pipeline(module, "cpu", PassOptions(disable="algebraic.*|fusion"))
    assert not {"algebraic-simplifier", "fusion"} & {r.name for r in report.passes}
    report = run_pipeline(module, "cpu", PassOptions(enable="cse|dce"))
    assert {r.name for r in report.passes} == {"cse", "dce"}


def test_rule_fuel_and_disabled_rules(module):
    report = run_pipeline(module, "cpu", PassOptions(rule_fuel=1))
    assert sum(report.rule_hits().values()) == 1
    report = run_pipeline(parse_module(TEXT), "cpu", PassOptions(disabled_rules="invol.*|abs.*"))
    assert report.rule_hits() == {"multiply-by-one": 1}


def test_pass_fuel_stops_after_so_many_changes(module):
    report = run_pipeline(module, "cpu", PassOptions(pass_fuel=0))
    assert report.passes == []
    report = run_pipeline(module, "cpu", PassOptions(pass_fuel=1))
    assert sum(r.changed for r in report.passes) == 1


def test_dump_sees_the_module_before_and_after_each_change(module):
    seen = []
    options = PassOptions(dump=lambda step, name, m: seen.append((name, to_text(m))))
    report = run_pipeline(module, "cpu", options)
    changing = [r.name for r in report.passes if r.changed]
    assert [name for name, _ in seen] == ["before-passes", *changing]
    assert "multiply" in seen[0][1] and "multiply" not in seen[-1][1]


def test_an_error_names_the_pass(module, temporary_passes):
    @hlo_pass("failing")
    def failing(module):
        """x => error"""
        raise InvalidArgumentError("no")

    with pytest.raises(HloError) as error:
        run_passes(module, ["dce", "failing", "cse"])
    assert error.value.__notes__ == ["in pass 'failing' (pass 2 of 3)"]


def test_check_catches_a_pass_that_lies(module, temporary_passes):
    @hlo_pass("liar")
    def liar(module):
        """x => y, silently"""
        module.entry.root = module.entry.root.operands[0]
        return False

    with pytest.raises(InternalError, match="liar reported changed=False, but True is true"):
        run_passes(module, ["liar"], PassOptions(check=True))


def test_verify_catches_a_pass_that_breaks_the_module(module, temporary_passes):
    @hlo_pass("breaker")
    def breaker(module):
        """f32[4] => f32[5]"""
        module.entry.root.shape = module.entry.root.shape.with_dims((5,))
        return True

    with pytest.raises(HloError) as error:
        run_passes(module, ["breaker"], PassOptions(verify=True))
    assert "after pass 'breaker' (pass 1 of 1)" in error.value.__notes__


def test_fixpoint_names_the_passes_that_ping_pong(module, temporary_passes):
    def turn(before, after):
        def run(module):
            """f => g => f"""
            changed = False
            for i in module.instructions(before):
                changed |= i.replace_uses_with(i.replace(after)) if i.users else False
                i.computation.remove(i)
            return changed

        return run

    hlo_pass("ping")(turn("negate", "sine"))
    hlo_pass("pong")(turn("sine", "negate"))
    with pytest.raises(InternalError, match=r"passes ping, pong still change .* after 7 rounds"):
        run_passes(module, [Fixpoint("ping", "pong", limit=7)])


def test_order_constraints_are_checked():
    order = [Before("dce", "cse", why="reasons")]
    check_order({"p": ["dce", "cse", "dce"][:2]}, order)
    with pytest.raises(InternalError, match="pipeline 'p': dce must come before cse: reasons"):
        check_order({"p": ["cse", "dce"]}, order)
    with pytest.raises(InternalError, match="lists the unknown pass 'nope'"):
        check_order({"p": ["nope"]}, [])
    with pytest.raises(InternalError, match="names the unknown pass 'nope'"):
        check_order(PIPELINES, [Before("nope", "dce", why="")])


def test_no_pass_lies_about_an_unreachable_computation():
    text = TEXT.replace("ENTRY main", "unused {\n  ROOT u = f32[] parameter(0)\n}\n\nENTRY main")
    for name in PASSES:
        run_passes(parse_module(text), [name], PassOptions(check=True))
