"""One-thread speed of dot and convolution kernels beside NumPy's matmul (OpenBLAS).

    python bench/contraction.py [dot|shapes|conv|compile ...]

Each row: the minimum over repeats; both sides run in turn, in this process, on one thread.
"""

from __future__ import annotations

import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import ctypes
from collections.abc import Callable

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tests.cpu.contraction.test_convolution import (
    NCHW,
    SAME,
    convolution_instruction,
    plain_labels,
)
from tests.cpu.contraction.test_dot import dot_instruction, random_array
from tests.cpu.kernel_runner import compile_kernel

from haloc.codegen.kernel import Kernel
from haloc.codegen.target import host_target
from haloc.cpu.contraction.convolution import convolution_kernel
from haloc.cpu.contraction.dot import dot_kernel
from haloc.ir import dtype as dt
from haloc.ir.shape import Shape
from haloc.ops.attrs import ConvDims, WindowDim


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy on a 64-byte boundary."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def best_ms(call: Callable[[], object], budget_s: float = 0.4) -> float:
    """Minimum time of one call, over about budget_s."""
    call()
    best, end = float("inf"), time.perf_counter() + budget_s
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def caller(kernel: Kernel, arrays: list[np.ndarray]) -> Callable[[], None]:
    compiled = compile_kernel(kernel, len(arrays))
    scratch = aligned(np.zeros(kernel.scratch_bytes + 64, np.uint8))
    pointers = [a.ctypes.data for a in arrays]

    def call() -> None:
        compiled.call(pointers, scratch.ctypes.data)

    call.keep = (compiled, arrays, scratch)  # type: ignore[attr-defined]
    return call


def dot_row(label: str, lhs_dims, rhs_dims, dtype=dt.F32, result=None, **dims) -> None:
    rng = np.random.default_rng(0)
    instruction = dot_instruction(
        Shape(dtype, lhs_dims), Shape(dtype, rhs_dims), result or dtype, **dims
    )
    lhs, rhs = (aligned(random_array(rng, dtype, d)) for d in (lhs_dims, rhs_dims))
    out = aligned(np.zeros(instruction.shape.dims, instruction.shape.dtype.numpy))
    kernel = dot_kernel(instruction, host_target())
    start = time.perf_counter()
    call = caller(kernel, [lhs, rhs, out])
    compile_ms = (time.perf_counter() - start) * 1e3
    ms = best_ms(call)
    contracted = instruction.attrs["lhs_contracting_dims"]
    flops = 2 * out.size * np.prod([lhs_dims[d] for d in contracted], dtype=float)
    moved = lhs.nbytes + rhs.nbytes + out.nbytes
    text = f"{label:36s} {ms:9.4f} ms {flops / ms / 1e6:8.1f} GFLOP/s {moved / ms / 1e6:7.1f} GB/s"
    if dtype in (dt.F32, dt.F64, dt.C64):
        a, b = lhs.astype(dtype.numpy), rhs.astype(dtype.numpy)
        if "contracting" in dims and len(lhs_dims) == 2:
            a = a.T if dims["contracting"][0] == (0,) else a
            b = b.T if dims["contracting"][1] == (1,) else b
        if len(lhs_dims) == 3 and dims["contracting"][1] == (2,):
            b = b.transpose(0, 2, 1)
        theirs = best_ms(lambda: np.matmul(a, b, out=out))
        text += f"   numpy {theirs:9.4f} ms, ratio {theirs / ms:5.2f}"
    print(f"{text}   [{len(kernel.text) // 1024} KB, compile {compile_ms:.0f} ms]", flush=True)


def dots() -> None:
    for n in (16, 32, 64, 100, 128, 256, 384, 512, 1000, 1024, 2048):
        dot_row(f"f32 {n}", (n, n), (n, n))


