"""Modules made by JAX, before and after XLA's own optimisation, round-trip and stay XLA's."""

import re

import jax
import jax.numpy as jnp
import jaxlib._hlo
import numpy as np
import pytest
from jax import lax

from haloc.formats.hlo_text import parse_module, to_text
from tests.formats.compare import differences

X = np.ones((8, 16), np.float32)
SQUARE = np.eye(4, dtype=np.float32)
IMAGE = np.ones((2, 9, 9, 3), np.float32)
KERNEL = np.ones((3, 3, 3, 4), np.float32)


def conv(a, b):
    return lax.conv_general_dilated(
        a, b, (2, 2), "SAME", rhs_dilation=(2, 1), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def loss(w, x):
    return jnp.mean(jax.nn.softmax(jnp.tanh(x @ w)) ** 2)


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "SAME")


PROGRAMS = {
    "grad": (jax.grad(loss), np.ones((16, 16), np.float32), X),
    "conv grad": (jax.grad(lambda a, b: conv(a, b).sum(), (0, 1)), IMAGE, KERNEL),
    "argsort": (jnp.argsort, X),
    "rng": (lambda: jax.random.normal(jax.random.key(0), (4,)),),
    "rbg": (lambda: lax.rng_bit_generator(jnp.zeros(4, "uint32"), (5,)),),
    "scan": (lambda x: lax.scan(lambda c, y: (c + y.sum(), c), 0.0, x), X),
    "cond": (lambda p, x: lax.cond(p, lambda x: x + 1, jnp.sin, x), True, X),
    "switch": (lambda p, x: lax.switch(p, [jnp.cos, jnp.exp, jnp.sin], x), 1, X),
    "gather": (lambda x, i: x[i, :2], X, np.array([1, 2])),
    "scatter": (lambda x, i: x.at[i].add(2.0), X, np.array([1, 2])),
    "fft": (jnp.fft.rfft, X),
    "cholesky": (jnp.linalg.cholesky, SQUARE),
    "svd": (jnp.linalg.svd, SQUARE),
    "select and scatter": (jax.grad(lambda x: pool(x).sum()), X),
    "argmax": (lambda x: jnp.argmax(x, 1), X),
    "top k": (lambda x: lax.top_k(x, 3), X),
    "bf16": (lambda x: jnp.clip(x, 0, 1).astype("bfloat16") @ x.T, X),
    "dynamic": (lambda x, i: lax.dynamic_update_slice(x, x[:2, :2] * 2, (i, i)), X, 1),
    "constant": (lambda: jnp.array(np.random.RandomState(0).randn(6, 9)),),
    "callback": (
        lambda x: jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((8, 16), "float32"), x),
        X,
    ),
    "precision": (lambda a: lax.dot(a, a.T, precision="highest"), X),
}


def xla_instructions(text: str) -> list[str]:
    """XLA's print of the instructions, in no order; it renumbers stack frames it does not need."""
    options = jaxlib._hlo.HloPrintOptions()
    options.print_percent = False
    options.print_large_constants = True
    return instructions(jaxlib._hlo.hlo_module_from_text(text).to_string(options))


def instructions(text: str) -> list[str]:
    lines = (line for line in text.splitlines() if " = " in line)
    return sorted(re.sub(r" ?stack_frame_id=\d+", "", line) for line in lines)


@pytest.mark.parametrize("name", PROGRAMS)
def test_jax_module_round_trips(name):
    function, *arguments = PROGRAMS[name]
    lowered = jax.jit(function).lower(*arguments)
    given = lowered.compiler_ir("hlo")
    texts = [
        given.as_hlo_text(),
        given.as_hlo_text(print_large_constants=True),
        lowered.compile().as_text(),
    ]
    for text in texts:
        module = parse_module(text)
        printed = to_text(module)
        assert differences(parse_module(printed), module) == []
        ours, theirs = xla_instructions(printed), xla_instructions(text)
        if "{...}" not in text:  # XLA numbers the words of elided constants over the process
            assert instructions(printed) == ours
            assert ours == theirs


def test_sharded_jax_module_round_trips():
    devices = jax.devices()[:1]
    mesh = jax.sharding.Mesh(np.array(devices).reshape(1, 1), ("a", "b"))
    spec = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("a", "b"))
    text = jax.jit(jnp.sin, in_shardings=spec).lower(X).compiler_ir("hlo").as_hlo_text()
    module = parse_module(text)
    assert differences(parse_module(to_text(module)), module) == []
