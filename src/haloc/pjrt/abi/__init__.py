"""What is fixed between a PJRT client and a plugin: functions, structs, numbers."""

from haloc.pjrt.abi.layout import (
    API_VERSION,
    ARGS,
    EXTENSION_ARGS,
    FUNCTION,
    STRUCT,
    Api,
    Struct,
)
from haloc.pjrt.abi.numbers import (
    BUFFER_TYPES,
    HostBufferSemantics,
    NamedValueType,
    buffer_type_of,
    dtype_of_buffer_type,
)
from haloc.pjrt.abi.structs import EXTENSIONS

__all__ = [
    "API_VERSION",
    "ARGS",
    "BUFFER_TYPES",
    "EXTENSIONS",
    "EXTENSION_ARGS",
    "FUNCTION",
    "STRUCT",
    "Api",
    "HostBufferSemantics",
    "NamedValueType",
    "Struct",
    "buffer_type_of",
    "dtype_of_buffer_type",
]
