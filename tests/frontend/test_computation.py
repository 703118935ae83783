"""`xla_computation`: the documents' examples, and what each parameter does."""

import types

import numpy as np
import pytest

import haloc
import haloc as jax
from haloc import lax, xla_client, xla_computation
from haloc import numpy as jnp


def groups(text):
    lines = [line for line in text.splitlines() if " all-reduce(" in line]
    return [line.split("replica_groups=")[1].split(", to_apply")[0] for line in lines]


def test_sine_of_cosine():
    def f(x):
        return jax.numpy.sin(jax.numpy.cos(x))

    c = jax.xla_computation(f)(3.0)
    assert c.as_hlo_text() == (
        "HloModule xla_computation_f, entry_computation_layout={(f32[])->(f32[])}\n\n"
        "ENTRY main.5 {\n"
        "  Arg_0.1 = f32[] parameter(0)\n"
        "  cosine.2 = f32[] cosine(Arg_0.1)\n"
        "  sine.3 = f32[] sine(cosine.2)\n"
        "  ROOT tuple.4 = (f32[]) tuple(sine.3)\n"
        "}\n\n"
    )
    scalar = types.SimpleNamespace(shape=(), dtype=np.dtype(np.float32))
    assert jax.xla_computation(f)(scalar).as_hlo_text() == c.as_hlo_text()
    assert c.name() == "xla_computation_f"
    assert "digraph" in c.as_hlo_dot_graph()
    again = xla_client.XlaComputation(c.as_serialized_hlo_module_proto())
    assert again.as_hlo_text() == c.as_hlo_text() and again.hash() == c.hash()


def test_psum():
    def f(x):
        return x - jax.lax.psum(x, "i")

    text = jax.xla_computation(f, axis_env=[("i", 4)])(2).as_hlo_text()
    assert (
        "all-reduce.6 = s32[] all-reduce(Arg_0.1), replica_groups={{0,1,2,3}}, "
        "to_apply=region_0.2" in text
    )
    assert "subtract.7 = s32[] subtract(Arg_0.1, all-reduce.6)" in text


def test_three_psums():
    def g(x):
        rowsum = lax.psum(x, "i")
        colsum = lax.psum(x, "j")
        allsum = lax.psum(x, ("i", "j"))
        return rowsum, colsum, allsum

    c = xla_computation(g, axis_env=[("i", 4), ("j", 2)])(5.0)
    assert groups(c.as_hlo_text()) == [
        "{{0,2,4,6},{1,3,5,7}}",
        "{{0,1},{2,3},{4,5},{6,7}}",
        "{{0,1,2,3,4,5,6,7}}",
    ]


def test_other_collectives():
    def f(x):
        moved = lax.ppermute(x, "i", [(0, 1), (1, 0)])
        return (
            moved,
            lax.all_gather(x, "i"),
            lax.axis_index("i"),
            lax.psum(1, "i"),
            lax.pmax(x, "i"),
        )

    text = xla_computation(f, axis_env=[("i", 2)])(np.ones(3, np.float32)).as_hlo_text()
    assert "source_target_pairs={{0,1},{1,0}}" in text
    assert "f32[2,3]{1,0} all-gather" in text and "replica_groups={{0,1}}, dimensions={0}" in text
    assert "replica-id()" in text and "maximum" in text


def test_results_and_parameters_are_trees():
    def f(x, y):
        return {"sum": x["a"] + y, "rest": (x["b"], None)}

    args = ({"a": np.ones(2, np.float32), "b": 3}, np.ones(2, np.int32))
    c, shapes = xla_computation(f, return_shape=True)(*args)
    wanted = "(Arg_0.1: f32[2], Arg_1.2: s32[], Arg_2.3: s32[2]) -> (s32[], f32[2])"
    assert repr(c.program_shape()) == wanted
    assert shapes["sum"].shape == (2,) and shapes["sum"].dtype == np.float32
    assert shapes["rest"][1] is None and shapes["rest"][0].named_shape == {}
    assert repr(xla_computation(lambda x: None)(1).program_shape()) == "(Arg_0.1: s32[]) -> ()"


