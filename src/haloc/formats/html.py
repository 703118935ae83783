"""A computation as a page of its own: its instructions, with links from operands to their makers.

    computation_page(computation) -> str

It needs no network and no scripts. The graph, for Graphviz, is at its end.
"""

from __future__ import annotations

from html import escape

from haloc.formats.dot import to_dot
from haloc.formats.hlo_text.printer import attribute_texts
from haloc.ir.module import HloComputation, HloInstruction

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{name}</title>
<style>
body {{ font: 14px/1.5 ui-monospace, monospace; margin: 2em }}
td, th {{ padding: 0 1em 0 0; text-align: left; vertical-align: top }}
tr:target, tr.root {{ background: #fff9c4 }}
</style>
<h1>{name}</h1>
<table>
<tr><th>name<th>shape<th>opcode<th>operands<th>attributes
{rows}
</table>
<details><summary>Graph, for Graphviz</summary>
<pre>{graph}</pre>
</details>
</html>
"""


def computation_page(computation: HloComputation) -> str:
    """The HTML page of a computation. The root is marked."""
    rows = [_row(i, i is computation.root) for i in computation.instructions]
    name, graph = escape(computation.name), escape(to_dot(computation))
    return _PAGE.format(name=name, rows="\n".join(rows), graph=graph)


def _row(instruction: HloInstruction, is_root: bool) -> str:
    name = escape(instruction.name)
    operands = [f'<a href="#{escape(o.name)}">{escape(o.name)}</a>' for o in instruction.operands]
    attributes = escape(", ".join(attribute_texts(instruction)))
    root = ' class="root"' if is_root else ""
    cells = (name, escape(str(instruction.shape)), instruction.opcode, ", ".join(operands))
    return f'<tr id="{name}"{root}><td>{"<td>".join(cells)}<td>{attributes}'
