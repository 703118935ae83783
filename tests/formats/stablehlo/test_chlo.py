"""chlo's functions against SciPy: f64 within the stated error, special values exactly."""

import numpy as np
import pytest
import scipy.special as sp

from haloc import interpreter
from haloc.formats.stablehlo import parse_stablehlo
from haloc.verifier import verify

INF, NAN = np.inf, np.nan


def run(name: str, *arguments: np.ndarray, element: str = "f64", result: str = "") -> np.ndarray:
    """chlo.name of vectors."""
    count = len(arguments[0])
    types = [f"tensor<{count}x{element}>"] * len(arguments)
    out = f"tensor<{count}x{result or element}>"
    names = [f"%a{i}" for i in range(len(arguments))]
    signature = ", ".join(f"{n}: {t}" for n, t in zip(names, types))
    module = parse_stablehlo(
        f"func.func @main({signature}) -> {out} {{\n"
        f"  %r = chlo.{name} {', '.join(names)} : {', '.join(types)} -> {out}\n"
        f"  return %r : {out}\n}}\n"
    )
    verify(module)
    value = interpreter.run(module, list(arguments))
    assert isinstance(value, np.ndarray)
    return value


LINE = np.concatenate([np.linspace(-30, 30, 2001), np.linspace(-1.5, 1.5, 401)])
UNIT = np.concatenate([np.linspace(-1, 1, 2001)[1:-1], 1 - 10.0 ** -np.arange(3, 16)])
POSITIVE = np.concatenate([np.linspace(0.01, 20, 1001), 10.0 ** np.arange(2, 30)])

FUNCTIONS = {
    # name: (arguments, SciPy's function, relative error, absolute error)
    "erfc": (LINE, sp.erfc, 1e-13, 1e-300),
    "erf_inv": (UNIT, sp.erfinv, 1e-13, 0.0),
    "lgamma": (POSITIVE, sp.gammaln, 1e-13, 2e-14),
    "digamma": (POSITIVE, sp.psi, 1e-13, 2e-13),
    "bessel_i1e": (LINE, sp.i1e, 1e-13, 0.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    x, reference, relative, absolute = FUNCTIONS[name]
    np.testing.assert_allclose(run(name, x), reference(x), rtol=relative, atol=absolute)
    narrow = x.astype(np.float32)
    with np.errstate(under="ignore"):
        wanted = reference(narrow.astype(np.float64))
    got = run(name, narrow, element="f32")
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-6)


def test_reflections():
    x = np.linspace(-9.75, -0.25, 39)
    x = x[x != np.floor(x)]
    np.testing.assert_allclose(run("lgamma", x), sp.gammaln(x), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(run("digamma", x), sp.psi(x), rtol=1e-12, atol=1e-12)


SPECIAL = {
    "erfc": ([INF, -INF, NAN, 0.0, -0.0], [0.0, 2.0, NAN, 1.0, 1.0]),
    "erf_inv": ([1.0, -1.0, 0.0, 1.5, NAN], [INF, -INF, 0.0, NAN, NAN]),
    "lgamma": ([INF, -INF, NAN, 0.0, -1.0, -7.0], [INF, INF, NAN, INF, INF, INF]),
    "digamma": ([INF, NAN, 0.0, -1.0, -7.0], [INF, NAN, NAN, NAN, NAN]),
    "bessel_i1e": ([0.0, NAN, INF, -INF], [0.0, NAN, 0.0, -0.0]),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name):
    arguments, wanted = SPECIAL[name]
    np.testing.assert_array_equal(run(name, np.array(arguments)), np.array(wanted))


def test_zeta_and_polygamma():
    x = np.array([1.5, 2.0, 3.0, 7.5, 20.0])
    q = np.array([0.5, 1.0, 2.5, 10.0, 3.0])
    np.testing.assert_allclose(run("zeta", x, q), sp.zeta(x, q), rtol=1e-13)
    n = np.array([0.0, 1.0, 2.0, 5.0])
    y = np.array([2.5, 0.5, 3.0, 10.0])
    wanted = [sp.polygamma(int(a), b) for a, b in zip(n, y)]
    np.testing.assert_allclose(run("polygamma", n, y), wanted, rtol=1e-12)
    with np.errstate(invalid="ignore", divide="ignore"):
        edges = run("zeta", np.array([1.0, 0.5, 3.0, 2.0]), np.array([2.0, 2.0, -1.0, -1.0]))
    np.testing.assert_array_equal(edges, [INF, NAN, NAN, INF])


@pytest.mark.parametrize(("element", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_next_after(element, dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([1, 1, -1, 0, 0, -0.0, tiny, INF, -INF, NAN, 1, 0.0, 3, tiny], dtype)
    y = np.array([2, 0, 0, 1, -1, 1, -1, 0, 0, 1, NAN, -0.0, 3, 0], dtype)
    got, wanted = run("next_after", x, y, element=element), np.nextafter(x, y)
    np.testing.assert_array_equal(got, wanted)
    keep = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got[keep]), np.signbit(wanted[keep]))


def test_predicates():
    x = np.array([INF, -INF, NAN, 0.0, 1e308])
    for name, wanted in (
        ("is_inf", [True, True, False, False, False]),
        ("is_pos_inf", [True, False, False, False, False]),
        ("is_neg_inf", [False, True, False, False, False]),
    ):
        assert run(name, x, result="i1").tolist() == wanted


def test_complex_atan_and_conj():
    z = np.array([0.5 + 0.25j, -2 + 1j, 0.1j])
    np.testing.assert_allclose(run("atan", z, element="complex<f64>"), np.arctan(z), rtol=1e-13)
    np.testing.assert_array_equal(run("conj", z, element="complex<f64>"), z.conj())


def test_composites_of_chlo_are_used_natively():
    text = """
    func.func @main(%a: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
      %r:2 = stablehlo.composite "chlo.top_k" %a {composite_attributes = {k = 2 : i64},
          decomposition = @f} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
      return %r#0, %r#1 : tensor<2xf32>, tensor<2xi32>
    }
    func.func private @f(tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
    """
    module = parse_stablehlo(text)
    verify(module)
    values, indices = interpreter.run(module, [np.array([1, 4, 2, 4], np.float32)])
    assert values.tolist() == [4, 4] and indices.tolist() == [1, 3]