def shapes() -> None:
    tn, nt = ((0,), (0,)), ((1,), (1,))
    dot_row("f32 512 x 512^T", (512, 512), (512, 512), contracting=nt)
    dot_row("f32 512^T x 512", (512, 512), (512, 512), contracting=tn)
    dot_row("f32 1024 x 1024^T", (1024, 1024), (1024, 1024), contracting=nt)
    dot_row("f32 1024^T x 1024", (1024, 1024), (1024, 1024), contracting=tn)
    dot_row("matrix-vector 4096", (4096, 4096), (4096, 1))
    dot_row("matrix^T-vector 4096", (4096, 4096), (4096, 1), contracting=tn)
    dot_row("vector-matrix 4096", (1, 4096), (4096, 4096))
    dot_row("vector-matrix^T 4096", (1, 4096), (4096, 4096), contracting=nt)
    dot_row("8 x 1024 x 4096", (8, 1024), (1024, 4096))
    dot_row("8 x 1024 x 4096^T", (8, 1024), (4096, 1024), contracting=nt)
    dot_row("128 x 784 x 10", (128, 784), (784, 10))
    dot_row("10000 x 64 x 32", (10000, 64), (64, 32))
    dot_row("outer 2000 x 1 x 2000", (2000, 1), (1, 2000))
    dot_row("tall 64 x 100000 x 64 (TN)", (100000, 64), (100000, 64), contracting=tn)
    bmm = {"batch": ((0,), (0,)), "contracting": ((2,), (1,))}
    dot_row("256 x 128^3", (256, 128, 128), (256, 128, 128), **bmm)
    qk = {"batch": ((0,), (0,)), "contracting": ((2,), (2,))}
    dot_row("attention qk 16x512x64", (16, 512, 64), (16, 512, 64), **qk)
    dot_row("attention pv 16x512x512x64", (16, 512, 512), (16, 512, 64), **bmm)
    dot_row("1000 x 4^3", (1000, 4, 4), (1000, 4, 4), **bmm)
    for dtype in (dt.F64, dt.BF16, dt.F16, dt.F8E4M3FN, dt.S8, dt.S32, dt.S64, dt.C64):
        result = dt.S32 if dtype is dt.S8 else dtype
        dot_row(f"{dtype} 512", (512, 512), (512, 512), dtype, result)


def conv_row(label: str, labels, window, batch, features, spatial, dtype=dt.F32, **groups) -> None:
    instruction = convolution_instruction(
        labels, window, (dtype,) * 3, batch, features, spatial, **groups
    )
    rng = np.random.default_rng(0)
    arrays = [aligned(random_array(rng, dtype, o.shape.dims)) for o in instruction.operands]
    out = aligned(np.zeros(instruction.shape.dims, dtype.numpy))
    kernel = convolution_kernel(instruction, target=host_target())
    start = time.perf_counter()
    call = caller(kernel, [*arrays, out])
    compile_ms = (time.perf_counter() - start) * 1e3
    ms = best_ms(call)
    in_features = arrays[1].shape[instruction.attrs["dim_labels"].kernel_input_feature]
    taps = np.prod([w.size for w in window], dtype=float)
    flops = 2 * out.size * in_features * taps
    print(
        f"{label:36s} {ms:9.4f} ms {flops / ms / 1e6:8.1f} GFLOP/s   "
        f"[{len(kernel.text) // 1024} KB, compile {compile_ms:.0f} ms]",
        flush=True,
    )


def convolutions() -> None:
    nhwc, nchw = plain_labels(2), NCHW
    same, seven = (SAME, SAME), (WindowDim(7, 2, 3, 3),) * 2
    one = (WindowDim(1), WindowDim(1))
    conv_row("3x3 8x56x56x64", nhwc, same, 8, (64, 64), (56, 56))
    conv_row("3x3 8x56x56x64 bf16", nhwc, same, 8, (64, 64), (56, 56), dt.BF16)
    conv_row("3x3 8x56x56x64 nchw", nchw, same, 8, (64, 64), (56, 56))
    conv_row("3x3 8x14x14x256", nhwc, same, 8, (256, 256), (14, 14))
    conv_row("7x7 s2 8x224x224x3->64", nhwc, seven, 8, (3, 64), (224, 224))
    conv_row("1x1 8x56x56x64->256", nhwc, one, 8, (64, 256), (56, 56))
    conv_row("1x1 8x56x56x256->64 nchw", nchw, one, 8, (256, 64), (56, 56))
    conv_row("digits 3x3 64x8x8x1->16", nhwc, same, 64, (1, 16), (8, 8))
    conv_row("digits 3x3 64x8x8x16->32", nhwc, same, 64, (16, 32), (8, 8))
    transposed = (WindowDim(3, 1, 1, 2, 2),) * 2
    conv_row("transposed 3x3 8x28x28x64", nhwc, transposed, 8, (64, 64), (28, 28))
    wgrad = ConvDims(3, 0, (1, 2), 0, 3, (1, 2), 2, 3, (0, 1))
    conv_row(
        "weight gradient 3x3 8x56x56x64",
        wgrad,
        (WindowDim(56, 1, 1, 1),) * 2,
        64,
        (8, 64),
        (56, 56),
    )
    conv_row("grouped 32x4 8x56x56x128", nhwc, same, 8, (128, 128), (56, 56), feature_groups=32)
    conv_row("depthwise 3x3 8x56x56x144", nhwc, same, 8, (144, 144), (56, 56), feature_groups=144)
    one_d = (WindowDim(4, 1, 3, 0),)
    conv_row("causal 1-d 4x2048x512 depthwise", plain_labels(1), one_d, 4, (512, 512), (2048,),
             feature_groups=512)  # fmt: skip


RUNS = {"dot": dots, "shapes": shapes, "conv": convolutions}

if __name__ == "__main__":
    assert ctypes.sizeof(ctypes.c_void_p) == 8
    for run in sys.argv[1:] or RUNS:
        RUNS[run]()
