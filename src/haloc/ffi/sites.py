"""`Site`: one custom-call of a program, ready to be called; what native code knows of it.

The structure `NativeSite` is all that generated code needs: the function to call, its attributes,
and a way back into Python (`Site.callback`) for what C cannot do.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from haloc.cpu.run_context import RunContext
from haloc.cpu.symbols import CALL_SITE_PREFIX
from haloc.errors import NotFoundError, UnimplementedError
from haloc.ffi import c_api
from haloc.ffi.attributes import AttributeValue, NativeAttributes, read_attributes
from haloc.ffi.c_api import Stage
from haloc.ffi.targets import FFI_VERSION, Abi, Target, find
from haloc.ir.module import HloInstruction, HloModule
from haloc.ir.shape import Shape
from haloc.ops.table import attr

PythonFunction: TypeAlias = (
    "Callable[[Site, list[np.ndarray], list[np.ndarray], RunContext | None], None]"
)
"""(site, read-only operands, results to fill, the run); tokens are left out."""


@dataclass(frozen=True)
class State:
    """An object that a handler keeps. deleter: address of `void (void*)`, or None."""

    type_id: int
    address: int
    deleter: int | None

    def destroy(self) -> None:
        if self.deleter and self.address:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.deleter)(self.address)


class NativeSite(ctypes.Structure):
    """number: by which Python finds the site. stages: the target's functions. callback:
    `i32 (ExecutionContext*, void* first, void* second)`, what they are depends on the ABI."""

    _fields_ = (
        ("number", ctypes.c_int64),
        ("api", ctypes.c_void_p),
        ("attrs", c_api.Attrs),
        ("stages", ctypes.c_void_p * len(Stage)),
        ("callback", ctypes.c_void_p),
    )


_numbers = itertools.count(1)
_sites: weakref.WeakValueDictionary[int, Site] = weakref.WeakValueDictionary()


def site_at(address: int) -> Site:
    """The site of a `NativeSite`."""
    return _sites[NativeSite.from_address(address).number]


class Site:
    """A custom-call instruction and its target.

    operands, results: shapes of the leaves, with the layouts that the call asks for. `native` is
    valid, and states live, as long as this object. Raises what the handler's instantiation does.
    """

    def __init__(self, instruction: HloInstruction, target: Target, callback: int):
        is_call = instruction.opcode == "custom-call"
        self.where = f"{instruction.opcode} {instruction.name}"
        if is_call:
            self.where += f" to {target.name}"
        self.target = target
        # A call's would keep the interpreter's module alive for good.
        self.instruction = None if is_call else instruction
        self.api_version: str = instruction.attrs.get("api_version", "")
        self.opaque = instruction.backend_config.encode("utf-8", "surrogateescape")
        self.operands = operand_leaves(instruction)
        self.results = instruction.shape.leaves()
        self.aliases = aliases(instruction)
        self.states: dict[Stage, State] = {}
        self.attributes: dict[str, AttributeValue] = {}
        if self.api_version == FFI_VERSION:
            self.attributes = read_attributes(instruction.backend_config, self.where)
        self._native_attributes = NativeAttributes(self.attributes)
        self.native = NativeSite(
            number=next(_numbers), attrs=self._native_attributes.struct, callback=callback
        )
        for stage, address in target.stages.items():
            self.native.stages[stage] = address
        _sites[self.native.number] = self
        weakref.finalize(self, _destroy_all, self.states)

    @property
    def pointer(self) -> int:
        return ctypes.addressof(self.native)


def _destroy_all(states: dict[Stage, State]) -> None:
    for state in states.values():
        state.destroy()
    states.clear()


_execution_states: dict[int, dict[Stage, State]] = {}


def execution_states(context: int) -> dict[Stage, State]:
    """States that live from a call's first stage to its last, by the address of its context."""
    return _execution_states.setdefault(context, {})


def end_execution(context: int) -> None:
    _destroy_all(_execution_states.pop(context, {}))


