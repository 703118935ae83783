"""HloModuleProto to `HloModule`. Which field an attribute is comes from the op table's rows."""

from __future__ import annotations

import re
from typing import NoReturn

import haloc.ops  # noqa: F401  (fills OPS)
from haloc.errors import HloParseError, InvalidArgumentError
from haloc.formats.hlo_proto.header import MODULE_FIELDS, read_header
from haloc.formats.hlo_proto.literals import literal_from_proto
from haloc.formats.hlo_proto.metadata import (
    metadata_from_bytes,
    origin_from_proto,
    tables_from_proto,
)
from haloc.formats.hlo_proto.rows import proto_row
from haloc.formats.hlo_proto.shapes import shape_from_bytes
from haloc.formats.hlo_proto.shardings import sharding_from_bytes
from haloc.formats.hlo_text.cursor import did_you_mean
from haloc.formats.proto import Message, decode, encode
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape
from haloc.ir.sharding import HloSharding
from haloc.ops.table import OPS

KEEP = frozenset({"ShapeProto", "OpMetadata", "OpSharding"})
"""Messages that are read by their bytes: most are equal to others of the module."""

MAIN_THREAD = "main"
"""The thread that text does not name."""

_UNFIT = re.compile(r"[^A-Za-z0-9_.-]")

_INSTRUCTION_FIELDS = frozenset({
    "name", "opcode", "shape", "metadata", "literal", "id", "operand_ids",
    "control_predecessor_ids", "called_computation_ids", "sharding", "backend_config",
    "frontend_attributes", "original_value",
})  # fmt: skip
"""Fields that every instruction may have, read here."""

_COMPUTATION_FIELDS = frozenset({
    "name", "instructions", "program_shape", "id", "root_id", "is_fusion_computation",
    "execution_thread",
})  # fmt: skip


def parse_hlo_module_proto(data: bytes) -> HloModule:
    """The module of a serialised HloModuleProto.

    Names are made fit for text and unique. What the IR has no place for is kept in `proto_extra`.
    Raises HloParseError for data that is no such message, or a message that is no module;
    haloc's verifier is not run.
    """
    return module_from_proto(decode("HloModuleProto", data, KEEP))


def module_from_proto(message: Message) -> HloModule:
    """The module of an HloModuleProto decoded with `KEEP`."""
    return _ModuleReader(message).read()


def fit_name(name: str) -> str:
    """The name with characters that HLO text does not take replaced."""
    name = _UNFIT.sub("_", name)
    return name if not name or name[0].isalpha() or name[0] == "_" else "_" + name


