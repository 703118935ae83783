"""Functions written with JAX: to HLO, and to programs of haloc."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haloc.jax
from haloc import xla_computation
from haloc.errors import UnimplementedError

X = np.arange(3, dtype=np.float32)


def f(x):
    return jnp.sin(jnp.cos(x))


@pytest.mark.parametrize(
    "fun", [f, jax.jit(f), lambda x: jax.lax.sin(x), lambda x: jnp.ones(3) + x], ids=range(4)
)
def test_jax_traces_what_is_written_with_jax(fun):
    c = xla_computation(fun)(X)
    assert repr(c.program_shape().result_shape()) == "(f32[3]{0})"
    assert c.name().startswith("xla_computation_")


def test_parameters_of_xla_computation():
    def g(x, n, unused):
        return jnp.sin(x) * n, {"a": unused["b"].sum()}

    scalar = types.SimpleNamespace(shape=(3,), dtype=np.dtype(np.float32))
    c, shapes = xla_computation(g, static_argnums=1, return_shape=True)(scalar, 3, {"b": X})
    assert len(c.program_shape().parameter_shapes()) == 2 and shapes[0].shape == (3,)
    c = xla_computation(f, tuple_args=True, donate_argnums=0)(X)
    text = c.as_hlo_text()
    assert "entry_computation_layout={((f32[3]{0}))->(f32[3]{0})}" in text
    assert "{0}: (0, {0}, may-alias)" in text
    with pytest.raises(UnimplementedError, match="axis_env"):
        xla_computation(f, axis_env=[("i", 2)])(X)


def test_compiled_by_haloc():
    program = haloc.jax.compile(f, X)
    (result,) = program.execute([program.client.buffer_from_pyval(X)])
    np.testing.assert_allclose(np.asarray(result), np.sin(np.cos(X)), rtol=1e-5)
