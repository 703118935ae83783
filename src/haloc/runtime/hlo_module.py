"""`HloModule` and `HloComputation` as `xla_client` shows them: read-only views of `ir`'s."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from haloc.analysis.cost import cost_analysis
from haloc.formats.dot import to_dot
from haloc.formats.hlo_proto import parse_hlo_module_proto, serialize_hlo_module
from haloc.formats.hlo_text import parse_module, to_text
from haloc.formats.html import computation_page
from haloc.formats.proto import Message, decode
from haloc.ir.module import HloComputation, HloModule
from haloc.runtime.hlo_print_options import HloPrintOptions
from haloc.runtime.op_sharding import OpSharding, op_sharding_from_message


class XlaHloComputation:
    def __init__(self, computation: HloComputation):
        self.ir = computation

    @property
    def name(self) -> str:
        return self.ir.name

    def render_html(self, filename: str | os.PathLike[str]) -> None:
        """Write a page of the computation's instructions to a file."""
        Path(filename).write_text(computation_page(self.ir), encoding="utf-8")

    def __repr__(self) -> str:
        return repr(self.ir)


class XlaHloModule:
    """A module of an executable. `ir` is the module itself, not to be changed."""

    def __init__(self, module: HloModule):
        self.ir = module

    @property
    def name(self) -> str:
        return self.ir.name

    def to_string(self, options: HloPrintOptions | None = None) -> str:
        """HLO text as XLA prints it, large constants elided unless asked for; `str(module)` is the
        text that reads back."""
        return (options or HloPrintOptions()).text_of(self.ir)

    def __str__(self) -> str:
        return to_text(self.ir)

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

    @property
    def spmd_output_sharding(self) -> OpSharding | None:
        """How a partitioned module's result lies on devices; None if it does not say."""
        message = self._message().get("spmd_output_sharding")
        return None if message is None else op_sharding_from_message(message)

    @property
    def spmd_parameters_shardings(self) -> list[OpSharding] | None:
        """How a partitioned module's parameters lie on devices; None if it does not say."""
        messages = self._message().get("spmd_parameters_shardings")
        return [op_sharding_from_message(m) for m in messages] if messages else None

    def _message(self) -> Message:
        return decode("HloModuleProto", self.as_serialized_hlo_module_proto())

    def __reduce__(self) -> tuple[Any, ...]:
        data = self.as_serialized_hlo_module_proto()
        return (XlaHloModule.from_serialized_hlo_module_proto, (data,))

    def __repr__(self) -> str:
        return f"<HloModule {self.name}>"


def hlo_module_from_text(text: str) -> XlaHloModule:
    """HloParseError for text that is not HLO."""
    return XlaHloModule(parse_module(text))


def hlo_module_cost_analysis(client: object, module: XlaHloModule) -> dict[str, float]:
    """XLA's cost properties of a module, by name. The client makes no difference: the numbers are
    the module's."""
    return module.cost_analysis()


def hlo_module_to_dot_graph(module: XlaHloModule) -> str:
    """The module's graph in Graphviz's language."""
    return to_dot(module.ir)
