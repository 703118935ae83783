"""convolution kernels against a plain NumPy reference, over random configurations and dtypes."""

from __future__ import annotations

from itertools import product as cartesian

import numpy as np
import pytest

from haloc.codegen.target import host_target
from haloc.cpu.contraction.convolution import convolution_kernel
from haloc.ir import dtype as dt
from haloc.ir.dtype import DType
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import ConvDims, WindowDim
from tests.cpu.contraction.test_dot import TARGETS, assert_close, random_array
from tests.cpu.kernel_runner import run_kernel


def out_size(size: int, w: WindowDim) -> int:
    padded = (max(size - 1, 0) * w.base_dilation + (size > 0)) + w.padding_low + w.padding_high
    window = (w.size - 1) * w.window_dilation + 1 if w.size else 0
    return max((padded - window) // w.stride + 1, 0) if window <= padded else 0


def plain_labels(spatial: int) -> ConvDims:
    """b01f_01io->b01f"""
    image = tuple(range(1, spatial + 1))
    window = tuple(range(spatial))
    return ConvDims(0, spatial + 1, image, spatial, spatial + 1, window, 0, spatial + 1, image)


def random_labels(rng: np.random.Generator, spatial: int) -> ConvDims:
    image, kernel, out = (rng.permutation(spatial + 2).tolist() for _ in range(3))
    return ConvDims(
        image[0], image[1], tuple(image[2:]), kernel[0], kernel[1], tuple(kernel[2:]),
        out[0], out[1], tuple(out[2:]),
    )  # fmt: skip


def convolution_instruction(
    labels: ConvDims,
    window: tuple[WindowDim, ...],
    types: tuple[DType, DType, DType],
    batch: int,
    features: tuple[int, int],
    spatial: tuple[int, ...],
    feature_groups: int = 1,
    batch_groups: int = 1,
) -> HloInstruction:
    """features: the image's, and the kernel's output features."""
    rank = len(spatial) + 2
    image, kernel, out = [0] * rank, [0] * rank, [0] * rank
    image[labels.input_batch], image[labels.input_feature] = batch, features[0]
    kernel[labels.kernel_input_feature] = features[0] // feature_groups
    kernel[labels.kernel_output_feature] = features[1]
    out[labels.output_batch], out[labels.output_feature] = batch // batch_groups, features[1]
    for i, (size, w) in enumerate(zip(spatial, window, strict=True)):
        image[labels.input_spatial[i]] = size
        kernel[labels.kernel_spatial[i]] = w.size
        out[labels.output_spatial[i]] = out_size(size, w)
    operands = [
        HloInstruction("parameter", Shape(t, tuple(d)))
        for t, d in zip(types, (image, kernel), strict=False)
    ]
    attrs = {
        "window": window,
        "dim_labels": labels,
        "feature_group_count": feature_groups,
        "batch_group_count": batch_groups,
    }
    return HloInstruction("convolution", Shape(types[2], tuple(out)), operands, attrs)


def reference(instruction: HloInstruction, image: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Pad and dilate the image, then add up one product per window position and group."""
    labels, window = instruction.attrs["dim_labels"], instruction.attrs["window"]
    x = image.transpose(labels.input_batch, labels.input_feature, *labels.input_spatial)
    w = kernel.transpose(
        labels.kernel_input_feature, labels.kernel_output_feature, *labels.kernel_spatial
    )
    for d, dim in enumerate(window, 2):
        x = _dilated_and_padded(x, d, dim)
        if dim.reversal:
            w = np.flip(w, d)
    order = (labels.output_batch, labels.output_feature, *labels.output_spatial)
    dims = [instruction.shape.dims[d] for d in order]
    out = np.zeros(dims, x.dtype)
    groups = max(instruction.attrs["feature_group_count"], instruction.attrs["batch_group_count"])
    per_out, ci = dims[1] // groups, w.shape[0]
    for g in range(groups):
        part = (
            x[:, g * ci : (g + 1) * ci]
            if instruction.attrs["feature_group_count"] > 1
            else x[g * dims[0] : (g + 1) * dims[0]]
        )
        chosen = slice(g * per_out, (g + 1) * per_out)
        for tap in cartesian(*(range(dim.size) for dim in window)):
            at = tuple(
                slice(t * dim.window_dilation, t * dim.window_dilation + (n - 1) * dim.stride + 1,
                      dim.stride) if n else slice(0, 0)
                for t, dim, n in zip(tap, window, dims[2:], strict=True)
            )  # fmt: skip
            matrix = w[(slice(None), chosen, *tap)]
            out[:, chosen] += np.einsum(
                "bi...,io->bo...", part[(slice(None), slice(None), *at)], matrix
            )
    inverse = np.argsort(order)
    return out.transpose(inverse)


def _dilated_and_padded(x: np.ndarray, d: int, w: WindowDim) -> np.ndarray:
    size = x.shape[d]
    shape = list(x.shape)
    shape[d] = (size - 1) * w.base_dilation + 1 if size else 0
    wide = np.zeros(shape, x.dtype)
    wide[(slice(None),) * d + (slice(None, None, w.base_dilation),)] = x
    low, high = w.padding_low, w.padding_high
    pads = [(0, 0)] * x.ndim
    pads[d] = (max(low, 0), max(high, 0))
    padded = np.pad(wide, pads)
    end = padded.shape[d] - max(-high, 0)
    return padded[(slice(None),) * d + (slice(max(-low, 0), end),)]


def check(instruction: HloInstruction, seed: int = 0, target=None, pieces: int = 1) -> None:
    rng = np.random.default_rng(seed)
    arrays = [random_array(rng, o.shape.dtype, o.shape.dims) for o in instruction.operands]
    kernel = convolution_kernel(instruction, target or host_target())
    (got,) = run_kernel(kernel, arrays, [instruction.shape], target=target, pieces=pieces)
    assert_close(got, instruction, *arrays, reference)


def random_window(rng: np.random.Generator, size: int) -> WindowDim:
    """A window that yields at least one output position."""
    while True:
        w = WindowDim(
            size=int(rng.integers(1, 5)),
            stride=int(rng.integers(1, 4)),
            padding_low=int(rng.integers(-2, 4)),
            padding_high=int(rng.integers(-2, 4)),
            base_dilation=int(rng.choice([1, 1, 2, 3])),
            window_dilation=int(rng.choice([1, 1, 2])),
            reversal=bool(rng.random() < 0.2),
        )
        if out_size(size, w) > 0:
            return w


@pytest.mark.parametrize("seed", range(60))
def test_random_configurations(seed):
    rng = np.random.default_rng(seed)
    spatial = tuple(int(s) for s in rng.integers(1, 9, rng.integers(0, 4)))
    window = tuple(random_window(rng, s) for s in spatial)
    labels = random_labels(rng, len(spatial)) if seed % 2 else plain_labels(len(spatial))
    feature_groups, batch_groups = [(1, 1), (3, 1), (1, 2)][rng.integers(3)]
    groups = feature_groups * batch_groups
    features = int(rng.integers(1, 9)) * feature_groups, int(rng.integers(1, 20)) * groups
    batch = int(rng.integers(1, 4)) * batch_groups
    dtype = [dt.F32, dt.F32, dt.F64, dt.S32, dt.BF16, dt.C64, dt.S8][seed % 7]
    instruction = convolution_instruction(
        labels, window, (dtype,) * 3, batch, features, spatial, feature_groups, batch_groups
    )
    check(instruction, seed, pieces=1 + seed % 3)


SAME = WindowDim(3, padding_low=1, padding_high=1)
NCHW = ConvDims(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))


@pytest.mark.parametrize("dtype", [*dt.ARRAY_DTYPES], ids=str)
def test_every_dtype(dtype):
    is_narrow = (dtype.is_float and dtype.bits < 8) or dtype is dt.F8E8M0FNU
    types = (dtype, dtype, dt.F32 if is_narrow else dtype)
    check(convolution_instruction(plain_labels(2), (SAME, SAME), types, 2, (5, 18), (7, 6)))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("labels", [plain_labels(2), NCHW], ids=["nhwc", "nchw"])
def test_targets(name, labels):
    instruction = convolution_instruction(labels, (SAME, SAME), (dt.F32,) * 3, 2, (6, 20), (9, 7))
    check(instruction, target=TARGETS[name])


LARGER = {
    "3x3": (plain_labels(2), (SAME, SAME), 2, (40, 70), (14, 15)),
    "3x3 nchw": (NCHW, (SAME, SAME), 2, (40, 70), (14, 15)),
    "7x7 stride 2": (plain_labels(2), (WindowDim(7, 2, 3, 3),) * 2, 2, (3, 40), (33, 30)),
    "1x1": (plain_labels(2), (WindowDim(1),) * 2, 3, (70, 80), (9, 9)),
    "1x1 stride 2": (plain_labels(2), (WindowDim(1, 2),) * 2, 3, (70, 80), (9, 9)),
    "transposed": (plain_labels(2), (WindowDim(4, 1, 2, 2, 2),) * 2, 2, (30, 20), (8, 9)),
    "digits": (plain_labels(2), (SAME, SAME), 64, (1, 16), (8, 8)),
}


@pytest.mark.parametrize("case", LARGER)
def test_larger_cases(case):
    labels, window, batch, features, spatial = LARGER[case]
    instruction = convolution_instruction(labels, window, (dt.F32,) * 3, batch, features, spatial)
    check(instruction, pieces=3)


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("channels", [3, 16, 50])
@pytest.mark.parametrize("dtype", [dt.F32, dt.BF16, dt.S32], ids=str)
def test_depthwise(channels, multiplier, dtype):
    window = (WindowDim(3, 2, 1, 1), WindowDim(2, 1, 0, 2, 1, 2))
    instruction = convolution_instruction(
        plain_labels(2), window, (dtype,) * 3, 2, (channels, channels * multiplier), (9, 8),
        feature_groups=channels,
    )  # fmt: skip
    check(instruction, pieces=2)


@pytest.mark.parametrize(
    "groups,ins,outs", [(3, 4, 4), (32, 4, 4), (10, 2, 8), (9, 5, 2), (3, 3, 3)]
)
@pytest.mark.parametrize("dtype", [dt.F32, dt.F16, dt.F8E4M3FN, dt.C64], ids=str)
def test_narrow_groups(groups, ins, outs, dtype):
    window = (WindowDim(3, 1, 1, 1), WindowDim(2, 2, 0, 1, reversal=True))
    instruction = convolution_instruction(
        plain_labels(2), window, (dtype,) * 3, 2, (groups * ins, groups * outs), (7, 6),
        feature_groups=groups,
    )  # fmt: skip
    check(instruction, pieces=2)


def test_window_that_sees_only_padding():
    """One output position, one tap, outside the image: zero, though infinity is inside."""
    instruction = convolution_instruction(
        plain_labels(1), (WindowDim(1, 9, 1, 0),), (dt.F32,) * 3, 1, (2, 20), (3,)
    )
    image = np.full((1, 3, 2), np.inf, np.float32)
    (got,) = run_kernel(
        convolution_kernel(instruction, host_target()),
        [image, np.ones((1, 2, 20), np.float32)],
        [instruction.shape],
    )
    np.testing.assert_array_equal(got, np.zeros((1, 1, 20), np.float32))


@pytest.mark.parametrize("batch,features,size", [(0, (3, 4), 5), (2, (0, 4), 5), (2, (3, 0), 5)])
def test_zero_sizes(batch, features, size):
    instruction = convolution_instruction(
        plain_labels(1), (SAME,), (dt.F32,) * 3, batch, features, (size,)
    )
    check(instruction)


def test_empty_window():
    instruction = convolution_instruction(
        plain_labels(1), (WindowDim(0),), (dt.F32,) * 3, 2, (3, 4), (5,)
    )
    check(instruction)
