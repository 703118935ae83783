"""Modules as Graphviz graphs, in the look that XLA's dumps have.

    to_dot(module) -> str
    to_dot(computation) -> str

Nodes are numbered in program order, so the same module always gives the same text. A fusion is a
cluster in its own place; the bodies of loops, branches and calls are clusters with a dashed edge
to who runs them; regions of reductions and the like are named in the node. Constants stand as
operands in the nodes that use them. The colour is that of the way an op runs, from its row.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import count

from haloc.formats.hlo_text.literals import literal_text
from haloc.formats.hlo_text.printer import attribute_texts
from haloc.formats.quote import source_of
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape
from haloc.ops.attrs import Computation, Computations
from haloc.ops.table import OPS, Elementwise, Expand, Indexed, OpDef, Structure

_BLACK, _LIGHT = "black", "white"
_ORANGE = ("#ffe0b2", "#cbae82", _BLACK)
_YELLOW = ("#fff9c4", "#cbc693", _BLACK)
_GREEN = ("#c8e6c9", "#97b498", _BLACK)
_PURPLE = ("#e1bee7", "#af8eb5", _BLACK)
_DARK_BLUE = ("#1565c0", "#003c8f", _LIGHT)
_DARK_GREEN = ("#2e7d32", "#005005", _LIGHT)
_DARK_ORANGE = ("#ffb74d", "#c88719", _BLACK)
_BROWN = ("#bcaaa4", "#8c7b75", _BLACK)
_GRAY = ("#cfd8dc", "#9ea7aa", _BLACK)
_WHITE = ("#ffffff", "#9e9e9e", _BLACK)
"""(fill, border, text)"""

_STRUCTURE_COLOURS = {
    Structure.REDUCTION: _PURPLE,
    Structure.UPDATE: _PURPLE,
    Structure.SORT: _PURPLE,
    Structure.CONTRACTION: _DARK_BLUE,
    Structure.LIBRARY: _DARK_BLUE,
    Structure.CONTROL: _DARK_GREEN,
    Structure.COLLECTIVE: _BROWN,
    Structure.POINT_TO_POINT: _BROWN,
    Structure.HOST: _DARK_ORANGE,
    Structure.NO_CODE: _WHITE,
}

LARGE_ELEMENTS = 4096
"""Edges that carry as many elements or more have a filled arrow head."""
LONG_ATTRIBUTE = 80
"""Longer attributes are cut in labels."""

_CONTROL_CHARACTER = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML, and so an HTML-like label, cannot hold."""


def to_dot(source: HloModule | HloComputation) -> str:
    """The graph of a module's entry, or of a computation, with everything it runs, as dot text.

    The module need not be verified.
    """
    if isinstance(source, HloModule):
        return _Graph(source.entry, source.name).text()
    return _Graph(source, source.module.name if source.module else "").text()


def html_text(text: str) -> str:
    """Text as it stands inside an HTML-like label."""
    return html.escape(_CONTROL_CHARACTER.sub("\ufffd", text)).replace("\n", "<br/>")


def quoted_text(text: str) -> str:
    """A dot string with its quotes. A line break becomes the escape that means one."""
    clean = _CONTROL_CHARACTER.sub("\ufffd", text)
    escaped = clean.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


