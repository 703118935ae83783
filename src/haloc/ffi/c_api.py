"""The structures of XLA's foreign function interface in C, version 0.3, as ctypes.

Names, fields and their order are those of `xla/ffi/api/c_api.h`. Every structure begins with its
size in bytes and a chain of extensions. `STRUCT_SIZE` is the size up to the last field that version
has, which handlers compare with theirs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
)
from enum import IntEnum
from typing import Any, ClassVar, TypeVar

API_VERSION = (0, 3)
OLDEST_MINOR_VERSION = 1
"""Handlers of 0.1 (jaxlib 0.7) differ in how they keep state and register types."""

_Structure = TypeVar("_Structure", bound="Sized")


class Sized(Structure):
    """A structure that begins with its size; instances are born with `struct_size` set."""

    STRUCT_SIZE: ClassVar[int] = 0

    def __init__(self, **values: Any):
        super().__init__(struct_size=self.STRUCT_SIZE, **values)


def _sized(*fields: tuple[str, Any]) -> Callable[[type[_Structure]], type[_Structure]]:
    def finish(structure: type[_Structure]) -> type[_Structure]:
        structure._fields_ = (("struct_size", c_size_t), ("extension_start", c_void_p), *fields)
        structure.STRUCT_SIZE = _size_up_to(structure, structure._fields_[-1][0])
        return structure

    return finish


def _size_up_to(structure: type[Structure], last: str) -> int:
    field = getattr(structure, last)
    return int(field.offset + field.size)


class Stage(IntEnum):
    """When a handler is called. INSTANTIATE: once, when the program is loaded."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class AttrType(IntEnum):
    ARRAY = 1
    DICTIONARY = 2
    SCALAR = 3
    STRING = 4


ARG_BUFFER = RET_BUFFER = 1
EXTENSION_METADATA = 1


class ByteSpan(Structure):
    _fields_ = (("ptr", c_void_p), ("len", c_size_t))

    def text(self) -> str:
        return ctypes.string_at(self.ptr, self.len).decode(errors="replace") if self.len else ""


class Scalar(Structure):
    _fields_ = (("dtype", c_int), ("value", c_void_p))


class Array(Structure):
    _fields_ = (("dtype", c_int), ("size", c_size_t), ("data", c_void_p))


class TypeId(Structure):
    _fields_ = (("type_id", c_int64),)


@_sized(("major_version", c_int), ("minor_version", c_int))
class ApiVersion(Sized):
    pass


@_sized(("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", c_void_p))
class Buffer(Sized):
    pass


@_sized(("size", c_int64), ("types", c_void_p), ("args", c_void_p))
class Args(Sized):
    pass


@_sized(("size", c_int64), ("types", c_void_p), ("rets", c_void_p))
class Rets(Sized):
    pass


@_sized(("size", c_int64), ("types", c_void_p), ("names", c_void_p), ("attrs", c_void_p))
class Attrs(Sized):
    pass


@_sized(
    ("api", c_void_p),
    ("ctx", c_void_p),
    ("stage", c_int),
    ("args", Args),
    ("rets", Rets),
    ("attrs", Attrs),
    ("future", c_void_p),
)
class CallFrame(Sized):
    pass


CallFrame.STRUCT_SIZE = _size_up_to(CallFrame, "attrs")


class ExecutionContext(Structure):
    """What `XLA_FFI_ExecutionContext*` points to; only haloc looks inside.

    site: address of the call site's `NativeSite`. run: the execution's handle, see `runs.py`.
    """

    _fields_ = (("site", c_void_p), ("run", c_void_p))


@_sized(("deleter", c_void_p))
class TypeInfo(Sized):
    pass


class Metadata(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("api_version", ApiVersion),
        ("traits", c_uint32),
        ("state_type_id", TypeId),
    )


class MetadataExtension(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("type", c_int),
        ("next", c_void_p),
        ("metadata", POINTER(Metadata)),
    )


# --- Arguments of the functions in the table ------------------------------------------------------


@_sized(("message", c_char_p), ("errc", c_int))
class ErrorCreateArgs(Sized):
    pass


@_sized(("error", c_void_p), ("message", c_void_p))
class ErrorGetMessageArgs(Sized):
    pass


