"""What must hold for any proto that jaxlib wrote."""

from __future__ import annotations

import re

import jaxlib._hlo
import numpy as np

from haloc.formats.hlo_proto import parse_hlo_module_proto, serialize_hlo_module
from haloc.formats.hlo_text import parse_module
from haloc.formats.proto import Message, decode
from haloc.ir.module import HloModule
from tests.formats.compare import differences

CONFIG_ONLY = (
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
    "replica_count",
    "num_partitions",
    "alias_passthrough_params",
)
"""Header attributes that XLA keeps in HloModuleConfigProto."""


def xla_text(data: bytes) -> str:
    """XLA's own print of a serialised HloModuleProto, without stack frames: it renumbers those as
    it goes through the instructions, in no order of the text."""
    options = jaxlib._hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_percent = False
    text = jaxlib._hlo.HloModule.from_serialized_hlo_module_proto(data).to_string(options)
    return re.sub(r"\n(FileNames|FunctionNames|FileLocations|StackFrames)\n(\d+ .*\n)*", "", text)


def check_proto(data: bytes) -> None:
    """haloc reads what jaxlib wrote as it reads its text; what haloc writes, XLA prints the same;
    writing again changes nothing; and the fields written are those that jaxlib wrote."""
    module = parse_hlo_module_proto(data)
    text = xla_text(data)
    if "-start(" not in text:  # Text leaves out the name of a computation behind async sugar.
        assert differences(without_frames(module), without_frames(parse_module(text))) == []
    written = serialize_hlo_module(module)
    assert lines(xla_text(written)) == lines(text)
    again = serialize_hlo_module(parse_hlo_module_proto(written))
    assert again == written
    ours, theirs = comparable(written), comparable(data)
    assert {k: v for k, v in ours.items() if v != theirs.get(k)} == {
        k: v for k, v in theirs.items() if v != ours.get(k)
    }


def without_frames(module: HloModule) -> HloModule:
    copy = module.clone()
    copy.tables = {}
    for key in CONFIG_ONLY:
        copy.header.pop(key, None)
    for instruction in copy.instructions():
        instruction.metadata = {
            k: v for k, v in instruction.metadata.items() if k != "stack_frame_id"
        }
    return copy


def lines(text: str) -> list[str]:
    """The lines in no order, since XLA prints computations in an order of their ids; without the
    numbers of stack frames."""
    found = re.sub(r"(, metadata=\{)?( ?stack_frame_id=\d+)(?(1)\}|)", "", text)
    return sorted(found.splitlines())


def comparable(data: bytes) -> Message:
    """The message with ids counted in the order of the instructions, and without the zeros, the
    empty messages, default precisions and comparison types that XLA writes and haloc does not."""
    message = decode("HloModuleProto", data)
    numbers: dict[int, int] = {}
    ids: dict[int, int] = {}
    sequences = message.get("schedule", {}).get("sequences", {})
    for computation in message["computations"]:
        number = computation.get("id", 0)
        numbers[number] = len(numbers) + 1
        if number in sequences:
            order = {k: i for i, k in enumerate(sequences[number]["instruction_ids"])}
            computation["instructions"].sort(key=lambda i: order[i.get("id", 0)])
        for k, instruction in enumerate(computation["instructions"]):
            ids[instruction.get("id", 0)] = len(ids) + 1
            instruction["id"] = len(ids)
            assert k < 1 << 32
    for computation in message["computations"]:
        computation["id"] = numbers[computation.get("id", 0)]
        computation["root_id"] = ids[computation.get("root_id", 0)]
        for instruction in computation["instructions"]:
            for key in ("operand_ids", "control_predecessor_ids"):
                instruction[key] = [ids[i] for i in instruction.get(key, ())]
            called = instruction.get("called_computation_ids", ())
            instruction["called_computation_ids"] = [numbers[i] for i in called]
            if instruction.get("comparison_type") != "TOTALORDER":
                instruction.pop("comparison_type", None)
            if not any(instruction.get("precision_config", {}).get("operand_precision", ())):
                instruction.get("precision_config", {}).pop("operand_precision", None)
    message["entry_computation_id"] = numbers[message.get("entry_computation_id", 0)]
    for number, sequence in sequences.items():
        assert number in numbers
        sequence["instruction_ids"] = [ids[i] for i in sequence["instruction_ids"]]
    if sequences:
        message["schedule"]["sequences"] = {numbers[n]: s for n, s in sequences.items()}
    return _without_empty(message)


def _without_empty(value):
    if isinstance(value, dict):
        found = {k: _without_empty(v) for k, v in value.items()}
        return {k: v for k, v in found.items() if k == 0 or v or isinstance(v, float)}
    if isinstance(value, list):
        return [_without_empty(v) for v in value]
    return value.tobytes() if isinstance(value, np.ndarray) else value
