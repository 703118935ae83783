"""The soak, for a few seconds in every run and for an hour at night."""

import pytest

from tests.soak import soak


def test_a_few_seconds():
    assert soak(minutes=0.05) == []


@pytest.mark.nightly
def test_an_hour():
    assert soak(minutes=60) == []
