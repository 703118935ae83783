"""500 random modules agree: interpreter, interpreter after the passes, native.

Nightly: 5,000 more. A failing seed by itself: python -m tests.fuzz --seed N --reduce
"""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import run_seeds

CHUNK = 25


@pytest.mark.parametrize("first", range(0, 500, CHUNK))
def test_random_modules_agree(first):
    assert run_seeds(range(first, first + CHUNK)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(100_000, 105_000, 250))
def test_many_random_modules_agree(first):
    assert run_seeds(range(first, first + 250)) == []
