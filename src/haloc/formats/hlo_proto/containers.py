"""Messages that hold a module and more: HloProto, HloSnapshot, HloModuleProtoWithConfig."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from haloc.errors import HloParseError
from haloc.formats.hlo_proto.header import program_shape, program_shape_to_proto
from haloc.formats.hlo_proto.literals import literal_from_proto, literal_to_proto
from haloc.formats.hlo_proto.reader import KEEP, module_from_proto
from haloc.formats.hlo_proto.writer import module_to_proto
from haloc.formats.hlo_text.header import entry_layout
from haloc.formats.proto import Message, decode, encode
from haloc.ir.literal import Literal
from haloc.ir.module import HloModule
from haloc.ir.shape import Shape


@dataclass
class HloProto:
    """A module and, in `rest`, what the compiler wrote about it: its buffer assignment."""

    module: HloModule
    rest: Message = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes) -> HloProto:
        """Raises HloParseError."""
        return cls._from_message(decode("HloProto", data, KEEP))

    @classmethod
    def _from_message(cls, message: Message) -> HloProto:
        return cls(module_from_proto(_module_of("HloProto", message)), message)

    def to_message(self) -> Message:
        return {"hlo_module": module_to_proto(self.module)} | self.rest

    def serialize(self) -> bytes:
        return encode("HloProto", self.to_message())


@dataclass
class HloSnapshot:
    """A module with the arguments of one run, and its result if it is known."""

    hlo: HloProto
    arguments: list[Literal] = field(default_factory=list)
    result: Literal | None = None
    execution_platform: str = ""

    @property
    def module(self) -> HloModule:
        return self.hlo.module

    @classmethod
    def parse(cls, data: bytes) -> HloSnapshot:
        """Raises HloParseError."""
        message = decode("HloSnapshot", data, KEEP)
        if "hlo" not in message:
            raise HloParseError("an HloSnapshot without its HloProto")
        result = message.get("result")
        return cls(
            HloProto._from_message(message["hlo"]),
            [literal_from_proto(a) for a in message.get("arguments", ())],
            None if result is None else literal_from_proto(result),
            message.get("execution_platform", ""),
        )

    def serialize(self) -> bytes:
        message: Message = {
            "hlo": self.hlo.to_message(),
            "arguments": [literal_to_proto(a) for a in self.arguments],
            "execution_platform": self.execution_platform,
        }
        if self.result is not None:
            message["result"] = literal_to_proto(self.result)
        return encode("HloSnapshot", message)


@dataclass
class HloModuleProtoWithConfig:
    """A module and its HloModuleConfigProto, as the PJRT C API's "hlo_with_config".

    What HLO text keeps in its header (replica_count, num_partitions, the entry layout, ...) is
    read into the module's header and written from there; the rest of the config is `config`.
    """

    module: HloModule
    config: Message = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes) -> HloModuleProtoWithConfig:
        """Raises HloParseError."""
        message = decode("HloModuleProtoWithConfig", data, KEEP)
        module = module_from_proto(_module_of("HloModuleProtoWithConfig", message))
        config = message.get("config", {})
        for key, default in _CONFIG.items():
            value = config.pop(key, default)
            if value != default:
                module.header[key] = tuple(value) if isinstance(value, list) else value
        if "entry_computation_layout" in config:
            layout = program_shape(config.pop("entry_computation_layout"))
            _check_layout(module, layout)
            module.header["entry_computation_layout"] = layout
        return cls(module, config)

    def serialize(self) -> bytes:
        header = self.module.header
        parameters, result = entry_layout(self.module)
        names = [f"p{i}" for i in range(len(parameters))]
        config = {key: header[key] for key in _CONFIG if key in header} | self.config
        for key in _COUNTS:
            config.setdefault(key, 1)
        layout = program_shape_to_proto(list(parameters), result, names)
        config["entry_computation_layout"] = layout
        message = {"hlo_module": module_to_proto(self.module), "config": config}
        return encode("HloModuleProtoWithConfig", message)


_COUNTS = ("replica_count", "num_partitions")
_CONFIG: dict[str, Any] = {
    **dict.fromkeys(_COUNTS, 1),
    "alias_passthrough_params": False,
    "allow_spmd_sharding_propagation_to_parameters": [],
    "allow_spmd_sharding_propagation_to_output": [],
}
"""Fields of HloModuleConfigProto that are attributes of text's header, with their default."""


def _check_layout(module: HloModule, layout: tuple[tuple[Shape, ...], Shape]) -> None:
    parameters, result = entry_layout(module)
    same = len(parameters) == len(layout[0]) and all(map(Shape.compatible, parameters, layout[0]))
    if not same or not result.compatible(layout[1]):
        raise HloParseError("the config's entry_computation_layout is of another program")


def _module_of(name: str, message: Message) -> Message:
    """Take the module out of a message; what stays is the rest."""
    if "hlo_module" not in message:
        raise HloParseError(f"an {name} without its module")
    return message.pop("hlo_module")


# --- Which message it is -----------------------------------------------------------------------

_COMPUTATIONS = frozenset({"HloComputationProto", "HloScheduleProto", "StackFrameIndexProto"})


def proto_kind(data: bytes) -> str:
    """Which message `data` is: "HloModuleProto", "HloProto", "HloModuleProtoWithConfig",
    "HloSnapshot", or "" for anything else. Looks at the outer fields only."""
    if _is_module(data):
        return "HloModuleProto"
    try:
        inner = decode("HloProto", data, frozenset({"HloModuleProto", "BufferAssignmentProto"}))
    except HloParseError:
        return ""
    module = inner.get("hlo_module", b"")
    if _is_module(module):
        has_config = 2 in _field_numbers(data)
        return "HloModuleProtoWithConfig" if has_config else "HloProto"
    try:
        hlo = decode("HloProto", module, frozenset({"HloModuleProto", "BufferAssignmentProto"}))
    except HloParseError:
        return ""
    return "HloSnapshot" if _is_module(hlo.get("hlo_module", b"")) else ""


def _field_numbers(data: bytes) -> set[int]:
    config = decode("HloModuleProtoWithConfig", data, frozenset({"HloModuleProto"}))
    return {2} if "config" in config else set()


def _is_module(data: bytes) -> bool:
    try:
        message = decode("HloModuleProto", data, _COMPUTATIONS)
        first = message["computations"][0]
        computation = decode("HloComputationProto", first, frozenset({"HloInstructionProto"}))
    except (HloParseError, KeyError):
        return False
    return message.get("name", "x").isprintable() and bool(computation.get("instructions"))


def parse_any_proto(data: bytes) -> HloModule:
    """The module in any of the messages that `proto_kind` knows.

    Raises HloParseError; data of an unknown kind is read as HloModuleProto, to say what is wrong.
    """
    kind = proto_kind(data)
    if kind == "HloProto":
        return HloProto.parse(data).module
    if kind == "HloSnapshot":
        return HloSnapshot.parse(data).module
    if kind == "HloModuleProtoWithConfig":
        return HloModuleProtoWithConfig.parse(data).module
    return module_from_proto(decode("HloModuleProto", data, KEEP))
