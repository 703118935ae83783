"""haloc.numpy and haloc.lax against jax.numpy and jax.lax: values, dtypes, weak types."""
# ruff: noqa: SIM905  # words are shorter than lists of them

import jax
import jax.numpy as jax_numpy
import numpy as np
import pytest
from jax import lax as jax_lax

from haloc import lax, xla_computation
from haloc import numpy as jnp

F = np.array([[-1.5, 0.25, 2.0], [0.5, -0.75, 3.0]], np.float32)
I = np.array([[1, -2, 3], [4, 5, -6]], np.int32)  # noqa: E741
B = np.array([True, False, True])
H = F.astype(np.float16)
U = np.array([1, 2, 250], np.uint8)

CASES = {}


def case(name, function, *args):
    CASES[name] = (function, args)


for (
    _name
) in "sin cos tan exp expm1 tanh sinh cosh arctan floor ceil abs negative sign square".split():
    for _label, _x in {"f": F, "i": I, "h": H}.items():
        case(f"{_name}-{_label}", lambda m, lax, x, n=_name: getattr(m, n)(x), _x)
for _name in (
    "add subtract multiply divide maximum minimum arctan2 less equal power remainder floor_divide"
).split():
    for _label, _xy in {
        "ff": (F, F[:1]),
        "fi": (F, I),
        "if": (I, 2.5),
        "ii": (I, 3),
        "hf": (H, 1.5),
        "uu": (U, U),
        "bi": (B, I),
        "ub": (U, B),
        "sf": (3, F),
        "ss": (2, 1.5),
    }.items():
        if _name not in ("power",) or _label in ("ff", "if", "hf", "ss"):
            case(f"{_name}-{_label}", lambda m, lax, x, y, n=_name: getattr(m, n)(x, y), *_xy)
for _name in "sum prod max min any all mean var".split():
    case(_name, lambda m, lax, x, n=_name: getattr(m, n)(x), F)
    case(f"{_name}-axis", lambda m, lax, x, n=_name: getattr(m, n)(x, axis=1, keepdims=True), I)
for _name in "isnan isinf isfinite logical_not".split():
    case(_name, lambda m, lax, x, n=_name: getattr(m, n)(x), np.array([0, np.nan, np.inf], "f"))
