"""Calls: of functions, of composites, of code outside the program."""

from __future__ import annotations

from typing import Any

from haloc.formats.stablehlo.convert import reading, regions
from haloc.formats.stablehlo.convert.collectives import ragged_all_to_all
from haloc.formats.stablehlo.convert.context import (
    CONVERSIONS,
    Scope,
    clean_name,
    converts,
    results_shape,
)
from haloc.formats.stablehlo.convert.metadata import location_name
from haloc.formats.stablehlo.convert.shapes import shape_of
from haloc.formats.stablehlo.convert.sharding import annotate
from haloc.formats.stablehlo.mlir import Attribute, Integer, MlirOp, Struct, SymbolRef
from haloc.formats.stablehlo.text.attribute_text import attribute_text, dictionary_text
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Layout, Shape, tuple_shape


def function(scope: Scope, op: MlirOp, name: str) -> HloComputation:
    """The computation of a function, made at its first call."""
    program = scope.program
    made = program.converted.get(name)
    if made is not None:
        return made
    definition = program.functions.get(name)
    if definition is None:
        reading.fail(op, f"the module has no function @{name}")
    if name in program.active:
        chain = " -> ".join([*program.active[program.active.index(name) :], name])
        reading.fail(op, f"functions call themselves: {chain}")
    if not definition.regions or not definition.regions[0].blocks:
        reading.fail(op, f"function @{name} has no body")
    block = definition.regions[0].blocks[0]
    inner = Scope(program, program.hlo.add_computation(clean_name(name)))
    program.active.append(name)
    for number, argument in enumerate(block.arguments):
        label = location_name(argument.location) or f"Arg_{number}"
        parameter = inner.parameter(number, shape_of(argument.type), label)
        inner.values[argument] = parameter
    regions.fill(inner, definition, block)
    program.active.pop()
    program.converted[name] = inner.computation
    return inner.computation


def call(scope: Scope, op: MlirOp, name: str, **attrs: Any) -> HloInstruction:
    instruction_name = scope.name
    computation = function(scope, op, name)
    operands = scope.operands(op)
    parameters = computation.parameters
    fits = [o.shape.compatible(p.shape) for o, p in zip(operands, parameters, strict=False)]
    if len(operands) != len(parameters) or not all(fits):
        given = ", ".join(o.shape.to_string(False) for o in operands)
        wanted = ", ".join(p.shape.to_string(False) for p in parameters)
        reading.fail(op, f"@{name} takes ({wanted}), given ({given})")
    if computation.root.shape.with_default_layout() != results_shape(op):
        given = computation.root.shape.to_string(False)
        reading.fail(op, f"@{name} gives {given}, not {results_shape(op).to_string(False)}")
    scope.name = instruction_name
    made = scope.add("call", computation.root.shape, operands, to_apply=computation, **attrs)
    annotate(scope, made, op)
    scope.results(op, made)
    return made


@converts("func.call")
def _call(scope: Scope, op: MlirOp) -> None:
    call(scope, op, reading.symbol(op, "callee"))


@converts("stablehlo.composite")
def _composite(scope: Scope, op: MlirOp) -> None:
    """An op HLO has is used as such; any other composite is a call of its decomposition."""
    name = reading.text(op, "name")
    attributes = op.attributes.get("composite_attributes", {})
    if not isinstance(attributes, dict):
        reading.fail(op, "attribute composite_attributes must be a dictionary")
    if name.startswith("chlo.") and name in CONVERSIONS:
        native = MlirOp(name, op.operands, attributes, [], op.results, op.location, op.position)
        scope.convert(native)
        return
    made = call(scope, op, reading.symbol(op, "decomposition"), is_composite=True)
    made.frontend_attributes = {
        "composite.attributes": dictionary_text(attributes),
        "composite.name": name,
        "composite.version": str(reading.integer(op, "version", 0)),
    }


# --- custom_call ---------------------------------------------------------------------------------

_API_VERSIONS = {
    0: "API_VERSION_UNSPECIFIED",
    1: "API_VERSION_ORIGINAL",
    2: "API_VERSION_STATUS_RETURNING",
    3: "API_VERSION_STATUS_RETURNING_UNIFIED",
    4: "API_VERSION_TYPED_FFI",
}


def _api_version(op: MlirOp) -> str:
    # Only typed calls take a dictionary, which JAX writes so for readers of older StableHLO.
    if isinstance(op.attributes.get("mhlo.backend_config"), dict):
        return _API_VERSIONS[4]
    value = op.attributes.get("api_version")
    if value is None:
        return _API_VERSIONS[1]
    if getattr(value, "kind", "") == "custom_call_api_version":
        word = reading.enum(op, "api_version").removeprefix("API_VERSION_")
        return "API_VERSION_" + word
    number = reading.integer(op, "api_version")
    if number not in _API_VERSIONS:
        reading.fail(op, f"api_version {number} is unknown, expected 0 to 4")
    return _API_VERSIONS[number]


