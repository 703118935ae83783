"""`HloModule` and `HloComputation` as `xla_client` shows them: read-only views of `ir`'s."""

from __future__ import annotations

from haloc.analysis.cost import cost_analysis
from haloc.formats.hlo_proto import parse_hlo_module_proto, serialize_hlo_module
from haloc.formats.hlo_text import PrintOptions, parse_module, to_text
from haloc.ir.module import HloComputation, HloModule


class XlaHloComputation:
    def __init__(self, computation: HloComputation):
        self.ir = computation

    @property
    def name(self) -> str:
        return self.ir.name

    def __repr__(self) -> str:
        return repr(self.ir)


class XlaHloModule:
    """A module of an executable. `ir` is the module itself, not to be changed."""

    def __init__(self, module: HloModule):
        self.ir = module

    @property
    def name(self) -> str:
        return self.ir.name

    def to_string(self, options: PrintOptions | None = None) -> str:
        return to_text(self.ir, options or PrintOptions())

    __str__ = to_string

    def as_serialized_hlo_module_proto(self) -> bytes:
        """An HloModuleProto that XLA reads."""
        return serialize_hlo_module(self.ir)

    @staticmethod
    def from_serialized_hlo_module_proto(data: bytes) -> XlaHloModule:
        """HloParseError for data that is no HloModuleProto."""
        return XlaHloModule(parse_hlo_module_proto(data))

    def computations(self) -> list[XlaHloComputation]:
        """Callees first, the entry last."""
        return [XlaHloComputation(c) for c in self.ir.post_order()]

    def cost_analysis(self) -> dict[str, float]:
        return cost_analysis(self.ir)

    def __repr__(self) -> str:
        return f"<HloModule {self.name}>"


def hlo_module_from_text(text: str) -> XlaHloModule:
    """HloParseError for text that is not HLO."""
    return XlaHloModule(parse_module(text))
