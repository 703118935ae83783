"""The interpreter: arguments, regions on whole arrays, hooks, errors that name the instruction."""

import weakref

import numpy as np
import pytest

from haloc import interpreter
from haloc.errors import (
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from haloc.formats.hlo_text import parse_module
from haloc.interpreter.elementwise import vector_plan
from haloc.ops.table import OPS
from haloc.verifier import verify

ADD = """HloModule add_module
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  ROOT r = f32[3] add(x, y)
}
"""
X = np.array([1, 2, 3], np.float32)


def test_run():
    given = interpreter.run(parse_module(ADD), [X, X])
    assert given.tolist() == [2, 4, 6] and given.dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([X], "add_module takes 2 arguments, given 1"),
        (
            [X, X.astype(np.int32)],
            "argument 1 is an array of int32 with dimensions [3], wanted f32[3]",
        ),
        (
            [np.float32(1), X],
            "argument 0 is an array of float32 with dimensions [], wanted f32[3]",
        ),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(InvalidArgumentError) as error:
        interpreter.run(parse_module(ADD), arguments)
    assert error.value.message == message


def test_tuple_arguments_and_results():
    text = """HloModule m
ENTRY main {
  p = (f32[3], (s32[], token[])) parameter(0)
  a = f32[3] get-tuple-element(p), index=0
  q = (s32[], token[]) get-tuple-element(p), index=1
  n = f32[3] negate(a)
  ROOT r = (f32[3], (s32[], token[])) tuple(n, q)
}
"""
    given = interpreter.run(parse_module(text), [(X, (np.array(7, np.int32), None))])
    assert given[0].tolist() == [-1, -2, -3] and given[1] == (7, None)
    with pytest.raises(InvalidArgumentError, match=r"argument 0 is a tuple of 1, wanted"):
        interpreter.run(parse_module(text), [(X,)])
    with pytest.raises(InvalidArgumentError, match=r"argument 0\[1\]\[0\] is an array of int64"):
        interpreter.run(parse_module(text), [(X, (np.array(7), None))])


def test_on_value_sees_every_instruction_in_order():
    seen = []
    interpreter.run(
        parse_module(ADD), [X, X], on_value=lambda i, v: seen.append((i.opcode, v.tolist()))
    )
    assert [s[0] for s in seen] == ["parameter", "parameter", "add"]
    assert seen[2][1] == [2, 4, 6]


def test_device_id():
    text = "HloModule m\nENTRY e {\n  r = u32[] replica-id()\n  p = u32[] partition-id()\n"
    text += "  ROOT t = (u32[], u32[]) tuple(r, p)\n}\n"
    assert interpreter.run(parse_module(text), [], device_id=(3, 5)) == (3, 5)


NESTED = """HloModule m
inner {
  p = f32[] parameter(0)
  ROOT c = f32[] custom-call(p), custom_call_target="nowhere"
}
ENTRY main {
  x = f32[] parameter(0)
  ROOT r = f32[] call(x), to_apply=inner, metadata={source_file="f.py" source_line=12}
}
"""


def test_an_error_names_the_instruction_and_its_callers():
    with pytest.raises(NotFoundError) as error:
        interpreter.run(parse_module(NESTED), [np.float32(1)])
    assert error.value.__notes__ == [
        'evaluating ROOT %c = f32[] custom-call(%p), custom_call_target="nowhere"',
        "evaluating ROOT %r = f32[] call(%x), to_apply=%inner  (f.py:12)",
    ]


def test_a_row_that_gives_the_wrong_type_is_a_bug_in_haloc(monkeypatch):
    parsed = parse_module(ADD)
    monkeypatch.setitem(OPS, "add", _with_evaluate(lambda i, v, c: np.zeros(2)))
    with pytest.raises(InternalError, match=r"add: the row's evaluate gave an array of float64"):
        interpreter.run(parsed, [X, X])


def _with_evaluate(evaluate):
    row = OPS["add"]
    fields = {n: getattr(row, n) for n in row.__dataclass_fields__ if n != "attr_defaults"}
    return type(row)(**(fields | {"evaluate": evaluate}))


MAP = """HloModule m
g {
  z = f32[] parameter(0)
  ROOT n = f32[] negate(z)
}
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  one = f32[] constant(1)
  c = f32[] call(b), to_apply=g
  d = f32[] copy(c)
  t = (f32[], f32[]) tuple(a, d)
  e = f32[] get-tuple-element(t), index=1
  s = f32[] add(e, one)
  ROOT m = f32[] multiply(a, s)
}
ENTRY main {
  x = f32[2,3] parameter(0)
  y = f32[2,3] parameter(1)
  ROOT r = f32[2,3] map(x, y), dimensions={0,1}, to_apply=f
}
"""


def test_scalar_regions_run_on_whole_arrays():
    parsed = parse_module(MAP)
    assert vector_plan(parsed.computations["f"]) is not None
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32) * 3
    np.testing.assert_array_equal(interpreter.run(parsed, [x, y]), x * (1 - y))
    calls = []
    interpreter.run(parsed, [x, y], on_value=lambda i, v: calls.append(i.name))
    assert calls == ["x", "y", "r"]


