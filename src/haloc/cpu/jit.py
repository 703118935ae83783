"""LLVM text to executable memory, by a lean pass pipeline."""

from __future__ import annotations

import ctypes
import threading
from functools import cache

import llvmlite.binding as llvm

from haloc.codegen.target import Target
from haloc.errors import InternalError

_lock = threading.Lock()


@cache
def target_machine(target: Target, level: int) -> llvm.TargetMachine:
    """level: LLVM's code generation effort, 0 to 3."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.Target.from_triple(target.triple)
    return triple.create_target_machine(
        cpu=target.cpu, features=target.feature_string, opt=level, jit=True, reloc="static"
    )


class NativeCode:
    """A compiled module. Its code lives as long as this object."""

    def __init__(self, text: str, target: Target, symbols: dict[str, int], level: int = 2):
        with _lock:
            machine = target_machine(target, level)
            try:
                module = llvm.parse_assembly(text)
            except RuntimeError as error:
                raise InternalError(f"generated LLVM text does not parse: {error}") from error
            module.triple = target.triple
            module.data_layout = str(machine.target_data)
            if level:
                _optimise(module, machine)
            code = machine.emit_object(module)
            for name, address in symbols.items():
                llvm.add_symbol(name, address)
            # The engine wants a machine and a module of its own, to give up later.
            empty = llvm.parse_assembly("")
            empty.triple = target.triple
            own = llvm.Target.from_triple(target.triple).create_target_machine(
                cpu=target.cpu, features=target.feature_string, opt=level, jit=True
            )
            self._engine = llvm.create_mcjit_compiler(empty, own)
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self._engine.finalize_object()
        self.size_bytes = len(code)

    def address(self, symbol: str) -> int:
        return self._engine.get_function_address(symbol)

    def function(self, symbol: str, arguments: int) -> ctypes._CFuncPtr:
        """An i32 function of pointers; calling it releases the GIL."""
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, *(ctypes.c_void_p for _ in range(arguments)))
        return prototype(self.address(symbol))


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
    manager.run(module, builder)
