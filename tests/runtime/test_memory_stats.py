"""CompiledMemoryStats: the sizes are those that a run allocates, and XLA's proto lists them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from haloc import xla_client
from haloc.formats.hlo_proto import HloProto
from haloc.formats.proto import decode
from haloc.runtime.buffer_assignment import allocations

PLAIN = """HloModule plain
ENTRY e {
  x = f32[300,200] parameter(0)
  y = f32[200,300] parameter(1)
  product = f32[300,300] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT square = f32[300,300] dot(product, product), lhs_contracting_dims={1},
    rhs_contracting_dims={0}
}"""

TUPLES = """HloModule tuples
ENTRY e {
  x = (f32[4], (s8[3])) parameter(0)
  a = f32[4] get-tuple-element(x), index=0
  nested = (s8[3]) get-tuple-element(x), index=1
  b = s8[3] get-tuple-element(nested), index=0
  n = f32[4] negate(a)
  inner = (s8[3]) tuple(b)
  ROOT t = ((s8[3]), f32[4]) tuple(inner, n)
}"""

DONATED = """HloModule donated, input_output_alias={ {}: (1, {}, may-alias) }
ENTRY e {
  x = f32[64] parameter(0)
  y = f32[64] parameter(1)
  ROOT s = f32[64] add(x, y)
}"""

SORTED = """HloModule sorted
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT l = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = f32[5000] parameter(0)
  y = f32[5000] negate(x)
  ROOT s = f32[5000] sort(y), dimensions={0}, to_apply=less
}"""

ARGUMENTS = {
    PLAIN: [np.ones((300, 200), "f4"), np.ones((200, 300), "f4")],
    TUPLES: [np.ones(4, "f4"), np.ones(3, "i1")],
    DONATED: [np.ones(64, "f4"), np.ones(64, "f4")],
    SORTED: [np.arange(5000, dtype="f4")],
}


class Recorder:
    """What a client's pool hands out."""

    def __init__(self, client: Any):
        self.sizes: list[int] = []
        self._allocate = client.pool.allocate
        client.pool.allocate = self

    def __call__(self, size_bytes: int) -> Any:
        self.sizes.append(size_bytes)
        return self._allocate(size_bytes)


def loaded(text: str) -> Any:
    client = xla_client.make_cpu_client()
    return client.compile_and_load(text, client.devices())


@pytest.mark.parametrize("text", ARGUMENTS, ids=lambda t: t.split()[1].strip(","))
def test_a_run_allocates_what_the_stats_say(text: str) -> None:
    client = xla_client.make_cpu_client(asynchronous=False)
    recorder = Recorder(client)
    executable = client.compile_and_load(text, client.devices())
    arguments = [client.buffer_from_pyval(a, force_copy=True) for a in ARGUMENTS[text]]
    stats = executable.get_compiled_memory_stats()
    assert stats.argument_size_in_bytes == sum(a.nbytes for a in ARGUMENTS[text])
    recorder.sizes.clear()
    outputs = executable.execute(arguments)
    tables = stats.output_size_in_bytes - sum(o.nbytes for o in outputs)
    assert tables == (8 * 3 if text is TUPLES else 0)  # XLA's tables of tuples, never allocated
    asked = sum(recorder.sizes)
    made = stats.output_size_in_bytes - stats.alias_size_in_bytes - tables
    assert asked == made + stats.temp_size_in_bytes
    assert stats.peak_memory_in_bytes == stats.argument_size_in_bytes + asked + tables


def test_scratch_is_counted() -> None:
    assert loaded(PLAIN).get_compiled_memory_stats().temp_size_in_bytes >= 300 * 300 * 4
    assert loaded(DONATED).get_compiled_memory_stats().temp_size_in_bytes == 0


def test_code_is_counted() -> None:
    executable = loaded(SORTED)
    stats = executable.get_compiled_memory_stats()
    assert stats.generated_code_size_in_bytes == executable.size_of_generated_code_in_bytes() > 0
    assert stats.host_generated_code_size_in_bytes == 0
    assert (stats.host_argument_size_in_bytes, stats.host_output_size_in_bytes) == (0, 0)
    assert (stats.host_alias_size_in_bytes, stats.host_temp_size_in_bytes) == (0, 0)
    assert "temp_size_in_bytes" in str(stats)


def assignment_of(text: str) -> dict[str, Any]:
    stats = loaded(text).get_compiled_memory_stats()
    return decode("BufferAssignmentProto", stats.serialized_buffer_assignment_proto)


def test_the_proto_lists_all_memory() -> None:
    executable = loaded(PLAIN)
    stats = executable.get_compiled_memory_stats()
    found = decode("BufferAssignmentProto", stats.serialized_buffer_assignment_proto)
    first, second, result, *_, arena = found["buffer_allocations"]
    assert first["is_entry_computation_parameter"] and "parameter_number" not in first
    assert second["parameter_number"] == 1
    assert result["maybe_live_out"] and result["size"] == 300 * 300 * 4
    assert arena["size"] == stats.temp_size_in_bytes
    assert sum(a["size"] for a in found["buffer_allocations"]) >= stats.peak_memory_in_bytes


def test_the_protos_buffers_are_the_modules_instructions() -> None:
    executable = loaded(DONATED)
    found = assignment_of(DONATED)
    module = executable.hlo_modules()[0].as_serialized_hlo_module_proto()
    computation = decode("HloModuleProto", module)["computations"][-1]
    names = {i["id"]: i["name"] for i in computation["instructions"]}
    where = [names[b["defined_at"]["instruction_id"]] for b in found["logical_buffers"]]
    assert where[:2] == ["x", "y"] and names[computation["root_id"]] == where[2]
    donated = found["buffer_allocations"][1]
    assert donated["is_parameter_aliased_with_output"] and donated["maybe_live_out"]
    assert [a.get("logical_buffer_id", 0) for a in donated["assigned"]] == [1, 2]


def test_the_protos_leaves_of_tuples() -> None:
    found = assignment_of(TUPLES)["buffer_allocations"]
    arguments = [a for a in found if a.get("is_entry_computation_parameter")]
    assert [a["parameter_shape_index"] for a in arguments] == [[0], [1, 0]]
    places = [a.result for a in allocations(loaded(TUPLES)._program) if a.result is not None]
    assert places == [(0, 0), (1,)]


def test_xlas_containers_take_it() -> None:
    executable = loaded(PLAIN)
    proto = executable.get_compiled_memory_stats().serialized_buffer_assignment_proto
    module = executable.hlo_modules()[0].as_serialized_hlo_module_proto()
    data = bytes([0x0A]) + varint(len(module)) + module + bytes([0x1A]) + varint(len(proto)) + proto
    assert HloProto.parse(data).module.name == "plain"


def varint(number: int) -> bytes:
    """A length as the wire format has it."""
    high, low = divmod(number, 128)
    return bytes([low | 128]) + varint(high) if high else bytes([low])
