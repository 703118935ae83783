"""Placement by dependence and value numbering of the LLVM text builder."""

import re

from haloc.codegen.builder import Builder, Reg, const, mangle, vector


def make():
    builder = Builder()
    return builder, Reg("%p", "ptr", builder.root)


def text_of(builder, *parameters):
    return builder.function("f", parameters)


def test_equal_operations_share_a_register():
    builder, p = make()
    a = builder.op("float", "load float, ptr {0}", p)
    b = builder.op("float", "load float, ptr {0}", p)
    assert a is b
    assert text_of(builder, p).count("load float") == 1


def test_what_does_not_depend_on_the_loop_stands_before_it():
    builder, p = make()
    with builder.loop(0, 10) as loop:
        inside = builder.op("ptr", "getelementptr float, ptr {0}, i64 {1}", p, loop.index)
        x = builder.op("float", "load float, ptr {0}", p)
        builder.effect("store float {0}, ptr {1}", x, inside)
    text = text_of(builder, p)
    assert text.index("load float") < text.index("loop1:") < text.index("store float")


def test_effects_stay_in_the_loop_in_order():
    builder, p = make()
    with builder.loop(0, 10):
        old = builder.op_here("float", "load float, ptr {0}", p)
        builder.effect("store float {0}, ptr {1}", old, p)
        again = builder.op_here("float", "load float, ptr {0}", p)
        assert again is not old
        builder.effect("store float {0}, ptr {1}", again, p)
    body = text_of(builder, p).split("loop1:")[1]
    kinds = re.findall(r"(load|store) float", body)
    assert kinds == ["load", "store", "load", "store"]


def test_carried_values_are_usable_after_the_loop():
    builder, p = make()
    with builder.loop(0, 10) as loop:
        total = loop.carry(const("i64", 0))
        loop.next(builder.op("i64", "add i64 {0}, {1}", total, loop.index))
    (result,) = loop.results()
    assert result.region is builder.root
    builder.effect("store i64 {0}, ptr {1}", result, p)
    text = text_of(builder, p)
    assert text.index("loop1.done:") < text.index("store i64")


def test_registers_of_a_closed_loop_are_not_visible():
    builder, p = make()
    with builder.loop(0, 10) as loop:
        inside = builder.op("i64", "add i64 {0}, 1", loop.index)
        assert builder.is_visible(inside.region)
    assert not builder.is_visible(inside.region)
    assert builder.is_visible(p.region)
    assert builder.is_visible(None)


def test_types():
    assert vector("float", 1) == "float"
    assert vector("float", 16) == "<16 x float>"
    assert mangle("<16 x float>") == "v16f32"
    assert mangle("<4 x ptr>") == "v4p0"
