"""A comparator region as native code, for sorts whose order is not by recognised keys."""

from __future__ import annotations

from haloc.codegen.builder import Builder, Reg
from haloc.codegen.elemental import ElementScalar, emit_region
from haloc.codegen.kernel import PREFIX
from haloc.codegen.memory import memory_element
from haloc.codegen.scalar import LlvmValue
from haloc.codegen.target import Target
from haloc.cpu.sort.merge import LESS_PARAMETERS, LessBody
from haloc.cpu.sort.radix import Lines
from haloc.ir.module import HloInstruction


def region_less(sort: HloInstruction, target: Target, lines: Lines) -> LessBody:
    """The comparator on the elements at offsets %a and %b of every operand."""
    builder = Builder()
    scalar = ElementScalar(builder, target)
    bases = [Reg(f"%b{i}", "ptr", builder.root) for i in range(len(lines.dtypes))]
    offsets = [Reg(name, "i64", builder.root) for name in ("%a", "%b")]
    arguments: list[LlvmValue] = []
    for base, dtype in zip(bases, lines.dtypes, strict=True):
        part = memory_element(dtype)
        element = f"[2 x {part}]" if dtype.is_complex else part
        for offset in offsets:
            place = builder.op(
                "ptr", f"getelementptr inbounds {element}, ptr {{0}}, i64 {{1}}", base, offset
            )
            arguments.append(scalar.load(place, dtype))
    (less,) = emit_region(scalar, sort.attrs["to_apply"], arguments)
    out = Reg("%out", "ptr", builder.root)
    byte = builder.op("i8", "zext i1 {0} to i8", less.reg)
    builder.effect("store i8 {0}, ptr {1}", byte, out)
    parameters = [*bases, *offsets, out]
    assert len(parameters) == len(bases) + LESS_PARAMETERS
    text = builder.function(f"{PREFIX}.less", parameters, linkage="internal ")
    return LessBody(text, tuple(builder.declares), library=builder.library)