def _layouts(op: MlirOp, name: str, shapes: list[Shape]) -> list[Shape] | None:
    """Shapes with the layouts that attribute `name` lists; None when it is not there."""
    value = op.attributes.get(name)
    if value is None:
        return None
    if not isinstance(value, tuple) or len(value) != len(shapes):
        reading.fail(op, f"attribute {name} must be a list of {len(shapes)} layouts")
    found = []
    for shape, one in zip(shapes, value):
        order = reading.int_list(op, name, one)
        if not shape.is_array:
            found.append(shape)
            continue
        if sorted(order) != list(range(shape.rank)):
            given = list(order)
            reading.fail(op, f"{name}: {given} is no layout of {shape.to_string(False)}")
        found.append(Shape(shape.dtype, shape.dims, Layout(order), shape.dynamic))
    return found


def _aliasing(op: MlirOp) -> tuple[Any, ...]:
    value = op.attributes.get("output_operand_aliases", ())
    found = []
    for one in value if isinstance(value, tuple) else ():
        if not isinstance(one, Struct):
            reading.fail(op, "attribute output_operand_aliases must list output_operand_alias")
        fields: dict[str, Any] = one.fields
        found.append(
            (
                tuple(fields.get("output_tuple_indices", ())),
                fields.get("operand_index", 0),
                tuple(fields.get("operand_tuple_indices", ())),
            )
        )
    return tuple(found)


def _backend_config(op: MlirOp) -> str:
    for name in ("mhlo.backend_config", "backend_config"):
        value: Attribute | None = op.attributes.get(name)
        if isinstance(value, str):
            if value:
                return value
        elif isinstance(value, dict):
            return dictionary_text(value)
        elif value is not None:
            return attribute_text(value)
    return ""


def _approximate_top_k(scope: Scope, op: MlirOp) -> None:
    """Done exactly: sorted by the comparator, as much of it as the result holds.

    Operands are the arrays, then the values that stand for nothing.
    """
    name = scope.name
    config = op.attributes.get("mhlo.backend_config")
    called = op.attributes.get("called_computations")
    dim = config.get("reduction_dim") if isinstance(config, dict) else None
    compare = called[0] if isinstance(called, tuple) and called else None
    if not isinstance(dim, Integer) or not isinstance(compare, SymbolRef):
        reading.fail(op, "ApproxTopK needs reduction_dim in mhlo.backend_config and a comparator")
    computation = function(scope, op, compare.name)
    scope.name = name
    arrays = scope.operands(op)[: len(op.results)]
    axis = dim.value
    shapes = [a.shape for a in arrays]
    if not shapes or not all(-s.rank <= axis < s.rank for s in shapes):
        reading.fail(op, f"ApproxTopK: the operands have no dimension {axis}")
    axis %= shapes[0].rank
    whole = shapes[0] if len(shapes) == 1 else tuple_shape(*shapes)
    made = scope.add("sort", whole, arrays, dimensions=axis, to_apply=computation)
    ordered = [made] if len(shapes) == 1 else scope.elements(made)
    for result, one in zip(op.results, ordered):
        shape = shape_of(result.type)
        ranges = tuple((0, n, 1) for n in shape.dims)
        scope.values[result] = scope.add("slice", shape, (one,), slice=ranges)


_OPS = {"ApproxTopK": _approximate_top_k, "ragged_all_to_all": ragged_all_to_all}
"""Custom calls that stand for ops StableHLO lacks."""


@converts("stablehlo.custom_call")
def _custom_call(scope: Scope, op: MlirOp) -> None:
    target = reading.text(op, "call_target_name")
    # Older JAX wrote ops of mhlo that StableHLO lacked as custom calls, attributes in one.
    chlo = target.replace("mhlo.", "chlo.", 1).replace("chlo.topk", "chlo.top_k")
    if target.startswith("mhlo.") and chlo in CONVERSIONS:
        inner = op.attributes.get("mhlo.attributes", {})
        attributes = inner if isinstance(inner, dict) else {}
        native = MlirOp(chlo, op.operands, attributes, [], op.results, op.location, op.position)
        scope.convert(native)
        return
    if target in _OPS:
        _OPS[target](scope, op)
        return
    operands = scope.operands(op)
    attrs: dict[str, Any] = {"custom_call_target": target}
    if (constraints := _layouts(op, "operand_layouts", [o.shape for o in operands])) is not None:
        attrs["operand_layout_constraints"] = tuple(constraints)
    if reading.flag(op, "has_side_effect"):
        attrs["custom_call_has_side_effect"] = True
    if aliasing := _aliasing(op):
        attrs["output_to_operand_aliasing"] = aliasing
    if (version := _api_version(op)) != "API_VERSION_ORIGINAL":
        attrs["api_version"] = version
    called = op.attributes.get("called_computations", ())
    if isinstance(called, tuple) and called:
        names = [c.name for c in called if isinstance(c, SymbolRef)]
        attrs["called_computations"] = tuple(function(scope, op, n) for n in names)
    made = scope.add("custom-call", _custom_shape(op), operands, **attrs)
    made.backend_config = _backend_config(op)
    annotate(scope, made, op)
    if len(op.results) == 1:
        scope.values[op.results[0]] = made
    else:
        scope.results(op, made)


def _custom_shape(op: MlirOp) -> Shape:
    shapes = [shape_of(r.type) for r in op.results]
    if len(shapes) == 1 and shapes[0].is_tuple:
        members = _layouts(op, "result_layouts", list(shapes[0].elements))
        return shapes[0] if members is None else tuple_shape(*members)
    with_layouts = _layouts(op, "result_layouts", shapes) or shapes
    return with_layouts[0] if len(with_layouts) == 1 else tuple_shape(*with_layouts)
