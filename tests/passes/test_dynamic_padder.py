"""dynamic-padder: padded arrays give what the interpreter and jaxlib give without padding."""

from __future__ import annotations

import numpy as np
import pytest

from haloc import interpreter
from haloc.errors import UnimplementedError, VerificationError
from haloc.formats.hlo_text import parse_module
from haloc.passes.pipelines import run_pipeline
from haloc.verifier import verify
from tests.fuzz.judge import judge
from tests.oracle import run_in_jaxlib

REGIONS = """
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y) }
max { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] maximum(x, y) }
hypot { x = f32[] parameter(0)
  y = f32[] parameter(1)
  xx = f32[] multiply(x, x)
  yy = f32[] multiply(y, y)
  s = f32[] add(xx, yy)
  ROOT r = f32[] sqrt(s) }
less { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = pred[] compare(x, y), direction=LT }
more { x = f32[] parameter(0)
  y = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT r = pred[] compare(x, y), direction=GT }
twice { x = f32[<=8,3] parameter(0)
  ROOT r = f32[<=8,3] add(x, x) }
squared { x = f32[<=8,3] parameter(0)
  ROOT r = f32[<=8,3] multiply(x, x) }
"""

HEAD = """
  a = f32[8,3] parameter(0)
  n = s32[] parameter(1)
  z = f32[] constant(0)
  s = f32[<=8,3] set-dimension-size(a, n), dimensions={0}
"""

