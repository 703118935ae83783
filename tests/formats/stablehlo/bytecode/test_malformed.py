"""Malformed bytecode: HloParseError with an offset, whatever the bytes are."""

import random
import time

import jax.numpy as jnp
import pytest

from haloc.errors import HloParseError
from haloc.formats.stablehlo.bytecode import parse_bytecode
from haloc.formats.stablehlo.bytecode.container import read_container
from haloc.formats.stablehlo.mlir import CallLocation, NameLocation
from tests.formats.stablehlo.bytecode.programs import PROGRAMS
from tests.formats.stablehlo.bytecode.test_trees import everything, lowered
from tests.formats.stablehlo.bytecode.trees import artifact, plain_bytecode

SLOW_S = 1.0


@pytest.fixture(scope="module")
def inputs() -> list[bytes]:
    module = lowered(everything, jnp.ones((3, 3)), jnp.ones((3, 3)))
    found = [artifact(module, v) for v in ("0.9.0", "0.11.0", "0.14.0", "1.17.0")]
    found += [artifact(PROGRAMS[n]) for n in ("constants", "quantized", "custom_call", "mesh_axes")]
    return [*found, plain_bytecode(module)]


def mutate(data: bytes, inputs: list[bytes], rng: random.Random) -> bytes:
    """Flipped, removed, inserted, copied bytes; sometimes cut off, or from another input."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(out))
        match rng.randrange(6):
            case 0:
                out[at] = rng.randrange(256)
            case 1:
                out[at] ^= 1 << rng.randrange(8)
            case 2:
                del out[at : at + rng.randrange(1, 5)]
            case 3:
                out[at:at] = rng.randbytes(rng.randrange(1, 4))
            case 4:
                start = rng.randrange(len(out))
                out[at : at + 4] = out[start : start + 4]
            case 5:
                other = rng.choice(inputs)
                out[at : at + 8] = other[at : at + 8]
        if not out:
            return b""
    return bytes(out[: rng.randrange(len(out))] if rng.random() < 0.1 else out)


def fuzz(inputs: list[bytes], count: int, seed: int) -> None:
    rng = random.Random(seed)
    refused = 0
    for number in range(count):
        data = mutate(rng.choice(inputs), inputs, rng)
        start = time.process_time()
        try:
            parse_bytecode(data)
        except HloParseError as error:
            refused += 1
            assert "byte " in error.message, error.message
        except Exception as error:
            error.add_note(f"seed {seed}, mutation {number}: {data.hex()}")
            raise
        assert time.process_time() - start < SLOW_S, f"seed {seed}, mutation {number}"
    assert refused > count // 2


def test_mutations(inputs):
    fuzz(inputs, 2000, seed=1)


@pytest.mark.nightly
def test_many_mutations(inputs):
    fuzz(inputs, 100_000, seed=random.randrange(1 << 30))


def test_every_truncation(inputs):
    for data in inputs[3:5]:
        for length in range(len(data)):
            with pytest.raises(HloParseError):
                parse_bytecode(data[:length])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "MLIR bytecode, byte 0, header: found its end, expected the bytes 4D 4C EF 52"),
        (b"ML\xefR", "MLIR bytecode, byte 4, header: found its end, expected the bytecode version"),
        (
            b"ML\xefR\xff",
            "MLIR bytecode, byte 5, header: bytecode version 127, but haloc reads versions 0 to 6",
        ),
        (
            b"ML\xefR\x01x",
            "MLIR bytecode, byte 5, header: found byte 0x78, "
            "expected a producer name that ends in a zero byte",
        ),
        (b"ML\xefR\x01x\0", "MLIR bytecode, byte 7, header: the string section is missing"),
        (
            b"ML\xefR\x01x\0\x00\x03\x09",
            "MLIR bytecode, byte 10, header: the dialect section is missing",
        ),
        (
            b"ML\xefR\x01x\0\x00\x09abc",
            "MLIR bytecode, byte 9, header: string section of 4 bytes, but only 3 bytes follow",
        ),
    ],
)
def test_messages(data, message):
    with pytest.raises(HloParseError) as caught:
        parse_bytecode(data)
    assert caught.value.message == message


def patched(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) == 1 and len(old) == len(new)
    return data.replace(old, new)


def test_unknown_op():
    data = patched(artifact(PROGRAMS["composite"]), b"tanh_v2", b"tang_v2")
    with pytest.raises(HloParseError, match=r"properties of vhlo\.tang_v2, an op that haloc does"):
        parse_bytecode(data)


def test_unknown_dialect():
    data = patched(artifact(PROGRAMS["composite"]), b"\0vhlo\0", b"\0vhla\0")
    with pytest.raises(HloParseError, match=r"properties of vhla\.func_v1, an op that haloc"):
        parse_bytecode(data)


def nested(depth: int) -> bytes:
    body = "stablehlo.return %x : tensor<f32>\n"
    for i in range(depth):
        body = f"""%{i} = "stablehlo.case"(%i) ({{ {body} }}) : (tensor<i32>) -> tensor<f32>
          stablehlo.return %{i} : tensor<f32>
        """
    head, _, _ = body.rpartition("stablehlo.return")
    return artifact(
        f"""func.func @main(%x: tensor<f32>, %i: tensor<i32>) -> tensor<f32> {{
          {head} return %{depth - 1} : tensor<f32>
        }}"""
    )


def test_depth_is_limited():
    parse_bytecode(nested(50))
    with pytest.raises(HloParseError, match="regions nested more than 64 deep"):
        parse_bytecode(nested(200))


def test_long_locations_are_cut():
    """A chain of callers as long as a deep recursion makes it."""
    chain = "unknown"
    for i in range(300):
        chain = f'"g{i}"({chain})'
    text = f"""func.func @main(%x: tensor<f32>) -> tensor<f32> {{
      %0 = stablehlo.negate %x : tensor<f32> loc({chain})
      return %0 : tensor<f32>
    }}"""
    op = parse_bytecode(artifact(text)).operations[0].regions[0].blocks[0].operations[0]
    depth, location = 0, op.location
    while isinstance(location, NameLocation):
        depth, location = depth + 1, location.child
    assert op.location.name == "g299"
    assert 20 <= depth < 300


def test_locations_in_a_circle():
    """callsite(itself at itself): one way round is 2, two are 4, forty are forever."""
    text = """func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.negate %x : tensor<f32> loc(callsite("a":77:88 at "b":7:8))
      return %0 : tensor<f32>
    }"""
    data = artifact(text)
    container = read_container(data)
    (number,) = [
        i for i, e in enumerate(container.attributes) if entry_bytes(container, e)[0] == 21
    ]
    entry = container.attributes[number]
    start = container.entry_data.base + entry.start
    itself = number << 1 | 1
    circle = data[:start] + bytes([21, itself, itself]) + data[start + 3 :]
    op = parse_bytecode(circle).operations[0].regions[0].blocks[0].operations[0]
    assert op.location == CallLocation(None, None)


def entry_bytes(container, entry):
    return container.entry_data.data[entry.start : entry.start + entry.size]
