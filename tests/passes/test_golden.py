"""Golden tests: HLO text in, passes, expected text.

A file of tests/golden begins with `// passes: name, name, ...` (or `// pipeline: name`), then
comments that say what to look for, then a module; below the separator stands what must come out.
"""

from pathlib import Path

import pytest

from haloc.formats.hlo_text import parse_module, to_text
from haloc.passes.driver import PassOptions, run_passes
from haloc.passes.pipelines import PIPELINES

GOLDEN = Path(__file__).parents[1] / "golden"
SEPARATOR = "\n// ======== expected ========\n"
FILES = sorted(p.name for p in GOLDEN.glob("*.hlo"))


def passes_of(text: str):
    kind, _, names = text.partition("\n")[0].removeprefix("// ").partition(": ")
    if kind == "pipeline":
        return PIPELINES[names]
    assert kind == "passes", f"the first line must be // passes: or // pipeline:, not {kind}"
    return names.split(", ")


@pytest.mark.parametrize("name", FILES)
def test_golden(name, update_golden):
    path = GOLDEN / name
    given, _, expected = path.read_text().partition(SEPARATOR)
    module = parse_module(given, name)
    # No check mode: its shuffles would change the order of the text.
    run_passes(module, passes_of(given), PassOptions(verify=True))
    text = to_text(module)
    if update_golden:
        path.write_text(given + SEPARATOR + text)
    else:
        assert text.strip() == expected.strip(), "run pytest tests/passes --update-golden to accept"


def test_there_are_golden_files():
    assert FILES