class _ModuleReader:
    """Reads one module. It is what the codecs of attributes ask."""

    def __init__(self, message: Message):
        self.message = message
        self.module = HloModule(fit_name(message.get("name", "")) or "module")
        self.computations: dict[int, HloComputation] = {}
        self.instructions: dict[int, HloInstruction] = {}
        self.name = ""

    def read(self) -> HloModule:
        messages = self.message.get("computations", [])
        for one in messages:
            self.declare(one)
        for one in messages:
            self.computation_body(one)
        entry = self.message.get("entry_computation_id", 0)
        if entry not in self.computations:
            raise HloParseError(f"the module has no computation {entry}, which is its entry")
        self.module.entry = self.computations[entry]
        self.module.post_order()  # Refuses recursion.
        self.schedule()
        read_header(self.module, self.message)
        if "stack_frame_index" in self.message:
            self.module.tables = tables_from_proto(self.message["stack_frame_index"])
        extra = {k: v for k, v in self.message.items() if k not in MODULE_FIELDS}
        self.module.proto_extra = encode("HloModuleProto", extra)
        return self.module

    # --- What codecs ask -------------------------------------------------------------------

    def shape(self, data: bytes) -> Shape:
        return shape_from_bytes(data)

    def sharding(self, data: bytes) -> HloSharding:
        return sharding_from_bytes(data)

    def computation(self, number: int) -> HloComputation:
        found = self.computations.get(number)
        if found is None:
            self.fail(f"it calls computation {number}, which is not in the module")
        return found

    def fail(self, fault: str) -> NoReturn:
        raise HloParseError(f"instruction {self.name!r}: {fault}")

    # --- Computations ----------------------------------------------------------------------

    def declare(self, message: Message) -> None:
        number = message.get("id", 0)
        if number in self.computations:
            raise HloParseError(f"two computations have the id {number}")
        computation = self.module.add_computation(
            fit_name(message.get("name", "")) or "computation"
        )
        thread = message.get("execution_thread", "")
        computation.execution_thread = "" if thread == MAIN_THREAD else thread
        extra = {k: v for k, v in message.items() if k not in _COMPUTATION_FIELDS}
        computation.proto_extra = encode("HloComputationProto", extra)
        self.computations[number] = computation

    def computation_body(self, message: Message) -> None:
        computation = self.computations[message.get("id", 0)]
        known: dict[int, HloInstruction] = {}
        waiting: list[tuple[HloInstruction, list[int]]] = []
        for one in message.get("instructions", ()):
            instruction = self.instruction(one, known)
            number = one.get("id", 0)
            if number in known:
                self.fail(f"its id {number} is that of {known[number].name!r}")
            known[number] = computation.add(instruction)
            if "control_predecessor_ids" in one:
                waiting.append((instruction, one["control_predecessor_ids"]))
        for instruction, numbers in waiting:
            self.name = instruction.name
            missing = [n for n in numbers if n not in known]
            if missing:
                self.fail(f"its control predecessor {missing[0]} is not in its computation")
            instruction.control_predecessors = tuple(known[n] for n in numbers)
        root = known.get(message.get("root_id", 0))
        if root is None:
            raise HloParseError(
                f"computation {computation.name!r} has no instruction {message.get('root_id', 0)}, "
                "which is its root"
            )
        computation.root = root
        self.check_parameters(computation)
        self.instructions |= known

    def check_parameters(self, computation: HloComputation) -> None:
        numbers = [p.attrs["parameter_number"] for p in computation.parameters]
        if numbers != list(range(len(numbers))):
            raise HloParseError(
                f"computation {computation.name!r} has parameters with the numbers {numbers}, "
                "expected 0, 1, 2, ..."
            )

    def schedule(self) -> None:
        """Put instructions in the order of the schedule, which must hold each once."""
        for number, sequence in self.message.get("schedule", {}).get("sequences", {}).items():
            computation = self.computations.get(number)
            if computation is None:
                raise HloParseError(f"the schedule names computation {number}, which is not there")
            ids = sequence.get("instruction_ids", [])
            order = [self.instructions[i] for i in ids if i in self.instructions]
            if len(order) != len(ids) or set(order) != set(computation.instructions):
                raise HloParseError(
                    f"the schedule of {computation.name!r} does not hold its instructions"
                )
            if len(order) != len(computation):
                raise HloParseError(f"the schedule of {computation.name!r} repeats an instruction")
            seen: set[HloInstruction] = set()
            for instruction in order:
                before = (*instruction.operands, *instruction.control_predecessors)
                if not seen.issuperset(before):
                    raise HloParseError(f"{instruction.name!r} is scheduled before its operands")
                seen.add(instruction)
            computation.reorder(order)

    # --- Instructions ----------------------------------------------------------------------

    def instruction(self, message: Message, known: dict[int, HloInstruction]) -> HloInstruction:
        opcode = message.get("opcode", "")
        self.name = fit_name(message.get("name", "")) or opcode
        if opcode not in OPS:
            self.fail(f"unknown opcode {opcode!r}{did_you_mean(opcode, list(OPS))}")
        if "shape" not in message:
            self.fail("it has no shape")
        try:
            operands = [known[n] for n in message.get("operand_ids", ())]
        except KeyError as missing:
            self.fail(f"its operand {missing} does not stand before it in its computation")
        row = OPS[opcode]
        wanted = len(row.operands)
        if len(operands) != wanted and not row.is_variadic:
            names = f" ({', '.join(row.operands)})" if row.operands else ""
            self.fail(f"{opcode} takes {wanted} operands{names}, given {len(operands)}")
        try:
            shape = shape_from_bytes(message["shape"])
            instruction = HloInstruction(opcode, shape, operands, {}, self.name)
            self.attributes(instruction, message)
            self.annotations(instruction, message)
        except InvalidArgumentError as error:
            error.add_note(f"in instruction {self.name!r} ({opcode})")
            raise
        return instruction

    def attributes(self, instruction: HloInstruction, message: Message) -> None:
        row = proto_row(instruction.opcode)
        attrs = instruction.attrs
        for attr in row.attrs:
            data = attr.find(message)
            if data is None:
                if not attr.is_needed:
                    continue
                data = attr.codec.proto_zero
            value = attr.codec.from_proto(data, self)
            if value is not None:
                attrs[attr.name] = value
        if "literal" in message:
            attrs["literal"] = literal_from_proto(message["literal"])
        if instruction.opcode == "parameter":
            attrs["parameter_number"] = message.get("parameter_number", 0)
        elif instruction.opcode == "constant" and "literal" not in attrs:
            self.fail("a constant without a literal")
        if attrs.get("async_execution_thread") == MAIN_THREAD:
            del attrs["async_execution_thread"]
        settle = OPS[instruction.opcode].settle
        if settle is not None:
            settle(instruction)

    def annotations(self, instruction: HloInstruction, message: Message) -> None:
        extra: Message = {}
        if data := message.get("metadata"):
            instruction.metadata, rest = metadata_from_bytes(data)
            if rest:
                extra["metadata"] = rest
        if "sharding" in message:
            instruction.sharding = sharding_from_bytes(message["sharding"])
        if pairs := message.get("frontend_attributes"):
            instruction.frontend_attributes = dict(pairs.get("map", {}))
        if config := message.get("backend_config"):
            instruction.backend_config = config.decode("utf-8", "surrogateescape")
        if origin := message.get("original_value"):
            instruction.origin = origin_from_proto(origin, instruction.shape)
        used = proto_row(instruction.opcode).fields
        for key, value in message.items():
            if key not in used and key not in _INSTRUCTION_FIELDS:
                extra[key] = value
        if instruction.opcode == "parameter":
            extra.pop("parameter_number", None)
        if extra:
            instruction.proto_extra = encode("HloInstructionProto", extra)
