"""Executables as bytes: the same program again, in any process, or a clear refusal."""

import json
import subprocess
import sys

import numpy as np
import pytest

from haloc import xla_client
from haloc.cpu import features
from haloc.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from haloc.runtime import serialization_format
from haloc.runtime.serialization_format import pack, unpack

# A loop over the pool, a constant, a tuple result and a product: something of everything.
TEXT = """
HloModule several

add_f { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }

ENTRY main {
  x = f32[400,500] parameter(0)
  y = f32[400,500] tanh(x)
  z = f32[] constant(0)
  r = f32[400] reduce(y, z), dimensions={1}, to_apply=add_f
  e = f32[400,500] exponential(y)
  p = f32[400,400] dot(e, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT t = (f32[400], f32[400,500], f32[400,400]) tuple(r, e, p)
}
"""

SMALL = """
HloModule small
ENTRY main {
  x = f32[4] parameter(0)
  c = f32[4] constant({1, 2, 3, 4})
  ROOT y = f32[4] add(x, c)
}
"""


@pytest.fixture(scope="module")
def client():
    return xla_client.make_cpu_client()


@pytest.fixture(scope="module")
def small(client):
    return client.compile_and_load(SMALL, client.devices()[:1])


@pytest.fixture(scope="module")
def data(small):
    return small.serialize()


def run(client, executable, *arrays):
    arguments = [client.buffer_from_pyval(a) for a in arrays]
    return [np.asarray(a) for a in executable.execute(arguments)]


