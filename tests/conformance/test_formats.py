"""JAX's primitive harnesses through every format: a sample in every run, all of them nightly."""

import pytest

from tests.conformance.formats import EQUAL, FORMATS, LISTED, MODES, examine, page
from tests.conformance.harness import ENGINES, groups, sample

# JAX's own deprecations, and NumPy's overflows while a harness makes its arguments.
pytestmark = pytest.mark.filterwarnings("ignore")

SAMPLE = sample(24)


def check(mode: str, name: str) -> None:
    verdicts = examine(mode, name)
    assert len(verdicts) == len(FORMATS) * len(ENGINES), f"{name}: JAX has no answer"
    wrong = [v for v in verdicts if v.outcome not in (EQUAL, LISTED)]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("name", SAMPLE)
def test_sample(name):
    check("x64", name)


@pytest.mark.nightly
@pytest.mark.parametrize(("mode", "group"), [(mode, g) for mode in MODES for g in groups(mode)])
def test_group(mode, group):
    for name in groups(mode)[group]:
        check(mode, name)


def test_page_counts_every_verdict():
    text = page(examine("x64", SAMPLE[0]))
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    asked = {tuple(r[:3]): r[3:] for r in rows}
    assert len(asked) == len(FORMATS) * len(MODES) * len(ENGINES)
    for (_, x64, _), counts in asked.items():
        assert counts[:2] == (["1", "1"] if x64 == "on" else ["0", "0"])
