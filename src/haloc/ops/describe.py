"""One line of text for an instruction, as errors quote it."""

from __future__ import annotations

from haloc.ir.literal import Literal
from haloc.ir.module import HloInstruction
from haloc.ops.table import OPS

MAX_LITERAL_ELEMENTS = 8


def describe(instruction: HloInstruction) -> str:
    """`%t.4 = f32[8,4]{1,0} transpose(%x.1), dimensions={0,0}`: HLO text without annotations."""
    operands = ", ".join(f"%{o.name}" for o in instruction.operands)
    if instruction.opcode == "parameter":
        operands = str(instruction.attrs.get("parameter_number"))
    elif instruction.opcode == "constant":
        operands = _literal(instruction.attrs.get("literal"))
    parts = [f"%{instruction.name} = {instruction.shape} {instruction.opcode}({operands})"]
    row = OPS.get(instruction.opcode)
    for attribute in row.attrs if row else ():
        value = instruction.attrs.get(attribute.name)
        if value is None or attribute.name in ("literal", "parameter_number"):
            continue
        parts.append(f"{attribute.name}={attribute.codec.format(value)}")
    return ", ".join(parts)


def source_of(instruction: HloInstruction) -> str:
    """ "file.py:12" from the metadata; "" when there is none."""
    file, line = (instruction.metadata.get(k) for k in ("source_file", "source_line"))
    return f"{file}:{line}" if file else ""


def _literal(literal: object) -> str:
    if not isinstance(literal, Literal) or isinstance(literal.value, tuple):
        return "..."
    if literal.array.size > MAX_LITERAL_ELEMENTS:
        return "{...}"
    return str(literal.array.tolist()).replace("[", "{").replace("]", "}")