CASES = {
    "elementwise": """
  x = f32[<=8,3] exponential(s)
  y = f32[<=8,3] add(x, s)
  ROOT r = f32[3] reduce(y, z), dimensions={0}, to_apply=add""",
    "size": """
  x = f32[<=8,3] negate(s)
  t = f32[3,<=8] transpose(x), dimensions={1,0}
  ROOT r = s32[] get-dimension-size(t), dimensions={1}""",
    "maximum of negative numbers": """
  low = f32[] constant(-inf)
  x = f32[<=8,3] abs(s)
  y = f32[<=8,3] negate(x)
  ROOT r = f32[3] reduce(y, low), dimensions={0}, to_apply=max""",
    "an initial value that counts": """
  five = f32[] constant(5)
  ROOT r = f32[3] reduce(s, five), dimensions={0}, to_apply=add""",
    "a region with its identity": """
  ROOT r = f32[3] reduce(s, z), dimensions={0}, to_apply=hypot""",
    "broadcast": """
  b = f32[2,<=8,3] broadcast(s), dimensions={1,2}
  ROOT r = f32[2] reduce(b, z), dimensions={1,2}, to_apply=add""",
    "concatenate along it": """
  b = f32[2,3] slice(a), slice={[0:2], [0:3]}
  c = f32[<=18,3] concatenate(s, b, s), dimensions={0}
  i = s32[] get-dimension-size(c), dimensions={0}
  low = f32[] constant(-inf)
  k = f32[<=18,1] slice(c), slice={[0:18], [1:2]}
  o = f32[1] reduce(k, z), dimensions={0}, to_apply=add
  m = f32[3] reduce(c, low), dimensions={0}, to_apply=max
  ROOT r = (f32[3], f32[1], s32[]) tuple(m, o, i)""",
    "concatenate along another": """
  c = f32[<=8,6] concatenate(s, s), dimensions={1}
  ROOT r = f32[6] reduce(c, z), dimensions={0}, to_apply=add""",
    "reverse": """
  w = f32[<=8,3] reverse(s), dimensions={0}
  p = f32[<=8,3] multiply(w, s)
  ROOT r = f32[3] reduce(p, z), dimensions={0}, to_apply=add""",
    "pad": """
  one = f32[] constant(1)
  w = f32[<=19,3] pad(s, one), padding=1_3_1x0_0
  i = s32[] get-dimension-size(w), dimensions={0}
  t = f32[3] reduce(w, z), dimensions={0}, to_apply=add
  ROOT r = (f32[3], s32[]) tuple(t, i)""",
    "reshape in place": """
  w = f32[<=24] reshape(s)
  ROOT r = f32[] reduce(w, z), dimensions={0}, to_apply=add""",
    "reshape that moves": """
  t = f32[3,<=8] transpose(s), dimensions={1,0}
  w = f32[<=24] reshape(t)
  v = f32[<=24] reverse(w), dimensions={0}
  m = f32[<=24] multiply(v, w)
  q = f32[<=12,2] reshape(w)
  ROOT r = f32[] reduce(m, z), dimensions={0}, to_apply=add""",
    "dynamic-reshape": """
  t = f32[3,<=8] transpose(s), dimensions={1,0}
  three = s32[] constant(3)
  w = f32[<=8,3] dynamic-reshape(t, n, three)
  m = f32[<=8,3] multiply(w, s)
  ROOT r = f32[] reduce(m, z), dimensions={0,1}, to_apply=add""",
    "dot over it": """
  x = f32[<=8,3] log(s)
  ROOT r = f32[3,3] dot(s, s), lhs_contracting_dims={0}, rhs_contracting_dims={0}""",
    "dot beside it": """
  d = f32[<=8,8] dot(s, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT r = f32[8] reduce(d, z), dimensions={0}, to_apply=add""",
    "cumulative sum": """
  c = f32[<=8,3] reduce-window(s, z), window={size=8x1 pad=7_0x0_0}, to_apply=add
  q = f32[<=8,3] multiply(c, s)
  ROOT r = f32[3] reduce(q, z), dimensions={0}, to_apply=add""",
    "windows": """
  c = f32[<=4,3] reduce-window(s, z), window={size=3x1 stride=2x1 pad=1_1x0_0}, to_apply=add
  i = s32[] get-dimension-size(c), dimensions={0}
  t = f32[3] reduce(c, z), dimensions={0}, to_apply=add
  ROOT r = (f32[3], s32[]) tuple(t, i)""",
    "sort": """
  q = f32[<=8,3] sort(s), dimensions={0}, to_apply=less, is_stable=true
  m = f32[<=8,3] multiply(q, s)
  ROOT r = f32[3] reduce(m, z), dimensions={0}, to_apply=add""",
    "sort of two": """
  i = s32[8,3] iota(), iota_dimension=0
  k = s32[<=8,3] set-dimension-size(i, n), dimensions={0}
  q = (f32[<=8,3], s32[<=8,3]) sort(s, k), dimensions={0}, to_apply=more, is_stable=true
  v = s32[<=8,3] get-tuple-element(q), index=1
  f = f32[<=8,3] convert(v)
  m = f32[<=8,3] multiply(f, s)
  ROOT r = f32[3] reduce(m, z), dimensions={0}, to_apply=add""",
    "gather": """
  g = f32[2,<=8] gather(s, i), offset_dims={1}, collapsed_slice_dims={1},
    start_index_map={1}, index_vector_dim=1, slice_sizes={8,1}
  ROOT r = f32[2] reduce(g, z), dimensions={1}, to_apply=add""",
    "scatter": """
  j = s32[8,1] iota(), iota_dimension=0
  k = s32[<=8,1] set-dimension-size(j, n), dimensions={0}
  ROOT r = f32[8,3] scatter(a, k, s), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add""",
    "convolution": """
  l = f32[1,<=8,3] reshape(s)
  w = f32[2,3,2] parameter(2)
  c = f32[1,<=5,2] convolution(l, w), window={size=2 stride=2 pad=1_1}, dim_labels=b0f_0io->b0f
  i = s32[] get-dimension-size(c), dimensions={1}
  t = f32[2] reduce(c, z), dimensions={0,1}, to_apply=add
  ROOT r = (f32[2], s32[]) tuple(t, i)""",
    "sizes set again": """
  two = s32[] constant(2)
  t = f32[<=8,<=3] set-dimension-size(s, two), dimensions={1}
  m = s32[] divide(n, two)
  u = f32[<=8,<=3] set-dimension-size(t, m), dimensions={0}
  v = f32[<=8,<=3] exponential(u)
  ROOT r = f32[] reduce(v, z), dimensions={0,1}, to_apply=add""",
    "dynamic-slice of all of it": """
  o = s32[] constant(0)
  q = f32[<=8,2] dynamic-slice(s, o, o), dynamic_slice_sizes={8,2}
  ROOT r = f32[2] reduce(q, z), dimensions={0}, to_apply=add""",
    "call": """
  c = f32[<=8,3] call(s), to_apply=twice
  ROOT r = f32[3] reduce(c, z), dimensions={0}, to_apply=add""",
    "conditional": """
  four = s32[] constant(4)
  p = pred[] compare(n, four), direction=LT
  c = f32[<=8,3] conditional(p, s, s), true_computation=twice, false_computation=squared
  ROOT r = f32[3] reduce(c, z), dimensions={0}, to_apply=add""",
}
HELD = {
    "gather": "  i = s32[2,1] constant({{2}, {0}})\n",
}
NOT_IN_JAXLIB = {
    "an initial value that counts": "XLA takes every initial value to be the identity",
    "convolution": "XLA has dynamic batches only",
    "cumulative sum": "XLA leaves the window's padding out of the size",
    "windows": "XLA leaves the window's padding out of the size",
    "conditional": "XLA's padder refuses a dynamic result of a conditional",
}


def text(case: str) -> str:
    return f"HloModule m\n{REGIONS}\nENTRY e {{{HEAD}{HELD.get(case, '')}{CASES[case]}\n}}\n"


