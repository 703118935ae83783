"""What stands in the header of HLO text, in HloModuleProto."""

from __future__ import annotations

from typing import Any

from haloc.errors import HloParseError
from haloc.formats.hlo_proto.shapes import shape_from_bytes, shape_to_bytes
from haloc.formats.hlo_text.header import entry_layout
from haloc.formats.proto import Message
from haloc.ir.module import HloComputation, HloModule
from haloc.ir.shape import Shape

MODULE_FIELDS = frozenset({
    "name", "entry_computation_name", "computations", "host_program_shape",
    "entry_computation_id", "schedule", "input_output_alias", "stack_frame_index", "buffer_donor",
    "frontend_attributes",
})  # fmt: skip
"""Fields of HloModuleProto that the IR has a place for."""

_ALIAS_KINDS = ("may-alias", "may-alias", "must-alias")
"""By number. XLA takes an undefined kind for may-alias."""


def read_header(module: HloModule, message: Message) -> None:
    """Fill `module.header`. Raises HloParseError."""
    header = module.header
    if "schedule" in message:
        header["is_scheduled"] = True
    if entries := message.get("input_output_alias", {}).get("entries"):
        header["input_output_alias"] = tuple(map(_alias, entries))
    if entries := message.get("buffer_donor", {}).get("entries"):
        header["buffer_donor"] = tuple(
            (e.get("parameter_number", 0), tuple(e.get("parameter_shape_index", ())))
            for e in entries
        )
    if pairs := message.get("frontend_attributes", {}).get("map"):
        header["frontend_attributes"] = dict(pairs)
    if "host_program_shape" in message:
        header["entry_computation_layout"] = _entry_layout(module, message["host_program_shape"])


def _alias(entry: Message) -> tuple[Any, ...]:
    kind = entry.get("kind", 0)
    if not 0 <= kind < len(_ALIAS_KINDS):
        raise HloParseError(f"input_output_alias has the unknown kind {kind}")
    return (
        tuple(entry.get("output_shape_index", ())),
        entry.get("parameter_number", 0),
        tuple(entry.get("parameter_shape_index", ())),
        _ALIAS_KINDS[kind],
    )


def _entry_layout(module: HloModule, message: Message) -> tuple[tuple[Shape, ...], Shape]:
    parameters, result = program_shape(message)
    given = [p.shape for p in module.entry.parameters]
    root = module.entry.root.shape
    same = len(parameters) == len(given) and all(map(Shape.compatible, parameters, given))
    if not same or not result.compatible(root):
        body = ", ".join(s.to_string(False) for s in given)
        raise HloParseError(
            "host_program_shape differs from the entry computation, which is "
            f"({body}) -> {root.to_string(False)}"
        )
    return parameters, result


def program_shape(message: Message) -> tuple[tuple[Shape, ...], Shape]:
    """(parameter shapes, result shape) of a ProgramShapeProto with its shapes kept as bytes."""
    if "result" not in message:
        raise HloParseError("a program shape has no result")
    parameters = tuple(map(shape_from_bytes, message.get("parameters", ())))
    return parameters, shape_from_bytes(message["result"])


def program_shape_to_proto(parameters: list[Shape], result: Shape, names: list[str]) -> Message:
    return {
        "parameters": [shape_to_bytes(p) for p in parameters],
        "result": shape_to_bytes(result),
        "parameter_names": names,
    }


def header_to_proto(module: HloModule) -> Message:
    """The fields of HloModuleProto that `read_header` reads, but for the schedule."""
    header = module.header
    parameters, result = entry_layout(module)
    names = [f"p{i}" for i in range(len(parameters))]
    aliases = [
        {
            "output_shape_index": list(output),
            "parameter_number": number,
            "parameter_shape_index": list(index),
            "kind": _ALIAS_KINDS.index(kind, 1),
        }
        for output, number, index, kind in header.get("input_output_alias", ())
    ]
    donors = [
        {"parameter_number": number, "parameter_shape_index": list(index)}
        for number, index in header.get("buffer_donor", ())
    ]
    return {
        "host_program_shape": program_shape_to_proto(list(parameters), result, names),
        "input_output_alias": {"entries": aliases},
        "buffer_donor": {"entries": donors},
        "frontend_attributes": {"map": header.get("frontend_attributes", {})},
    }


def computation_shape(computation: HloComputation) -> Message:
    """The ProgramShapeProto of a computation, with the names of its parameters."""
    parameters = computation.parameters
    shapes, names = [p.shape for p in parameters], [p.name for p in parameters]
    return program_shape_to_proto(shapes, computation.root.shape, names)
