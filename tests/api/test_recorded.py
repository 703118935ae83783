"""haloc answers the questions as jaxlib 0.7.1 did, or differs as `differences_071.json` says.

`scripts/record_api.py` writes what jaxlib answers. The differences are {section: {reason:
{question: haloc's answer}}}: each one better than jaxlib's, for the reason given.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import pytest

from haloc.runtime import traceback
from tests.api.ask import Answer, answer, namespace, questions

FOLDER = Path(__file__).parent
RECORDED: dict[str, dict[str, Answer]] = json.loads((FOLDER / "recorded_071.json").read_text())
DIFFERENCES = json.loads((FOLDER / "differences_071.json").read_text())
SECTIONS = sorted(questions())

UNCOMPARED = {"TypeError", "AttributeError", "IndexError"}
"""Errors whose messages in jaxlib list C++ signatures, or are empty."""


@functools.cache
def haloc_answers(section: str) -> dict[str, Answer]:
    names = namespace("haloc")
    remembered = traceback.of_arrays
    try:
        return {name: answer(code, names) for name, code in questions()[section].items()}
    finally:
        traceback.of_arrays = remembered  # a question may switch it on


def is_same(ours: Answer, theirs: Answer) -> bool:
    """Whether the values print alike, or the errors are of one type and say the same."""
    if "value" in theirs:
        return ours.get("value") == theirs["value"]
    if "crash" in theirs or "value" in ours:
        return False
    kinds = {ours["error"], theirs["error"]}
    if len(kinds) > 1 and kinds != {"RuntimeError", "XlaRuntimeError"}:
        return False
    return bool(kinds & UNCOMPARED) or bare(ours["message"]) == bare(theirs["message"])


def bare(message: str) -> str:
    """Without the status code, which errors that jax raises do not have."""
    return re.sub(r"^[A-Z_]+: ", "", message)


def text_of(found: Answer) -> str:
    return found["value"] if "value" in found else f"{found['error']}: {found['message']}"


def expected_differences(section: str) -> dict[str, str]:
    by_reason = DIFFERENCES.get(section, {})
    return {name: text for answers in by_reason.values() for name, text in answers.items()}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_question_is_recorded(section: str) -> None:
    assert sorted(RECORDED[section]) == sorted(questions()[section])


@pytest.mark.parametrize("section", SECTIONS)
def test_answers_are_jaxlibs_or_known_to_differ(section: str) -> None:
    ours = haloc_answers(section)
    different = {n: text_of(a) for n, a in ours.items() if not is_same(a, RECORDED[section][n])}
    assert different == expected_differences(section)
