"""The share of ragged-all-to-all: slices of rows whose places and sizes are data."""

from __future__ import annotations

from haloc.codegen.target import Target
from haloc.cpu.collective.share import Share, ShareText, around
from haloc.errors import STATUS_CODES
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape

_FAULT = "send_sizes, offsets and recv_sizes name rows that are not there, or do not agree"

_INPUT_OFFSETS, _SEND_SIZES, _OUTPUT_OFFSETS, _RECV_SIZES = range(2, 6)


def ragged_all_to_all(instruction: HloInstruction, members: int, target: Target) -> ShareText:
    """This member's output with what everybody sends to it written over it; INVALID_ARGUMENT for
    slices that do not fit."""
    operand, output, *tables = (o.shape for o in instruction.operands)
    f = Share(instruction, members)
    _, row_bytes = around(operand, 1)
    each = tables[0].dims[0] // members
    wrong = f.variable("i32", 0)
    result = f.result(f.part, 0)
    f.copy(result, f.buffer(f.part, 1), output.byte_size)
    with f.loop(0, members) as sender, f.loop(0, each) as piece:

        def entry(number: int, member: str, at: str) -> str:
            return _integer(f, f.buffer(member, number), tables[number - 2], at)

        to_me = f.add(f.mul(f.part, each), piece)
        start = entry(_INPUT_OFFSETS, sender, to_me)
        size = entry(_SEND_SIZES, sender, to_me)
        place = entry(_OUTPUT_OFFSETS, sender, to_me)
        wanted = entry(_RECV_SIZES, f.part, f.add(f.mul(sender, each), piece))
        fits = f.op(f"icmp eq i64 {size}, {wanted}")
        fits = _and(f, fits, f"icmp sge i64 {size}, 0")
        for at, rows in ((start, operand.dims[0]), (place, output.dims[0])):
            fits = _and(f, fits, f"icmp sge i64 {at}, 0")
            fits = _and(f, fits, f"icmp sle i64 {at}, {f.sub(rows, size)}")
        with f.when(fits):
            source = f.bytes_at(f.buffer(sender, 0), f.mul(start, row_bytes))
            there = f.bytes_at(result, f.mul(place, row_bytes))
            f.copy(there, source, f.mul(size, row_bytes))
        with f.when(f.op(f"xor i1 {fits}, true")):
            f.set(wrong, STATUS_CODES.index("INVALID_ARGUMENT"))
    status = f.get(wrong)
    return ShareText(f.symbol, f.text(f"i32 {status}"), fault=_FAULT)


def _and(f: Share, flag: str, comparison: str) -> str:
    return f.op(f"and i1 {flag}, {f.op(comparison)}")


def _integer(f: Share, table: str, shape: Shape, at: str) -> str:
    """An element of a table of integers as i64."""
    type = f"i{8 * shape.dtype.byte_size}"
    value = f.load(type, f.element(table, type, at), align=shape.dtype.byte_size)
    if type == "i64":
        return value
    return f.op(f"{'sext' if shape.dtype.is_signed else 'zext'} {type} {value} to i64")