case("where", lambda m, lax, c, x: m.where(c, x, 0), B, I)
case("clip", lambda m, lax, x: m.clip(x, -1, 1), F)
case("reshape", lambda m, lax, x: m.reshape(x, (3, -1)), F)
case("transpose", lambda m, lax, x: x.T, F)
case("stack", lambda m, lax, x, y: m.stack([x, y], axis=1), F, I)
case("concatenate", lambda m, lax, x, y: m.concatenate([x, y], axis=-1), F, I)
case("squeeze", lambda m, lax, x: m.squeeze(m.expand_dims(x, 0)), F)
case("flip", lambda m, lax, x: m.flip(x, 0), F)
case("matmul", lambda m, lax, x, y: x @ y, F, F.T.copy())
case("matmul-vector", lambda m, lax, x, y: m.matmul(x, y), F, F[0])
case(
    "matmul-batch",
    lambda m, lax, x, y: m.matmul(x, y),
    np.ones((2, 3, 4), "f"),
    np.ones((4, 5), "f"),
)
case(
    "matmul-both",
    lambda m, lax, x, y: m.matmul(x, y),
    np.ones((1, 3, 4), "f"),
    np.ones((2, 4, 5), "f"),
)
case(
    "matmul-right",
    lambda m, lax, x, y: m.matmul(x, y),
    np.ones((3, 4), "f"),
    np.arange(40.0).reshape(2, 4, 5).astype("f"),
)
case("dot", lambda m, lax, x, y: m.dot(x, y), F, I[0])
case("zeros", lambda m, lax, x: x + m.zeros((2, 1)), I)
case("arange", lambda m, lax, x: x + m.arange(2, 8, 2), I)
case("full", lambda m, lax, x: m.full((2,), 7) + x[:, 0], I)
case("index", lambda m, lax, x: (x[1], x[..., -1], x[:, None, ::2], x[::-1, 1:]), F)
case("index-traced", lambda m, lax, x, i: x[i, 1:], F, np.int32(-1))
case("python", lambda m, lax, x: 2 * x - 1 / (x + 3) ** 2, F)
case("compare", lambda m, lax, x: (x > 0) & ~(x >= 2) | (x != 0.5), F)
case("integers", lambda m, lax, x: (x % 3, x // 2, -x // 2, x << 1, x >> 1, abs(x)), I)
case("astype", lambda m, lax, x: x.astype("int32"), F)
case("cond", lambda m, lax, x: lax.cond(x[0, 0] > 0, lambda y: y * 2, lambda y: y - 1, x), F)
case("cond-closure", lambda m, lax, x, p: lax.cond(p, lambda: x * 2, lambda: -x), F, np.bool_(True))
case(
    "switch", lambda m, lax, i, x: lax.switch(i, [m.sin, m.cos, lambda y: y + x], x), np.int32(7), F
)
case(
    "while",
    lambda m, lax, x: lax.while_loop(lambda s: s[1] < 50, lambda s: (s[0] + 1, s[1] * 2), (0, x)),
    np.float32(3),
)
case(
    "while-closure",
    lambda m, lax, x, k: lax.while_loop(lambda v: v.sum() < k, lambda v: v + x, x),
    F,
    np.float32(20),
)
case("fori", lambda m, lax, x: lax.fori_loop(0, 5, lambda i, v: v + i * x, x), F)
case("scan", lambda m, lax, x: lax.scan(lambda c, y: (c + y, c * y), x[0], x), F)
case(
    "scan-reverse",
    lambda m, lax, x: lax.scan(lambda c, y: (c + y, (c, y)), np.float32(0), x, reverse=True),
    F[0],
)
case("scan-length", lambda m, lax, x: lax.scan(lambda c, _: (c * 2, None), x, None, length=3), F)
case("map", lambda m, lax, x: lax.map(lambda y: y.sum(), x), F)
case(
    "nested",
    lambda m, lax, x: lax.fori_loop(
        0, 2, lambda i, v: lax.fori_loop(0, 3, lambda j, w: w + j * x + i, v), x
    ),
    F,
)
for _name in "add sub mul div max min pow atan2".split():
    case(f"lax-{_name}", lambda m, lax, x, y, n=_name: getattr(lax, n)(x, y), abs(F), F)
for _name in "lgamma digamma erf erfc exp logistic rsqrt".split():
    case(f"lax-{_name}", lambda m, lax, x, n=_name: getattr(lax, n)(x), abs(F))
case("lax-select", lambda m, lax, x, y: lax.select(x > 0, x, y), F, -F)
case("lax-clamp", lambda m, lax, x: lax.clamp(-1.0, x, 1.0), F)


def same(got, wanted):
    got_leaves, wanted_leaves = jax.tree.leaves(got), jax.tree.leaves(wanted)
    assert len(got_leaves) == len(wanted_leaves)
    for x, y in zip(got_leaves, wanted_leaves):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        tolerance = 2e-3 if x.dtype == np.float16 else 2e-5
        if x.dtype.kind == "f":
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance / 10)
        else:
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", CASES)
def test_as_jax(name):
    function, args = CASES[name]
    wanted = jax.jit(lambda *xs: function(jax_numpy, jax_lax, *xs))(*args)
    _, types = xla_computation(lambda *xs: function(jnp, lax, *xs), return_shape=True)(*args)
    weak = [x.weak_type for x in jax.tree.leaves(wanted)]
    assert [
        t.weak_type for t in jax.tree.leaves(types, is_leaf=lambda t: hasattr(t, "shape"))
    ] == weak
    same(_run(lambda *xs: function(jnp, lax, *xs), args), wanted)


def _run(function, args):
    from haloc import xla_client  # noqa: PLC0415

    client = xla_client.make_cpu_client()
    program = client.compile_and_load(xla_computation(function)(*args), client.devices())
    given = [jax_numpy.asarray(x) for x in args]
    return program.execute([client.buffer_from_pyval(np.asarray(x)) for x in given])


def test_functions_run_on_arrays():
    found = jnp.sin(jnp.add(F, 1))
    np.testing.assert_allclose(np.asarray(found), np.sin(F + 1), rtol=1e-5)
    assert np.asarray(jnp.sum(I, axis=0)).tolist() == I.sum(0).tolist()
    carry, ys = lax.scan(lambda c, x: (c + x, c), np.float32(0), F[0])
    assert float(np.asarray(carry)) == F[0].sum() and np.asarray(ys).shape == (3,)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jnp.sin("x")
