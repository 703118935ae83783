"""Extensions of the C API that haloc offers: shardings of executables, and what FFI handlers and
host callbacks need."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from haloc.ir.shape import Shape
from haloc.ir.sharding import REPLICATED
from haloc.pjrt.abi import EXTENSIONS, STRUCT
from haloc.pjrt.abi.memory import int64s
from haloc.pjrt.native.handles import address_of
from haloc.pjrt.native.library import library
from haloc.pjrt.plugin.entry import callback, entry
from haloc.pjrt.plugin.executable import EXECUTABLES, PluginExecutable
from haloc.runtime.op_sharding import XlaHloSharding

_OFFERED = {
    "Shardings": (
        "Shardings_PJRT_Executable_ParameterShardings",
        "Shardings_PJRT_Executable_OutputShardings",
    ),
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


@entry("Shardings_PJRT_Executable_ParameterShardings")
def parameter_shardings(args: Any) -> None:
    executable = EXECUTABLES[args.executable]
    shardings = executable.about.get_parameter_shardings()
    args.num_parameters = _give(args, executable, shardings, executable.program.parameters)


@entry("Shardings_PJRT_Executable_OutputShardings")
def output_shardings(args: Any) -> None:
    executable = EXECUTABLES[args.executable]
    shardings = executable.about.get_output_shardings()
    args.num_outputs = _give(args, executable, shardings, executable.program.results)


def _give(
    args: Any, executable: PluginExecutable, shardings: list[Any] | None, leaves: list[Shape]
) -> int:
    """Serialised OpShardings. What has no annotation is whole on every partition."""
    if shardings is None:
        if executable.compilation.num_partitions == 1:
            args.shardings = args.sharding_sizes = None
            return 0
        shardings = [XlaHloSharding(REPLICATED).to_proto()] * len(leaves)
    # They live as long as the process: there are few different ones.
    texts = tuple(s.SerializeToString() for s in shardings)
    pointers, sizes = _arrays(texts)
    args.shardings, args.sharding_sizes = ctypes.addressof(pointers), ctypes.addressof(sizes)
    return len(texts)


@cache
def _arrays(texts: tuple[bytes, ...]) -> tuple[Any, Any]:
    pointers = (ctypes.c_void_p * max(1, len(texts)))(*map(address_of, texts))
    pointers.kept = texts
    return pointers, int64s([len(t) for t in texts])
