"""The builder against jaxlib 0.6.0's answers, and what it refuses."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from haloc import xla_client as xc
from haloc.errors import HloError, InvalidArgumentError
from haloc.verifier import verify
from tests.frontend.builder_cases import CASES, INPUTS, binary, built

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "builder_060.json").read_text())
SIGNATURES = json.loads((HERE / "ops_060.json").read_text())
F32 = xc.Shape.array_shape(np.dtype(np.float32), ())


@pytest.fixture(scope="module")
def client():
    return xc.make_cpu_client()


def same_results(got, recorded):
    for array, (dtype, shape, numbers) in zip(got, recorded, strict=True):
        assert (str(array.dtype), list(array.shape)) == (dtype, shape)
        numbers = np.array([complex(n) if isinstance(n, str) else n for n in numbers])
        wanted = numbers.reshape(shape).astype(dtype)
        if array.dtype.kind in "fc":
            np.testing.assert_allclose(array, wanted, rtol=3e-5, atol=2e-6)
        else:
            np.testing.assert_array_equal(array, wanted)


@pytest.mark.parametrize("name", CASES)
def test_program_gives_what_it_gave(name, client):
    computation = built(xc, name)
    verify(computation.as_hlo_module().ir)
    program = client.compile_and_load(computation, client.devices())
    results = program.execute([client.buffer_from_pyval(x) for x in INPUTS[name]])
    same_results([np.asarray(r) for r in results], RECORDED[name]["results"])
    # Sizes of dynamic dimensions that XLA writes for constants are not haloc's.
    shape = RECORDED[name]["shape"].replace("<=", "")
    assert repr(computation.program_shape().result_shape()) == shape


@pytest.mark.parametrize("name", SIGNATURES)
def test_name_and_parameters_are_jaxlibs(name):
    function = getattr(xc.ops, name)
    if not inspect.isfunction(function) or not SIGNATURES[name]:
        return
    parameters = [p.rstrip("_") for p in inspect.signature(function).parameters]
    overloads = {"Conditional", "Iota", "Scatter", "ReduceWindowWithGeneralPadding"}
    if name not in overloads and SIGNATURES[name] != ["arg"]:
        assert parameters == SIGNATURES[name]


def test_every_name_of_060_is_there():
    assert len(SIGNATURES) == 150
    assert [n for n in SIGNATURES if not hasattr(xc.ops, n)] == []


def test_names_and_numbers_are_xlas():
    b = xc.XlaBuilder("f")
    x = xc.ops.Parameter(b, 0, xc.Shape("f32[4]"), "x")
    xc.ops.Reduce(b, [x], [xc.ops.Constant(b, np.float32(0))], binary(xc, "Add"), [0])
    assert b.build().as_hlo_text() == (
        "HloModule f.8, entry_computation_layout={(f32[4]{0})->f32[]}\n\n"
        "add.3 {\n"
        "  parameter.4 = f32[] parameter(0)\n"
        "  parameter.5 = f32[] parameter(1)\n"
        "  ROOT add.6 = f32[] add(parameter.4, parameter.5)\n"
        "}\n\n"
        "ENTRY f.8 {\n"
        "  x.1 = f32[4]{0} parameter(0)\n"
        "  constant.2 = f32[] constant(0)\n"
        "  ROOT reduce.7 = f32[] reduce(x.1, constant.2), dimensions={0}, to_apply=add.3\n"
        "}\n\n"
    )


def test_annotations_belong_to_the_ops_added_meanwhile():
    b = xc.XlaBuilder("f")
    x = xc.ops.Parameter(b, 0, xc.Shape("f32[4]"))
    b.set_op_metadata(xc.OpMetadata(op_name="here", source_line=3))
    sharding = xc.HloSharding.from_string("{devices=[2]<=[2]}")
    b.set_sharding(sharding.to_proto())
    attributes = xc.FrontendAttributes()
    attributes["key"] = "word"
    b.set_frontend_attributes(attributes)
    y = xc.ops.Neg(x)
    b.clear_op_metadata()
    b.clear_sharding()
    b.clear_frontend_attributes()
    xc.ops.Neg(y)
    lines = b.build().as_hlo_module().to_string().splitlines()
    marks = ('op_name="here"', "devices=[2]<=[2]", 'key="word"')
    marked = [line for line in lines if any(mark in line for mark in marks)]
    assert len(marked) == 1 and "negate.2" in marked[0]
    assert all(mark in marked[0] for mark in marks)


def test_alias_program_shape_and_constants():
    b = xc.XlaBuilder("f")
    x = xc.ops.Parameter(b, 0, xc.Shape("f32[4]"), "x")
    two = xc.ops.Constant(b, np.float32(2))
    y = xc.ops.Mul(x, two)
    b.setup_alias((), 0, ())
    assert repr(b.get_program_shape(y)) == "(x.1: f32[4]) -> f32[4]"
    assert b.get_shape(y) == xc.Shape("f32[4]{0}")
    assert b.is_constant(xc.ops.Neg(two)) and not b.is_constant(y)
    text = b.build(y).as_hlo_text()
    assert "input_output_alias={ {}: (0, {}, may-alias) }" in text
    assert "negate.5" in text and "ROOT multiply.4" in text


def test_linear_algebra_reassembles(client):
    a = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    square = (a @ a.transpose(0, 2, 1)).astype(np.float32)
    b, o = xc.XlaBuilder("f"), xc.ops
    x, s = (o.Parameter(b, n, xc.shape_from_pyval(v)) for n, v in enumerate((a, square)))
    parts = [*o.QR(x, False), *o.QR(x, True), *o.SVD(x), *o.Eigh(s), *o.LU(x)]
    program = client.compile_and_load(b.build(o.Tuple(b, parts)), client.devices())
    given = [client.buffer_from_pyval(v) for v in (a, square)]
    q, r, full_q, full_r, u, sv, v, vectors, values, lu, pivots, order = (
        np.asarray(result) for result in program.execute(given)
    )

    def close(got, wanted):
        np.testing.assert_allclose(got, wanted, atol=1e-4)

    close(q @ r, a)
    close(full_q @ full_r, a)
    assert full_q.shape == (2, 4, 4)
    close((u * sv[:, None]) @ v.transpose(0, 2, 1), a)
    close((vectors * values[:, None]) @ vectors.transpose(0, 2, 1), square)
    lower = np.tril(lu, -1) + np.eye(4, 3)
    close(lower @ np.triu(lu[:, :3]), np.take_along_axis(a, order[:, :, None], 1))
    assert pivots.shape == (2, 3)


def test_custom_call_and_host_ops_are_written():
    b, o = xc.XlaBuilder("f"), xc.ops
    x = o.Parameter(b, 0, xc.Shape("f32[4]"))
    calls = [
        o.CustomCall(b, b"foo", [x], xc.Shape("f32[3]"), b"op", True),
        o.CustomCallWithLayout(b, b"foo", [x], xc.Shape("f32[3]{0}"), [xc.Shape("f32[4]{0}")]),
        o.CustomCallWithComputation(b, b"foo", [x], binary(xc, "Add"), xc.Shape("f32[3]")),
    ]
    token = o.CreateToken(b)
    fed = o.InfeedWithToken(token, xc.Shape("f32[4]"))
    token = o.AfterAll(b, [token, o.GetTupleElement(fed, 1)])
    token = o.OutfeedWithToken(x, token, xc.Shape("f32[4]"), "config")
    token = o.SendToHost(x, token, xc.Shape("f32[4]"), xc.ChannelHandle(3))
    received = o.RecvFromHost(token, xc.Shape("f32[4]"), xc.ChannelHandle(4))
    computation = b.build(o.Tuple(b, [*calls, received]))
    again = xc.XlaComputation(computation.as_serialized_hlo_module_proto())
    text = again.get_hlo_module().to_string()
    for words in ('backend_config="op"', "custom_call_has_side_effect=true", "is_host_transfer"):
        assert words in text
    assert "operand_layout_constraints={f32[4]{0}}" in text and "channel_id=3" in text


@pytest.mark.parametrize(
    "build, error, words",
    [
        (lambda b, x: xc.ops.Add(x, 3), TypeError, "an operand is an XlaOp, not int"),
        (
            lambda b, x: xc.ops.Dot(x, xc.ops.Constant(b, np.ones(3, np.float32))),
            HloError,
            "differ in size",
        ),
        (
            lambda b, x: (
                xc.ops.Neg(xc.ops.Parameter(xc.XlaBuilder("other"), 0, F32))
                and xc.ops.Add(x, xc.ops.Parameter(xc.XlaBuilder("other"), 0, F32))
            ),
            HloError,
            "is of another builder than f",
        ),
        (lambda b, x: xc.ops.Parameter(b, 0, F32), InvalidArgumentError, "already registered"),
        (lambda b, x: xc.ops.Erf(xc.ops.Constant(b, np.int32(1))), HloError, "erf"),
        (lambda b, x: xc.ops.Call(b, "f", [x]), TypeError, "XlaComputation"),
        (lambda b, x: xc.ops.Conditional(x), TypeError, "branch_index"),
    ],
)
def test_wrong_ops_raise_where_they_are_made(build, error, words):
    b = xc.XlaBuilder("f")
    x = xc.ops.Parameter(b, 0, xc.Shape("f32[4]"))
    with pytest.raises(error, match=words):
        build(b, x)
    assert "negate" in b.build(xc.ops.Neg(x)).as_hlo_text()


def test_an_empty_builder_builds_nothing():
    with pytest.raises(InvalidArgumentError, match="no instructions"):
        xc.XlaBuilder("f").build()
