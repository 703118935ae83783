"""`XlaComputation`: a program as a proto, not optimised."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

from haloc.formats.dot import to_dot
from haloc.formats.hlo_proto import parse_hlo_module_proto, serialize_hlo_module
from haloc.ir.module import HloModule
from haloc.runtime.hlo_module import XlaHloModule
from haloc.runtime.hlo_print_options import HloPrintOptions
from haloc.runtime.xla_shape import XlaProgramShape, XlaShape


class XlaComputation:
    """Made from the bytes of an HloModuleProto, which are read when something asks for them.

    All methods but `as_serialized_hlo_module_proto` raise HloParseError for other bytes.
    """

    def __init__(self, serialized_hlo_module_proto: bytes):
        if not isinstance(serialized_hlo_module_proto, bytes):
            given = type(serialized_hlo_module_proto).__name__
            raise TypeError(f"XlaComputation takes the bytes of an HloModuleProto, not {given}")
        self._bytes = serialized_hlo_module_proto

    @classmethod
    def of_module(cls, module: HloModule) -> XlaComputation:
        """The computation of a module, which is not changed from now on."""
        computation = cls.__new__(cls)
        computation._module = module
        return computation

    @cached_property
    def _bytes(self) -> bytes:
        return serialize_hlo_module(self._module)

    @cached_property
    def _module(self) -> HloModule:
        return parse_hlo_module_proto(self._bytes)

    def name(self) -> str:
        return self._module.name

    def hash(self) -> int:
        """Equal for computations of equal bytes, in any process."""
        return int.from_bytes(hashlib.sha256(self._bytes).digest()[:8], "little", signed=True)

    def program_shape(self) -> XlaProgramShape:
        """Shapes of the parameters, with their names, and of the result."""
        parameters = self._module.entry.parameters
        return XlaProgramShape(
            [XlaShape(p.shape) for p in parameters],
            XlaShape(self._module.entry.root.shape),
            [p.name for p in parameters],
        )

    def as_hlo_text(self, print_large_constants: bool = False) -> str:
        """HLO text without metadata; constants of more than 10 elements as `{...}` unless asked
        for."""
        options = HloPrintOptions.short_parsable()
        options.print_large_constants = print_large_constants
        return options.text_of(self._module)

    def as_hlo_dot_graph(self) -> str:
        """The graph in Graphviz's language."""
        return to_dot(self._module)

    def as_serialized_hlo_module_proto(self) -> bytes:
        return self._bytes

    def as_hlo_module(self) -> XlaHloModule:
        """A copy to look at."""
        return XlaHloModule(self._module.clone())

    get_hlo_module = as_hlo_module

    def __reduce__(self) -> tuple[Any, ...]:
        return (XlaComputation, (self._bytes,))

    def __repr__(self) -> str:
        return f"<XlaComputation of {len(self._bytes)} bytes>"
