"""`HloModule` to HLO text that haloc and XLA read back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from haloc.formats.hlo_text.annotations import (
    COMMON_ATTRS,
    frontend_attributes_text,
    json_or_quoted,
    metadata_text,
)
from haloc.formats.hlo_text.async_sugar import THREAD, sugared
from haloc.formats.hlo_text.header import header_text, tables_text
from haloc.formats.hlo_text.literals import literal_text
from haloc.ir.dtype import ALL_DTYPES
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape, tuple_text
from haloc.ops.attrs import Computation, Computations
from haloc.ops.table import OPS, Attr


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintOptions:
    """What to print.

    print_large_constants: constants of more than 10 elements in full instead of `{...}`.
    print_metadata: op names and source places, and the tables they point into.
    print_percent: `%` before names. include_layout: layouts in shapes (the entry layout of the
    header keeps them). print_program_shape: a computation's parameters and result behind its name.
    print_ids: names of module and computations. full_bodies: called computations are printed where
    they are called, nameless, instead of named. sort_computations: small ones first, equally small
    ones by their text, the entry last, instead of callees first. indent: blanks before an
    instruction.
    """

    print_large_constants: bool = True
    print_metadata: bool = True
    print_percent: bool = False
    print_operand_shapes: bool = False
    print_backend_config: bool = True
    print_control_dependencies: bool = True
    print_program_shape: bool = True
    print_ids: bool = True
    full_bodies: bool = False
    sort_computations: bool = False
    include_layout: bool = True
    indent: int = 2

    @classmethod
    def short(cls) -> PrintOptions:
        """For reading: no layouts, metadata or large constants."""
        return cls(print_large_constants=False, print_metadata=False, include_layout=False)


_DEFAULT = PrintOptions()

_ALWAYS_PRINTED = frozenset(
    {
        "dimensions",
        "slice",
        "padding",
        "dynamic_slice_sizes",
        "offset_dims",
        "collapsed_slice_dims",
        "start_index_map",
        "index_vector_dim",
        "slice_sizes",
        "update_window_dims",
        "inserted_window_dims",
        "scatter_dims_to_operand_dims",
        "lhs_contracting_dims",
        "rhs_contracting_dims",
        "replica_groups",
        "source_target_pairs",
        "transpose_a",
        "fft_length",
        "largest",
        "algorithm",
    }
)
"""Attributes that XLA's parser demands, or its printer writes, even when they are empty."""


_RESERVED = frozenset(
    {*(d.name for d in ALL_DTYPES), "s1", "u1", "true", "false", "inf", "nan", "ENTRY", "ROOT"}
    | {"HloModule", "FileNames", "FunctionNames", "FileLocations", "StackFrames", "maximal"}
    | {"replicated", "manual", "last_tile_dim_replicate", "shard_as", "shard_like", "unknown"}
    | {"unreduced"}
) - {"tuple"}
"""Words that XLA's lexer takes for something other than a name."""

_ELSEWHERE = frozenset({"literal", "parameter_number", "statistics", "result_accuracy"})
"""Attributes between the parentheses or among the annotations, whatever row they belong to."""


def to_text(module: HloModule, options: PrintOptions = _DEFAULT) -> str:
    """The whole module; ends with a newline."""
    parts = [header_text(module, print_name=options.print_ids), "\n"]
    if options.print_metadata and module.tables:
        parts.append(tables_text(module))
    hidden = _hidden(module)
    printed = [c for c in _callees_first(module) if c not in hidden]
    texts = [(c is module.entry, len(c), computation_to_text(c, options)) for c in printed]
    if options.sort_computations:
        texts.sort()
    return "".join(parts + ["\n" + text for *_, text in texts])


def _name(name: str, percent: str) -> str:
    """A name in text. XLA takes a reserved word for a name only behind `%`."""
    return "%" + name if percent or name in _RESERVED else name