def arguments(case: str, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(size)
    values = [rng.standard_normal((8, 3)).astype(np.float32), np.asarray(size, np.int32)]
    if case == "convolution":
        values.append(rng.standard_normal((2, 3, 2)).astype(np.float32))
    return values


@pytest.mark.parametrize("case", CASES)
def test_padded_is_bounded(case):
    """The interpreter on bounded arrays, on the padded module, and native code."""
    for size in (0, 4, 8) if case != "dot over it" else (4,):
        judge(parse_module(text(case)), arguments(case, size))


@pytest.mark.parametrize("case", [c for c in CASES if c not in NOT_IN_JAXLIB])
def test_as_in_jaxlib(case):
    given = arguments(case, 6)
    ours = interpreter.run(parse_module(text(case)), given)
    ours = ours if isinstance(ours, tuple) else (ours,)
    theirs = run_in_jaxlib(text(case), given)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_what_a_size_has_no_part_in_needs_no_rule():
    entry = """
  r = f32[3] reduce(s, z), dimensions={0}, to_apply=add
  q = f32[1,3] reshape(r)
  t = f32[3,3] dot(q, q), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT c = f32[3,3] cholesky(t)"""
    module = parse_module(f"HloModule m\n{REGIONS}\nENTRY e {{{HEAD}{entry}\n}}\n")
    run_pipeline(module)
    assert any(i.opcode == "cholesky" for i in module.instructions())


LOOP = """HloModule m
condition { p = (s32[], f32[<=8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  four = s32[] constant(4)
  ROOT r = pred[] compare(i, four), direction=LT }
body { p = (s32[], f32[<=8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[<=8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  n = s32[] get-dimension-size(x), dimensions={0}
  m = s32[] subtract(n, one)
  y = f32[<=8] add(x, x)
  w = f32[<=8] set-dimension-size(y, m), dimensions={0}
  ROOT r = (s32[], f32[<=8]) tuple(j, w) }
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y) }
ENTRY e {
  a = f32[8] parameter(0)
  n = s32[] parameter(1)
  z = f32[] constant(0)
  o = s32[] constant(0)
  s = f32[<=8] set-dimension-size(a, n), dimensions={0}
  t = (s32[], f32[<=8]) tuple(o, s)
  u = (s32[], f32[<=8]) while(t), condition=condition, body=body
  v = f32[<=8] get-tuple-element(u), index=1
  ROOT r = f32[] reduce(v, z), dimensions={0}, to_apply=add }
"""


def test_loop_that_shrinks_its_state():
    for size in (4, 8):
        given = [np.arange(8, dtype=np.float32), np.asarray(size, np.int32)]
        judge(parse_module(LOOP), given)
        wanted = 16 * np.arange(size - 4, dtype=np.float32).sum()
        np.testing.assert_array_equal(interpreter.run(parse_module(LOOP), given), wanted)


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        (
            "ENTRY e { a = f32[<=8] parameter(0)\n ROOT r = s32[] get-dimension-size(a), "
            "dimensions={0} }",
            "parameter 0 of m is f32[<=8]: a dynamic shape at the entry is not run natively",
        ),
        (
            "ENTRY e { a = f32[8] parameter(0)\n n = s32[] parameter(1)\n"
            " ROOT r = f32[<=8] set-dimension-size(a, n), dimensions={0} }",
            "the result of m is f32[<=8]",
        ),
        (
            "ENTRY e { a = f32[4,4] parameter(0)\n n = s32[] parameter(1)\n"
            " s = f32[<=4,4] set-dimension-size(a, n), dimensions={0}\n"
            " ROOT r = f32[<=4,4] cholesky(s) }",
            "the result of m",
        ),
        (
            "ENTRY e { a = f32[4,8] parameter(0)\n n = s32[] parameter(1)\n"
            " s = f32[<=4,8] set-dimension-size(a, n), dimensions={0}\n"
            " f = (f32[<=4,2], s32[<=4,2]) topk(s), k=2\n"
            " i = f32[<=4,2] get-tuple-element(f), index=0\n"
            " ROOT r = s32[] get-dimension-size(i), dimensions={0} }",
            "topk: a dynamic shape of (f32[<=4,8]) -> (f32[<=4,2], s32[<=4,2]) is not run natively",
        ),
    ],
)
def test_what_is_refused(entry, fault):
    module = parse_module(f"HloModule m\n{entry}")
    verify(module)
    with pytest.raises(UnimplementedError) as error:
        run_pipeline(module)
    assert fault in str(error.value)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (
            "s = f32[8] set-dimension-size(a, n), dimensions={0}",
            "the shape is f32[8], but operands and attributes give f32[<=8]",
        ),
        ("s = f32[<=8] set-dimension-size(a, n), dimensions={1}", "outside [0, 1)"),
        ("s = f32[<=8] set-dimension-size(a, a), dimensions={0}", "size is f32[8], wanted s32[]"),
        ("s = f32[<=9] dynamic-reshape(a, n)", "has 8 elements"),
        ("s = f32[<=2,4] dynamic-reshape(a, n)", "1 sizes given for the 2 dimensions"),
    ],
)
def test_what_does_not_verify(lines, fault):
    entry = f"a = f32[8] parameter(0)\n n = s32[] parameter(1)\n ROOT {lines}"
    with pytest.raises(VerificationError) as error:
        verify(parse_module(f"HloModule m\nENTRY e {{ {entry} }}"))
    assert fault in str(error.value)
