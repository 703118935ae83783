"""From signatures as text to the `ctypes` structs that the C API passes."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from haloc.errors import InternalError
from haloc.pjrt.abi.calls import FUNCTIONS
from haloc.pjrt.abi.structs import CALLBACKS, EXTENSION_CALLS, STRUCTS

_WIDTHS: dict[str, Any] = {
    "": ctypes.c_void_p,
    "#": ctypes.c_size_t,
    ":i32": ctypes.c_int32,
    ":i64": ctypes.c_int64,
    ":u8": ctypes.c_uint8,
    ":u32": ctypes.c_uint32,
    ":f32": ctypes.c_float,
    ":bool": ctypes.c_bool,
}
_SIGNATURE = re.compile(r"(\w+#?)\(([^)]*)\)")
_FIELD = re.compile(r"(\w+)(#|:\w+)?$")


class Struct(ctypes.Structure):
    """A struct that begins with its size and its chain of extensions."""

    struct_size: int
    extension_start: int | None

    @classmethod
    def sized(cls, **fields: Any) -> Struct:
        """One with `struct_size` and the fields set, the rest zero."""
        made = cls(**fields)
        made.struct_size = ctypes.sizeof(cls)
        return made

    def has(self, field: str) -> bool:
        """Whether the struct, as its maker knew it, reaches to the end of `field`."""
        place = getattr(type(self), field)
        return self.struct_size >= place.offset + place.size


def _parse(signatures: str, known: dict[str, type[Struct]]) -> dict[str, type[Struct]]:
    """A struct class for each signature, by name; a name with # begins with its size alone."""
    found = {}
    for name, fields in _SIGNATURE.findall(signatures):
        members = [("struct_size", ctypes.c_size_t)]
        if not name.endswith("#"):
            members.append(("extension_start", ctypes.c_void_p))
        for field in filter(None, re.split(r",\s*", fields.strip())):
            match = _FIELD.match(field)
            if match is None:
                raise InternalError(f"signature of {name}: {field!r} is not a field")
            width = match[2] or ""
            kind = _WIDTHS[width] if width in _WIDTHS else known[width[1:]]
            members.append((match[1], kind))
        name = name.rstrip("#")
        known[name] = found[name] = type(name, (Struct,), {"_fields_": tuple(members)})
    return found


_known: dict[str, type[Struct]] = {}
STRUCT = _parse(STRUCTS, _known)
"""Structs by name: `STRUCT["Program"]`."""
ARGS = _parse(FUNCTIONS, _known)
"""The argument struct of each function of `PJRT_Api`, in the order of the table."""
EXTENSION_ARGS = _parse(EXTENSION_CALLS, _known)
"""The argument struct of each function of an extension."""
CALLBACK_ARGS = _parse(CALLBACKS, _known)
"""The argument struct of each function that a client gives to a plugin."""

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
"""`PJRT_Error* f(Args*)`: null when all went well. A few functions of the table return nothing."""

API_VERSION = (0, 112)
"""What haloc implements. A caller needs the same major version only."""


class Api(ctypes.Structure):
    """`PJRT_Api`."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("version", STRUCT["Api_Version"]),
        ("functions", ctypes.c_void_p * len(ARGS)),
    )
