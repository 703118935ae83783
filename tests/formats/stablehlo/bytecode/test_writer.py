"""Portable artifacts that haloc writes: jaxlib reads them as it reads its own."""

from __future__ import annotations

import time

import jax
import numpy as np
import pytest
from jax._src.interpreters import mlir
from jaxlib import xla_client
from jaxlib.mlir.dialects import stablehlo

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.formats.hlo_text import parse_module
from haloc.formats.stablehlo import (
    from_hlo,
    parse_bytecode,
    parse_mlir,
    print_mlir,
    serialize_portable_artifact,
    to_hlo,
)
from haloc.formats.stablehlo.bytecode.cursor import ByteCursor
from haloc.formats.stablehlo.bytecode.encode import svarint, varint
from tests.conformance.arguments import argument
from tests.conformance.compare import hlo_of
from tests.conformance.small import PROGRAMS
from tests.formats.stablehlo.ops import LINES, module_of


def as_jaxlib_reads(data: bytes) -> str:
    with mlir.make_ir_context() as context:
        return str(stablehlo.deserialize_portable_artifact(context, data))


_OPS = [line for line in LINES if line.startswith('"stablehlo') and "tensor<0xf32>" not in line]


@pytest.mark.parametrize("target", ["", "1.17.0"])
@pytest.mark.parametrize("line", _OPS, ids=[line[:40] for line in _OPS])
def test_every_op(line, target):
    source = module_of(line)
    ours = serialize_portable_artifact(parse_mlir(source), target)
    with mlir.make_ir_context():
        theirs = stablehlo.serialize_portable_artifact_str(source, target or "1.17.0")
    assert as_jaxlib_reads(ours) == as_jaxlib_reads(theirs)
    assert print_mlir(parse_bytecode(ours)) == print_mlir(parse_bytecode(theirs))


@pytest.mark.parametrize(
    ("name", "function", "specs"),
    [
        pytest.param(*p, marks=() if number % 16 == 0 else pytest.mark.nightly, id=p[0])
        for number, p in enumerate(PROGRAMS)
    ],
)
def test_programs(name, function, specs):
    rng = np.random.default_rng(0)
    module = from_hlo(parse_module(hlo_of(function, [argument(s, rng) for s in specs])))
    data = serialize_portable_artifact(module)
    assert as_jaxlib_reads(data)
    again = from_hlo(to_hlo(parse_bytecode(data)))
    assert print_mlir(again) == print_mlir(from_hlo(to_hlo(module)))


def test_locations_and_attributes_are_kept():
    text = """
    module @m attributes {a.flag, mhlo.num_partitions = 2 : i32} {
      func.func public @main(%arg0: tensor<4xf32> {mhlo.sharding = "{replicated}"} loc("x"))
          -> (tensor<4xf32> {jax.result_info = "r"}) {
        %0 = stablehlo.tanh %arg0 : tensor<4xf32> loc("jit(f)/tanh"("a.py":3:7))
        return %0 : tensor<4xf32>
      }
    }"""
    module = parse_mlir(text)
    data = serialize_portable_artifact(module)
    assert print_mlir(parse_bytecode(data), locations=True) == print_mlir(module, locations=True)
    assert 'jax.result_info = "r"' in as_jaxlib_reads(data)


def test_ops_of_chlo_are_the_calls_that_readers_know():
    text = "ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] erf(x) }"
    data = serialize_portable_artifact(from_hlo(parse_module(text)))
    assert "stablehlo.custom_call @mhlo.erf(%arg0)" in as_jaxlib_reads(data)
    assert to_hlo(parse_bytecode(data)).entry.root.opcode == "erf"


def test_the_oldest_version_that_will_do():
    def producer(body: str) -> bytes:
        made = from_hlo(parse_module(f"ENTRY e {{ x = f32[4] parameter(0) {body} }}"))
        return serialize_portable_artifact(made)[6:]

    assert producer("ROOT y = f32[4] tanh(x)").startswith(b"tableHLO_v1.0.0\0")
    assert producer("ROOT y = f32[4] tan(x)").startswith(b"tableHLO_v1.4.0\0")
    assert producer("ROOT y = f8e3m4[4] convert(x)").startswith(b"tableHLO_v1.7.0\0")


def test_targets():
    module = from_hlo(parse_module("ENTRY e { x = f32[] parameter(0)  ROOT y = f32[] tan(x) }"))
    with pytest.raises(
        UnimplementedError, match=r"stablehlo.tan: StableHLO 1\.0\.0 does not have it.*1\.4\.0"
    ):
        serialize_portable_artifact(module, "1.0.0")
    for wrong in ("0.9.0", "2.0.0", "1.0", "new"):
        with pytest.raises(InvalidArgumentError, match=wrong):
            serialize_portable_artifact(module, wrong)


def test_numbers():
    for value in [0, 1, 127, 128, 1 << 14, (1 << 21) - 1, (1 << 56) - 1, 1 << 56, (1 << 64) - 1]:
        assert ByteCursor(varint(value), "test").varint() == value
    for value in [0, -1, 1, -64, 64, 1 << 40, -(1 << 40), (1 << 63) - 1, -(1 << 63)]:
        assert ByteCursor(svarint(value), "test").svarint() == value


def test_ten_thousand_ops_in_about_a_second():
    lines = ["x0 = f32[8] parameter(0)"]
    lines += [f"x{i} = f32[8] add(x{i - 1}, x{max(0, i - 7)})" for i in range(1, 10_000)]
    lines.append("ROOT y = f32[8] tanh(x9999)")
    module = parse_module("ENTRY e {\n" + "\n".join(lines) + "\n}")
    start = time.perf_counter()
    data = serialize_portable_artifact(from_hlo(module))
    assert time.perf_counter() - start < 5  # about 0.3 s on a quiet machine
    assert len(to_hlo(parse_bytecode(data)).entry) == 10_001


def test_jaxlib_runs_it():
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=d).astype(np.float32) for d in ((2, 3), (3, 4)))
    text = hlo_of(lambda x, y: jax.nn.softmax(x @ y), [x, y])
    data = serialize_portable_artifact(from_hlo(parse_module(text)))
    device = jax.devices("cpu")[0]
    program = as_jaxlib_reads(data)
    executable = device.client.compile_and_load(
        program, xla_client.DeviceList((device,)), xla_client.CompileOptions()
    )
    (got,) = executable.execute([jax.device_put(a, device) for a in (x, y)])
    np.testing.assert_allclose(np.asarray(got), jax.nn.softmax(x @ y), rtol=1e-5)
