"""`HloPrintOptions`: how `HloModule.to_string` prints, by XLA's names."""

from __future__ import annotations

from dataclasses import dataclass, fields

from haloc.errors import UnimplementedError
from haloc.formats.hlo_text import PrintOptions


@dataclass(slots=True, repr=False)
class HloPrintOptions:
    """The defaults are XLA's: large constants are elided, so the text may not be readable again.

    haloc prints names, result shapes and attributes always, and does not rename: options that ask
    for something else raise UnimplementedError when they are used.
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
        )

    @staticmethod
    def fingerprint() -> HloPrintOptions:
        """Independent of all names."""
        options = HloPrintOptions.canonical()
        options.canonicalize_computations = True
        options.print_ids = False
        return options

    def formats_options(self) -> PrintOptions:
        """The same as haloc's printer has them; UnimplementedError for what it does not have."""
        for field in fields(self):
            if field.name not in _PRINTED and getattr(self, field.name) != field.default:
                raise UnimplementedError(
                    f"HloPrintOptions.{field.name}={getattr(self, field.name)}: haloc prints with "
                    f"{field.default} only"
                )
        return PrintOptions(**{ours: getattr(self, theirs) for theirs, ours in _PRINTED.items()})


_PRINTED = {
    "include_layout_in_shapes": "include_layout",
    "print_backend_config": "print_backend_config",
    "print_control_dependencies": "print_control_dependencies",
    "print_large_constants": "print_large_constants",
    "print_metadata": "print_metadata",
    "print_operand_shape": "print_operand_shapes",
    "print_percent": "print_percent",
    "print_program_shape": "print_program_shape",
}
"""The option of haloc's printer for each that is not fixed."""
