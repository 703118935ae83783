"""What fusion promises: its invariants, no cycles, no repeated heavy work, the same values."""

import random

import numpy as np
import pytest

from haloc.formats.hlo_text import parse_module
from haloc.interpreter import run
from haloc.ir.dtype import F32, S32
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.example import ExampleGraph
from haloc.ops.table import Elementwise, Indexed, op
from haloc.passes.driver import PassOptions, run_passes
from haloc.passes.fusion import FUSION_ROOTS
from haloc.passes.fusion_group import MAX_INPUTS, MAX_ROOTS, is_reshape
from haloc.passes.pipelines import run_pipeline
from tests.passes.test_random_modules import assert_close, copy_of

FULL = Shape(F32, (4, 6))


def random_graph(seed: int, size: int) -> ExampleGraph:
    """Elementwise chains, reductions, transposes, reshapes, slices, updates, dots, all tangled."""
    g = ExampleGraph(np.random.default_rng(seed))
    rng = random.Random(seed)
    add, zero = g.binary_region("add", F32), g.constant(0, F32)
    index = g.parameter(Shape(S32))
    weight = g.parameter(Shape(F32, (6, 6)))
    values = [g.parameter(FULL) for _ in range(3)]

    def through(x, opcode, dims, **attrs):
        """There and back, so that all values keep one shape."""
        return g.add(opcode, Shape(F32, dims), [x], **attrs)

    def step(x, y, kind):
        if kind < 0.4:
            return g.add(rng.choice(["add", "multiply", "subtract"]), FULL, [x, y])
        if kind < 0.55:
            return g.add(rng.choice(["sine", "negate", "tanh", "abs"]), FULL, [x])
        if kind < 0.65:
            sums = g.add("reduce", Shape(F32, (4,)), [x, zero], dimensions=(1,), to_apply=add)
            return g.add("broadcast", FULL, [sums], dimensions=(0,))
        if kind < 0.72:
            t = through(x, "transpose", (6, 4), dimensions=(1, 0))
            t = through(t, "cosine", (6, 4))
            return through(t, "transpose", (4, 6), dimensions=(1, 0))
        if kind < 0.78:
            flat = through(through(x, "reshape", (24,)), "sine", (24,))
            return through(flat, "reshape", (4, 6))
        if kind < 0.84:
            parts = [
                through(x, "slice", (2, 6), slice=((0, 2, 1), (0, 6, 1))),
                through(y, "slice", (2, 6), slice=((2, 4, 1), (0, 6, 1))),
            ]
            return g.add("concatenate", FULL, parts, dimensions=0)
        if kind < 0.92:
            row = through(y, "slice", (1, 6), slice=((1, 2, 1), (0, 6, 1)))
            return g.add("dynamic-update-slice", FULL, [x, row, index, index])
        dims = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,)}
        return g.add("dot", FULL, [x, weight], **dims)

    while len(g.computation) < size:
        x, y = (values[-1 - min(len(values) - 1, int(rng.expovariate(0.2)))] for _ in range(2))
        values.append(step(x, y, rng.random()))
    results = values[-4:]
    g.add("tuple", tuple_shape(*(r.shape for r in results)), results)
    return g


def fusions(module):
    return list(module.instructions("fusion"))


def assert_invariants(fusion):
    fused = fusion.attrs["calls"]
    roots = fused.root.operands if fused.root.opcode == "tuple" else (fused.root,)
    body = [i for i in fused.instructions if i.opcode not in ("parameter", "tuple")]
    assert len(fused.parameters) == len(fusion.operands) <= MAX_INPUTS
    assert len(roots) <= MAX_ROOTS
    assert len({r.shape.dims for r in roots}) == 1 or roots[0].shape.is_tuple
    for i in body:
        is_loop = isinstance(op(i).lower, Elementwise | Indexed)
        is_scalar = i.opcode == "constant" and i.shape.dims == ()
        assert is_loop or is_scalar or (i.opcode in FUSION_ROOTS and i is fused.root), i
        if is_reshape(i):
            assert i is not fused.root and i.operands[0].opcode != "parameter"
    if fused.root.opcode == "dynamic-update-slice":
        array = fused.root.operands[0]
        assert array.opcode == "parameter" and array.users == {fused.root: 1}
        assert fusion.operands.count(fusion.operands[array.attrs["parameter_number"]]) == 1
    assert fusion.attrs["kind"] == ("kInput" if fused.root.opcode == "reduce" else "kLoop")


