"""`HloPrintOptions`: how `HloModule.to_string` prints, by XLA's names."""

from __future__ import annotations

from dataclasses import dataclass, fields

from haloc.errors import UnimplementedError
from haloc.formats.hlo_text import PrintOptions, to_text
from haloc.ir.module import HloModule


@dataclass(slots=True, repr=False)
class HloPrintOptions:
    """The defaults are XLA's: large constants are elided, so the text may not be readable again.

    haloc always prints result shapes, attributes, and operands in full: options that ask for
    something else raise UnimplementedError when they are used.
    """

    canonicalize_computations: bool = False
    canonicalize_instruction_names: bool = False
    compact_operands: bool = False
    include_layout_in_shapes: bool = True
    indent_amount: int = 0
    is_in_nested_computation: int = 0
    print_backend_config: bool = True
    print_control_dependencies: bool = True
    print_extra_attributes: bool = True
    print_ids: bool = True
    print_large_constants: bool = False
    print_metadata: bool = True
    print_operand_names: bool = True
    print_operand_shape: bool = False
    print_percent: bool = True
    print_program_shape: bool = True
    print_result_shape: bool = True
    _full_bodies: bool = False
    """Called computations where they are called: only the presets say so, as in jaxlib."""

    @staticmethod
    def short_parsable() -> HloPrintOptions:
        """What another parser needs, and no more."""
        return HloPrintOptions(
            print_large_constants=True,
            print_metadata=False,
            print_backend_config=False,
            print_control_dependencies=False,
            print_percent=False,
            print_program_shape=False,
        )

    @staticmethod
    def canonical() -> HloPrintOptions:
        """Independent of the names of instructions."""
        return HloPrintOptions(
            canonicalize_instruction_names=True,
            print_metadata=False,
            print_backend_config=False,
            print_control_dependencies=False,
            print_operand_names=False,
            print_operand_shape=True,
            print_percent=False,
            print_program_shape=False,
            _full_bodies=True,
        )

    @staticmethod
    def fingerprint() -> HloPrintOptions:
        """Independent of all names."""
        options = HloPrintOptions.canonical()
        options.canonicalize_computations = True
        options.print_ids = False
        return options

    def text_of(self, module: HloModule) -> str:
        """The module as text, with the two line breaks that XLA ends it with.

        UnimplementedError for options that haloc's printer does not have.
        """
        for field in fields(self):
            if field.name not in _PRINTED and getattr(self, field.name) != field.default:
                if field.name == "print_operand_names" and self.canonicalize_instruction_names:
                    continue  # then XLA prints the canonical ones
                raise UnimplementedError(
                    f"HloPrintOptions.{field.name}={getattr(self, field.name)}: haloc prints with "
                    f"{field.default} only"
                )
        chosen = {ours: getattr(self, theirs) for theirs, ours in _PRINTED.items() if ours}
        if self.canonicalize_instruction_names:
            module = _with_canonical_names(module)
        return to_text(module, PrintOptions(**chosen)) + "\n"


def _with_canonical_names(module: HloModule) -> HloModule:
    """A copy, for printing only, whose instructions are tmp_0, tmp_1, ... in each computation."""
    copy = module.clone()
    for computation in copy.computations.values():
        for number, instruction in enumerate(computation.instructions):
            instruction.name = f"tmp_{number}"
    return copy


_PRINTED = {
    "_full_bodies": "full_bodies",
    "canonicalize_computations": "sort_computations",
    "canonicalize_instruction_names": "",
    "include_layout_in_shapes": "include_layout",
    "print_backend_config": "print_backend_config",
    "print_control_dependencies": "print_control_dependencies",
    "print_ids": "print_ids",
    "print_large_constants": "print_large_constants",
    "print_metadata": "print_metadata",
    "print_operand_shape": "print_operand_shapes",
    "print_percent": "print_percent",
    "print_program_shape": "print_program_shape",
}
"""The option of haloc's printer for each that is not fixed; "" where the module is changed."""
