"""Elementwise rows on corner values of every kind of type, against jaxlib.

Where XLA:CPU departs from HLO's or IEEE's meaning, the values in question are left out here, with
the reason; what haloc gives for them stands in test_corner_values.py.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from haloc.errors import HloError
from haloc.ir import dtype as dt
from haloc.ir.dtype import DType
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.rules import COMPLEX, INTEGER
from haloc.ops.table import OPS, Elementwise
from tests.ops.compare import COMPLEX_ULPS, ULPS, mismatches, subnormal
from tests.oracle import OracleError, run_in_jaxlib

DTYPES = (
    dt.PRED, dt.S4, dt.U4, dt.S8, dt.U8, dt.S16, dt.S32, dt.U32, dt.S64, dt.U64,
    dt.F8E5M2, dt.F8E4M3FN, dt.F8E3M4, dt.F4E2M1FN, dt.BF16, dt.F16, dt.F32, dt.F64,
    dt.C64, dt.C128,
)  # fmt: skip

OTHER_SIGNATURE = {"compare", "convert", "reduce-precision", "stochastic-convert", "select"}
SIMPLE = sorted(
    o for o, r in OPS.items() if isinstance(r.lower, Elementwise) and o not in OTHER_SIGNATURE
)

NO_ORACLE = {
    "mulhi": "has no StableHLO counterpart, by which jaxlib takes programs",
    **dict.fromkeys(
        ("asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh"),
        "XLA:CPU answers UNIMPLEMENTED for f32, f64 and complex; JAX expands them before",
    ),
}

COMPLEX_TIES = {"maximum", "minimum", "clamp"}


def corners(d: DType) -> np.ndarray:
    """Values around which implementations go wrong."""
    if d.is_pred:
        return np.array([False, True])
    if d.is_integer:
        low = -(1 << (d.bits - 1)) if d.is_signed else 0
        high = low + (1 << d.bits) - 1
        wanted = {low, low + 1, high, high - 1, high // 2, high // 3, -1, -2, -7, 0, 1, 2, 3, 7}
        wanted |= {d.bits - 1, d.bits, d.bits + 1}
        values = sorted(v for v in wanted if low <= v <= high)
        return (
            np.array(values, np.int64 if low else np.uint64)
            .astype(d.numpy if d.bits >= 8 else np.int8)
            .astype(d.numpy)
        )
    if d.is_complex:
        parts = np.array([0, -0.0, 1, -1, 0.5, 2, -3, np.inf, -np.inf, np.nan, 1e-20, 1e15, 1e-5])
        grid = np.empty((len(parts), len(parts)), d.numpy)
        grid.real, grid.imag = parts[:, None], parts[None, :]
        return grid.reshape(-1)
    info = ml_dtypes.finfo(d.numpy)
    small = [float(info.tiny), float(info.smallest_subnormal), -float(info.smallest_subnormal)]
    near_one = [1 + float(info.eps), 1 - float(info.eps) / 2]
    plain = [0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 2, 3, -3, 10, -10, 3.14159, -0.75]
    wide = [88.5, -104, 700, -745, 1e-3, -1e-3, 1e5, 1e-6, float(info.max), float(info.min)]
    special = [np.inf, -np.inf, np.nan]
    values = np.array(plain + wide + special + small + near_one)
    with np.errstate(all="ignore"):
        return (values if d is dt.F64 else values.astype(np.float32)).astype(d.numpy)


def operands(d: DType, count: int) -> list[np.ndarray]:
    """Corner values in all combinations, or a fixed random choice of 1500 of them."""
    values = corners(d)
    rng = np.random.default_rng(7)
    if len(values) ** count <= 1500:
        places = np.meshgrid(*[np.arange(len(values))] * count, indexing="ij")
        return [values[p.reshape(-1)] for p in places]
    return [values[rng.integers(len(values), size=1500)] for _ in range(count)]


def excused(opcode: str, d: DType, given: list[np.ndarray], ours: np.ndarray) -> np.ndarray:
    """Where jaxlib is no judge."""
    skip = subnormal(ours)  # XLA:CPU flushes subnormals to zero; HLO keeps them.
    for x in given:
        skip = skip | subnormal(x)
    if opcode == "power" and d.is_integer:
        # XLA raises to the exponent modulo 64: 0^64 is 1 there.
        skip = skip | (given[1].astype(np.float64) >= 64)
    if opcode == "popcnt" and d is dt.S4:
        # XLA counts the sign-extended byte, negative ones giving more than four.
        skip = skip | (given[0].astype(np.int8) < 0)
    if d.is_complex:
        # XLA loses infinities, NaN and -0 in parts, for which haloc follows C99's annex G.
        with np.errstate(all="ignore"):
            for x in [*given, ours]:
                skip = skip | ~np.isfinite(x) | _has_negative_zero(x)
            for x in given:  # Squares overflow, and small parts cancel, in XLA's formulas.
                small = [(p != 0) & (np.abs(p) < 1e-4) for p in (x.real, x.imag)]
                skip = skip | (np.abs(x) > 1e9) | small[0] | small[1]
        if opcode in COMPLEX_TIES:  # XLA compares real parts only.
            pairs = [(x, y) for x in given for y in given if x is not y]
            skip = skip | np.logical_or.reduce([x.real == y.real for x, y in pairs])
        if opcode == "power":  # XLA gives NaN for 0 to a number with an imaginary part.
            skip = skip | (given[0] == 0)
        if opcode == "atan2":  # On the cut, the sign is that of a rounding error.
            skip = skip | (np.abs(ours.real) > 3.1415)
    return skip


def _has_negative_zero(x: np.ndarray) -> np.ndarray:
    parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
    return np.logical_or.reduce([(p == 0) & np.signbit(p) for p in parts])


def evaluate(opcode: str, d: DType, given: list[np.ndarray]) -> tuple[HloInstruction, np.ndarray]:
    shape = Shape(d, given[0].shape)
    parameters = [
        HloInstruction("parameter", shape, (), {"parameter_number": n}) for n in range(len(given))
    ]
    instruction = HloInstruction(opcode, shape, parameters)
    instruction.shape = OPS[opcode].infer(instruction)
    return instruction, OPS[opcode].evaluate(instruction, list(given), None)


def module_text(instruction: HloInstruction) -> str:
    lines = [
        f"  p{n} = {p.shape.to_string(False)} parameter({n})"
        for n, p in enumerate(instruction.operands)
    ]
    names = ", ".join(f"p{n}" for n in range(len(instruction.operands)))
    result = instruction.shape.to_string(False)
    lines.append(f"  ROOT r = {result} {instruction.opcode}({names})")
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


def takes(opcode: str, d: DType) -> bool:
    """Whether the row is defined on this type."""
    shape = Shape(d, (1,))
    count = len(OPS[opcode].operands)
    try:
        OPS[opcode].infer(HloInstruction(opcode, shape, [HloInstruction("iota", shape)] * count))
    except HloError:
        return False
    return True


CASES = [(o, d) for o in SIMPLE if o not in NO_ORACLE for d in DTYPES if takes(o, d)]


@pytest.mark.parametrize(("opcode", "d"), CASES, ids=lambda v: getattr(v, "name", v))
def test_corner_values_agree_with_jaxlib(opcode, d):
    given = operands(d, len(OPS[opcode].operands))
    instruction, ours = evaluate(opcode, d, given)
    (theirs,) = run_in_jaxlib(module_text(instruction), given)
    ulps = COMPLEX_ULPS if d in COMPLEX else ULPS.get(opcode, 0)
    if opcode == "sqrt" and d.bits == 8:
        ulps = 1  # XLA computes in f16, and rounds twice.
    wrong = mismatches(ours, theirs, ulps) & ~excused(opcode, d, given, ours)
    first = np.flatnonzero(wrong)[:5]
    cases = [(*(x[k] for x in given), ours[k], theirs[k]) for k in first]
    assert not len(first), f"{wrong.sum()} of {wrong.size}: (operands, ours, jaxlib) {cases}"


DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")


@pytest.mark.parametrize("d", [*DTYPES, dt.F8E4M3FNUZ], ids=str)
@pytest.mark.parametrize("order", ["", "TOTALORDER"])
def test_compare_agrees_with_jaxlib(d, order):
    if order and not d.is_float:
        pytest.skip("total order is one of floats")
    x, y = operands(d, 2)
    shape = Shape(d, x.shape)
    skip = (subnormal(x) | subnormal(y)) if not order else np.zeros(x.shape, bool)
    parameters = [HloInstruction("parameter", shape, (), {"parameter_number": n}) for n in (0, 1)]
    directions = DIRECTIONS[:2] if d.is_complex else DIRECTIONS
    lines, ours = [], []
    for direction in directions:
        attrs = {"direction": direction} | ({"type": order} if order else {})
        compare = HloInstruction("compare", shape.with_dtype(dt.PRED), parameters, attrs)
        ours.append(OPS["compare"].evaluate(compare, [x, y], None))
        kind = f", type={order}" if order else ""
        text = f"pred[{x.size}] compare(p0, p1), direction={direction}{kind}"
        lines.append(f"  {direction} = {text}")
    result = "(" + ", ".join([f"pred[{x.size}]"] * len(directions)) + ")"
    text = "HloModule m\nENTRY e {\n"
    text += "".join(f"  p{n} = {shape.to_string(False)} parameter({n})\n" for n in (0, 1))
    text += "\n".join(lines) + f"\n  ROOT t = {result} tuple({', '.join(directions)})\n}}\n"
    for direction, a, b in zip(directions, ours, run_in_jaxlib(text, [x, y])):
        wrong = np.flatnonzero((a != b) & ~skip)
        assert not len(wrong), (direction, x[wrong[:3]], y[wrong[:3]], a[wrong[:3]])


F6 = (dt.F6E2M3FN, dt.F6E3M2FN)  # jaxlib 0.10.2 aborts on them.
SOURCES = (*DTYPES, dt.U2, dt.S2, dt.U16, dt.F8E4M3B11FNUZ, dt.F8E8M0FNU)


def source_values(d: DType) -> np.ndarray:
    """Corners, and numbers half-way between neighbours in narrower types."""
    values = corners(d)
    if d.is_float and d.bits > 8:
        halves = np.concatenate([1 + (2 * np.arange(8) + 1) * 2.0**-k for k in (3, 4, 8, 9, 11)])
        edges = [127.5, -128.5, 255.5, 2.0**31 - 1, 2.0**31, 2.0**63, 448, 464, 465, 480, 61440]
        more = np.concatenate([halves, halves * (1 + 2.0**-23), edges, [15.5, 65519, 65520]])
        with np.errstate(all="ignore"):
            values = np.concatenate([values, more.astype(d.numpy)])
    if d.is_integer and d.bits == 64:
        large = [2**24 + 1, 2**24 + 3, 2**53 + 1, 2**53 + 3, 65519, 65520, 2049, 257]
        values = np.concatenate([values, np.array(large).astype(d.numpy)])
    return values


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_convert_agrees_with_jaxlib(source):
    x = source_values(source)
    parameter = HloInstruction("parameter", Shape(source, x.shape), (), {"parameter_number": 0})
    # XLA:CPU dies of complex -> pred, and takes the largest f4 numbers for infinities.
    refused = {dt.PRED} if source.is_complex else INTEGER if source is dt.F4E2M1FN else set()
    targets = [t for t in SOURCES if t is not source and t not in refused]
    text = f"HloModule m\nENTRY e {{\n  p = {source}[{x.size}] parameter(0)\n"
    text += "".join(f"  to_{t} = {t}[{x.size}] convert(p)\n" for t in targets)
    result = ", ".join(f"{t}[{x.size}]" for t in targets)
    text += f"  ROOT t = ({result}) tuple({', '.join(f'to_{t}' for t in targets)})\n}}\n"
    for target, theirs in zip(targets, run_in_jaxlib(text, [x])):
        convert = HloInstruction("convert", Shape(target, x.shape), [parameter])
        ours = OPS["convert"].evaluate(convert, [x], None)
        # Subnormals are flushed, and f64 -> bf16 rounds twice in XLA, by way of f32.
        skip = subnormal(x) | subnormal(ours)
        if target is dt.BF16 and not source.is_complex and source.bits == 64:
            with np.errstate(all="ignore"):
                skip = skip | (x.astype(np.float32).astype(target.numpy) != ours)
        if source is dt.F64 and target is dt.F8E8M0FNU:
            skip = skip | (np.abs(x) < 2.0**-126)
        wrong = np.flatnonzero(mismatches(ours, theirs, 0) & ~skip)[:5]
        assert not len(wrong), (target, x[wrong], ours[wrong], theirs[wrong])


@pytest.mark.parametrize("d", [d for d in DTYPES if d.is_float], ids=str)
def test_reduce_precision_agrees_with_jaxlib(d):
    x = corners(d)
    widths = ((5, 10), (8, 7), (8, 23), (11, 52), (4, 3), (5, 2), (1, 0), (2, 0), (8, 0), (3, 1))
    parameter = HloInstruction("parameter", Shape(d, x.shape), (), {"parameter_number": 0})
    for exponent, mantissa in widths:
        attrs = {"exponent_bits": exponent, "mantissa_bits": mantissa}
        reduced = HloInstruction("reduce-precision", parameter.shape, [parameter], attrs)
        ours = OPS["reduce-precision"].evaluate(reduced, [x], None)
        given = f"exponent_bits={exponent}, mantissa_bits={mantissa}"
        text = module_text(reduced).replace("(p0)\n", f"(p0), {given}\n")
        (theirs,) = run_in_jaxlib(text, [x])
        wrong = np.flatnonzero(mismatches(ours, theirs, 0) & ~subnormal(x))[:5]
        assert not len(wrong), (given, x[wrong], ours[wrong], theirs[wrong])


def test_an_oracle_that_refuses_says_so():
    with pytest.raises(OracleError, match="INVALID_ARGUMENT"):
        run_in_jaxlib("HloModule m\nENTRY e { ROOT r = f32[] frob() }\n", [])
