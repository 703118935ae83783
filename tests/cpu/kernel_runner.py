"""Runs one `Kernel` by itself: the unit-test harness of everything that emits kernels.

    kernel = KERNELS["dot"](instruction, host_target())
    (result,) = run_kernel(kernel, [lhs, rhs], [instruction.shape])

The text is parsed, verified, optimised by a lean pass list and compiled with MCJIT; then every
phase is called through ctypes with the buffers, the scratch block and a range of units.

What it checks on the way: operands end flush with an unreadable page, so reading past an operand's
end crashes at once (run the test alone with -s then); results are filled with 0xCD bytes beforehand
and have canaries on both sides; operands must come out unchanged.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import llvmlite.binding as llvm
import numpy as np

from haloc.codegen.kernel import PREFIX, Kernel
from haloc.codegen.target import Target, host_target
from haloc.ir.shape import Shape

_CANARY_BYTES = 256
_FILL = 0xCD


@dataclass
class CompiledKernel:
    """A kernel's native phases. `engine` owns the code: keep this object while calling it."""

    kernel: Kernel
    engine: llvm.ExecutionEngine
    phases: list[ctypes._CFuncPtr]

    def call(self, pointers: Sequence[int], scratch: int = 0, pieces: int = 1) -> None:
        """Run all phases; each one's units are dealt out in `pieces` ranges, last range first."""
        for phase, function in zip(self.kernel.phases, self.phases, strict=True):
            bounds = [phase.extent * i // pieces for i in range(pieces + 1)]
            for begin, end in reversed(list(pairwise(bounds))):
                if begin < end:
                    function(*pointers, scratch, begin, end)


def compile_kernel(kernel: Kernel, buffers: int, target: Target | None = None) -> CompiledKernel:
    """Compile for `target` (default: this machine). buffers: operand plus result leaves."""
    target = target or host_target()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address in kernel.symbols.items():
        llvm.add_symbol(name, address)
    text = (
        f'target triple = "{target.triple}"\n'
        + "\n".join(dict.fromkeys(kernel.declares))
        + "\n"
        + "".join(kernel.library.values())
        + "".join(_constant(symbol, data) for symbol, data in kernel.data.items())
        + kernel.text.replace(PREFIX, "kernel")
    )
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.feature_string, opt=2, reloc="pic", jit=True
    )
    _optimise(module, machine)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    signature = ctypes.CFUNCTYPE(
        None, *[ctypes.c_void_p] * (buffers + 1), ctypes.c_int64, ctypes.c_int64
    )
    phases = []
    for phase in kernel.phases:
        address = engine.get_function_address(phase.symbol.replace(PREFIX, "kernel"))
        assert address, f"the text does not define {phase.symbol}"
        phases.append(signature(address))
    return CompiledKernel(kernel, engine, phases)


def _constant(symbol: str, data: bytes) -> str:
    name, content = symbol.replace(PREFIX, "kernel"), ", ".join(f"i8 {b}" for b in data)
    return f"@{name} = internal constant [{len(data)} x i8] [{content}], align 64\n"


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_new_gvn_pass()
    passes.add_dead_code_elimination_pass()
    passes.run(module, builder)


def run_kernel(
    kernel: Kernel,
    operands: Sequence[np.ndarray],
    results: Sequence[Shape],
    *,
    target: Target | None = None,
    pieces: int = 1,
) -> list[np.ndarray]:
    """Run a kernel on arrays; returns the result leaves.

    operands: the operands' leaf arrays, C order, in buffer order. results: the result's leaf
    shapes. pieces: how many ranges each phase's units are split into.
    """
    compiled = compile_kernel(kernel, len(operands) + len(results), target)
    return run_compiled(compiled, operands, results, pieces=pieces)


def run_compiled(
    compiled: CompiledKernel,
    operands: Sequence[np.ndarray],
    results: Sequence[Shape],
    *,
    pieces: int = 1,
) -> list[np.ndarray]:
    """`run_kernel` for a kernel that is compiled already."""
    guarded = [GuardedArray(np.ascontiguousarray(a).reshape(np.shape(a))) for a in operands]
    blocks = [_ResultBlock(shape) for shape in results]
    scratch = _ResultBlock.of_bytes(compiled.kernel.scratch_bytes)
    pointers = [g.address for g in guarded] + [b.address for b in blocks]
    compiled.call(pointers, scratch.address, pieces)
    for number, block in enumerate([*blocks, scratch]):
        block.check(f"result {number}" if number < len(blocks) else "scratch")
    for number, (array, copy) in enumerate(zip(operands, guarded, strict=True)):
        assert copy.array.tobytes() == np.asarray(array).tobytes(), f"operand {number} was changed"
    return [b.array(s) for b, s in zip(blocks, results, strict=True)]


_PROT_NONE = 0
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class GuardedArray:
    """A copy of an array that ends where an unreadable page begins (element-aligned only)."""

    def __init__(self, array: np.ndarray):
        page = mmap.PAGESIZE
        size = (array.nbytes + page - 1) // page * page
        self._block = mmap.mmap(-1, size + page)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._block))
        start = size - array.nbytes
        self.array = (
            np.frombuffer(self._block, np.uint8, array.nbytes, start)
            .view(array.dtype)
            .reshape(array.shape)
        )
        self.array[...] = array
        self.address = base + start
        self._end = base + size
        assert _libc.mprotect(self._end, page, _PROT_NONE) == 0

    def __del__(self) -> None:
        _libc.mprotect(self._end, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)


class _ResultBlock:
    """64-byte aligned memory filled with 0xCD, with canaries before and after."""

    def __init__(self, shape: Shape | None, size: int | None = None):
        self.size = shape.byte_size if shape is not None else (size or 0)
        self._raw = np.full(self.size + 2 * _CANARY_BYTES + 64, _FILL, np.uint8)
        self._start = _CANARY_BYTES + -(self._raw.ctypes.data + _CANARY_BYTES) % 64
        self.address = self._raw.ctypes.data + self._start

    @classmethod
    def of_bytes(cls, size: int) -> _ResultBlock:
        return cls(None, size)

    def check(self, what: str) -> None:
        before, after = self._raw[: self._start], self._raw[self._start + self.size :]
        assert (before == _FILL).all(), f"{what}: written before its start"
        assert (after == _FILL).all(), f"{what}: written past its end"

    def array(self, shape: Shape) -> np.ndarray:
        data = self._raw[self._start : self._start + self.size]
        return data.view(shape.dtype.numpy).reshape(shape.dims)