def _callees_first(module: HloModule) -> list[HloComputation]:
    """All computations, each behind those it calls (XLA reads no other order), else as they are.

    A recursive module has no such order; it still prints, since errors about it quote it.
    """
    seen: set[HloComputation] = set()
    order: list[HloComputation] = []
    for first in module.computations.values():
        stack = [] if first in seen else [(first, iter(_called(first)))]
        seen.add(first)
        while stack:
            computation, callees = stack[-1]
            for callee in callees:
                if callee not in seen:
                    seen.add(callee)
                    stack.append((callee, iter(_called(callee))))
                    break
            else:
                order.append(computation)
                stack.pop()
    return order


def _called(computation: HloComputation) -> list[HloComputation]:
    return [c for i in computation.instructions for c in i.called_computations]


def _hidden(module: HloModule) -> set[HloComputation]:
    """Computations that async sugar stands for. They are hidden if nothing else calls them."""
    wrapped: set[HloComputation] = set()
    others: set[HloComputation] = set()
    for computation in module.computations.values():
        for instruction in computation.instructions:
            called = instruction.called_computations
            if called and instruction.opcode == "async-start" and sugared(instruction):
                wrapped.update(called)
            else:
                others.update(called)
    return wrapped - others


def computation_to_text(computation: HloComputation, options: PrintOptions = _DEFAULT) -> str:
    """`[ENTRY] name (parameters) -> shape {`, the instructions, `}`."""
    percent = "%" if options.print_percent else ""
    module = computation.module
    entry = "ENTRY " if module is not None and module.entry is computation else ""
    name = _name(computation.name, percent) if options.print_ids else ""
    signature = _signature(computation) if options.print_program_shape else ""
    opening = f"{entry}{name}{signature}".rstrip()
    lines = [f"{opening} {{\n" if opening else "{\n", _body_text(computation, options)]
    thread = computation.execution_thread
    lines.append(f'}}, execution_thread="{thread}"\n' if thread else "}\n")
    return "".join(lines)


def _body_text(computation: HloComputation, options: PrintOptions) -> str:
    """The instructions, indented."""
    indent = " " * options.indent
    lines = []
    for instruction in computation.instructions:
        text = instruction_to_text(instruction, options)
        if options.full_bodies:  # several lines
            text = text.replace("\n", "\n" + indent)
        lines.append(f"{indent}{text}\n")
    return "".join(lines)


def _signature(computation: HloComputation) -> str:
    """` (a: f32[4]) -> f32[4]`; nothing if a parameter's name is a word that XLA reserves."""
    parameters = computation.parameters
    if any(p.name in _RESERVED for p in parameters):
        return ""
    texts = [f"{p.name}: {p.shape.to_string(False)}" for p in parameters]
    return f" {tuple_text(texts)} -> {computation.root.shape.to_string(False)}"


def instruction_to_text(instruction: HloInstruction, options: PrintOptions = _DEFAULT) -> str:
    """`ROOT name = shape opcode(operands), attributes` on one line."""
    percent = "%" if options.print_percent else ""
    root = "ROOT " if instruction.is_root else ""
    shape = _shape_text(instruction.shape, options.include_layout)
    opcode, attrs, row_attrs = _spoken(instruction)
    inside = _parenthesised(instruction, options, percent)
    parts = [f"{root}{_name(instruction.name, percent)} = {shape} {opcode}({inside})"]
    for attr in row_attrs:
        text = _attr_text(attr, attrs, options)
        if text:
            parts.append(text)
    parts += _common_parts(instruction, {a.name for a in row_attrs}, attrs, options, percent)
    return ", ".join(parts)


def attribute_texts(instruction: HloInstruction) -> list[str]:
    """`key=value` for each attribute of the instruction's own that is printed."""
    _, attrs, row_attrs = _spoken(instruction)
    return [text for attr in row_attrs if (text := _attr_text(attr, attrs, _DEFAULT))]


@lru_cache(maxsize=4096)
def _shape_text(shape: Shape, include_layout: bool) -> str:
    """Modules have few shapes, and some (the tuples of loops) are long."""
    return shape.to_string(include_layout)


