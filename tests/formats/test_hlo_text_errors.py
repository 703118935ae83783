"""Bad HLO text: the exact first line of the error, where it points, and that nothing crashes."""

import random
import tracemalloc
from pathlib import Path

import pytest

from haloc.errors import HloParseError
from haloc.formats.hlo_text import parse_module, parse_shape, to_text

CASES = [
    block.removeprefix("## ").partition("\n")
    for block in (Path(__file__).parent / "bad_hlo.txt").read_text().split("\n--\n")
]
"""(message, newline, text)"""


def fault(text: str) -> HloParseError:
    with pytest.raises(HloParseError) as caught:
        parse_module(text, "m.hlo")
    return caught.value


def test_there_are_enough_cases():
    assert len(CASES) >= 80


@pytest.mark.parametrize("number", range(len(CASES)))
def test_bad_text(number):
    message, _, text = CASES[number]
    assert str(fault(text)).splitlines()[0] == f"INVALID_ARGUMENT: {message}"


def test_an_error_shows_file_line_column_and_caret():
    text = "HloModule m\n\nENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] negatee(a)\n}\n"
    error = fault(text)
    assert (error.line, error.column) == (5, 19)
    assert str(error).splitlines() == [
        "INVALID_ARGUMENT: unknown opcode 'negatee'; did you mean 'negate'?",
        "  m.hlo:5:19     ROOT b = f32[4] negatee(a)",
        "                                 ^^^^^^^",
    ]


def test_the_caret_points_into_the_source_behind_comments():
    text = "ENTRY e {\n  /* one\n  two */ a = f32[4] parameter(0), /*x*/ dims=3\n}\n"
    assert str(fault(text)).splitlines() == [
        "INVALID_ARGUMENT: parameter has no attribute 'dims'; it has parameter_replication",
        "  m.hlo:3:41     two */ a = f32[4] parameter(0), /*x*/ dims=3",
        "                                                       ^^^^",
    ]


def test_a_very_long_line_is_shown_around_the_fault():
    text = 'ENTRY e { a = f32[] parameter(0), metadata={op_name="' + "x" * 5000 + '"}, foo=1 }'
    lines = str(fault(text)).splitlines()
    assert len(lines[1]) < 300
    assert lines[1][lines[2].index("^") :].startswith("foo=1")


@pytest.mark.parametrize(
    "text",
    [
        "f32[4] negate(" * 300,
        "(" * 5000,
        "b(" * 5000,
        "f32[" + "9" * 5000 + "] parameter(0)",
        "f32[] parameter(" + "9" * 5000 + ")",
        "f32[" + "1," * 99 + "1] constant({...})",
        "f32[999999999999] constant({...})",
        "f32[4] custom-call(), backend_config=" + "{" * 5000,
        "f32[4] parameter(0), sharding=" + "{" * 500 + "}" * 500,
        "f32[4] iota(), iota_dimension=" + "9" * 5000,
    ],
)
def test_monstrous_text_is_refused_like_any_other(text):
    assert fault(f"ENTRY e {{\n  ROOT r = {text}\n}}\n").line >= 2


def test_shapes_alone():
    for text, message in {
        "": "found end of text, expected a shape",
        "f32": "found 'f32', expected a shape",
        "f32[2] x": "found 'x', expected end of text",
        "f32[2,]": "found dimension '', expected a size such as 4, <=4 or ?",
        "f32[2,3]{0}": "layout {0} is not a permutation of the 2 dimensions (row-major is {1,0})",
    }.items():
        with pytest.raises(HloParseError) as caught:
            parse_shape(text)
        assert caught.value.message.splitlines()[0] == message


SAMPLES = (Path(__file__).parent / "hlo_samples.txt").read_text().split("\n--\n")


@pytest.mark.parametrize("seed", range(4))
def test_mutated_text_parses_or_is_refused_but_never_crashes(seed):
    """And what parses prints to a fixed point."""
    rng = random.Random(seed)
    for _ in range(400):
        text = _mutated(rng, rng.choice(SAMPLES))
        try:
            module = parse_module(text)
        except HloParseError:
            continue
        printed = to_text(module)
        assert to_text(parse_module(printed)) == printed


def _mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text))
        kind = rng.random()
        if kind < 0.4:
            text = text[:at] + text[at + rng.randint(1, 4) :]
        elif kind < 0.8:
            text = text[:at] + rng.choice("(){}[]<>=,:\"'%-0123456789.abx \n_/*?") + text[at:]
        else:
            start = rng.randrange(len(text))
            text = text[:at] + text[start : start + rng.randint(1, 30)] + text[at:]
    return text


def test_a_short_literal_of_a_long_shape_costs_little():
    tracemalloc.start()
    with pytest.raises(HloParseError, match="expected 2147483648 elements in dimension 1"):
        parse_module("HloModule m\nENTRY e { ROOT c = s8[1,2147483648] constant({ { 1, 2 } }) }")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
