"""At least 150 small programs: jaxlib, haloc and haloc's interpreter agree."""

import zlib

import numpy as np
import pytest

from tests.conformance.arguments import argument
from tests.conformance.compare import check
from tests.conformance.small import PROGRAMS

SCALES = {
    # Sums of hundreds of products that cancel.
    "dot_big": 20.0,
    "conv_grad": 5.0,
}


def test_there_are_enough():
    assert len(PROGRAMS) >= 150


@pytest.mark.parametrize(("name", "function", "specs"), PROGRAMS, ids=[p[0] for p in PROGRAMS])
def test_program(name, function, specs):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    check(function, [argument(s, rng) for s in specs], SCALES.get(name, 1.0))
