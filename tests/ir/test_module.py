"""Modules: def-use, names, replacement, control order, cloning, recursion."""

import pytest

from haloc.errors import InternalError, InvalidArgumentError
from haloc.formats.hlo_text import parse_module, to_text
from haloc.ir.module import HloInstruction
from tests.formats.compare import differences

TEXT = """HloModule m

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  a = f32[4] parameter(0)
  z = f32[] constant(0)
  b = f32[4] negate(a)
  c = f32[4] add(b, b), control-predecessors={z}
  ROOT r = f32[] reduce(c, z), dimensions={0}, to_apply=add
}
"""


def by_name(module, name):
    return next(i for i in module.instructions() if i.name == name)


def test_uses_are_counted_and_follow_replacement():
    module = parse_module(TEXT)
    a, b, c = (by_name(module, n) for n in "abc")
    assert b.users == {c: 2}
    assert b.replace_uses_with(a)
    assert (b.users, a.users) == ({}, {b: 1, c: 2})
    c.computation.remove(b)
    assert a.users == {c: 2}
    assert "negate" not in to_text(module)


def test_set_operand_says_whether_it_changed():
    module = parse_module(TEXT)
    a, b, c = (by_name(module, n) for n in "abc")
    assert not c.set_operand(0, b)
    assert c.set_operand(0, a)
    assert (c.operands, b.users, a.users) == ((a, b), {c: 1}, {b: 1, c: 1})


def test_replacing_the_root_makes_a_new_root():
    module = parse_module(TEXT)
    old = module.entry.root
    new = old.replace("reduce", attrs=dict(old.attrs))
    assert module.entry.root is new
    assert old.users == {}
    assert new.name == "r.1"


def test_used_instructions_and_the_root_are_not_removed():
    module = parse_module(TEXT)
    for name in "br":
        with pytest.raises(InternalError):
            module.entry.remove(by_name(module, name))


def test_control_predecessors_are_kept_on_both_sides():
    module = parse_module(TEXT)
    z, c, a = (by_name(module, n) for n in "zca")
    assert list(z.control_successors) == [c]
    c.control_predecessors = (a,)
    assert (list(z.control_successors), list(a.control_successors)) == ([], [c])


def test_sort_puts_operands_first():
    module = parse_module(TEXT)
    entry, root = module.entry, module.entry.root
    doubled = entry.add(HloInstruction("negate", root.operands[0].shape, (root.operands[0],)))
    root.set_operand(0, doubled)
    entry.sort()
    order = entry.instructions
    assert order.index(doubled) < order.index(root)
    assert differences(parse_module(to_text(module)), module) == []


def test_clone_is_a_copy_of_its_own():
    module = parse_module(TEXT)
    copy = module.clone()
    assert differences(copy, module) == []
    by_name(copy, "c").set_operand(0, by_name(copy, "a"))
    assert differences(copy, module) != []
    called = copy.entry.root.attrs["to_apply"]
    assert called is copy.computations["add"] is not module.computations["add"]


def test_unique_names_count_on_from_a_number():
    module = parse_module("a = f32[] parameter(0)\na.3 = f32[] negate(a)")
    assert [module.unique_name("a") for _ in range(3)] == ["a.1", "a.2", "a.4"]
    assert module.unique_name("b.7") == "b.7"


def test_post_order_refuses_recursion():
    module = parse_module(TEXT)
    add = module.computations["add"]
    add.root.attrs["to_apply"] = add
    with pytest.raises(InvalidArgumentError, match="recursive call: e -> add -> add"):
        module.post_order()
    assert "add(x, y)" in to_text(module)  # errors about it can still quote it


def test_unreachable_computations_can_be_dropped():
    module = parse_module("spare { ROOT p = f32[] parameter(0) }\n" + TEXT.split("\n\n", 1)[1])
    assert module.remove_unreachable_computations()
    assert list(module.computations) == ["add", "e"]
    assert not module.remove_unreachable_computations()
