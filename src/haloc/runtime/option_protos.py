"""Compile options as CompileOptionsProto. Fields that haloc has no attribute for are kept.

The functions take the option objects themselves; each has a dict `_rest` of the fields of its
message that none of its attributes stands for, which are written back unchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from haloc.errors import HloParseError, InvalidArgumentError
from haloc.formats.hlo_proto import shape_from_bytes, shape_to_bytes
from haloc.formats.proto import Message, decode, encode
from haloc.runtime.device_assignment import DeviceAssignment
from haloc.runtime.xla_shape import XlaShape

_KEEP = frozenset({"ShapeProto"})

COMPILE_FIELDS: dict[str, Any] = {
    "parameter_is_tupled_arguments": False,
    "compile_portable_executable": False,
    "profile_version": 0,
}
"""Attributes of CompileOptions that are fields of the same name, with the value of no field."""

BUILD_FIELDS: dict[str, Any] = {
    "num_replicas": 0,
    "num_partitions": 0,
    "use_spmd_partitioning": False,
    "use_auto_spmd_partitioning": False,
    "allow_spmd_sharding_propagation_to_output": [],
    "fdo_profile": b"",
    "auto_spmd_partitioning_mesh_shape": [],
    "auto_spmd_partitioning_mesh_ids": [],
    "allow_spmd_sharding_propagation_to_parameters": [],
    "use_shardy_partitioner": False,
    "exec_time_optimization_effort": 0.0,
    "memory_fitting_effort": 0.0,
    "optimization_level": 0,
    "memory_fitting_level": 0,
}
"""The same of ExecutableBuildOptions."""

DEFAULT_REST: Message = {"device_ordinal": -1, "process_count": 1}
"""Fields that jaxlib writes for a new ExecutableBuildOptions and haloc has no attribute for."""

_LISTS = ("xla_disable_hlo_passes", "xla_enable_hlo_passes_only")
"""Debug options that are lists in protos, words with commas between in Python."""


def compile_options_to_bytes(options: Any) -> bytes:
    """The serialised CompileOptionsProto. InvalidArgumentError for a value that does not fit."""
    message: Message = dict(options._rest)
    message |= {name: getattr(options, name) for name in COMPILE_FIELDS}
    if options.argument_layouts is not None:
        message["argument_layouts"] = [shape_to_bytes(s.ir) for s in options.argument_layouts]
    message["env_option_overrides"] = {
        name: {_override_field(name, value): value} for name, value in options.env_option_overrides
    }
    message["executable_build_options"] = _build_message(options.executable_build_options)
    # Every compilation writes its options, and they are nearly always the same.
    what = repr(message)
    encoded = _encoded.get(what)
    if encoded is None:
        if len(_encoded) >= _MOST_ENCODED:
            _encoded.clear()
        encoded = _encoded[what] = encode("CompileOptionsProto", message)
    return encoded


_MOST_ENCODED = 64
_encoded: dict[str, bytes] = {}


def _override_field(name: str, value: Any) -> str:
    for kind, field in ((str, "string"), (bool, "bool"), (int, "int"), (float, "double")):
        if isinstance(value, kind):
            return f"{field}_field"
    raise InvalidArgumentError(
        f"env_option_overrides: {name}={value!r} is {type(value).__name__}, not str, bool, int or "
        "float"
    )


def _build_message(build: Any) -> Message:
    message: Message = dict(build._rest)
    message |= {name: getattr(build, name) for name in BUILD_FIELDS}
    debug = _debug_message(build.debug_options)
    if debug or build._has_debug_options:
        message["debug_options"] = debug
    if build.result_layout is not None:
        message["result_layout"] = shape_to_bytes(build.result_layout.ir)
    if build.device_assignment is not None:
        message["device_assignment"] = build.device_assignment.serialize()
    return message


def _debug_message(debug: Any) -> Message:
    message = dict(debug._rest)
    for name, value in debug.proto_values().items():
        if name in _LISTS:
            message[name] = [word for word in value.split(",") if word]
        else:
            message[name] = value
    return message


def read_compile_options(options: Any, data: bytes) -> None:
    """Set every attribute of new CompileOptions from a serialised CompileOptionsProto.

    An absent field is its type's zero, as in jaxlib: num_replicas of b"" is 0. Raises
    HloParseError for data that is no such message.
    """
    message = decode("CompileOptionsProto", data, _KEEP)
    for name, zero in COMPILE_FIELDS.items():
        setattr(options, name, message.pop(name, zero))
    layouts = message.pop("argument_layouts", None)
    options.argument_layouts = None if layouts is None else list(map(_xla_shape, layouts))
    overrides = message.pop("env_option_overrides", {})
    options.env_option_overrides = [(k, _override(k, v)) for k, v in overrides.items()]
    _read_build(options.executable_build_options, message.pop("executable_build_options", {}))
    options._rest = message


def _override(name: str, message: Message) -> Any:
    for field in ("string_field", "bool_field", "int_field", "double_field"):
        if field in message:
            return message[field]
    raise HloParseError(f"env_option_overrides: {name} has no value")


def _read_build(build: Any, message: Message) -> None:
    for name, zero in BUILD_FIELDS.items():
        value = message.pop(name, zero)
        if isinstance(value, float):
            value = float(str(np.float32(value)))
        setattr(build, name, list(value) if isinstance(value, list) else value)
    layout = message.pop("result_layout", None)
    build.result_layout = None if layout is None else _xla_shape(layout)
    assignment = message.pop("device_assignment", None)
    build.device_assignment = None if assignment is None else device_assignment(assignment)
    build._has_debug_options = "debug_options" in message
    _read_debug(build.debug_options, message.pop("debug_options", {}))
    build._rest = message


def _read_debug(debug: Any, message: Message) -> None:
    values: dict[str, Any] = {}
    for name in debug.field_values():
        if name in _LISTS:
            if name in message:
                values[name] = ",".join(message.pop(name))
        elif name in message:
            values[name] = message.pop(name)
    debug.set_read(values, message)


def _xla_shape(data: bytes) -> XlaShape:
    return XlaShape(shape_from_bytes(data))


def device_assignment(message: Message) -> DeviceAssignment:
    """The DeviceAssignment of a decoded DeviceAssignmentProto. Raises HloParseError."""
    columns = [c.get("replica_device_ids", []) for c in message.get("computation_devices", ())]
    rows = message.get("replica_count", 0)
    if len(columns) != message.get("computation_count", 0) or any(len(c) != rows for c in columns):
        raise HloParseError(
            f"a device assignment of {rows} replicas and {message.get('computation_count', 0)} "
            f"computations has columns of {[len(c) for c in columns]} ids"
        )
    return DeviceAssignment(np.array(columns, np.int64).reshape(len(columns), rows).T)
