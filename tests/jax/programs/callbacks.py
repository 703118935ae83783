"""Calls from programs back to Python."""

from __future__ import annotations

import contextlib
import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback

from tests.jax.programs.table import normal, program


def like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def host_sin(x):
    return np.sin(x).astype(x.dtype)


def sin(x, **parameters):
    return jax.pure_callback(host_sin, like(x), x, **parameters)


@program
def pure_callbacks():
    x = jnp.arange(4.0)
    each = jax.vmap(lambda v: sin(v, vmap_method="sequential"))
    together = jax.vmap(lambda v: sin(v, vmap_method="expand_dims"))
    branch = jax.jit(lambda p, v: lax.cond(p, sin, lambda u: u, v))
    return [jax.jit(lambda v: sin(v) * 2)(x), each(x), together(x), branch(True, x)]


@program
def callback_with_gradient():
    @jax.custom_vjp
    def f(x):
        return sin(x)

    def backward(x, g):
        return (jax.pure_callback(lambda v: np.cos(v), like(x), x) * g,)

    f.defvjp(lambda x: (f(x), x), backward)
    return jax.jit(jax.grad(lambda x: f(x).sum()))(normal(5))


@program
def callback_in_scan():
    def body(total, x):
        y = sin(x)
        return total + y, y

    return jax.jit(lambda x: lax.scan(body, 0.0, x))(jnp.arange(5.0))


@program
def ordered_callbacks():
    seen = []

    def twice(v):
        seen.append(float(v))
        return np.float32(2 * v)

    def body(_, x):
        return io_callback(twice, jax.ShapeDtypeStruct((), jnp.float32), x, ordered=True)

    result = jax.jit(lambda x: lax.fori_loop(0, 5, body, x))(1.0)
    jax.jit(lambda x: io_callback(lambda v: seen.append(float(v)), None, x, ordered=True))(-1.0)
    jax.jit(lambda x: io_callback(lambda v: seen.append(float(v)), None, x))(-2.0)
    jax.effects_barrier()
    return [result, np.array(seen)]


@program
def debug_prints():
    def cube(x):
        jax.debug.print("x is {}", x, ordered=True)
        return x**3

    def body(total, x):
        jax.debug.print("{} {y}", total, y=x, ordered=True)
        return total + x, None

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        gradient = jax.jit(jax.grad(cube))(2.0)
        lax.scan(body, 0.0, jnp.arange(3.0))
        jax.jit(jax.vmap(lambda x: jax.debug.print("vmap {}", x)))(jnp.arange(3.0))
        jax.effects_barrier()
    return [gradient, np.frombuffer(out.getvalue().encode(), np.uint8)]


@program
def exceptions_of_callbacks():
    def fail(x):
        raise ValueError("the words of the callback")

    kinds = []
    for f in (
        lambda x: jax.pure_callback(fail, like(x), x),
        lambda x: io_callback(fail, None, x),
        lambda x: jax.debug.callback(fail, x),
    ):
        with pytest.raises(jax.errors.JaxRuntimeError, match="the words of the callback"):
            jax.block_until_ready(jax.jit(f)(jnp.arange(3.0)))
            jax.effects_barrier()
        kinds.append(1)
    return [np.array(kinds), jax.jit(sin)(jnp.arange(3.0))]


@program
def callbacks_of_all_types():
    found = []
    for name in ("int8", "uint16", "bfloat16", "bool", "complex64", "float8_e4m3fn", "int4"):
        x = jnp.arange(4).astype(name)
        same = jax.jit(lambda v: jax.pure_callback(np.asarray, like(v), v))(x)
        found.append(same.astype(jnp.complex64))
    return found


@program
def callbacks_on_devices():
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    P = jax.sharding.PartitionSpec
    seen = []

    def local(x):
        jax.debug.callback(lambda v: seen.append(v.shape), x)
        return sin(x)

    f = jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    x = jnp.arange(16.0)
    results = [jax.jit(f)(x), jax.pmap(sin)(x.reshape(8, 2))]
    jax.effects_barrier()
    return [*results, np.array(seen)]


@program
def jax_inside_a_callback():
    def host(x):
        return np.asarray(jnp.cos(x) * 2)

    x = jnp.arange(4.0)
    return jax.jit(lambda v: jax.pure_callback(host, like(v), v) + 1)(x)
