"""Convolution in many narrow groups (depthwise: one channel each); vectors run along channels.

As products of matrices they would have few columns; here it is a sum over window positions of
elementwise products, with nothing packed. A vector of output channels covers whole groups: of its
groups' input channels, one vector too, each group's first is spread over the group's lanes and
multiplied, then each one's second, and so on.
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
    """out[x, c] = sum over k, i of image[x, k, c // out * in + i] * kernel[(k, i), c].

    Channels are contiguous in all three arrays; the views describe the rest: image "x" and "k",
    kernel "k" (window position, then i), out "x". in_features, out_features: channels of a group,
    the latter a power of two. The epilogue sees (0, x, c).
    """

    image: View
    kernel: View
    out: View
    type: str
    channels: int
    in_features: int
    out_features: int
    epilogue: Epilogue = IDENTITY


def depthwise_kernel(problem: Depthwise, target: Target) -> Kernel:
    """Units are runs of output positions."""
    channels, positions = problem.channels, problem.out.extent("x")
    dtypes = (problem.image.dtype, problem.kernel.dtype, problem.out.dtype)
    lanes = target.lanes(elements.type_bytes(problem.type))
    if any(elements.is_tabled(d) for d in dtypes):
        lanes = 1
    width = max(min(lanes, 1 << (channels.bit_length() - 1)), problem.out_features)
    while channels < width:
        width //= 2
    vectors = min(max(1, BLOCK_VECTORS // problem.in_features), ceil(channels / width))
    position_ns = ceil(channels / width) * problem.kernel.extent("k") * NS_PER_VECTOR
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
        offset = code.add(problem.out.plain_offset(code, self.out_sums), channel)
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
        ins, outs = problem.in_features, problem.out_features
        sums = added(code, self.image_sums, image.sums(code, "k", taps))
        inside, offset = inside_bounds(code, image, sums)
        offset = code.add(offset, code.mul(code.div(channel, outs), ins))
        tap: I64 = 0
        for index, axis in zip(taps, image.groups["k"], strict=True):
            tap = code.add(code.mul(tap, axis.size), index)
        tap = code.mul(tap, ins)
        once = code.ins(f"zext i1 {inside} to i64")
        t = vector(type, width)
        # A loop of no or one turn: the totals stay in registers.
        with code.loop(0, once, 1, [(t, v) for v in totals]) as (_, carried):
            for c in carried:
                c.after = c.ref
            for i in range(ins):
                weights = self._weights(code.add(tap, i), channel)
                for v, c in enumerate(carried):
                    x = self._spread(code.add(offset, v * (width // outs * ins)), i, width)
                    at = code.offset(elements.storage_type(kernel.dtype), weights, v * width)
                    w = elements.read(code, kernel.dtype, at, width, type)
                    c.after = multiply_add(code, self.target, type, width, x, w, c.after)
        return [c.ref for c in carried]

    def _weights(self, k: I64, channel: I64) -> str:
        """Where the weights of (window position, in feature) k begin."""
        code, kernel = self.code, self.problem.kernel
        offset = kernel.plain_offset(code, kernel.flat_sums(code, "k", k))
        offset = code.add(offset, *(c.start * c.stride for c in kernel.coordinates), channel)
        return code.offset(elements.storage_type(kernel.dtype), "%b1", offset)

    def _spread(self, offset: I64, i: int, width: int) -> str:
        """In feature i of each of a vector's groups, on the lanes of the group's out features."""
        code, image, type = self.code, self.problem.image, self.problem.type
        ins, outs = self.problem.in_features, self.problem.out_features
        src = code.offset(elements.storage_type(image.dtype), "%b0", offset)
        count = width // outs * ins
        if width == 1:
            at = code.offset(elements.storage_type(image.dtype), src, i)
            return elements.read(code, image.dtype, at, 1, type)
        lanes = [lane // outs * ins + i for lane in range(width)]
        value = elements.read(code, image.dtype, src, count, type)
        if lanes == list(range(count)):
            return value
        t = vector(type, count)
        if count == 1:
            return code.splat(type, value, width)
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return code.ins(f"shufflevector {t} {value}, {t} poison, <{width} x i32> <{mask}>")
