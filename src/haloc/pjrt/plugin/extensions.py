"""Extensions of the C API that haloc offers: what FFI handlers and host callbacks need."""

from __future__ import annotations

import ctypes
from typing import Any

from haloc.pjrt.abi import EXTENSIONS, STRUCT
from haloc.pjrt.native.library import library
from haloc.pjrt.plugin.entry import callback

_OFFERED = {
    "FFI": ("FFI_Type_Register", "FFI_UserData_Add", "FFI_Register_Handler"),
}
"""Extension -> its functions, in the order of its table."""


def extension_chain(kept: list[Any]) -> int:
    """The address of the first extension. `kept` receives what must stay alive."""
    following = 0
    for name, functions in _OFFERED.items():
        base = STRUCT["Extension_Base"]
        memory = (ctypes.c_uint64 * (ctypes.sizeof(base) // 8 + len(functions)))()
        head = base.from_buffer(memory)
        head.struct_size = ctypes.sizeof(memory)
        head.type = EXTENSIONS[name]
        head.next = following
        for number, function in enumerate(functions):
            memory[ctypes.sizeof(base) // 8 + number] = _address(function, kept)
        kept.append(memory)
        following = ctypes.addressof(memory)
    return following


def _address(function: str, kept: list[Any]) -> int:
    address = library().address(function)
    if not address:
        made = callback(function)
        kept.append(made)
        address = ctypes.cast(made, ctypes.c_void_p).value or 0
    return address
