"""Protos of JAX programs, as lowered and as XLA optimised them."""

import zlib

import jax
import numpy as np
import pytest

from tests.conformance.arguments import argument
from tests.conformance.small import PROGRAMS
from tests.formats.hlo_proto.check import check_proto

LOWERED = PROGRAMS[::3]
COMPILED = PROGRAMS[1::12]


def lower(function, specs):
    rng = np.random.default_rng(zlib.crc32(repr(specs).encode()))
    return jax.jit(function, keep_unused=True).lower(*(argument(s, rng) for s in specs))


@pytest.mark.parametrize(("name", "function", "specs"), LOWERED, ids=[p[0] for p in LOWERED])
def test_lowered(name, function, specs):
    check_proto(lower(function, specs).compiler_ir("hlo").as_serialized_hlo_module_proto())


@pytest.mark.parametrize(("name", "function", "specs"), COMPILED, ids=[p[0] for p in COMPILED])
def test_compiled(name, function, specs):
    executable = lower(function, specs).compile().runtime_executable()
    for module in executable.hlo_modules():
        check_proto(module.as_serialized_hlo_module_proto())