@pytest.mark.parametrize("seed", range(25))
def test_random_graphs(seed):
    graph = random_graph(seed, 90)
    rng = np.random.default_rng(seed)
    arguments = [
        np.asarray(rng.normal(size=p.shape.dims)).astype(p.shape.dtype.numpy)
        for p in graph.module.entry.parameters
    ]
    module = copy_of(graph.module)
    run_pipeline(module, "cpu", PassOptions(check=True, seed=seed))
    assert fusions(module)
    for fusion in fusions(module):
        assert_invariants(fusion)
    assert_close(run(graph.module, arguments), run(module, arguments))


def test_ten_thousand_instructions_take_well_under_a_second_of_fusion():
    graph = random_graph(0, 10_000)
    report = run_passes(graph.module, ["cse", "dce", "fusion"])
    assert report.passes[-1].changed
    # Measured 0.2 s; the bound leaves room for a slow and busy machine, not for a square law.
    assert report.passes[-1].time_s < 2.5


def fused(text: str):
    module = parse_module("HloModule m\n" + text)
    run_passes(module, ["fusion", "dce"], PassOptions(verify=True))
    return module


def test_heavy_work_is_not_repeated_by_a_broadcast():
    module = fused("""
ENTRY main {
  x = f32[16] parameter(0)
  y = f32[512,16] parameter(1)
  e = f32[16] exponential(x)
  b = f32[512,16] broadcast(e), dimensions={1}
  ROOT r = f32[512,16] add(y, b)
}""")
    (fusion,) = fusions(module)
    assert "exponential" not in [i.opcode for i in fusion.attrs["calls"].instructions]


def test_work_that_slices_share_out_is_fused_into_each():
    module = fused("""
ENTRY main {
  x = f32[8,12] parameter(0)
  e = f32[8,12] exponential(x)
  p = f32[8,6] slice(e), slice={[0:8], [0:6]}
  q = f32[8,6] slice(e), slice={[0:8], [6:12]}
  ROOT t = (f32[8,6], f32[8,6]) tuple(p, q)
}""")
    bodies = [[i.opcode for i in f.attrs["calls"].instructions] for f in fusions(module)]
    assert len(bodies) == 2 and all("exponential" in b for b in bodies)


def test_shifted_sums_do_not_grow_exponentially():
    """Each step reads the one before at two places: fused without bound, 2^20 evaluations."""
    lines = ["  x0 = f32[1024] parameter(0)"]
    for n in range(20):
        lines.append(f"  s{n} = f32[1024] reverse(x{n}), dimensions={{0}}")
        lines.append(f"  x{n + 1} = f32[1024] add(x{n}, s{n})")
    lines.append("  ROOT r = f32[1024] abs(x20)")
    module = fused("ENTRY main {\n" + "\n".join(lines) + "\n}")
    assert 4 < len(fusions(module)) < 20


def test_nothing_with_a_side_effect_or_a_control_dependency_is_fused():
    module = fused("""
ENTRY main {
  x = f32[4] parameter(0)
  a = f32[4] negate(x)
  c = f32[4] custom-call(a), custom_call_target="f", custom_call_has_side_effect=true
  b = f32[4] abs(x), control-predecessors={c}
  ROOT r = f32[4] sine(b)
}""")
    assert fusions(module) == []
