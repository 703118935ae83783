"""LLVM text to an object file, by a lean pass pipeline. Several threads may compile at once."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from haloc.codegen.target import Target
from haloc.errors import InternalError

PIPELINE = "2"
"""Changes whenever equal text may become different code, besides with LLVM's own version."""


def toolchain() -> str:
    """What decides the code besides text, target and level: LLVM's version, haloc's pipeline."""
    return f"llvm {'.'.join(map(str, llvm.llvm_version_info))} pipeline {PIPELINE}"


def compile_text(text: str, target: Target, level: int) -> bytes:
    """The ELF object file of a module. level: LLVM's code generation effort, 0 to 3."""
    # A context and a machine of its own: threads may do this at the same time.
    context = llvm.create_context()
    try:
        module = llvm.parse_assembly(text, context)
    except RuntimeError as error:
        raise InternalError(f"generated LLVM text does not parse: {error}") from error
    machines = _machines(target, level)
    machine = machines.pop() if machines else _new_machine(target, level)
    try:
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        if level:
            _optimise(module, machine)
        return _emit_object(module, machine)
    finally:
        module.close()
        machines.append(machine)


@cache
def _machines(target: Target, level: int) -> list[llvm.TargetMachine]:
    """Machines that nobody is using."""
    _initialize()
    return []


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Loop strength reduction takes a quarter of the code generator's time. Generated loops address
    # memory by one index each, and run as fast without it (22 programs: 0.94 to 1.06, mean 0.99).
    # LLVM has no switch for one compilation: it is off for whoever shares llvmlite, too.
    llvm.set_option("haloc", "-disable-lsr")


def _new_machine(target: Target, level: int) -> llvm.TargetMachine:
    # ELF on every system: haloc loads it itself.
    triple = target.triple if "linux" in target.triple else target.triple + "-elf"
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=target.cpu,
        features=target.feature_string,
        opt=level,
        reloc="pic",
        codemodel="small",
    )


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Generated code is already vectorised, hoisted and value-numbered: only clean up, and inline
    what is marked so. LLVM's standard pipelines take ten times as long and gain nothing here.

    No NewGVN, the one value numbering that llvmlite offers by itself: it miscompiles nested loops.
    """
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    manager = llvm.create_new_module_pass_manager()
    manager.add_always_inliner_pass()
    manager.add_sroa_pass()
    manager.add_simplify_cfg_pass()
    manager.add_instruction_combine_pass()
    manager.add_loop_rotate_pass()
    manager.add_dead_store_elimination_pass()
    manager.add_simplify_cfg_pass()
    _unlocked("LLVMPY_RunNewModulePassManager")(manager, module, builder)


def _emit_object(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> bytes:
    """`TargetMachine.emit_object`, without llvmlite's lock."""
    with ffi.OutputString() as error:
        buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, error)
        if not buffer:
            raise InternalError(f"LLVM cannot compile generated text: {error}")
    try:
        start = ffi.lib.LLVMPY_GetBufferStart(buffer)
        return ctypes.string_at(start, ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


@cache
def _unlocked(name: str) -> Any:
    """A function of llvmlite's library that does not wait for others.

    llvmlite lets one thread into LLVM at a time. LLVM itself wants no more than that threads do not
    share a context, and almost all the time of a compilation goes into two calls.
    """
    function = getattr(ctypes.CDLL(ffi.lib._name), name)
    locked = getattr(ffi.lib, name)
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function
