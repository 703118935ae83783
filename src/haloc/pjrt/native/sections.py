"""LLVM text made ready for haloc's linker."""

from __future__ import annotations


def in_sections(text: str) -> str:
    """Each function and global in a section of its own: the linker takes object files apart by
    their sections."""
    return "\n".join(map(_in_section_of_its_own, text.splitlines()))


def _in_section_of_its_own(line: str) -> str:
    name = line.partition("@")[2].partition("(")[0].partition(" ")[0]
    if line.startswith("define ") and " alwaysinline" not in line:
        return line.replace(" {", f' section ".text.{name}" {{')
    if line.startswith("@"):
        kind = "rodata" if " constant " in line else "data"
        head, comma, align = line.rpartition(", align ")
        return f'{head or line}, section ".{kind}.{name}"' + (comma + align if comma else "")
    return line
