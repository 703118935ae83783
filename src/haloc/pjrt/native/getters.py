"""LLVM text: functions that copy slots of a handle into their arguments."""

from __future__ import annotations

from collections.abc import Iterator

from haloc.pjrt.abi import ARGS
from haloc.pjrt.native.handles import GETTERS, kind_of, offset, outputs_of

FIRST_FIELD = 16
"""Where an argument struct goes on after its size and its extensions."""


def getters(plugin_slots: int) -> Iterator[str]:
    """`ptr @name(ptr %args)` for each of `GETTERS`. plugin_slots: address of the plugin's own
    handle, for the functions that are asked of no handle."""
    for function in GETTERS:
        yield _getter(function, plugin_slots)


def _getter(function: str, plugin_slots: int) -> str:
    kind, args = kind_of(function), ARGS[function]
    if kind == "Plugin":
        lines = [f"  %handle = inttoptr i64 {plugin_slots} to ptr"]
    else:
        lines = [load("handle", "ptr", "%args", FIRST_FIELD)]
    for number, name in enumerate(outputs_of(function)):
        field = getattr(args, name)
        kind_of_value = f"i{8 * field.size}"
        lines.append(load(f"v{number}", kind_of_value, "%handle", offset(kind, name)))
        lines.append(store(f"%v{number}", kind_of_value, "%args", field.offset))
    return "\n".join([f"define ptr @{function}(ptr %args) {{", *lines, "  ret ptr null", "}", ""])


def load(name: str, kind: str, base: str, offset_bytes: int) -> str:
    """`%name` is what is at `base` + offset."""
    return (
        f"  %{name}.at = getelementptr i8, ptr {base}, i64 {offset_bytes}\n"
        f"  %{name} = load {kind}, ptr %{name}.at"
    )


def store(value: str, kind: str, base: str, offset_bytes: int) -> str:
    """Write a value (a name with % or a number) to `base` + offset."""
    at = f"%put.{value.strip('%')}.to.{base.strip('%')}.{offset_bytes}"
    return (
        f"  {at} = getelementptr i8, ptr {base}, i64 {offset_bytes}\n"
        f"  store {kind} {value}, ptr {at}"
    )