def symbol(instruction: HloInstruction, target: Target) -> str:
    """The name by which generated code refers to an instruction's `NativeSite`: another one when
    the target is called otherwise, so that stored code never meets what it was not made for."""
    stages = ",".join(sorted(stage.name for stage in target.stages))
    what = f"{instruction.name}|{target.abi.value}|{stages}"
    return CALL_SITE_PREFIX + hashlib.sha256(what.encode()).hexdigest()[:16]


def operand_leaves(instruction: HloInstruction) -> list[Shape]:
    """The leaf shapes of the operands, with the layouts that the call wants."""
    wanted = instruction.attrs.get("operand_layout_constraints")
    shapes = wanted or [o.shape.with_default_layout() for o in instruction.operands]
    return [leaf for shape in shapes for leaf in shape.leaves()]


def aliases(instruction: HloInstruction) -> dict[int, int]:
    """output_to_operand_aliasing: {result leaf: operand leaf that it starts out as}."""
    starts = [0]
    for operand in instruction.operands:
        starts.append(starts[-1] + len(operand.shape.leaves()))
    found = {}
    for output, number, index in instruction.attrs.get("output_to_operand_aliasing", ()):
        target, count = _leaves_at(instruction.shape, output)
        source, _ = _leaves_at(instruction.operands[number].shape, index)
        found.update({target + k: starts[number] + source + k for k in range(count)})
    return found


def _leaves_at(shape: Shape, index: tuple[int, ...]) -> tuple[int, int]:
    """The first leaf below a tuple index, and how many there are."""
    first = 0
    for k in index:
        first += sum(len(e.leaves()) for e in shape.elements[:k])
        shape = shape.elements[k]
    return first, len(shape.leaves())


TRANSFERS: dict[str, Target] = {}
"""Ops that native code has done in Python, as if they were custom-calls: by opcode."""


def registered_target(instruction: HloInstruction) -> Target | None:
    """The registered target that a custom-call names, if there is one; that of a transfer to or
    from the host."""
    if instruction.opcode in TRANSFERS:
        is_of_host = "feed" in instruction.opcode or instruction.attrs.get("is_host_transfer")
        return TRANSFERS[instruction.opcode] if is_of_host else None
    if instruction.opcode != "custom-call":
        return None
    return find(attr(instruction, "custom_call_target"), attr(instruction, "api_version"))


def check_native_shapes(instruction: HloInstruction, target: Target) -> None:
    """UnimplementedError for element types that haloc keeps otherwise in memory than XLA does."""
    if target.abi is Abi.PYTHON:
        return
    for shape in [*operand_leaves(instruction), *instruction.shape.leaves()]:
        if shape.is_array and shape.dtype.bits < 8 and not shape.dtype.is_pred:
            raise UnimplementedError(
                f"custom-call {instruction.name} to {target.name}: {shape} for native code; "
                "haloc keeps one such element in a byte, XLA several"
            )


class Sites:
    """The sites of a module's custom-calls to registered targets; made once, kept while it runs."""

    def __init__(self, module: HloModule, make: Callable[[HloInstruction, Target], Site]):
        self._by_symbol: dict[str, Site] = {}
        self._unregistered: set[str] = set()
        for instruction in module.instructions():
            target = registered_target(instruction)
            if target is not None:
                self._by_symbol[symbol(instruction, target)] = make(instruction, target)
            elif instruction.opcode == "custom-call":
                self._unregistered.add(attr(instruction, "custom_call_target"))

    def symbols(self, imports: Iterable[str]) -> dict[str, int]:
        """Addresses of the sites that code refers to. NotFoundError where this process has not
        registered a target, or one of another kind."""
        symbols = {name: site.pointer for name, site in self._by_symbol.items()}
        if not {name for name in imports if name.startswith(CALL_SITE_PREFIX)} <= symbols.keys():
            called = {site.target.name for site in self._by_symbol.values()} | self._unregistered
            raise NotFoundError(
                "the program calls custom call targets that are not registered in this process as "
                f"they were where it was compiled; it calls: {', '.join(sorted(called))}"
            )
        return symbols