class _Graph:
    """One walk over a computation and what it runs; a computation is drawn where first met."""

    def __init__(self, computation: HloComputation, module_name: str):
        self.top = computation
        self.module_name = module_name
        self.nodes: dict[HloInstruction, str] = {}
        self.clusters: dict[HloComputation, str] = {}
        self.edges: list[str] = []
        self.numbers = count()

    def text(self) -> str:
        entry = self.top.module is not None and self.top.module.entry is self.top
        title = f"Computation {self.top.name}" + ("\nENTRY computation" if entry else "")
        lines = [
            "digraph G {",
            "rankdir = TB;",
            "compound = true;",
            f"label = <<b>{html_text(self.module_name)}<br/>{html_text(title)}</b>>;",
            "labelloc = t;",
            'tooltip = " ";',
            "",
            *self._body(self.top),
            "",
            *self.edges,
            *self._root_mark(),
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _body(self, computation: HloComputation) -> Iterator[str]:
        """The nodes of a computation, clusters included. Edges are collected for the end: dot
        draws an edge inside the cluster that mentions it."""
        self.clusters[computation] = f"cluster_{len(self.clusters)}"
        for instruction in computation.instructions:
            if _is_inlined(instruction):
                continue
            drawn = [c for c in _bodies(instruction) if c not in self.clusters]
            if instruction.opcode == "fusion" and drawn:
                # A fusion is its computation: the node of the root inside stands for it.
                yield from self._cluster(drawn[0], instruction)
                self.nodes[instruction] = self.nodes[drawn[0].root]
                self._parameter_edges(instruction, drawn[0])
                continue
            self.nodes[instruction] = name = f"n{next(self.numbers)}"
            yield f"{name} [{_node_attributes(instruction)}];"
            for body in drawn:
                yield from self._cluster(body, instruction)
            self._body_edges(instruction)
            for number, operand in enumerate(instruction.operands):
                if not _is_inlined(operand):
                    label = number if len(instruction.operands) > 1 else None
                    self._edge(operand, instruction, label)
            for before in instruction.control_predecessors:
                self._control_edge(before, instruction)

    def _cluster(self, computation: HloComputation, caller: HloInstruction) -> Iterator[str]:
        nodes = list(self._body(computation))
        fused = caller.opcode == "fusion"
        title = _fusion_title(caller) if fused else _role_title(caller, computation)
        fill, border = ("#f5f5f5", "#424242") if fused else ("#eceff1", "#90a4ae")
        yield f"subgraph {self.clusters[computation]} {{"
        yield f"label = <{title}>;"
        yield "labelloc = t;"
        yield f"tooltip = {quoted_text(_tooltip(caller))};"
        yield f'style = "rounded,filled{",bold" if fused else ""}";'
        yield f'fillcolor = "{fill}"; color = "{border}"; fontcolor = "black";'
        yield from nodes
        yield "}"

    def _parameter_edges(self, fusion: HloInstruction, computation: HloComputation) -> None:
        for parameter in computation.parameters:
            number = parameter.attrs["parameter_number"]
            if number < len(fusion.operands) and not _is_inlined(fusion.operands[number]):
                self._edge(fusion.operands[number], parameter, None)
        for before in fusion.control_predecessors:
            self._control_edge(before, fusion)

    def _body_edges(self, caller: HloInstruction) -> None:
        for role, body in _roles(caller):
            if body in self.clusters and body.root in self.nodes:
                self.edges.append(
                    f"{self.nodes[body.root]} -> {self.nodes[caller]} "
                    f"[ltail={self.clusters[body]}, style=dashed, arrowhead=empty, "
                    f"tooltip={quoted_text(f'{body.name} is the {role} of {caller.name}')}];"
                )

    def _edge(self, start: HloInstruction, end: HloInstruction, label: int | None) -> None:
        elements = sum(s.element_count for s in start.shape.leaves() if s.is_array)
        head = "normal" if elements >= LARGE_ELEMENTS else "empty"
        tail = f', headlabel="{label}", labeldistance=2' if label is not None else ""
        tooltip = quoted_text(f"{start.name} -> {end.name}")
        self.edges.append(
            f"{self.nodes[start]} -> {self.nodes[end]} [arrowhead={head}, tooltip={tooltip}{tail}];"
        )

    def _control_edge(self, start: HloInstruction, end: HloInstruction) -> None:
        if start in self.nodes:
            self.edges.append(
                f"{self.nodes[start]} -> {self.nodes[end]} [style=dotted, color=gray, "
                f'label="ctrl", tooltip={quoted_text(f"{start.name} before {end.name}")}];'
            )

    def _root_mark(self) -> list[str]:
        fill, border, font = _DARK_BLUE
        return [
            f'root [label=<ROOT>, shape=circle, tooltip=" ", style=filled, fontcolor="{font}", '
            f'color="{border}", fillcolor="{fill}"];',
            f'{self.nodes[self.top.root]} -> root [tooltip=" "];',
        ]


def _is_inlined(instruction: HloInstruction) -> bool:
    """A constant is told in its users' labels, unless there would be no node at all."""
    return (
        instruction.opcode == "constant"
        and not instruction.is_root
        and not instruction.control_predecessors
        and bool(instruction.users)
    )


def _roles(instruction: HloInstruction) -> Iterator[tuple[str, HloComputation]]:
    """(attribute, computation) of every computation an instruction names."""
    for key, value in instruction.attrs.items():
        for computation in value if isinstance(value, tuple) else (value,):
            if isinstance(computation, HloComputation):
                yield key, computation


def _bodies(instruction: HloInstruction) -> list[HloComputation]:
    """The computations worth a picture: those of control flow, not those of scalars."""
    if OPS[instruction.opcode].lower is not Structure.CONTROL:
        return []
    return list(dict.fromkeys(c for _, c in _roles(instruction)))


def _fusion_title(fusion: HloInstruction) -> str:
    lines = [
        f"<b>{html_text(fusion.name)}</b>",
        html_text(f"{fusion.attrs.get('kind', '')} fusion".strip()),
        html_text(_shape_text(fusion.shape)),
        *_constant_operands(fusion),
    ]
    return "<br/>".join(lines)


def _role_title(caller: HloInstruction, computation: HloComputation) -> str:
    roles = ", ".join(key for key, c in _roles(caller) if c is computation)
    return f"<b>{html_text(computation.name)}</b><br/>{html_text(f'{roles} of {caller.name}')}"


def _node_attributes(instruction: HloInstruction) -> str:
    fill, border, font = _colour(instruction)
    style = "filled,dashed" if instruction.sharding is not None else "filled"
    return (
        f"label=<{_label(instruction)}>, shape=rect, tooltip={quoted_text(_tooltip(instruction))}, "
        f'style="{style}", fontcolor="{font}", color="{border}", fillcolor="{fill}"'
    )


def _colour(instruction: HloInstruction) -> tuple[str, str, str]:
    row = OPS[instruction.opcode]
    if isinstance(row.lower, Structure):
        # What takes nothing and runs nothing is where values come in.
        source = row.lower is Structure.NO_CODE and not row.operands
        return _ORANGE if source else _STRUCTURE_COLOURS[row.lower]
    return {Elementwise: _YELLOW, Indexed: _GREEN, Expand: _GRAY}[type(row.lower)]


def _label(instruction: HloInstruction) -> str:
    """Name, opcode, regions, attributes, sharding, shape, constant operands."""
    row = OPS[instruction.opcode]
    lines = [_heading(instruction)]
    drawn = _bodies(instruction)
    lines += [
        f"Subcomputation: <b>{html_text(c.name)}</b>"
        for _, c in _roles(instruction)
        if c not in drawn
    ]
    lines += [html_text(_cut(t)) for t in _plain_attributes(instruction, row)]
    if instruction.sharding is not None:
        lines.append(html_text(_cut(f"sharding={instruction.sharding}")))
    lines.append(html_text(_shape_text(instruction.shape)))
    if instruction.opcode == "constant":
        lines.append(html_text(_constant_text(instruction)))
    return "<br/>".join([*lines, *_constant_operands(instruction)])


def _constant_operands(instruction: HloInstruction) -> list[str]:
    return [
        f"<b>operand {number}</b> = "
        + html_text(f"{_shape_text(operand.shape)} {_constant_text(operand)}")
        for number, operand in enumerate(instruction.operands)
        if _is_inlined(operand)
    ]


def _shape_text(shape: Shape) -> str:
    """With the layout where there is a choice of one."""
    return shape.to_string(include_layout=shape.is_array and shape.rank > 1)


def _heading(instruction: HloInstruction) -> str:
    name, opcode = instruction.name, instruction.opcode
    if opcode == "parameter":
        number = f"Parameter {instruction.attrs['parameter_number']}"
        return f"<b>{number}</b><br/>{html_text(name)}"
    if name == opcode or name.startswith(f"{opcode}."):
        return f"<b>{html_text(name)}</b>"
    return f"<b>{html_text(name)}</b><br/>{html_text(opcode)}"


def _plain_attributes(instruction: HloInstruction, row: OpDef) -> list[str]:
    """Attributes but those that name computations."""
    regions = {a.name for a in row.attrs if isinstance(a.codec, Computation | Computations)}
    return [t for t in attribute_texts(instruction) if t.partition("=")[0] not in regions]


def _constant_text(constant: HloInstruction) -> str:
    return literal_text(constant.attrs["literal"], False)


def _cut(text: str) -> str:
    return text if len(text) <= LONG_ATTRIBUTE else text[: LONG_ATTRIBUTE - 3] + "..."


def _tooltip(instruction: HloInstruction) -> str:
    """Where the instruction comes from: the name in the program and the source line."""
    told = (instruction.metadata.get("op_name", ""), source_of(instruction))
    return "\n".join(filter(None, told)) or " "
