"""HLO to StableHLO and back: jaxlib's parser takes the text, and both ways mean the same."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax._src.interpreters import mlir
from jaxlib import xla_client
from jaxlib.mlir import ir

from haloc import interpreter
from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.formats.hlo_text import parse_module
from haloc.formats.stablehlo import (
    from_hlo,
    parse_mlir,
    parse_stablehlo,
    print_mlir,
    serialize_portable_artifact,
)
from haloc.ops.example import ExampleGraph
from haloc.ops.table import OPS
from haloc.verifier import verify
from tests.conformance.arguments import argument
from tests.conformance.compare import hlo_of
from tests.conformance.small import PROGRAMS
from tests.formats.stablehlo.ops import LINES, module_of
from tests.fuzz.generate import random_arguments, random_module


def jaxlib_text(text: str) -> str:
    """The module as jaxlib prints it, verified."""
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        module.operation.verify()
        return str(module)


def assert_same(got: np.ndarray, wanted: np.ndarray) -> None:
    """NumPy does not know the NaN of narrow floats."""
    assert got.dtype == wanted.dtype
    if wanted.dtype.kind == "V":
        got, wanted = got.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_array_equal(got, wanted)


def check(text: str, arguments: list[np.ndarray]) -> str:
    """Export, read back: the same values. Gives the text."""
    module = parse_module(text)
    written = print_mlir(from_hlo(module))
    assert print_mlir(parse_mlir(written)) == written
    jaxlib_text(written)
    back = parse_stablehlo(written)
    verify(back)
    wanted, got = (interpreter.run(m, arguments) for m in (module, back))
    for w, g in zip(jax.tree.leaves(wanted), jax.tree.leaves(got), strict=True):
        assert_same(g, w)
    return written


_SAMPLE = PROGRAMS[::12]


@pytest.mark.parametrize(
    ("name", "function", "specs"),
    [
        *_SAMPLE,
        *(pytest.param(*p, marks=pytest.mark.nightly) for p in PROGRAMS if p not in _SAMPLE),
    ],
    ids=[p[0] for p in [*_SAMPLE, *(p for p in PROGRAMS if p not in _SAMPLE)]],
)
def test_programs(name, function, specs):
    rng = np.random.default_rng(0)
    arguments = [argument(s, rng) for s in specs]
    check(hlo_of(function, arguments), [np.asarray(a) for a in jax.tree.leaves(arguments)])


@pytest.mark.parametrize("line", LINES, ids=[line[:40] for line in LINES])
def test_every_op_prints_as_in_jaxlib(line):
    source = module_of(line)
    written = print_mlir(parse_mlir(source))
    if "tensor<0xf32>" in source:
        return  # a splat of no elements: its value is not kept
    assert jaxlib_text(written) == jaxlib_text(source)


_REFUSED = {
    "bitcast": "StableHLO has no layouts",
    "ragged-all-to-all": "StableHLO has no op for it",
    "rng-get-and-update-state": "StableHLO has no op for it",
    "stochastic-convert": "StableHLO has no op for it",
}
"""Ops that some of the examples cannot be written for, and why."""


@pytest.mark.parametrize("opcode", sorted(OPS))
def test_examples_of_every_row(opcode):
    """jaxlib verifies what is written; it reads back, and goes into bytecode."""
    for seed in range(4):
        graph = ExampleGraph(np.random.default_rng(seed))
        graph.computation.root = OPS[opcode].example(graph)
        try:
            written = print_mlir(from_hlo(graph.module))
        except UnimplementedError as error:
            assert _REFUSED[opcode] in str(error)
            continue
        jaxlib_text(written)
        verify(parse_stablehlo(written))
        if opcode != "mulhi":
            serialize_portable_artifact(from_hlo(graph.module, portable=True))


def test_a_tuple_of_one_stays_a_tuple():
    written = check("ENTRY e { x = f32[2] parameter(0)  ROOT t = (f32[2]) tuple(x) }", [_ones(2)])
    assert "-> tuple<tensor<2xf32>>" in written


def test_nested_tuples():
    check(
        """ENTRY e {
          x = f32[2] parameter(0)
          t = (f32[2], (f32[2], f32[2])) tuple(x, t2)
        }""".replace("t = ", "t2 = (f32[2], f32[2]) tuple(x, x)\n ROOT t = "),
        [_ones(2)],
    )


def _ones(*dims: int) -> np.ndarray:
    return np.ones(dims, np.float32)


def test_tuple_parameters_are_tuples():
    text = """ENTRY e {
      p = (f32[2], s32[]) parameter(0)
      ROOT x = f32[2] get-tuple-element(p), index=0
    }"""
    written = print_mlir(from_hlo(parse_module(text)))
    assert "%arg0: tuple<tensor<2xf32>, tensor<i32>>" in written
    jaxlib_text(written)
    assert parse_stablehlo(written).entry.parameters[0].shape.is_tuple


def test_header_and_annotations():
    text = """
    HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }, buffer_donor={ (1, {}) },
      entry_computation_layout={(f32[2,3]{0,1}, f32[4]{0})->(f32[2,3]{1,0}, f32[4]{0})},
      num_partitions=2, frontend_attributes={key="a \\"b\\""}

    ENTRY e {
      x = f32[2,3] parameter(0), sharding={devices=[2,1]<=[2]}
      y = f32[4] parameter(1), frontend_attributes={f="1"}
      ROOT t = (f32[2,3], f32[4]) tuple(x, y), sharding={{replicated}, {devices=[2]<=[2]}}
    }"""
    written = print_mlir(from_hlo(parse_module(text)))
    assert jaxlib_text(written) == written
    for part in (
        "mhlo.num_partitions = 2 : i32",
        'mhlo.sharding = "{devices=[2,1]<=[2]}", tf.aliasing_output = 0 : i32',
        'mhlo.layout_mode = "{0,1}"',
        "jax.buffer_donor = true",
        'mhlo.sharding = "{devices=[2]<=[2]}"',
        'mhlo.frontend_attributes = {key = "a \\22b\\22"}',
    ):
        assert part in written, part
    header = parse_stablehlo(written).header
    assert header["input_output_alias"] == (((0,), 0, (), "may-alias"),)
    assert header["buffer_donor"] == ((1, ()),)
    assert header["num_partitions"] == 2
    assert header["frontend_attributes"]["key"] == 'a "b"'


def test_annotations_of_any_op():
    text = """ENTRY e {
      x = f32[4] parameter(0)
      y = f32[4] tanh(x), sharding={devices=[2]<=[2]}, frontend_attributes={a="b"}
      ROOT z = f32[4] negate(y)
    }"""
    written = print_mlir(from_hlo(parse_module(text)))
    jaxlib_text(written)
    (tanh,) = parse_stablehlo(written).instructions("tanh")
    assert str(tanh.sharding) == "{devices=[2]<=[2]}"
    assert tanh.frontend_attributes == {"a": "b"}


def test_custom_call():
    text = """ENTRY e {
      x = f32[4,4] parameter(0)
      ROOT c = (f32[4,4]{0,1}, s32[]) custom-call(x), custom_call_target="f",
        operand_layout_constraints={f32[4,4]{0,1}}, custom_call_has_side_effect=true,
        output_to_operand_aliasing={{0}: (0, {})}, api_version=API_VERSION_TYPED_FFI,
        backend_config={a = 76 : ui8, b = [1, 2], c = "x\\\\y"}
    }"""
    module = parse_module(text)
    written = print_mlir(from_hlo(module))
    jaxlib_text(written)
    (before,), (after,) = (list(m.instructions("custom-call")) for m in (
        module, parse_stablehlo(written)))  # fmt: skip
    assert after.attrs == before.attrs
    assert after.shape == before.shape
    assert after.backend_config == before.backend_config


def test_locations():
    text = """ENTRY e {
      x = f32[2] parameter(0)
      ROOT y = f32[2] tanh(x), metadata={op_name="jit(f)/tanh" source_file="a.py" source_line=7}
    }"""
    made = from_hlo(parse_module(text))
    assert "loc(" not in print_mlir(made)
    written = print_mlir(made, locations=True)
    jaxlib_text(written)
    root = parse_stablehlo(written).entry.root
    assert (root.metadata["op_name"], root.metadata["source_line"]) == ("jit(f)/tanh", 7)


def test_what_stablehlo_lacks_is_named():
    text = "ENTRY e { ROOT r = u64[2] rng-get-and-update-state(), delta=1 }"
    with pytest.raises(UnimplementedError, match="rng-get-and-update-state: StableHLO has no op"):
        from_hlo(parse_module(text))


def test_attributes_stablehlo_lacks_are_named():
    text = """ENTRY e {
      x = f32[2] parameter(0)
      ROOT r = f32[2] custom-call(x), custom_call_target="f", schedule=SCHEDULE_LATEST
    }"""
    with pytest.raises(UnimplementedError, match="StableHLO has no attribute schedule"):
        from_hlo(parse_module(text))


def test_nesting_without_end():
    def fusion(name: str, callee: str) -> str:
        call = f"fusion(a), kind=kLoop, calls={callee}"
        return f"{name} {{ a = f32[] parameter(0)  ROOT r = f32[] {call} }}"

    lines = ["c0 { a = f32[] parameter(0)  ROOT r = f32[] negate(a) }"]
    lines += [fusion(f"c{i}", f"c{i - 1}") for i in range(1, 2000)]
    lines.append(fusion("ENTRY e", "c1999"))
    with pytest.raises(InvalidArgumentError, match="nested too deep"):
        from_hlo(parse_module("\n".join(lines)))


@pytest.mark.parametrize("seed", range(12))
def test_random_modules(seed):
    _random(seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_more_random_modules(seed):
    _random(seed)


def _random(seed: int) -> None:
    """Read back it means the same; written again it is the same: nothing is lost on the way."""
    module = random_module(seed)
    if any(module.instructions("stochastic-convert")):
        with pytest.raises(UnimplementedError, match="StableHLO has no op"):
            from_hlo(module)
        return
    written = print_mlir(from_hlo(module))
    back = parse_stablehlo(written)
    verify(back)
    arguments = random_arguments(module, seed)
    wanted, got = (interpreter.run(m, arguments) for m in (module, back))
    for w, g in zip(jax.tree.leaves(wanted), jax.tree.leaves(got), strict=True):
        assert_same(g, w)
    again = print_mlir(from_hlo(back))
    assert print_mlir(from_hlo(parse_stablehlo(again))) == again


def _run_in_jaxlib(text: str, arguments: list[np.ndarray]) -> list[np.ndarray]:
    device = jax.devices("cpu")[0]
    executable = device.client.compile_and_load(
        text, xla_client.DeviceList((device,)), xla_client.CompileOptions()
    )
    return [np.asarray(r) for r in executable.execute([jax.device_put(a) for a in arguments])]


_QUICK = {"dot_f32", "scan", "cond", "max_pool_grad", "sort_f32", "cholesky_f32", "while_nested"}


@pytest.mark.parametrize(
    ("name", "function", "specs"),
    [
        pytest.param(*p, marks=() if p[0] in _QUICK else pytest.mark.nightly, id=p[0])
        for p in PROGRAMS
    ],
)
def test_jaxlib_runs_it(name, function, specs):
    """HLO to StableHLO, compiled by jaxlib: what jaxlib makes of the function itself."""
    rng = np.random.default_rng(0)
    arguments = [argument(s, rng) for s in specs]
    module = parse_module(hlo_of(function, arguments))
    leaves = [np.asarray(a) for a in jax.tree.leaves(arguments)]
    if len(leaves) != len(module.entry.parameters):
        pytest.skip("the program does not use all arguments")
    got = _run_in_jaxlib(print_mlir(from_hlo(module)), leaves)
    for g, w in zip(got, jax.tree.leaves(jax.jit(function)(*arguments)), strict=True):
        g, w = (np.asarray(v).astype(np.complex128) for v in (g, w))
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
