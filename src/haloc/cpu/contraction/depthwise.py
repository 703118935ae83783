"""Depthwise convolution: every channel has a window of its own, and vectors run along channels.

As a product of matrices it would have one column; here it is a sum over window positions of
elementwise products, with nothing packed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from haloc.codegen.kernel import PREFIX, Kernel, Phase
from haloc.codegen.target import Target
from haloc.cpu.contraction import elements
from haloc.cpu.contraction.finish import IDENTITY, Epilogue
from haloc.cpu.contraction.gemm import attributes
from haloc.cpu.contraction.micro import multiply_add
from haloc.cpu.contraction.pack import inside_bounds, zero_of
from haloc.cpu.contraction.text import I64, Code, vector
from haloc.cpu.contraction.view import View, added

BLOCK_VECTORS = 4
NS_PER_VECTOR = 1.0


@dataclass(frozen=True, slots=True)
class Depthwise:
    """out[x, c] = sum over k of image[x, k, c] * kernel[k, c]. The channel c is the views' "g",
    of stride 1 in all three; in out "x" is the position. The epilogue sees (0, x, c)."""

    image: View
    kernel: View
    out: View
    type: str
    epilogue: Epilogue = IDENTITY

    @property
    def is_supported(self) -> bool:
        """Whether channels are contiguous, and more than one."""
        views = (self.image, self.kernel, self.out)
        steps = [_group_step(v) for v in views]
        return steps == [1, 1, 1] and not self.out.dtype.is_complex


def _group_step(view: View) -> int | None:
    axes = view.groups["g"]
    if len(axes) != 1:
        return None
    if any(view.coordinates[c].size is not None for c in axes[0].steps):
        return None
    return sum(view.coordinates[c].stride * s for c, s in axes[0].steps.items())


def depthwise_kernel(problem: Depthwise, target: Target) -> Kernel:
    """Units are runs of output positions."""
    channels, positions = problem.out.extent("g"), problem.out.extent("x")
    dtypes = (problem.image.dtype, problem.kernel.dtype, problem.out.dtype)
    lanes = target.lanes(elements.type_bytes(problem.type))
    if any(elements.is_tabled(d) for d in dtypes):
        lanes = 1
    width = min(lanes, 1 << (channels.bit_length() - 1))
    vectors = min(BLOCK_VECTORS, ceil(channels / width))
    position_ns = ceil(channels / width) * problem.image.extent("k") * NS_PER_VECTOR
    unit = max(1, min(positions, int(20_000 / position_ns)))
    extent = ceil(positions / unit)
    declares: dict[str, None] = {}
    code = Code(declares)
    with code.loop("%begin", "%end") as (u, _):
        first = code.mul(u, unit)
        last = code.min(code.add(first, unit), positions)
        with code.loop(first, last) as (x, _):
            row = _Position(code, problem, target, x)
            done = channels // (width * vectors) * width * vectors
            with code.loop(0, done, width * vectors) as (c, _):
                row.channels(c, width, vectors)
            if done < channels:
                # The last block begins earlier, and does some channels twice.
                with code.loop(done, channels, width) as (c, _):
                    row.channels(code.min(c, channels - width), width, 1)
    text = elements.tables({dtypes[0], dtypes[1]}, dtypes[2]) + code.function(
        f"{PREFIX}_depthwise",
        [*(f"ptr %b{i}" for i in range(3)), "ptr %scratch", "i64 %begin", "i64 %end"],
        f"|{attributes(target)}",
    )
    phase = Phase(f"{PREFIX}_depthwise", extent, position_ns * unit)
    return Kernel(text, (phase,), tuple(declares))


class _Position:
    """Emits the sums of one output position."""

    def __init__(self, code: Code, problem: Depthwise, target: Target, x: str):
        self.code = code
        self.problem = problem
        self.target = target
        self.x = x
        self.image_sums = problem.image.flat_sums(code, "x", x)
        self.out_sums = problem.out.flat_sums(code, "x", x)

    def channels(self, channel: I64, width: int, vectors: int) -> None:
        """`vectors` * `width` channels from `channel` on: sum over the window, then store."""
        code, problem = self.code, self.problem
        zero = zero_of(problem.type, width)
        totals = self._window([], channel, width, [zero] * vectors)
        sums = added(code, self.out_sums, problem.out.flat_sums(code, "g", channel))
        offset = problem.out.plain_offset(code, sums)
        storage, size = elements.storage_type(problem.out.dtype), problem.out.dtype.byte_size
        for v, total in enumerate(totals):
            place = (0, self.x, code.add(channel, v * width))
            value = problem.epilogue.apply(code, total, problem.type, width, place)
            value = elements.rounded(code, problem.out.dtype, value, width, problem.type)
            slot = code.offset(storage, "%b2", code.add(offset, v * width))
            code.store(storage, value, slot, size, width)

    def _window(self, taps: list[I64], channel: I64, width: int, totals: list[str]) -> list[str]:
        """One loop per window axis; returns the totals after it."""
        code, axes = self.code, self.problem.image.groups["k"]
        if len(taps) == len(axes):
            return self._tap(taps, channel, width, totals)
        t = vector(self.problem.type, width)
        with code.loop(0, axes[len(taps)].size, 1, [(t, v) for v in totals]) as (tap, carried):
            after = self._window([*taps, tap], channel, width, [c.ref for c in carried])
            for c, value in zip(carried, after, strict=True):
                c.after = value
        return [c.ref for c in carried]

    def _tap(self, taps: list[I64], channel: I64, width: int, totals: list[str]) -> list[str]:
        code, problem = self.code, self.problem
        image, kernel, type = problem.image, problem.kernel, problem.type
        moved = (image.sums(code, "k", taps), image.flat_sums(code, "g", channel))
        sums = added(code, self.image_sums, *moved)
        inside, offset = inside_bounds(code, image, sums)
        tap: I64 = 0
        for index, axis in zip(taps, image.groups["k"], strict=True):
            tap = code.add(code.mul(tap, axis.size), index)
        moved = (kernel.flat_sums(code, "k", tap), kernel.flat_sums(code, "g", channel))
        kernel_offset = kernel.plain_offset(code, added(code, *moved))
        kernel_offset = code.add(kernel_offset, *(c.start * c.stride for c in kernel.coordinates))
        once = code.ins(f"zext i1 {inside} to i64")
        t = vector(type, width)
        # A loop of no or one turn: the totals stay in registers.
        with code.loop(0, once, 1, [(t, v) for v in totals]) as (_, carried):
            for v, c in enumerate(carried):
                x, w = (
                    elements.read(
                        code,
                        view.dtype,
                        code.offset(
                            elements.storage_type(view.dtype), name, code.add(at, v * width)
                        ),
                        width,
                        type,
                    )
                    for view, name, at in (
                        (image, "%b0", offset),
                        (kernel, "%b1", kernel_offset),
                    )
                )
                c.after = multiply_add(code, self.target, type, width, x, w, c.ref)
        return [c.ref for c in carried]