def _spoken(instruction: HloInstruction) -> tuple[str, dict[str, Any], tuple[Attr, ...]]:
    """Opcode, attributes and row as printed: those of the wrapped op where sugar applies."""
    if instruction.opcode.startswith("async-"):
        inner = sugared(instruction)
        if inner is not None:
            suffix = instruction.opcode.removeprefix("async")
            if suffix != "-start":
                return inner.opcode + suffix, {}, ()
            own = {k: v for k, v in instruction.attrs.items() if k == THREAD}
            return inner.opcode + suffix, inner.attrs | own, OPS[inner.opcode].attrs
    row = OPS.get(instruction.opcode)
    return instruction.opcode, instruction.attrs, row.attrs if row else ()


def _parenthesised(instruction: HloInstruction, options: PrintOptions, percent: str) -> str:
    if instruction.opcode == "parameter":
        return str(instruction.attrs["parameter_number"])
    if instruction.opcode == "constant":
        return literal_text(instruction.attrs["literal"], options.print_large_constants)
    if options.print_operand_shapes:
        names = [
            f"{_shape_text(o.shape, options.include_layout)} {_name(o.name, percent)}"
            for o in instruction.operands
        ]
    else:
        names = [_name(o.name, percent) for o in instruction.operands]
    return tuple_text(names)[1:-1]


def _attr_text(attr: Attr, attrs: dict[str, Any], options: PrintOptions) -> str:
    name = attr.name
    if name in _ELSEWHERE:
        return ""
    value = attrs.get(name, attr.default)
    if value is None or value is attr.default or value == attr.default:
        always = name in _ALWAYS_PRINTED and (name in attrs or attr.default is not None)
        if not always or value in (None, ""):
            return ""
    if isinstance(attr.codec, Computation):
        return f"{name}={_called_text(value, options)}"
    if isinstance(attr.codec, Computations):
        separator = "," if options.full_bodies else ", "
        texts = separator.join(_called_text(c, options) for c in value)
        return f"{name}={{{texts}\n}}" if options.full_bodies else f"{name}={{{texts}}}"
    return f"{name}={attr.codec.format(value)}"


def _called_text(computation: HloComputation, options: PrintOptions) -> str:
    """A called computation: its name, or all of it on lines of its own."""
    if options.full_bodies:
        return f"\n{{\n{_body_text(computation, options)}}}"
    return _name(computation.name, "%" if options.print_percent else "")


def _common_parts(
    instruction: HloInstruction,
    own: set[str],
    attrs: dict[str, Any],
    options: PrintOptions,
    percent: str,
) -> list[str]:
    """What may follow on any instruction, in XLA's order."""
    parts: list[str] = []
    if THREAD in attrs and THREAD not in own:
        parts.append(f"{THREAD}={COMMON_ATTRS[THREAD].format(attrs[THREAD])}")
    if "parameter_replication" in attrs and "parameter_replication" not in own:
        text = COMMON_ATTRS["parameter_replication"].format(attrs["parameter_replication"])
        parts.append(f"parameter_replication={text}")
    if instruction.sharding is not None:
        parts.append(f"sharding={instruction.sharding}")
    if instruction.frontend_attributes:
        text = frontend_attributes_text(instruction.frontend_attributes)
        parts.append(f"frontend_attributes={text}")
    if options.print_control_dependencies and instruction.control_predecessors:
        names = ", ".join(_name(p.name, percent) for p in instruction.control_predecessors)
        parts.append(f"control-predecessors={{{names}}}")
    for key in ("statistics", "result_accuracy"):
        if attrs.get(key):
            parts.append(f"{key}={attrs[key]}")
    if instruction.origin:
        parts.append(f"origin={instruction.origin}")
    if options.print_metadata and instruction.metadata:
        parts.append(f"metadata={metadata_text(instruction.metadata)}")
    if options.print_backend_config and instruction.backend_config:
        parts.append(f"backend_config={json_or_quoted(instruction.backend_config)}")
    return parts