def test_the_same_program_comes_back(client):
    first = client.compile_and_load(TEXT, client.devices()[:1])
    again = client.deserialize_executable(client.serialize_executable(first), client.devices()[:1])
    x = np.random.default_rng(0).normal(size=(400, 500)).astype(np.float32)
    for a, b in zip(run(client, first, x), run(client, again, x), strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.fingerprint == first.fingerprint
    assert str(again.hlo_modules()[0]) == str(first.hlo_modules()[0])
    assert again.cost_analysis() == first.cost_analysis()
    assert str(again.get_compiled_memory_stats()) == str(first.get_compiled_memory_stats())
    assert again.size_of_generated_code_in_bytes() == first.size_of_generated_code_in_bytes() > 0
    assert again in client.live_executables()


def test_what_was_restored_can_be_stored_again(client, data):
    again = client.deserialize_executable(data, client.devices()[:1])
    third = client.deserialize_executable(again.serialize(), client.devices()[:1])
    ones = np.ones(4, np.float32)
    np.testing.assert_array_equal(run(client, third, ones)[0], [2, 3, 4, 5])


def test_donation_is_kept(client):
    text = SMALL.replace("HloModule small", "HloModule d, input_output_alias={ {}: (0, {}) }")
    first = client.compile_and_load(text, client.devices()[:1])
    again = client.deserialize_executable(first.serialize(), client.devices()[:1])
    x = client.buffer_from_pyval(np.zeros(4, np.float32), force_copy=True)
    (y,) = again.execute([x])
    assert x.is_deleted()
    np.testing.assert_array_equal(np.asarray(y), [1, 2, 3, 4])


PROGRAM = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "llvmlite":
            raise ImportError("llvmlite is not here")

sys.meta_path.insert(0, Blocked())
import numpy as np
from haloc import xla_client
client = xla_client.make_cpu_client()
executable = client.deserialize_executable(open(sys.argv[1], "rb").read(), client.devices()[:1])
x = np.random.default_rng(0).normal(size=(400, 500)).astype(np.float32)
results = executable.execute([client.buffer_from_pyval(x)])
np.savez(sys.argv[2], *[np.asarray(r) for r in results])
compiler = ("haloc.passes.pipelines", "haloc.passes.rules", "haloc.codegen", "haloc.cpu.compiler")
print(sorted(m for m in sys.modules if m.startswith(compiler)))
"""


def test_another_process_runs_it_without_llvm_or_the_compiler(client, tmp_path):
    executable = client.compile_and_load(TEXT, client.devices()[:1])
    (tmp_path / "exe").write_bytes(executable.serialize())
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "exe"), str(tmp_path / "out.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
    x = np.random.default_rng(0).normal(size=(400, 500)).astype(np.float32)
    for a, b in zip(run(client, executable, x), np.load(tmp_path / "out.npz").values()):
        np.testing.assert_array_equal(a, b)


def test_other_devices_and_the_documents_spelling(client, data):
    two = xla_client.make_cpu_client(num_devices=2)
    restored = two.deserialize_executable(data, two.devices()[1:])
    assert restored.local_devices() == two.devices()[1:]
    options = xla_client.CompileOptions()
    assert two.deserialize_executable(data, two.devices(), options=options)
    with pytest.raises(InvalidArgumentError, match="both compile_options and options"):
        two.deserialize_executable(data, two.devices(), options, options=options)
    options.num_replicas = 2
    with pytest.raises(InvalidArgumentError, match=r"num_replicas is 2, but .* compiled for 1"):
        two.deserialize_executable(data, two.devices(), options)


def test_damage_is_found(client, data):
    """Any bit may be wrong, and the data may end anywhere."""
    rng = np.random.default_rng(1)
    devices = client.devices()[:1]
    for place in [*range(60), *rng.integers(0, len(data), 300).tolist()]:
        wrong = bytearray(data)
        wrong[place] ^= 1 << rng.integers(8)
        with pytest.raises((InvalidArgumentError, FailedPreconditionError)):
            client.deserialize_executable(bytes(wrong), devices)
    for size in [0, 1, 8, 20, 51, 52, 60, len(data) // 2, len(data) - 1]:
        with pytest.raises(InvalidArgumentError, match=r"not a serialized|ends after|cut off"):
            client.deserialize_executable(data[:size], devices)
    with pytest.raises(InvalidArgumentError, match="begin with b'garbage'"):
        client.deserialize_executable(b"garbage", devices)
    with pytest.raises(TypeError, match="serialized is str"):
        client.deserialize_executable("text", devices)


@pytest.mark.parametrize("version, age", [(0, "older"), (99, "newer")])
def test_other_format_versions_are_refused(client, data, version, age):
    other = data[:8] + version.to_bytes(4, "little") + data[12:]
    with pytest.raises(FailedPreconditionError, match=f"version {version}, written by {age} haloc"):
        client.deserialize_executable(other, client.devices()[:1])


def changed(data, change):
    """The container with another manifest, and the checksum that fits."""
    manifest, blocks = unpack(data)
    change(manifest, blocks)
    del manifest["blocks"]
    return pack(manifest, {name: bytes(block) for name, block in blocks.items()})


def test_foreign_cpus_and_machines_are_refused(client, data, monkeypatch):
    devices = client.devices()[:1]
    needs_amx = changed(data, lambda m, b: m["program"]["features"].append("amx-transpose"))
    with pytest.raises(FailedPreconditionError, match="a CPU with amx-transpose, which"):
        client.deserialize_executable(needs_amx, devices)
    monkeypatch.setattr(features, "_present", lambda: frozenset({"pni"}))
    if "avx2" in unpack(data)[0]["program"]["features"]:
        with pytest.raises(FailedPreconditionError, match="avx2"):
            client.deserialize_executable(data, devices)
    monkeypatch.undo()
    header, _, code = bytes(unpack(data)[1]["code"]).partition(b"\0")
    machine = {"x86_64": "aarch64", "aarch64": "x86_64"}[json.loads(header)["machine"]]
    fields = json.loads(header) | {"machine": machine, "code_bytes": 65536, "constant_bytes": 0}
    fields |= {"size_bytes": 65536, "imports": [], "rebases": []}
    other = json.dumps(fields).encode() + b"\0" + code
    with pytest.raises(FailedPreconditionError, match=f"compiled for {machine}; this machine"):
        client.deserialize_executable(changed(data, lambda m, b: b.update(code=other)), devices)
    with pytest.raises(FailedPreconditionError, match="for platform 'tpu', the client is 'cpu'"):
        client.deserialize_executable(changed(data, lambda m, b: m.update(platform="tpu")), devices)


def test_symbols_nobody_has_are_named(client, data):
    def call_nobody(manifest, blocks):
        header, _, code = bytes(blocks["code"]).partition(b"\0")
        fields = json.loads(header)
        fields["imports"] = [["haloc_nobody", fields["code_bytes"]]]
        fields["constant_bytes"] = max(fields["constant_bytes"], 4096)
        fields["size_bytes"] = fields["code_bytes"] + fields["constant_bytes"]
        blocks["code"] = json.dumps(fields).encode() + b"\0" + code

    with pytest.raises(FailedPreconditionError, match="'haloc_nobody', which this process"):
        client.deserialize_executable(changed(data, call_nobody), client.devices()[:1])


def test_only_native_programs_can_be_stored():
    client = xla_client.make_interpreter_client()
    executable = client.compile_and_load(SMALL, client.devices()[:1])
    with pytest.raises(UnimplementedError, match="InterpreterProgram: only CPU programs"):
        executable.serialize()


def test_blocks_are_aligned():
    packed = pack({"a": 1}, {"x": b"123", "y": b"4" * 100, "z": b""})
    manifest, blocks = unpack(packed)
    assert manifest["a"] == 1
    assert {k: bytes(v) for k, v in blocks.items()} == {"x": b"123", "y": b"4" * 100, "z": b""}
    assert all(
        at % serialization_format.ALIGNMENT_BYTES == 0 for at, _ in manifest["blocks"].values()
    )
