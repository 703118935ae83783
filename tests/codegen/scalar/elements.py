"""Evaluates one `LlvmScalar` method on arrays: the harness of the scalar tests and of ulp_table.

apply("add", [x, y])                       # the method, on dtypes of the arrays
apply(lambda s, x: s.convert(x, F32), [x]) # or any function of the scalar and values
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm
import numpy as np

from haloc.codegen.builder import Builder, Reg
from haloc.codegen.scalar import LlvmScalar, LlvmValue
from haloc.codegen.target import Target, host_target
from haloc.ir.dtype import DType, dtype_from_numpy

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

Emit = Callable[..., LlvmValue]


class CompiledElements:
    """A compiled loop: result[i] = emit(operands[i]...)."""

    def __init__(self, emit: Emit | str, dtypes: Sequence[DType], width: int, target: Target):
        builder = Builder()
        names = [Reg(f"%p{i}", "ptr", builder.root) for i in range(len(dtypes) + 1)]
        count = Reg("%n", "i64", builder.root)
        scalar = LlvmScalar(builder, target)
        with builder.loop(0, count, width) as loop:
            values = [
                scalar.load(self._at(builder, p, loop.index, scalar.memory_bytes(d)), d, width)
                for p, d in zip(names, dtypes)
            ]
            method = getattr(scalar, emit) if isinstance(emit, str) else None
            out = method(*values) if method else emit(scalar, *values)  # type: ignore[operator]
            self.dtype = out.dtype
            where = self._at(builder, names[-1], loop.index, scalar.memory_bytes(out.dtype))
            scalar.store(scalar.splat(out, width), where)
        function = builder.function("elements", [*names, count])
        self.text = "\n".join([*builder.declares, *builder.library.values(), function])
        self.width = width
        self._compile(target)

    @staticmethod
    def _at(builder: Builder, base: Reg, index: Reg, size: int) -> Reg:
        offset = builder.op("i64", f"mul i64 {{0}}, {size}", index)
        return builder.op("ptr", "getelementptr i8, ptr {0}, i64 {1}", base, offset)

    def _compile(self, target: Target) -> None:
        text = f'target triple = "{target.triple}"\n' + self.text
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
        machine = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.feature_string, opt=2, reloc="pic", jit=True
        )
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_instruction_combine_pass()
        passes.add_new_gvn_pass()
        passes.add_dead_code_elimination_pass()
        passes.run(module, llvm.create_pass_builder(machine, options))
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        address = self.engine.get_function_address("elements")
        self.function = ctypes.CFUNCTYPE(None)(address)

    def __call__(self, *operands: np.ndarray) -> np.ndarray:
        size = operands[0].size
        padded = -(-size // self.width) * self.width
        arrays = [np.resize(np.ascontiguousarray(a).reshape(-1), padded) for a in operands]
        assert self.dtype.numpy is not None
        out = np.empty(padded, self.dtype.numpy)
        if padded:
            pointers = [ctypes.c_void_p(a.ctypes.data) for a in [*arrays, out]]
            self.function(*pointers, ctypes.c_int64(padded))
        return out[:size].reshape(operands[0].shape)


_CACHE: dict[tuple[object, ...], CompiledElements] = {}


def compiled(
    emit: Emit | str, dtypes: Sequence[DType], width: int = 8, target: Target | None = None
) -> CompiledElements:
    """Compile once per method name, types and width."""
    key = (emit, tuple(dtypes), width, target)
    if key not in _CACHE:
        _CACHE[key] = CompiledElements(emit, dtypes, width, target or host_target())
    return _CACHE[key]


def apply(
    emit: Emit | str, operands: Sequence[np.ndarray], width: int = 8, target: Target | None = None
) -> np.ndarray:
    """The method on arrays of one shape, at one vector width."""
    dtypes = [dtype_from_numpy(a.dtype) for a in operands]
    return compiled(emit, dtypes, width, target)(*operands)


def apply_both(emit: Emit | str, operands: Sequence[np.ndarray]) -> np.ndarray:
    """`apply` at width 8; width 1 must give the same bits (any NaN for a NaN)."""
    vector, scalar = apply(emit, operands, 8), apply(emit, operands, 1)
    assert_same(scalar, vector)
    return vector


def assert_same(got: np.ndarray, want: np.ndarray, inputs: Sequence[np.ndarray] = ()) -> None:
    """Equal bit for bit, except that any NaN equals any NaN."""
    assert got.dtype == want.dtype, (got.dtype, want.dtype)
    part = {"c": lambda a: a.view(a.real.dtype)}.get(got.dtype.kind, lambda a: a)
    g, w = part(got), part(want)
    differs = g.view(np.uint8).reshape(g.size, -1) != w.view(np.uint8).reshape(g.size, -1)
    bad = differs.any(axis=1)
    if got.dtype.kind not in "biu" or got.dtype.kind == "V":
        with np.errstate(all="ignore"):
            g64, w64 = g.astype(np.float64), w.astype(np.float64)
        bad &= ~(np.isnan(g64) & np.isnan(w64)).reshape(-1)
    if bad.any():
        at = np.flatnonzero(bad)[:6] // (g.size // got.size)
        shown = [(*(a.reshape(-1)[i] for a in inputs), "got", got[i], "want", want[i]) for i in at]
        raise AssertionError(f"{int(bad.sum())} of {g.size} differ: {shown}")
