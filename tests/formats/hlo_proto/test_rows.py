"""Every attribute of every row has its field, and random instances of every row round-trip."""

import numpy as np
import pytest

from haloc.formats.hlo_proto import parse_hlo_module_proto, serialize_hlo_module
from haloc.formats.hlo_proto.rows import proto_row
from haloc.formats.hlo_text import to_text
from haloc.formats.proto.table import message_type
from haloc.ops.example import ExampleGraph
from haloc.ops.table import OPS
from tests.formats.compare import differences
from tests.formats.hlo_proto.check import lines, xla_text

WITHOUT_PROTO = {
    ("collective-permute", "slice_sizes"),
    ("collective-permute-start", "slice_sizes"),
}
"""Attributes that HloInstructionProto has no field for."""


@pytest.mark.parametrize("opcode", OPS)
def test_every_attribute_has_its_field(opcode):
    instruction = message_type("HloInstructionProto")
    row = proto_row(opcode)
    assert row.fields <= instruction.by_name.keys() | {a for _, a in WITHOUT_PROTO}
    for attr in row.attrs:
        if (opcode, attr.name) in WITHOUT_PROTO:
            continue
        message = instruction
        for name in attr.path:
            field = message.by_name[name]
            message = field.message
        if attr.index is not None:
            assert field.is_repeated


@pytest.mark.parametrize("opcode", sorted(OPS))
def test_examples_of_every_row_round_trip_and_are_xlas(opcode):
    for seed in range(3):
        graph = ExampleGraph(np.random.default_rng(seed))
        graph.computation.root = OPS[opcode].example(graph)
        data = serialize_hlo_module(graph.module)
        again = parse_hlo_module_proto(data)
        graph.module.header.setdefault("entry_computation_layout", None)
        again.header["entry_computation_layout"] = None
        assert differences(again, graph.module) == []
        text = to_text(graph.module)
        if "f6e" not in text:  # XLA dies of literals of these.
            again = parse_hlo_module_proto(data)
            assert lines(xla_text(data)) == lines(xla_text(serialize_hlo_module(again)))
