"""Mutated programs: read, or refused by an HloError that is not an internal one; never slow."""

import random
import re
import time

import pytest

from haloc.errors import HloError, InternalError
from haloc.formats.stablehlo import parse_stablehlo
from haloc.verifier import verify
from tests.formats.stablehlo.ops import LINES, module_of
from tests.formats.stablehlo.test_every_op import jaxlib_prints

TOKEN = re.compile(r'[%@#!^]?[\w.$]+|"[^"]*"|\S')
NUMBERS = ["0", "-1", "7", "100", "99999999999999999999", "2147483648", "1.5", "0x1F"]


def programs(every: int) -> list[str]:
    return [text for line in LINES[::every] for text in jaxlib_prints(module_of(line))]


def mutated(text: str, tokens: list[str], rng: random.Random) -> str:
    """One to four changes: cut, replaced, repeated or strange tokens, numbers and ends."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        kind, at = rng.random(), rng.randrange(len(text) + 1)
        if kind < 0.25:
            text = text[:at] + text[at + rng.randrange(1, 8) :]
        elif kind < 0.5:
            text = _replaced(text, TOKEN, rng.choice(tokens), rng)
        elif kind < 0.6:
            start = rng.randrange(at + 1)
            text = text[:at] + text[start:at][:200] + text[at:]
        elif kind < 0.7:
            text = text[:at] + chr(rng.randrange(1, 300)) + text[at:]
        elif kind < 0.75:
            text = text[:at]
        else:
            text = _replaced(text, re.compile(r"-?\d+"), rng.choice(NUMBERS), rng)
    return text


def _replaced(text: str, what: re.Pattern[str], by: str, rng: random.Random) -> str:
    found = list(what.finditer(text))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + by + text[one.end() :]


def check(count: int, every: int, seed: int) -> None:
    pool = programs(every)
    tokens = [t for text in pool for t in TOKEN.findall(text)]
    rng = random.Random(seed)
    refused = 0
    for number in range(count):
        text = mutated(rng.choice(pool), tokens, rng)
        start = time.perf_counter()
        try:
            verify(parse_stablehlo(text))
        except InternalError as error:
            pytest.fail(f"mutation {number} of seed {seed}: {error}\n{text}")
        except HloError:
            refused += 1
        assert time.perf_counter() - start < 1, text
    assert 0.3 * count < refused < count


def test_mutations():
    check(1_500, every=6, seed=0)


@pytest.mark.nightly
def test_many_mutations():
    check(30_000, every=1, seed=1)
