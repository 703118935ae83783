"""Mutated protos: an error of haloc's own, or a module; nothing else, and soon."""

import random
import time
from functools import cache
from typing import Any

import jaxlib._hlo
import numpy as np
import pytest

from haloc.errors import HloError, InternalError, InvalidArgumentError
from haloc.formats.hlo_proto import parse_hlo_module_proto, serialize_hlo_module
from haloc.formats.hlo_text import to_text
from haloc.formats.proto import Message, decode, encode
from haloc.verifier import verify
from tests.formats.hlo_proto.test_samples import REFUSED
from tests.formats.test_hlo_text_samples import SAMPLES

PER_SAMPLE = 20


@cache
def seeds() -> list[bytes]:
    texts = [t for t in SAMPLES if not any(word in t for word in REFUSED)]
    return [jaxlib._hlo.hlo_module_from_text(t).as_serialized_hlo_module_proto() for t in texts]


def mutated(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(out))
        kind = rng.randrange(6)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            del out[at : at + rng.randrange(1, 9)]
        elif kind == 3:
            out[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 4:
            del out[at:]
        else:
            end = at + rng.randrange(1, 40)
            out[at:at] = out[at:end]
        if not out:
            return b""
    return bytes(out)


def changed(data: bytes, rng: random.Random) -> bytes:
    """The message with one or two fields given another value, dropped or doubled."""
    message = decode("HloModuleProto", data)
    for _ in range(rng.choice((1, 1, 2))):
        change(message, rng)
    try:
        return encode("HloModuleProto", message)
    except InvalidArgumentError:  # A number out of its field's range.
        return data


def change(message: Message, rng: random.Random) -> None:
    places: list[tuple[Any, Any]] = []

    def collect(value: Any) -> None:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(pairs):
            places.append((value, key))
            if isinstance(inner, dict | list):
                collect(inner)

    collect(message)
    holder, key = rng.choice(places)
    value = holder[key]
    if rng.random() < 0.2:
        del holder[key]
    elif isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int):
        wild = (0, 1, -1, 2, 3, 7, 100, 2**31 - 1, -(2**31), value + 1, value - 1)
        holder[key] = rng.choice(wild)
    elif isinstance(value, str):
        holder[key] = rng.choice(("", "x", value + ".1", "add", "reduce", "%", "a b\n", "\u2603"))
    elif isinstance(value, list) and value:
        one = rng.choice(value)
        holder[key] = rng.choice(([*value, one], value[1:], value[::-1], [one], []))
    elif isinstance(value, np.ndarray):
        holder[key] = value[:-1]
    elif isinstance(value, bytes):
        holder[key] = value[:-1] + b"\xff\xff"


def use(data: bytes) -> None:
    module = parse_hlo_module_proto(data)
    to_text(module)
    serialize_hlo_module(module)
    verify(module)


def test_there_are_two_thousand():
    assert PER_SAMPLE * len(seeds()) >= 2000


def check_mutation(number: int, seed: int) -> None:
    """An HloError or a module, within a second."""
    mutate = changed if seed % 2 else mutated
    data = mutate(seeds()[number], random.Random(f"{number}.{seed}"))
    start = time.process_time()
    try:
        use(data)
    except HloError as error:
        assert not isinstance(error, InternalError), (number, seed)
    except Exception as error:
        error.add_note(f"sample {number}, seed {seed}")
        raise
    assert time.process_time() - start < 1.0, (number, seed)


@pytest.mark.parametrize("block", range(10))
def test_mutations(block):
    for number in range(block, len(seeds()), 10):
        for seed in range(PER_SAMPLE):
            check_mutation(number, seed)


@pytest.mark.nightly
def test_many_mutations():
    for number in range(len(seeds())):
        for seed in range(PER_SAMPLE, 1000):
            check_mutation(number, seed)


def test_any_bytes():
    for seed in range(300):
        rng = random.Random(seed)
        with pytest.raises(HloError):
            parse_hlo_module_proto(rng.randbytes(rng.randrange(60)))
