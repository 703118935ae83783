"""Training with libraries of PyPI, unmodified."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from tests.jax.programs.table import normal, program


@program
def flax_and_optax():
    nn = pytest.importorskip("flax.linen")
    optax = pytest.importorskip("optax")

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Conv(8, (3, 3))(x)
            x = nn.relu(nn.LayerNorm()(x))
            x = nn.avg_pool(x, (2, 2), strides=(2, 2)).reshape(x.shape[0], -1)
            return nn.Dense(4)(nn.gelu(nn.Dense(16)(x)))

    net, x = Net(), normal(16, 8, 8, 1)
    labels = jnp.arange(16) % 4
    parameters = net.init(jax.random.key(0), x)
    schedule = optax.cosine_decay_schedule(1e-2, 10)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))

    def loss(parameters):
        logits = net.apply(parameters, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    @jax.jit
    def step(parameters, state):
        value, gradients = jax.value_and_grad(loss)(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, value

    state, losses = optimizer.init(parameters), []
    for _ in range(10):
        parameters, state, value = step(parameters, state)
        losses.append(value)
    assert losses[-1] < losses[0]
    return losses