def test_tuple_args_static_and_donated_arguments():
    def f(x, n, y):
        return x * n + y

    x = np.ones(2, np.float32)
    c = xla_computation(f, static_argnums=1, donate_argnums=(0,))(x, 3, x)
    text = c.as_hlo_text()
    assert "input_output_alias={ {0}: (0, {}, may-alias) }" in text and "constant(3)" in text
    c = xla_computation(f, tuple_args=True, static_argnums=(1,), donate_argnums=2)(x, 3, x)
    assert "{ {0}: (0, {1}, may-alias) }" in c.as_hlo_text()
    assert repr(c.program_shape().parameter_shapes()) == "[(f32[2]{0}, f32[2]{0})]"
    many = xla_computation(lambda *xs: xs[0], tuple_args=None)(*range(101))
    assert len(many.program_shape().parameter_shapes()) == 1


def test_parts_are_shardings():
    def f(x, y):
        return x + 1, y

    x = np.ones((4, 2), np.float32)
    made = xla_computation(f, in_parts=((2, 1), None), out_parts=((2, 1), (1, 2)))(x, x)
    text = made.as_hlo_module().to_string()
    assert "parameter(0), sharding={devices=[2,1]<=[2]}" in text
    assert "parameter(1), sharding={replicated}" in text
    assert "sharding={{devices=[2,1]<=[2]}, {devices=[1,2]<=[2]}}" in text


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: xla_computation(3), TypeError, "Expected a callable value, got 3"),
        (lambda: xla_computation(abs)("a"), TypeError, "Argument 'a' of type <class 'str'>"),
        (lambda: xla_computation(lambda x: lax.psum(x, "i"))(1), NameError, "unbound axis name: i"),
        (
            lambda: xla_computation(abs, static_argnums=2)(1),
            ValueError,
            "called with only 1 positional arguments",
        ),
        (lambda: xla_computation(abs, backend="abacus")(1), ValueError, "Unknown backend"),
        (lambda: haloc.lax.psum(np.ones(2), "i"), NameError, "unbound axis name"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_truth_value_of_a_traced_array_names_the_line():
    def f(x):
        if x > 0:
            return x
        return -x

    with pytest.raises(TypeError, match=r"test_computation.py:\d+ \(f\).*lax.cond"):
        xla_computation(f)(1.0)
    with pytest.raises(TypeError, match="NumPy array"):
        xla_computation(lambda x: np.asarray(x))(1.0)
    kept = []
    xla_computation(kept.append)(1.0)
    with pytest.raises(TypeError, match="kept beyond the function"):
        xla_computation(lambda x: x + kept[0])(1.0)


def test_numpy_functions_dispatch_here():
    def f(x):
        return np.sin(x) + np.float32(2) * x, np.concatenate([x, x]), np.sum(x, axis=0)

    text = xla_computation(f)(np.ones(3, np.float32)).as_hlo_text()
    for opcode in ("sine(", "concatenate(", "reduce("):
        assert opcode in text
    with pytest.raises(TypeError, match="has no kron"):
        xla_computation(lambda x: np.kron(x, x))(np.ones(3))


def test_the_program_runs():
    def f(x, y):
        return jnp.tanh(x @ y).sum(axis=0) / 2

    x, y = (np.random.default_rng(n).normal(size=(3, 3)).astype(np.float32) for n in range(2))
    client = xla_client.make_cpu_client()
    program = client.compile_and_load(xla_computation(f)(x, y), client.devices())
    (result,) = program.execute([client.buffer_from_pyval(v) for v in (x, y)])
    np.testing.assert_allclose(np.asarray(result), np.tanh(x @ y).sum(0) / 2, rtol=1e-5)
