"""numpy, control flow, transformations, libraries, several devices."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax, random
from jax.experimental.ode import odeint
from jax.scipy import special, stats

from tests.jax.programs.table import normal, program

# --- numpy ---------------------------------------------------------------------------------------


@program
def elementwise():
    x = normal(5, 7)
    return [jnp.sin(x), jnp.exp(x) * x, jnp.where(x > 0, x, -x), jnp.logaddexp(x, 1), x**2 / 3]


@program
def integers_and_bits():
    x = jnp.arange(-8, 8, dtype=jnp.int32)
    return [x // 3, x % 3, x << 2, x & 5, jnp.bitwise_xor(x, 3), lax.population_count(x), abs(x)]


@program
def reductions():
    x = normal(4, 5, 6)
    return [x.sum(0), x.mean((1, 2)), x.max(), x.argmin(1), x.std(), jnp.any(x > 2), x.prod(2)]


@program
def indexing():
    x = jnp.arange(60.0).reshape(3, 4, 5)
    i = jnp.array([2, 0, 1])
    return [x[i], x[:, 1:3, ::2], x.at[i, 0].set(9), x.at[..., 1].add(1), x[-1, ..., None], x[i, i]]


@program
def sorting():
    x = normal(6, 9)
    keys = jnp.array([3, 1, 2, 1, 3, 2])
    return [
        jnp.sort(x, 0),
        jnp.argsort(x),
        lax.top_k(x, 3),
        jnp.unique(keys, size=4),
        jnp.searchsorted(jnp.arange(5.0), x),
        jnp.median(x),
        jnp.lexsort((x[:, 0], keys)),
    ]


@program
def shapes():
    x = jnp.arange(24).reshape(2, 3, 4)
    return [
        jnp.transpose(x, (2, 0, 1)),
        jnp.concatenate([x, x + 1], 1),
        jnp.stack([x, x]),
        jnp.pad(x, 1),
        jnp.tile(x, (1, 2, 1)),
        jnp.roll(x, 2, 1),
        x[::-1],
        jnp.split(x, 2, 2),
    ]


@program
def contractions():
    a, b = normal(8, 16), normal(16, 4, seed=1)
    batch = normal(3, 5, 8, seed=2)
    return [
        a @ b,
        jnp.einsum("bij,jk->bik", batch, a),
        jnp.tensordot(batch, a, 1),
        jnp.outer(a[0], b[:, 0]),
        jnp.dot(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)),
        jnp.dot(jnp.arange(12).reshape(3, 4), jnp.arange(4)),
    ]


@program
def cumulative():
    x = normal(4, 33)
    return [jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1), lax.associative_scan(jnp.add, x)]


@program
def dtypes():
    x = jnp.arange(-6.0, 7.0) * 0.5
    kinds = [jnp.float16, jnp.bfloat16, jnp.int8, jnp.uint8, jnp.complex64, jnp.bool_]
    return [x.astype(k) for k in kinds] + [x.astype(jnp.int32).astype(jnp.float8_e4m3fn)]


@program
def complex_numbers():
    z = lax.complex(normal(6), normal(6, seed=1))
    return [jnp.exp(z), z * z.conj(), jnp.abs(z), jnp.angle(z), jnp.sqrt(z), jnp.vdot(z, z)]


@program
def empty_arrays():
    x = jnp.zeros((0, 3))
    return [x.sum(0), x + 1, jnp.concatenate([x, jnp.ones((2, 3))]), x.T, x @ jnp.ones((3, 2))]


@program
def convolutions():
    x, w = normal(2, 9, 9, 3), normal(3, 3, 3, 8, seed=1)
    numbers = ("NHWC", "HWIO", "NHWC")
    same = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)
    strided = lax.conv_general_dilated(x, w, (2, 2), "VALID", dimension_numbers=numbers)
    return [same, strided, jnp.convolve(x[0, 0, :, 0], w[0, :, 0, 0])]


# --- Control flow --------------------------------------------------------------------------------


@program
def loops():
    def body(carry, x):
        return carry * 0.9 + x, carry.sum()

    carry, sums = lax.scan(body, jnp.zeros(3), normal(10, 3))
    newton = lax.while_loop(lambda x: jnp.abs(x * x - 2) > 1e-6, lambda x: 0.5 * (x + 2 / x), 1.0)
    total = lax.fori_loop(0, 10, lambda i, t: t + i, 0)
    return [carry, sums, newton, total, lax.map(jnp.sum, normal(4, 5))]


@program
def branches():
    def pick(i):
        return lax.switch(i, [jnp.sin, jnp.cos, lambda x: x * 2], 1.5)

    yes = jax.jit(lambda p: lax.cond(p, lambda: jnp.ones(3), lambda: jnp.zeros(3)))
    return [jax.jit(pick)(i) for i in (0, 1, 2)] + [yes(True), yes(False)]


# --- Transformations -----------------------------------------------------------------------------


def mlp(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def mlp_params():
    dims = (7, 16, 16, 3)
    return [(normal(m, n, seed=m) * 0.3, jnp.zeros(n)) for m, n in zip(dims, dims[1:])]


@program
def gradients():
    params, x = mlp_params(), normal(5, 7)
    value, grads = jax.jit(jax.value_and_grad(lambda p: (mlp(p, x) ** 2).mean()))(params)
    hessian = jax.hessian(lambda v: jnp.sum(jnp.sin(v) * v**2))(jnp.arange(3.0))
    return [value, grads, hessian, jax.jacfwd(lambda v: v**3)(jnp.arange(3.0))]


@program
def vectorised():
    def distance(a, b):
        return jnp.sqrt(((a - b) ** 2).sum())

    a, b = normal(4, 3), normal(6, 3, seed=1)
    pairs = jax.vmap(jax.vmap(distance, (None, 0)), (0, None))
    return [pairs(a, b), jax.vmap(jnp.linalg.inv)(normal(5, 3, 3)), jax.vmap(jnp.sort)(a)]


@program
def custom_rules():
    @jax.custom_vjp
    def clip_gradient(x):
        return x

    clip_gradient.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))

    @jax.custom_jvp
    def softened(x):
        return jnp.log1p(jnp.exp(x))

    softened.defjvp(lambda p, t: (softened(*p), jax.nn.sigmoid(p[0]) * t[0]))
    x = jnp.arange(-2.0, 3.0)
    return [jax.grad(lambda v: (clip_gradient(v) ** 2).sum())(x), jax.grad(softened)(1.5)]


@program
def checkpointed():
    @jax.checkpoint
    def block(x):
        return jnp.sin(jnp.cos(x) * x)

    return jax.grad(lambda x: block(block(x)).sum())(normal(9))


@program
def training():
    def loss(params, x, y):
        return ((mlp(params, x) - y) ** 2).mean()

    @partial(jax.jit, donate_argnums=0)
    def step(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), value

    params, x = mlp_params(), normal(64, 7, seed=3)
    y = jnp.sin(x[:, :3])
    values = []
    for _ in range(20):
        params, value = step(params, x, y)
        values.append(value)
    return [params, values]


# --- nn, random, linalg, fft, scipy --------------------------------------------------------------


@program
def activations():
    x = jnp.linspace(-4, 4, 33)
    names = ("relu", "gelu", "silu", "softplus", "elu", "sigmoid", "log_softmax", "softmax")
    return [getattr(jax.nn, n)(x) for n in names] + [jax.nn.one_hot(jnp.arange(3), 4)]


@program
def attention():
    q, k, v = (normal(2, 6, 4, 8, seed=s) for s in range(3))
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


@program
def random_numbers():
    key = random.key(7)
    a, b, c, d = random.split(key, 4)
    return [
        random.bits(key, (5,)),
        random.normal(a, (7,)),
        random.randint(b, (6,), -3, 100),
        random.permutation(c, 9),
        random.categorical(d, jnp.log(jnp.array([0.1, 0.2, 0.7])), shape=(8,)),
        random.gamma(a, 2.0, (4,)),
        random.truncated_normal(b, -1, 1, (5,)),
        random.bernoulli(c, 0.3, (10,)),
        random.choice(d, 10, (4,), replace=False),
    ]


@program
def decompositions():
    a = normal(5, 5)
    s = a @ a.T + 5 * jnp.eye(5)
    lower = jnp.linalg.cholesky(s)
    u, values, v = jnp.linalg.svd(a)
    w, vectors = jnp.linalg.eigh(s)
    q, r = jnp.linalg.qr(a)
    solved = jnp.linalg.solve(a, jnp.ones(5))
    # Signs of singular vectors and the like are free: what they make together is not.
    return [
        lower,
        (u * values) @ v,
        (vectors * w) @ vectors.T,
        w,
        q @ r,
        solved,
        jnp.linalg.det(a),
        jax.scipy.linalg.lu(a)[2],
        jnp.linalg.lstsq(a[:, :3], a[:, 3])[0],
        jax.scipy.linalg.expm(a * 0.1),
    ]


@program
def eigenvalues():
    a = normal(4, 4)
    return [jnp.sort_complex(jnp.linalg.eigvals(a)), jnp.linalg.matrix_rank(a)]


@program
def fourier():
    x = normal(4, 16)
    return [jnp.fft.fft(x), jnp.fft.rfft2(x), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.fft.fftshift(x)]


@program
def special_functions():
    x = jnp.linspace(0.1, 5, 17)
    return [
        special.gammaln(x),
        special.digamma(x),
        special.erf(x),
        special.erfinv(x / 6),
        special.i0(x),
        special.betainc(x, 2.0, 0.5),
        stats.norm.logpdf(x),
        special.logsumexp(x),
    ]


@program
def segments():
    data, ids = normal(10, 3), jnp.array([0, 1, 1, 2, 0, 2, 2, 1, 0, 3])
    return [jax.ops.segment_sum(data, ids, 4), jax.ops.segment_max(data, ids, 4)]


@program
def ode():
    def pendulum(y, t):
        return jnp.array([y[1], -jnp.sin(y[0])])

    return odeint(pendulum, jnp.array([1.0, 0.0]), jnp.linspace(0, 2, 9))


# --- Around the call -----------------------------------------------------------------------------


@program
def transfers():
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    strided = np.arange(40, dtype=np.int16)[::-3]
    return [jnp.asarray(host), jax.device_put(host.T), jax.device_put(strided), jnp.array(2.5)]


@program
def exported():
    artifact = export.export(jax.jit(lambda x: jnp.cos(x) + 1))(
        jax.ShapeDtypeStruct((4,), jnp.float32)
    )
    return export.deserialize(artifact.serialize()).call(jnp.arange(4.0))


@program
def ahead_of_time():
    lowered = jax.jit(lambda x, y: x @ y).lower(jnp.ones((3, 4)), jnp.ones((4, 2)))
    compiled = lowered.compile()
    assert compiled.cost_analysis()["flops"] > 0
    return compiled(jnp.ones((3, 4)), jnp.ones((4, 2)))


# --- Several devices -----------------------------------------------------------------------------


@program
def replicated_over_devices():
    x = jnp.arange(16.0).reshape(8, 2)
    everywhere = jax.pmap(lambda a: lax.psum(a, "i") / lax.axis_index("i").max(), axis_name="i")
    gathered = jax.pmap(lambda a: lax.all_gather(a, "i") @ a, axis_name="i")
    moved = jax.pmap(lambda a: lax.ppermute(a, "i", [(k, (k + 1) % 8) for k in range(8)]), "i")
    return [everywhere(x + 1)[1:], gathered(x), moved(x)]


def mesh():
    auto = jax.sharding.AxisType.Auto
    return jax.make_mesh((4, 2), ("x", "y"), axis_types=(auto, auto))


@program
def manual_over_a_mesh():
    def local(a, b):
        return lax.psum(a @ b, "y"), lax.all_to_all(a, "x", 0, 1, tiled=True)

    P = jax.sharding.PartitionSpec
    specs = (P("x", "y"), P("y", None))
    f = jax.shard_map(local, mesh=mesh(), in_specs=specs, out_specs=(P("x"), P(None, ("x", "y"))))
    return jax.jit(f)(normal(16, 8), normal(8, 3))


@program
def sharded_arrays():
    P = jax.sharding.PartitionSpec
    where = jax.sharding.NamedSharding(mesh(), P("x", "y"))
    a = jax.device_put(normal(8, 6), where)
    f = jax.jit(lambda a: (jnp.sin(a) + 1, a.T @ a, a.sum(0)), out_shardings=(where, None, None))
    return [a, f(a), jax.grad(lambda a: (a**3).mean())(a)]