def test_calls_that_nest_too_deeply_give_an_error():
    count = 2000
    text = "HloModule m\nc0 {\n  ROOT p = f32[] parameter(0)\n}\n"
    for n in range(1, count):
        text += f"c{n} {{\n  p = f32[] parameter(0)\n"
        text += f"  ROOT r = f32[] call(p), to_apply=c{n - 1}\n}}\n"
    text += "ENTRY e {\n  p = f32[] parameter(0)\n"
    text += f"  ROOT r = f32[] call(p), to_apply=c{count - 1}\n}}\n"
    parsed = parse_module(text)
    verify(parsed)
    with pytest.raises(ResourceExhaustedError) as error:
        interpreter.run(parsed, [np.float32(1)])
    assert error.value.message == ("m: computations call each other too deeply for the interpreter")


def test_running_out_of_memory_gives_an_error():
    text = "HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n"
    text += f"  b = f32[{1 << 50}] broadcast(p), dimensions={{}}\n"
    text += f"  n = f32[{1 << 50}] negate(b)\n  ROOT s = f32[1] slice(n), slice={{[0:1]}}\n}}\n"
    with pytest.raises(ResourceExhaustedError, match=r"out of memory evaluating %"):
        interpreter.run(parse_module(text), [np.float32(1)])


def test_results_are_fresh_arrays():
    text = "HloModule m\nENTRY e {\n  ROOT p = f32[3] parameter(0)\n}\n"
    given = interpreter.run(parse_module(text), [X])
    assert given.flags.writeable and not np.shares_memory(given, X)


def test_a_constant_root_is_spread():
    text = MAP.replace("ROOT m = f32[] multiply(a, s)", "ROOT k = f32[] constant(4)")
    x = np.zeros((2, 3), np.float32)
    np.testing.assert_array_equal(interpreter.run(parse_module(text), [x, x]), np.full((2, 3), 4.0))


def test_regions_that_need_a_loop_get_one():
    text = MAP.replace(
        "d = f32[] copy(c)",
        "w = f32[1] reshape(c)\n  ww = f32[1] add(w, w)\n  d = f32[] reshape(ww)",
    )
    parsed = parse_module(text)
    assert vector_plan(parsed.computations["f"]) is None
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32) * 3
    np.testing.assert_array_equal(interpreter.run(parsed, [x, y]), x * (1 - 2 * y))


def test_deep_nesting_of_instructions_needs_no_python_stack():
    lines = ["  i0 = f32[] parameter(0)"]
    lines += [f"  i{n} = f32[] negate(i{n - 1})" for n in range(1, 3001)]
    text = "HloModule m\nENTRY e {\n" + "\n".join(lines[:-1]) + "\n  ROOT" + lines[-1][1:] + "\n}\n"
    assert interpreter.run(parse_module(text), [np.float32(1)]) == 1


def test_values_are_dropped_after_their_last_use():
    size = 1 << 18
    lines = [f"  i0 = f32[{size}] parameter(0)"]
    lines += [f"  i{n} = f32[{size}] negate(i{n - 1})" for n in range(1, 101)]
    text = "HloModule m\nENTRY e {\n" + "\n".join(lines[:-1]) + "\n  ROOT" + lines[-1][1:] + "\n}\n"
    alive = []
    interpreter.run(
        parse_module(text),
        [np.zeros(size, np.float32)],
        on_value=lambda i, v: alive.append(weakref.ref(v)),
    )
    assert sum(r() is not None for r in alive) <= 2
