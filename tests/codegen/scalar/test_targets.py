"""The same bits on every x86 target: with AVX-512, with AVX2, and with nothing but SSE2."""

from dataclasses import replace

import numpy as np
import pytest

from haloc.codegen.target import Target, host_target
from tests.codegen.scalar.elements import apply, assert_same
from tests.codegen.scalar.references import BINARY, UNARY, samples

_AVX2 = {"avx", "avx2", "fma", "f16c", "sse4.1", "sse4.2", "ssse3", "bmi", "bmi2", "popcnt"}


def smaller_targets() -> list[Target]:
    host = host_target()
    if not host.triple.startswith("x86_64"):
        return []
    plain = replace(host, cpu="x86-64", features=frozenset(), vector_bytes=16)
    if not host.has(*_AVX2):
        return [plain]
    return [plain, replace(host, cpu="haswell", features=frozenset(_AVX2), vector_bytes=32)]


@pytest.mark.parametrize("target", smaller_targets(), ids=lambda t: t.cpu)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_do_not_depend_on_the_target(target, dtype):
    for name in (*UNARY, *BINARY, "floor", "round_nearest_even", "round_nearest_afz", "remainder"):
        like = name if name in UNARY or name in BINARY else "exponential"
        operands = [a[:400] for a in samples(like, dtype, 400)]
        if name == "remainder":
            operands = [operands[0], operands[0][::-1].copy()]
        want = apply(name, operands, 8)
        assert_same(apply(name, operands, 4, target), want, operands)
