"""Loops and branches: many steps of little work."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from bench.cases.case import F64, Family, normal, positive
from jax import lax
from jax.experimental.ode import odeint

FAMILY = Family("control flow")


def add(name, function, *makers, **facts):
    FAMILY.add(name, function, *makers, **({"floor": False, "error": 1e-4} | facts))


add(
    "while: 10K steps on a scalar",
    lambda x: lax.fori_loop(0, 10_000, lambda i, s: s * 0.999 + jnp.float32(1) / (i + 1), x),
    normal(),
)


def small_ops(x):
    """A few operations on 16 numbers a step, one row of results."""

    def step(state, _):
        a, b = state
        a, b = jnp.sin(a) * 0.9 + b * 0.1, jnp.where(a > b, a - b, b * 0.99)
        return (a, b), a.sum()

    return lax.scan(step, (x, x + 1), None, length=5000)


add("scan of small operations, 5000 steps", small_ops, normal(16))


def rnn(w, u, xs, h):
    def step(h, x):
        h = jnp.tanh(h @ w + x @ u)
        return h, h

    return lax.scan(step, h, xs)[1]


def torch_rnn(t, w, u, xs, h):
    made = []
    for x in xs:
        h = t.tanh(h @ w + x @ u)
        made.append(h)
    return t.stack(made)


RNN = (
    normal(128, 128, scale=0.05),
    normal(64, 128, scale=0.1),
    normal(200, 16, 64),
    normal(16, 128),
)
FLOPS = 200 * 16 * 128 * (128 + 64) * 2.0
add("RNN 200 x (16,128)", rnn, *RNN, torch=torch_rnn, flops=FLOPS, floor=True)
add(
    "gradient of RNN 200 x (16,128)",
    lambda *a: jax.grad(lambda w, u: jnp.mean(rnn(w, u, *a[2:]) ** 2), (0, 1))(*a[:2]),
    *RNN,
    flops=3 * FLOPS,
    floor=True,
)


def lstm(w, xs, h, c):
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (h, c), xs)[1]


def torch_lstm(t, w, xs, h, c):
    made = []
    for x in xs:
        i, f, g, o = (t.cat([x, h], -1) @ w).chunk(4, -1)
        c = t.sigmoid(f) * c + t.sigmoid(i) * t.tanh(g)
        h = t.sigmoid(o) * t.tanh(c)
        made.append(h)
    return t.stack(made)


add(
    "LSTM 100 x (32,128)",
    lstm,
    normal(256, 512, scale=0.06),
    normal(100, 32, 128),
    normal(32, 128),
    normal(32, 128),
    torch=torch_lstm,
    flops=100 * 32 * 256 * 512 * 2.0,
    floor=True,
)


def lotka_volterra(y, t):
    a, b = y
    return jnp.stack([1.1 * a - 0.4 * a * b, 0.1 * a * b - 0.4 * b])


def runge_kutta(y):
    h = 0.01

    def step(_, y):
        k1 = lotka_volterra(y, 0)
        k2 = lotka_volterra(y + h / 2 * k1, 0)
        k3 = lotka_volterra(y + h / 2 * k2, 0)
        k4 = lotka_volterra(y + h * k3, 0)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return lax.fori_loop(0, 5000, step, y)


add("ODE: Runge-Kutta, 5000 steps", runge_kutta, positive(2, dtype=F64), x64=True)
add(
    "ODE: adaptive odeint",
    lambda y: odeint(lotka_volterra, y, jnp.linspace(0.0, 20.0, 50), rtol=1e-9),
    positive(2, dtype=F64),
    x64=True,
)
add(
    "gradient through odeint",
    jax.grad(lambda y: odeint(lotka_volterra, y, jnp.linspace(0.0, 5.0, 5)).sum()),
    positive(2, dtype=F64),
    x64=True,
    error=1e-3,
)


def branches(x):
    """A random walk that chooses one of three branches each step."""
    walks = [lambda x: x * 1.01, lambda x: x - 0.1, jnp.cos]
    return lax.fori_loop(0, 5000, lambda i, x: lax.switch((i * 7) % 3, walks, x), x)


add("switch in a loop, 5000 steps", branches, normal(16))


def update_rows(x):
    """Each row from the one before it, written in place."""

    def step(i, x):
        return x.at[i].set(jnp.roll(x[i - 1], 1) * 0.5 + x[i])

    return lax.fori_loop(1, 1000, step, x)


add("rows written in a loop (1000,1024)", update_rows, normal(1000, 1024))


def newton(x):
    """Cube roots by a while loop of its own for each of many numbers."""

    def root(x):
        return lax.while_loop(
            lambda y: jnp.abs(y * y * y - x) > 1e-4 * x,
            lambda y: y - (y * y * y - x) / (3 * y * y),
            x,
        )

    return jax.vmap(root)(x)


add("batched while 64K", newton, positive(65536))
