"""`Share`: the function that does one member's part of a collective's work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod

from haloc.codegen.kernel import PREFIX
from haloc.codegen.target import Target
from haloc.cpu.writer import Function
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape

MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
MEMSET = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


@dataclass(frozen=True, slots=True)
class ShareText:
    """Definitions, of which `symbol` is the share: i32 (ptr posts, i64 part). fault: what it means
    when that is INVALID_ARGUMENT. The others as in `Kernel`."""

    symbol: str
    text: str
    declares: tuple[str, ...] = (MEMCPY, MEMSET)
    library: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""


ShareEmitter = Callable[[HloInstruction, int, Target], ShareText]
"""(instruction, members of a group, target) -> the share."""


class Share(Function):
    """`part` is the number of the member whose part is done; `buffer` finds anybody's buffers:
    operands first, then results."""

    part = "%part"

    def __init__(self, instruction: HloInstruction, members: int):
        self.symbol = f"{PREFIX}.share{members}"
        super().__init__(self.symbol, "ptr %posts, i64 %part", "i32")
        self.members = members
        self.operands = len(instruction.operands)
        self.buffer_count = self.operands + len(instruction.shape.leaves())

    def buffer(self, member: str | int, number: str | int) -> str:
        at = self.add(self.mul(member, self.buffer_count), number)
        return self.load("ptr", self.element("%posts", "ptr", at))

    def result(self, member: str | int, number: int) -> str:
        return self.buffer(member, self.operands + number)

    def copy(self, target: str, source: str, size_bytes: str | int) -> None:
        self.do(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, "
            f"i64 {size_bytes}, i1 false)"
        )

    def clear(self, target: str, size_bytes: str | int) -> None:
        self.do(f"call void @llvm.memset.p0.i64(ptr {target}, i8 0, i64 {size_bytes}, i1 false)")

    def bytes_at(self, pointer: str, offset: str | int) -> str:
        return self.element(pointer, "i8", offset)

    def finished(self) -> str:
        return self.text("i32 0")


def around(shape: Shape, dim: int) -> tuple[int, int]:
    """How an array lies along a dimension: (number of runs, bytes of a run)."""
    return prod(shape.dims[:dim]), prod(shape.dims[dim:]) * shape.dtype.byte_size
