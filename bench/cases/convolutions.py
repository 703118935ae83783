"""Convolutions: plain, depthwise, transposed, dilated, their gradients, in a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from bench.cases.case import BF16, Family, normal
from jax import lax
from tests.conformance import models

FAMILY = Family("convolutions")
add = FAMILY.add

NHWC = ("NHWC", "HWIO", "NHWC")
IMAGES, KERNELS = normal(8, 56, 56, 64), normal(3, 3, 64, 64, scale=0.05)
FLOPS = 2.0 * 8 * 56 * 56 * 64 * 64 * 9


def conv2d(**options: Any) -> Callable[..., Any]:
    """PyTorch's, of tensors in NHWC and HWIO: memory stays as it is, only names change."""

    def run(t: Any, x: Any, w: Any) -> Any:
        x, w = x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1)
        return t.nn.functional.conv2d(x, w, **options).permute(0, 2, 3, 1)

    return run


add("conv 3x3 8x56x56x64", models.conv, IMAGES, KERNELS, torch=conv2d(padding=1), flops=FLOPS)
add(
    "conv bf16 3x3 8x56x56x64",
    models.conv,
    normal(8, 56, 56, 64, dtype=BF16),
    normal(3, 3, 64, 64, scale=0.05, dtype=BF16),
    torch=conv2d(padding=1),
    flops=FLOPS,
    dtype="bf16",
    error=1e-2,
    peer_error=1e-2,
)
add(
    "conv 1x1 8x28x28x256",
    models.conv,
    normal(8, 28, 28, 256),
    normal(1, 1, 256, 256, scale=0.06),
    torch=conv2d(),
    flops=2.0 * 8 * 28 * 28 * 256 * 256,
)
add(
    "conv 7x7 stride 2 8x112x112x3",
    lambda x, w: models.conv(x, w, 2, ((3, 3), (3, 3))),
    normal(8, 112, 112, 3),
    normal(7, 7, 3, 64, scale=0.08),
    torch=conv2d(padding=3, stride=2),
    flops=2.0 * 8 * 56 * 56 * 64 * 147,
)


def convolve(x, w, **options):
    options = {"window_strides": (1, 1), "padding": "SAME"} | options
    return lax.conv_general_dilated(x, w, dimension_numbers=NHWC, **options)


add(
    "depthwise conv 3x3 8x56x56x64",
    lambda x, w: convolve(x, w, feature_group_count=64),
    IMAGES,
    normal(3, 3, 1, 64),
    torch=conv2d(padding=1, groups=64),
    flops=2.0 * 8 * 56 * 56 * 64 * 9,
)
add(
    "conv with holes 3x3 8x56x56x64",
    lambda x, w: convolve(x, w, rhs_dilation=(2, 2)),
    IMAGES,
    KERNELS,
    torch=conv2d(padding=2, dilation=2),
    flops=FLOPS,
)
add(
    "transposed conv 4x4 stride 2 8x28x28x64",
    lambda x, w: convolve(x, w, lhs_dilation=(2, 2), padding=((2, 2), (2, 2))),
    normal(8, 28, 28, 64),
    normal(4, 4, 64, 64, scale=0.05),
    torch=lambda t, x, w: t.nn.functional.conv_transpose2d(
        x.permute(0, 3, 1, 2), w.flip(0, 1).permute(2, 3, 0, 1), stride=2, padding=1
    ).permute(0, 2, 3, 1),
    flops=2.0 * 8 * 28 * 28 * 64 * 64 * 16,
)


def gradient(number: int) -> Callable[..., Any]:
    def run(x: Any, w: Any, g: Any) -> Any:
        return jax.vjp(models.conv, x, w)[1](g)[number]

    return run


def torch_gradient(name: str) -> Callable[..., Any]:
    def run(t: Any, x: Any, w: Any, g: Any) -> Any:
        x, w, g = x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), g.permute(0, 3, 1, 2)
        if name == "image":
            made = t.nn.grad.conv2d_input(x.shape, w, g, padding=1)
            return made.permute(0, 2, 3, 1)
        return t.nn.grad.conv2d_weight(x, w.shape, g, padding=1).permute(2, 3, 1, 0)

    return run


for number, name in enumerate(("image", "kernel")):
    add(
        f"gradient of conv 3x3 by its {name}",
        gradient(number),
        IMAGES,
        KERNELS,
        IMAGES,
        torch=torch_gradient(name),
        flops=FLOPS,
        error=1e-4,
    )
add(
    "conv in one dimension 16x4096x64, 5 wide",
    lambda x, w: lax.conv_general_dilated(
        x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
    ),
    normal(16, 4096, 64),
    normal(5, 64, 64, scale=0.05),
    torch=lambda t, x, w: t.nn.functional.conv1d(
        x.permute(0, 2, 1), w.permute(2, 1, 0), padding=2
    ).permute(0, 2, 1),
    flops=2.0 * 16 * 4096 * 64 * 64 * 5,
)
add(
    "conv in a loop, 50 of 1x32x32x16",
    lambda x, w: lax.fori_loop(0, 50, lambda i, s: jax.nn.relu(models.conv(s, w)), x),
    normal(1, 32, 32, 16),
    normal(3, 3, 16, 16, scale=0.1),
    flops=50 * 2.0 * 32 * 32 * 16 * 16 * 9,
    error=1e-4,
)
