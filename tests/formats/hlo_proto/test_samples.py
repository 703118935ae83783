"""The samples of HLO text, as the protos jaxlib makes of them."""

import jaxlib._hlo
import pytest

from tests.formats.hlo_proto.check import check_proto
from tests.formats.test_hlo_text_samples import SAMPLES

REFUSED = ("SC(", "#(", "f6e")
"""XLA prints these, but refuses or dies of the protos it makes of them."""


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_sample(number):
    text = SAMPLES[number]
    if any(word in text for word in REFUSED):
        pytest.skip("XLA does not read its own proto")
    check_proto(jaxlib._hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
