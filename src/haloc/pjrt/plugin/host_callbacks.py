"""Python functions that programs call back: where executions find them."""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from haloc.ffi.host import Host
from haloc.pjrt.plugin.executable import PluginExecutable

FIRST_OF_PROCESS = 1 << 32
"""Callbacks of the process have numbers from here on, those of an execution from 0."""


class _ProcessCallbacks:
    """Functions that whoever lowers a program gives a number, in the process that runs it.

    A function must be kept alive by the program's owner; its number is never another's.
    """

    def __init__(self) -> None:
        self._functions: weakref.WeakValueDictionary[int, Callable[..., Any]]
        self._functions = weakref.WeakValueDictionary()
        self._numbers = itertools.count(FIRST_OF_PROCESS)
        self._lock = threading.Lock()

    def add(self, function: Callable[..., Any]) -> int:
        with self._lock:
            number = next(self._numbers)
            self._functions[number] = function
        return number

    def find(self, number: int) -> Callable[..., Any]:
        """IndexError when there is none of this number, or no longer."""
        function = self._functions.get(number)
        if function is None:
            raise IndexError(number)
        return function


PROCESS_CALLBACKS = _ProcessCallbacks()


class _Callbacks(Sequence[Any]):
    """The process's callbacks, and those that jaxlib leaves in the context of an execution:
    {PyObject** functions, size_t count}."""

    def __init__(self, data: dict[int, int]):
        self._data = data

    def __len__(self) -> int:
        return sum(_table(p)[1] for p in self._data.values())

    def __getitem__(self, index: Any) -> Any:
        if index >= FIRST_OF_PROCESS:
            return PROCESS_CALLBACKS.find(index)
        for pointer in self._data.values():
            functions, count = _table(pointer)
            if index < count:
                address = ctypes.c_uint64.from_address(functions + 8 * index).value
                return ctypes.cast(ctypes.c_void_p(address), ctypes.py_object).value
            index -= count
        raise IndexError(index)


def _table(pointer: int) -> tuple[int, int]:
    functions, count = (ctypes.c_uint64 * 2).from_address(pointer)
    return functions, count


def host_of(executable: PluginExecutable, context: int | None) -> Host:
    """What callers have left for callbacks and FFI handlers in the context of the execution."""
    ordinals = [d.local_hardware_id for d in executable.compilation.devices]
    data = {}
    if context:
        count = ctypes.c_int64.from_address(context).value
        for number in range(count):
            kind, pointer = (ctypes.c_int64 * 2).from_address(context + 8 + 16 * number)
            data[kind] = pointer
    host = Host(_Callbacks(data), ordinals, executable.compilation.num_partitions)
    host.user_data = data
    return host
