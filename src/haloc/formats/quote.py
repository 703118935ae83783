"""One line of HLO text for an instruction, however broken, as errors quote it."""

from __future__ import annotations

from haloc.formats.hlo_text.printer import PrintOptions, instruction_to_text
from haloc.ir.module import HloInstruction

_OPTIONS = PrintOptions(print_large_constants=False, print_metadata=False, print_percent=True)


def quoted(instruction: HloInstruction) -> str:
    """`%t.4 = f32[8,4]{1,0} transpose(%x.1), dimensions={1,0}`, without metadata.

    An instruction with attributes that cannot be written is quoted without attributes.
    """
    try:
        return instruction_to_text(instruction, _OPTIONS)
    except (AttributeError, KeyError, TypeError, ValueError):
        operands = ", ".join(f"%{o.name}" for o in instruction.operands)
        return f"%{instruction.name} = {instruction.shape} {instruction.opcode}({operands})"


def source_of(instruction: HloInstruction) -> str:
    """ "file.py:12" from the metadata; "" when there is none."""
    file, line = (instruction.metadata.get(k) for k in ("source_file", "source_line"))
    return f"{file}:{line}" if file else ""
