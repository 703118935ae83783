"""Exported functions: (function, argument types, sets of arguments, platforms)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

_RNG = np.random.default_rng(0)


def typed(shape, dtype=jnp.float32, scope=None):
    """A type; a string is a symbolic shape."""
    if isinstance(shape, str):
        shape = export.symbolic_shape(shape, scope=scope or export.SymbolicScope())
    return jax.ShapeDtypeStruct(shape, dtype)


def array(*dims):
    return _RNG.standard_normal(dims).astype(np.float32)


def index(*values):
    return np.array(values, np.int32)


def scoped(*constraints):
    return export.SymbolicScope(constraints)


def mlp(x, w, v):
    return jax.nn.softmax(jnp.tanh(x @ w) @ v, -1).mean(0)


def attention(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    mask = jnp.tril(jnp.ones((q.shape[1], q.shape[1]), bool))
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, scores, -1e9), -1), v)


def pool(init, op, padding):
    return lambda x: lax.reduce_window(x, init, op, (1, 2, 2, 1), (1, 2, 2, 1), padding)


def dot_all(x):
    return x.reshape(-1) @ jnp.arange(x.shape[0] * x.shape[1]).astype(x.dtype) + x.shape[0]


def spd(x):
    return x @ jnp.swapaxes(x, -1, -2) + 3 * jnp.eye(3)


def weight_gradient(w, x):
    return jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)


def pool_gradient(x):
    return jax.grad(
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID").sum()
    )(x)


def on_platform(x):
    return lax.platform_dependent(
        x, cpu=lambda x: jnp.sort(x) + 1, cuda=lambda x: x + 2, default=lambda x: x + 3
    )


_AB = scoped()
_ANK = scoped()
_ATT = scoped()
_SOLVE = scoped()

PROGRAMS = {
    "plain": (lambda x: {"a": x + 1, "b": [x * 2]}, [typed((3,))], [(array(3),)]),
    "trees": (
        lambda x, d: ({"out": (x + 1, d["a"] * 2), "n": None}, [x]),
        [typed("b,3"), {"a": typed((4,)), "z": typed((), bool)}],
        [(array(n, 3), {"a": array(4), "z": np.True_}) for n in (2, 7)],
    ),
    "b, 2*b": (dot_all, [typed("b, 2*b")], [(array(2, 4),), (array(3, 6),)]),
    "mlp": (
        mlp,
        [typed("b,8"), typed((8, 16)), typed((16, 4))],
        [(array(n, 8), array(8, 16), array(16, 4)) for n in (1, 5)],
    ),
    "convolution": (
        lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "SAME"),
        [typed("b,3,h,w"), typed((4, 3, 3, 3))],
        [(array(2, 3, 8, 9), array(4, 3, 3, 3)), (array(1, 3, 5, 7), array(4, 3, 3, 3))],
    ),
    "average pool": (
        pool(0.0, lax.add, "SAME"),
        [typed("b,h,h,3")],
        [(array(2, 5, 5, 3),), (array(1, 8, 8, 3),)],
    ),
    "max pool": (
        pool(-jnp.inf, lax.max, "VALID"),
        [typed("b,h,h,3")],
        [(array(2, 5, 5, 3),), (array(1, 8, 8, 3),)],
    ),
    "scan": (
        lambda x: lax.scan(lambda c, y: (c + y, c.sum()), jnp.zeros(x.shape[1:]), x),
        [typed("t,b")],
        [(array(4, 3),), (array(2, 5),)],
    ),
    "fori_loop": (
        lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c / 2 + x[i], jnp.zeros(x.shape[1])),
        [typed("t,b")],
        [(array(4, 3),)],
    ),
    "gather": (
        lambda x, i: x[i],
        [typed("a,c", scope=_AB), typed("n", jnp.int32, _AB)],
        [(array(4, 3), index(0, 3, 1))],
    ),
    "scatter": (
        lambda x, i: x.at[i].add(1.0),
        [typed("a,c"), typed((3,), jnp.int32)],
        [(array(4, 3), index(0, 3, 1))],
    ),
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1)), [typed("a,c")], [(array(4, 3),)]),
    "cumsum": (
        lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1)),
        [typed("a,c")],
        [(array(4, 3),), (array(9, 2),)],
    ),
    "concatenate": (
        lambda x: jnp.concatenate([x, x[::-1], x[:1]], 0),
        [typed("a,c")],
        [(array(4, 3),)],
    ),
    "slices": (
        lambda x: (x[1:-1], x[::2], x[:, -2:]),
        [typed("a,c", scope=scoped("a>=3", "c>=2"))],
        [(array(4, 3),), (array(7, 2),)],
    ),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, x.shape[0]))), [typed("a,c")], [(array(4, 3),)]),
    "dynamic_slice": (
        lambda x, i: lax.dynamic_slice(x, (i, np.int32(0)), (2, x.shape[1])),
        [typed("a,c", scope=scoped("a>=2")), typed((), jnp.int32)],
        [(array(4, 3), np.int32(1)), (array(4, 3), np.int32(9))],
    ),
    "dynamic_update_slice": (
        lambda x, i: lax.dynamic_update_slice(x, jnp.ones((1, x.shape[1]), x.dtype), (i, 0 * i)),
        [typed("a,c"), typed((), jnp.int32)],
        [(array(4, 3), np.int32(1))],
    ),
    "attention": (
        attention,
        [typed("b,t,2,4", scope=_ATT)] * 3,
        [(array(2, 5, 2, 4), array(2, 5, 2, 4), array(2, 5, 2, 4))],
    ),
    "gradient": (
        weight_gradient,
        [typed((3, 4)), typed("b,3")],
        [(array(3, 4), array(6, 3)), (array(3, 4), array(1, 3))],
    ),
    "pool gradient": (pool_gradient, [typed("a,a")], [(array(6, 6),)]),
    "cholesky": (lambda x: jnp.linalg.cholesky(spd(x)), [typed("b,3,3")], [(array(2, 3, 3),)]),
    "eigvalsh": (lambda x: jnp.linalg.eigvalsh(spd(x)), [typed("b,3,3")], [(array(2, 3, 3),)]),
    "svd": (
        lambda x: jnp.linalg.svd(x, compute_uv=False),
        [typed("b,n,3")],
        [(array(2, 4, 3),)],
    ),
    "qr": (lambda x: jnp.abs(jnp.linalg.qr(x)[1]), [typed("b,4,3")], [(array(2, 4, 3),)]),
    "solve": (
        lambda a, b: jnp.linalg.solve(spd(a), b),
        [typed("b,3,3", scope=_SOLVE), typed("b,3,1", scope=_SOLVE)],
        [(array(2, 3, 3), array(2, 3, 1))],
    ),
    "top_k": (lambda x: lax.top_k(x, 2), [typed("b,5")], [(array(2, 5),)]),
    "top_k of a symbolic k": (
        lambda x: lax.top_k(x, x.shape[0]),
        [typed("b,9", scope=scoped("b<=9"))],
        [(array(2, 9),)],
    ),
    "approximate top_k": (
        lambda x: lax.approx_max_k(x, 3),
        [typed("b,64")],
        [(array(2, 64),)],
    ),
    "approximate top_k of a symbolic k": (
        lambda x: lax.approx_min_k(x, x.shape[0]),
        [typed("b,64", scope=scoped("b<=64"))],
        [(array(2, 64),)],
    ),
    "random normal": (
        lambda k, x: x + jax.random.normal(k, x.shape),
        [typed((2,), jnp.uint32), typed("b,5")],
        [(np.array([1, 2], np.uint32), array(n, 5)) for n in (2, 3)],
    ),
    "random bits": (
        lambda x: jax.random.bits(jax.random.key(3, impl="rbg"), x.shape),
        [typed("b,c")],
        [(array(2, 5),)],
    ),
    "fft": (lambda x: jnp.abs(jnp.fft.rfft(x)), [typed("b,8")], [(array(2, 8),)]),
    "cond": (
        lambda x: lax.cond(x.sum() > 0, lambda: x * 2, lambda: -x),
        [typed("b")],
        [(array(5),), (-np.ones(3, np.float32),)],
    ),
    "switch": (
        lambda i, x: lax.switch(i, [lambda: x * 2, lambda: -x, lambda: x + x.shape[0]]),
        [typed((), jnp.int32), typed("b")],
        [(np.int32(i), array(5)) for i in range(3)],
    ),
    "special functions": (
        lambda x: (lax.erf_inv(jnp.tanh(x)), lax.lgamma(x), lax.bessel_i1e(x)),
        [typed("b")],
        [(array(5),)],
    ),
    "arithmetic of sizes": (
        lambda x: jnp.zeros((x.shape[0] // 2 + x.shape[0] % 3, x.shape[1] * 3 - 1)) + x.shape[0],
        [typed("a,c")],
        [(array(7, 3),), (array(8, 1),)],
    ),
    "reshape": (
        lambda x: x.reshape((x.shape[0] // 2, 2, -1)).sum(1),
        [typed("2*a,c")],
        [(array(6, 3),)],
    ),
    "vmap": (
        lambda x: jax.vmap(lambda r: jnp.outer(r, r).sum(0))(x),
        [typed("a,c")],
        [(array(6, 3),)],
    ),
    "normalise": (
        lambda x: (x - x.mean((0, 1))) / jnp.sqrt(x.var((0, 1)) + 1e-5),
        [typed("a,b,c")],
        [(array(2, 6, 3),)],
    ),
    "resize": (
        lambda x: jax.image.resize(x, (x.shape[0] * 2, x.shape[1]), "bilinear"),
        [typed("a,c")],
        [(array(4, 6),)],
    ),
    "custom derivatives": (
        lambda x: jax.nn.relu(x) + jax.nn.gelu(x),
        [typed("a,c")],
        [(array(4, 6),)],
    ),
    "platforms": (on_platform, [typed((4,))], [(array(4),)], ["tpu", "cpu", "cuda"]),
    "platforms and sizes": (on_platform, [typed("b")], [(array(4),)], ["cuda", "cpu"]),
    "linear algebra on platforms": (
        lambda x: jnp.linalg.eigvalsh(spd(x)),
        [typed("b,3,3")],
        [(array(2, 3, 3),)],
        ["cpu", "cuda"],
    ),
    "iota": (
        lambda x: jnp.arange(x.shape[0] * 2)[:, None] * jnp.ones((1, x.shape[0])),
        [typed("b")],
        [(array(4),)],
    ),
    "linspace": (
        lambda x: jnp.linspace(0.0, 1.0, x.shape[0]),
        [typed("b", scope=scoped("b>=2"))],
        [(array(4),)],
    ),
    "one_hot": (
        lambda i, x: jax.nn.one_hot(i, x.shape[0]),
        [typed("n", jnp.int32, _ANK), typed("b", scope=_ANK)],
        [(index(1, 2), array(4))],
    ),
    "associative scan": (
        lambda x: lax.associative_scan(jnp.add, x),
        [typed((8,))],
        [(array(8),)],
    ),
    "argmax": (lambda x: (jnp.argmax(x, 1), x.max(0)), [typed("a,c")], [(array(4, 6),)]),
    "median": (
        lambda x: (jnp.median(x, 0), jnp.quantile(x, 0.3, 1)),
        [typed("a,c")],
        [(array(4, 6),)],
    ),
    "triangles": (
        lambda x: jnp.tril(x) + jnp.triu(x, 1) + jnp.eye(x.shape[0]),
        [typed("a,a")],
        [(array(4, 4),)],
    ),
    "random key arguments": (
        lambda k, x: jax.random.uniform(k, x.shape),
        [jax.ShapeDtypeStruct((), jax.random.key(0).dtype), typed("b,5")],
        [(jax.random.key(7), array(2, 5))],
    ),
}
