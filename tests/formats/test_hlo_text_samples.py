"""What jaxlib 0.10.2 prints: haloc reads it, prints the same, and XLA reads that."""

from pathlib import Path

import jaxlib._hlo
import pytest

from haloc.formats.hlo_text import PrintOptions, parse_module, to_text
from tests.formats.compare import differences

SAMPLES = [
    "\n".join(line for line in block.splitlines() if not line.startswith("## ")).strip()
    for block in (Path(__file__).parent / "hlo_samples.txt").read_text().split("\n--\n")
]


def without_blank_lines(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.strip())


def xla_print(text: str) -> str:
    options = jaxlib._hlo.HloPrintOptions()
    options.print_percent = False
    options.print_large_constants = True
    return jaxlib._hlo.hlo_module_from_text(text).to_string(options)


def test_there_are_samples():
    assert len(SAMPLES) > 90


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_sample_prints_as_xla_prints_it(number):
    text = SAMPLES[number]
    module = parse_module(text)
    printed = to_text(module)
    assert without_blank_lines(printed) == text
    assert differences(parse_module(printed), module) == []


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_xla_reads_what_haloc_prints(number):
    """Also with `%`, and with operand shapes."""
    module = parse_module(SAMPLES[number])
    for options in (
        PrintOptions(),
        PrintOptions(print_percent=True),
        PrintOptions(print_operand_shapes=True),
    ):
        text = to_text(module, options)
        printed = without_blank_lines(xla_print(text))
        given = without_blank_lines(xla_print(SAMPLES[number]))
        assert printed == given
        assert differences(parse_module(text), module) == []
