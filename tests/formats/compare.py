"""Exact comparison of two modules: names, shapes, attributes, annotations, order, tables."""

from __future__ import annotations

from typing import Any

from haloc.formats.hlo_text.header import entry_layout
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ops.table import OPS, REQUIRED


def differences(a: HloModule, b: HloModule) -> list[str]:
    """What differs, one line each; empty when the modules are the same."""
    found = []
    for what in ("name", "tables"):
        if getattr(a, what) != getattr(b, what):
            found.append(f"{what}: {getattr(a, what)} != {getattr(b, what)}")
    if _header(a) != _header(b):
        found.append(f"header: {_header(a)} != {_header(b)}")
    if sorted(a.computations) != sorted(b.computations):
        return [*found, f"computations: {list(a.computations)} != {list(b.computations)}"]
    if a.entry.name != b.entry.name:
        found.append(f"entry: {a.entry.name} != {b.entry.name}")
    for name, computation in a.computations.items():
        found += _computation_differences(computation, b.computations[name])
    return found


def _header(module: HloModule) -> dict[str, Any]:
    """With the entry layout, which may be left to the entry computation."""
    return module.header | {"entry_computation_layout": entry_layout(module)}


def _computation_differences(a: HloComputation, b: HloComputation) -> list[str]:
    if a.execution_thread != b.execution_thread or a.root.name != b.root.name:
        return [f"{a.name}: thread or root differs"]
    if [i.name for i in a.instructions] != [i.name for i in b.instructions]:
        return [f"{a.name}: instructions differ"]
    pairs = zip(a.instructions, b.instructions, strict=True)
    return [
        f"{a.name}.{x.name}: {key}: {p!r} != {q!r}"
        for x, y in pairs
        for key, p, q in zip(_KEYS.split(), _contents(x), _contents(y), strict=True)
        if p != q
    ]


_KEYS = "opcode shape operands attrs sharding metadata frontend backend origin predecessors"


def _contents(i: HloInstruction) -> tuple[Any, ...]:
    return (
        i.opcode,
        i.shape,
        [o.name for o in i.operands],
        {k: _attr(v) for k, v in i.attrs.items() if v != _default(i, k)},
        str(i.sharding),
        i.metadata,
        i.frontend_attributes,
        i.backend_config,
        i.origin,
        [p.name for p in i.control_predecessors],
    )


def _default(instruction: HloInstruction, name: str) -> Any:
    """An attribute may be written or left out when it has this value."""
    row = OPS.get(instruction.opcode)
    return row.attr_defaults.get(name, REQUIRED) if row else REQUIRED


def _attr(value: Any) -> Any:
    if isinstance(value, HloComputation):
        return ("computation", value.name)
    if isinstance(value, tuple) and value and isinstance(value[0], HloComputation):
        return [_attr(v) for v in value]
    return value
