"""HLO text: reading and printing.

parse_module(text, filename="<string>") -> HloModule
parse_shape(text) -> Shape
to_text(module, options=PrintOptions()) -> str
computation_to_text(computation, options), instruction_to_text(instruction, options) -> str
"""

from haloc.formats.hlo_text.parser import parse_module
from haloc.formats.hlo_text.printer import (
    PrintOptions,
    computation_to_text,
    instruction_to_text,
    to_text,
)
from haloc.formats.hlo_text.shapes import parse_shape

__all__ = [
    "PrintOptions",
    "computation_to_text",
    "instruction_to_text",
    "parse_module",
    "parse_shape",
    "to_text",
]