@_sized(("error", c_void_p))
class ErrorDestroyArgs(Sized):
    pass


class HandlerBundle(Structure):
    _fields_ = tuple((stage.name.lower(), c_void_p) for stage in Stage)


@_sized(("name", ByteSpan), ("platform", ByteSpan), ("bundle", HandlerBundle), ("traits", c_uint32))
class HandlerRegisterArgs(Sized):
    pass


@_sized(("name", ByteSpan), ("type_id", POINTER(TypeId)), ("type_info", POINTER(TypeInfo)))
class TypeRegisterArgs(Sized):
    """Version 0.1 had no `type_info`, and no struct_size tells: its handlers have their types
    registered from Python."""


@_sized(("ctx", c_void_p), ("type_id", POINTER(TypeId)), ("data", c_void_p))
class ContextGetArgs(Sized):
    pass


@_sized(("ctx", c_void_p), ("stage", c_int), ("type_id", POINTER(TypeId)), ("state", c_void_p))
class StateArgs(Sized):
    """Of State_Set and State_Get."""


@_sized(("ctx", c_void_p), ("type_id", POINTER(TypeId)), ("state", c_void_p), ("deleter", c_void_p))
class OldStateArgs(Sized):
    """The same in version 0.1, which had one state a site. deleter: of State_Set only."""


@_sized(("ctx", c_void_p), ("stream", c_void_p))
class StreamGetArgs(Sized):
    pass


@_sized(("ctx", c_void_p), ("size", c_size_t), ("alignment", c_size_t), ("data", c_void_p))
class MemoryAllocateArgs(Sized):
    pass


@_sized(("ctx", c_void_p), ("size", c_size_t), ("data", c_void_p))
class MemoryFreeArgs(Sized):
    pass


@_sized(("ctx", c_void_p), ("task", c_void_p), ("data", c_void_p))
class ScheduleArgs(Sized):
    pass


@_sized(("ctx", c_void_p), ("num_threads", POINTER(c_int64)))
class NumThreadsArgs(Sized):
    pass


@_sized(("future", c_void_p))
class FutureCreateArgs(Sized):
    pass


@_sized(("future", c_void_p))
class FutureSetAvailableArgs(Sized):
    pass


@_sized(("future", c_void_p), ("error", c_void_p))
class FutureSetErrorArgs(Sized):
    pass


@_sized(("ctx", c_void_p), ("run_id", c_int64))
class RunIdGetArgs(Sized):
    pass


@_sized(("ctx", c_void_p), ("device_ordinal", c_int32))
class DeviceOrdinalGetArgs(Sized):
    pass


FUNCTIONS: dict[str, type[Sized]] = {
    "Error_Create": ErrorCreateArgs,
    "Error_GetMessage": ErrorGetMessageArgs,
    "Error_Destroy": ErrorDestroyArgs,
    "Handler_Register": HandlerRegisterArgs,
    "Stream_Get": StreamGetArgs,
    "Type_Register": TypeRegisterArgs,
    "ExecutionContext_Get": ContextGetArgs,
    "State_Set": StateArgs,
    "State_Get": StateArgs,
    "DeviceMemory_Allocate": MemoryAllocateArgs,
    "DeviceMemory_Free": MemoryFreeArgs,
    "ThreadPool_Schedule": ScheduleArgs,
    "ThreadPool_NumThreads": NumThreadsArgs,
    "Future_Create": FutureCreateArgs,
    "Future_SetAvailable": FutureSetAvailableArgs,
    "Future_SetError": FutureSetErrorArgs,
    "RunId_Get": RunIdGetArgs,
    "DeviceOrdinal_Get": DeviceOrdinalGetArgs,
}
"""The functions of XLA_FFI_Api in their order, with the structure each takes."""


@_sized(
    ("api_version", ApiVersion),
    ("internal_api", c_void_p),
    *((name, c_void_p) for name in FUNCTIONS),
)
class Api(Sized):
    pass


HANDLER = ctypes.CFUNCTYPE(c_void_p, POINTER(CallFrame))
"""XLA_FFI_Error* handler(XLA_FFI_CallFrame*)."""
