"""Shares of the collectives that only move data."""

from __future__ import annotations

from haloc.codegen.kernel import PREFIX
from haloc.codegen.target import Target
from haloc.cpu.collective.share import Share, ShareText, around
from haloc.ir.module import HloInstruction
from haloc.ops.collective import check_no_slices
from haloc.ops.table import attr


def all_gather(instruction: HloInstruction, members: int, target: Target) -> ShareText:
    """Fills this member's results from everyone's operands."""
    f = Share(instruction, members)
    (dim,) = attr(instruction, "dimensions")
    for number, operand in enumerate(instruction.operands):
        runs, run_bytes = around(operand.shape, dim)
        result = f.result(f.part, number)
        with f.loop(0, members) as j:
            source = f.buffer(j, number)
            with f.loop(0, runs) as o:
                at = f.mul(f.add(f.mul(o, members), j), run_bytes)
                f.copy(f.bytes_at(result, at), f.bytes_at(source, f.mul(o, run_bytes)), run_bytes)
    return ShareText(f.symbol, f.finished())


def all_to_all(instruction: HloInstruction, members: int, target: Target) -> ShareText:
    """Fills this member's results with its piece of everyone's operands."""
    f = Share(instruction, members)
    dims = attr(instruction, "dimensions")
    if dims is None:
        size = instruction.operands[0].shape.byte_size
        for number in range(members):
            f.copy(f.result(f.part, number), f.buffer(number, f.part), size)
        return ShareText(f.symbol, f.finished())
    runs, run_bytes = around(instruction.operands[0].shape, dims[0])
    piece = run_bytes // members
    result = f.result(f.part, 0)
    with f.loop(0, members) as j:
        source = f.buffer(j, 0)
        with f.loop(0, runs) as o:
            first = f.mul(o, members)
            there = f.bytes_at(source, f.mul(f.add(first, f.part), piece))
            f.copy(f.bytes_at(result, f.mul(f.add(first, j), piece)), there, piece)
    return ShareText(f.symbol, f.finished())


def collective_broadcast(instruction: HloInstruction, members: int, target: Target) -> ShareText:
    f = Share(instruction, members)
    for number, operand in enumerate(instruction.operands):
        f.copy(f.result(f.part, number), f.buffer(0, number), operand.shape.byte_size)
    return ShareText(f.symbol, f.finished())


def collective_permute(instruction: HloInstruction, members: int, target: Target) -> ShareText:
    """Fills this member's results from its source, with zeros if it has none. The pairs are
    numbered as the members of every group are."""
    check_no_slices(instruction)
    sources = {target: source for source, target in attr(instruction, "source_target_pairs")}
    listed = ", ".join(f"i64 {sources.get(k, -1)}" for k in range(members))
    table = f"@{PREFIX}.sources{members} = internal constant [{members} x i64] [{listed}]\n"
    f = Share(instruction, members)
    source = f.load("i64", f.element(f"@{PREFIX}.sources{members}", "i64", f.part))
    for number, operand in enumerate(instruction.operands):
        size, result = operand.shape.byte_size, f.result(f.part, number)
        with f.when(f.op(f"icmp slt i64 {source}, 0")):
            f.clear(result, size)
        with f.when(f.op(f"icmp sge i64 {source}, 0")):
            f.copy(result, f.buffer(source, number), size)
    return ShareText(f.symbol, table + f.finished())
