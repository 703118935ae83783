"""`HloModule` to HloModuleProto, with ids as XLA gives them."""

from __future__ import annotations

import haloc.ops  # noqa: F401  (fills OPS)
from haloc.errors import InternalError, InvalidArgumentError, UnimplementedError
from haloc.formats.hlo_proto.header import computation_shape, header_to_proto
from haloc.formats.hlo_proto.literals import literal_to_proto
from haloc.formats.hlo_proto.metadata import metadata_to_proto, origin_to_proto, tables_to_proto
from haloc.formats.hlo_proto.rows import proto_row
from haloc.formats.hlo_proto.shapes import shape_to_bytes
from haloc.formats.hlo_proto.shardings import sharding_to_bytes
from haloc.formats.proto import Message, decode, encode
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape
from haloc.ir.sharding import HloSharding
from haloc.ops.table import REQUIRED

_ID_BITS = 32
"""An instruction's id is its computation's, shifted by this, and its number there from 1."""


def serialize_hlo_module(module: HloModule) -> bytes:
    """The module as a serialised HloModuleProto that XLA reads.

    Computations stand callees first, the entry last. Of the header, what XLA keeps in
    HloModuleConfigProto (replica_count, num_partitions, ...) is not in it. Raises
    UnimplementedError for attributes without a proto form, InvalidArgumentError for a recursive
    module and for values that do not fit their field.
    """
    return encode("HloModuleProto", module_to_proto(module))


def module_to_proto(module: HloModule) -> Message:
    """An HloModuleProto, parts of it already encoded."""
    return _ModuleWriter(module).write()


class _ModuleWriter:
    """Writes one module. It is what the codecs of attributes ask."""

    def __init__(self, module: HloModule):
        self.module = module
        self.order = _callees_first(module)
        self.numbers = {c: i for i, c in enumerate(self.order, 1)}
        self.ids: dict[HloInstruction, int] = {}
        self.fusions = {
            c
            for computation in self.order
            for i in computation.instructions
            if i.opcode == "fusion"
            for c in i.called_computations
        }

    def write(self) -> Message:
        module, entry = self.module, self.module.entry
        extra = decode("HloModuleProto", module.proto_extra) if module.proto_extra else {}
        message: Message = {
            "name": module.name,
            "entry_computation_name": entry.name,
            "entry_computation_id": self.numbers[entry],
            "computations": [self.computation_message(c) for c in self.order],
            **header_to_proto(module),
        }
        if module.header.get("is_scheduled"):
            message["schedule"] = {"sequences": self.sequences()}
        if module.tables:
            message["stack_frame_index"] = tables_to_proto(module.tables)
        return message | extra

    def sequences(self) -> dict[int, Message]:
        """The order of instructions in every computation that is not inside a fusion."""
        return {
            self.numbers[c]: {"instruction_ids": [self.ids[i] for i in c.instructions]}
            for c in self.order
            if c not in self.fusions
        }

    # --- What codecs ask -------------------------------------------------------------------

    def shape(self, shape: Shape) -> bytes:
        return shape_to_bytes(shape)

    def sharding(self, sharding: HloSharding) -> bytes:
        return sharding_to_bytes(sharding)

    def computation(self, computation: HloComputation) -> int:
        return self.numbers[computation]

    # --- Computations and instructions -----------------------------------------------------

    def computation_message(self, computation: HloComputation) -> bytes:
        base = self.numbers[computation] << _ID_BITS
        instructions = computation.instructions
        for k, instruction in enumerate(instructions, 1):
            self.ids[instruction] = base | k
        message: Message = {
            "name": computation.name,
            "instructions": [self.instruction_message(i) for i in instructions],
            "program_shape": computation_shape(computation),
            "id": self.numbers[computation],
            "root_id": self.ids[computation.root],
            "is_fusion_computation": computation in self.fusions,
            "execution_thread": computation.execution_thread,
        }
        return encode("HloComputationProto", message) + computation.proto_extra

    def instruction_message(self, instruction: HloInstruction) -> bytes:
        message: Message = {
            "name": instruction.name,
            "opcode": instruction.opcode,
            "shape": shape_to_bytes(instruction.shape),
            "metadata": metadata_to_proto(instruction.metadata),
            "id": self.ids[instruction],
            "operand_ids": [self.ids[o] for o in instruction.operands],
            "statistics_viz": {},
            "frontend_attributes": {"map": instruction.frontend_attributes},
        }
        self.attributes(instruction, message)
        if instruction.control_predecessors:
            ids = [self.ids[p] for p in instruction.control_predecessors]
            message["control_predecessor_ids"] = ids
        if instruction.sharding is not None:
            message["sharding"] = sharding_to_bytes(instruction.sharding)
        if instruction.backend_config:
            message["backend_config"] = instruction.backend_config.encode(
                "utf-8", "surrogateescape"
            )
        if instruction.origin:
            message["original_value"] = origin_to_proto(instruction.origin)
        if instruction.proto_extra:
            _merge(message, decode("HloInstructionProto", instruction.proto_extra))
        return encode("HloInstructionProto", message)

    def attributes(self, instruction: HloInstruction, message: Message) -> None:
        attrs = instruction.attrs
        row = proto_row(instruction.opcode)
        written = {"literal", "parameter_number"}
        for attr in row.attrs:
            value = attrs.get(attr.name)
            written.add(attr.name)
            if value is None:
                if attr.default is REQUIRED:
                    who = f"{instruction.opcode} {instruction.name!r}"
                    raise InvalidArgumentError(f"{who}: attribute {attr.name} is missing")
                # A default that an absent field does not mean is written: counts of 1, true.
                if not attr.default or attr.default == -1:
                    continue
                value = attr.default
            attr.put(message, attr.codec.to_proto(value, self))
        if "literal" in attrs:
            message["literal"] = literal_to_proto(attrs["literal"])
        if "parameter_number" in attrs:
            message["parameter_number"] = attrs["parameter_number"]
        for name, value in attrs.items():
            if name not in written:
                raise UnimplementedError(
                    f"{instruction.opcode} {instruction.name!r}: {name}={value} has no proto form "
                    "in haloc"
                )


def _merge(message: Message, extra: Message) -> None:
    for key, value in extra.items():
        if isinstance(value, dict) and isinstance(message.get(key), dict):
            _merge(message[key], value)
        else:
            message[key] = value


def _callees_first(module: HloModule) -> list[HloComputation]:
    """All computations as they stand, but each behind those it calls, and the entry last.

    Raises InvalidArgumentError for a recursive module.
    """
    if module.entry is None:
        raise InternalError(f"module {module.name!r} has no entry computation")
    order: dict[HloComputation, None] = {}
    others = [c for c in module.computations.values() if c is not module.entry]
    for first in [*others, module.entry]:
        path = [(first, iter(_called(first)))] if first not in order else []
        active = {first}
        while path:
            computation, callees = path[-1]
            callee = next((c for c in callees if c not in order), None)
            if callee is None:
                order[computation] = None
                active.discard(computation)
                path.pop()
                continue
            if callee in active:
                raise InvalidArgumentError(f"computation {callee.name!r} calls itself")
            active.add(callee)
            path.append((callee, iter(_called(callee))))
    return list(order)


def _called(computation: HloComputation) -> list[HloComputation]:
    if computation.root is None:
        raise InternalError(f"computation {computation.name!r} has no root")
    return [c for i in computation.instructions for c in i.called_computations]
