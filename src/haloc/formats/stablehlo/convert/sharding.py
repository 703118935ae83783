"""Shardings: mhlo's text and Shardy's attributes, as HLO shardings."""

from __future__ import annotations

from math import prod
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.formats.stablehlo.convert import reading
from haloc.formats.stablehlo.convert.context import Program, Scope, converts, result_shape
from haloc.formats.stablehlo.convert.shapes import shape_of
from haloc.formats.stablehlo.mlir import (
    Attribute,
    MlirBlock,
    MlirOp,
    SdyAxis,
    SdyManualAxes,
    SdyMesh,
    SdyPerValue,
    SdySharding,
    SymbolRef,
)
from haloc.formats.stablehlo.text.attribute_text import attribute_text
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape
from haloc.ir.sharding import (
    MANUAL,
    REPLICATED,
    AxisRef,
    DimSharding,
    HloSharding,
    Mesh,
    ShardingKind,
    parse_sharding,
    tuple_sharding,
)


def hlo_sharding(program: Program, sharding: SdySharding) -> HloSharding:
    """{replicated} over one device, {maximal} for a mesh that is a device, else mesh axes."""
    mesh: Any = sharding.mesh
    if isinstance(mesh, SymbolRef):
        mesh = program.meshes.get(mesh.name)
        if mesh is None:
            raise InvalidArgumentError(f"the module has no sdy.mesh @{sharding.mesh.name}")  # type: ignore[union-attr]
    assert isinstance(mesh, SdyMesh)
    if not mesh.axes and mesh.device_ids:
        return HloSharding(ShardingKind.MAXIMAL, device=mesh.device_ids[0])
    sizes = dict(mesh.axes)
    for axis in (*(a for d in sharding.dims for a in d.axes), *sharding.replicated):
        if axis.name not in sizes:
            raise InvalidArgumentError(f"a sharding names axis {axis.name!r}, the mesh has not")
    split = any(d.axes for d in sharding.dims) or sharding.unreduced
    if prod(sizes.values()) <= 1 or not split:
        return REPLICATED
    ids = ",".join(map(str, mesh.device_ids)) if mesh.device_ids else None
    return HloSharding(
        ShardingKind.MESH,
        mesh=Mesh(mesh.axes, ids),
        dim_shardings=tuple(DimSharding(_refs(d.axes), d.is_open) for d in sharding.dims),
        replicated_axes=_refs(sharding.replicated),
        unreduced_axes=_refs(sharding.unreduced),
    )


def _refs(axes: tuple[SdyAxis, ...]) -> tuple[AxisRef, ...]:
    return tuple(AxisRef(a.name, a.pre_size, a.size) for a in axes)


def _of_attributes(program: Program, attributes: dict[str, Attribute]) -> HloSharding | None:
    """The sharding in an op's or argument's attributes, mhlo's first."""
    text = attributes.get("mhlo.sharding")
    if isinstance(text, str):
        return parse_sharding(text)
    sdy = attributes.get("sdy.sharding")
    if isinstance(sdy, SdySharding):
        return hlo_sharding(program, sdy)
    if isinstance(sdy, SdyPerValue):
        found = [hlo_sharding(program, s) for s in sdy.shardings]
        return found[0] if len(found) == 1 else tuple_sharding(*found)
    return None


def annotate(scope: Scope, instruction: HloInstruction, op: MlirOp) -> None:
    """Sharding and frontend attributes of an op."""
    attributes = op.attributes
    frontend = attributes.get("mhlo.frontend_attributes")
    found: dict[str, str] = {}
    if isinstance(frontend, dict):
        found = {k: v for k, v in frontend.items() if isinstance(v, str)}
    rule = attributes.get("sdy.sharding_rule")
    if rule is not None:
        found["xla.sdy.sharding_rule"] = attribute_text(rule)
    sdy = attributes.get("sdy.sharding")
    if sdy is not None:
        found["xla.sdy.sharding"] = attribute_text(sdy)
    if found:
        instruction.frontend_attributes = found
    sharding = _of_attributes(scope.program, attributes)
    if sharding is not None:
        instruction.sharding = sharding


def annotate_parameter(
    program: Program, parameter: HloInstruction, attributes: dict[str, Attribute]
) -> None:
    sharding = _of_attributes(program, attributes)
    if sharding is not None:
        parameter.sharding = sharding
    frontend = attributes.get("mhlo.frontend_attributes")
    found: dict[str, str] = {}
    if isinstance(frontend, dict):
        found = {k: v for k, v in frontend.items() if isinstance(v, str)}
    sdy = attributes.get("sdy.sharding")
    if sdy is not None:
        found["xla.sdy.sharding"] = attribute_text(sdy)
    if found:
        parameter.frontend_attributes = found


def annotate_results(
    program: Program, entry: HloComputation, results: list[dict[str, Attribute]]
) -> None:
    """Shardings of the results go to the entry's root."""
    shardings = [_of_attributes(program, attributes) for attributes in results]
    if not any(shardings):
        return
    filled = [s or REPLICATED for s in shardings]
    if len(filled) != 1:
        entry.root.sharding = tuple_sharding(*filled)
        return
    root = entry.root
    if root.opcode == "parameter" or root.sharding not in (None, filled[0]):
        # It has a sharding of its own, which may be another one.
        root = entry.add(HloInstruction("copy", root.shape, (root,)))
        entry.root = root
    root.sharding = filled[0]


# --- Ops -----------------------------------------------------------------------------------------


@converts("sdy.sharding_constraint", "sdy.reshard")
def _constraint(scope: Scope, op: MlirOp) -> HloInstruction:
    return _resharded(scope, op, "sharding")


@converts(
    "sdy.all_gather",
    "sdy.all_reduce",
    "sdy.all_slice",
    "sdy.all_to_all",
    "sdy.collective_permute",
    "sdy.reduce_scatter",
)
def _sdy_collective(scope: Scope, op: MlirOp) -> HloInstruction:
    """Of the whole array only the sharding changes: partitioning makes the collective again."""
    return _resharded(scope, op, "out_sharding")


def _resharded(scope: Scope, op: MlirOp, key: str) -> HloInstruction:
    """XLA's custom call "Sharding": the identity, with a sharding."""
    operands = scope.operands(op, 1)
    sharding = reading.get(op, key)
    if not isinstance(sharding, SdySharding):
        reading.fail(op, f"attribute {key} must be #sdy.sharding<...>")
    made = scope.add("custom-call", result_shape(op), operands, custom_call_target="Sharding")
    made.sharding = hlo_sharding(scope.program, sharding)
    text = attribute_text(SdyPerValue((sharding,)))
    made.frontend_attributes = {"xla.sdy.sharding": text}
    return made


@converts("sdy.propagation_barrier", "sdy.data_flow_edge")
def _identity(scope: Scope, op: MlirOp) -> HloInstruction:
    return scope.operands(op, 1)[0]


@converts("sdy.sharding_group")
def _group(scope: Scope, op: MlirOp) -> list[HloInstruction]:
    """Says that values are sharded alike: nothing to compute."""
    scope.operands(op, 1)
    return []


@converts("sdy.named_computation")
def _named_computation(scope: Scope, op: MlirOp) -> list[HloInstruction]:
    """Its body, in place."""
    return _inlined(scope, op, scope.operands(op))


@converts("sdy.manual_computation")
def _manual_computation(scope: Scope, op: MlirOp) -> list[HloInstruction]:
    """The body sees one device's part of each operand: XLA's custom calls cut it out and put the
    results together. Where parts and wholes have one shape the mesh is one device."""
    body = _body(op)
    operands = scope.operands(op)
    if len(operands) != len(body.arguments):
        reading.fail(op, f"its body has {len(body.arguments)} arguments, given {len(operands)}")
    locals_ = [shape_of(a.type) for a in body.arguments]
    before, after = reading.get(op, "in_shardings"), reading.get(op, "out_shardings")
    if not isinstance(before, SdyPerValue) or not isinstance(after, SdyPerValue):
        reading.fail(op, "in_shardings and out_shardings must be #sdy.sharding_per_value<...>")
    if len(before.shardings) != len(operands) or len(after.shardings) != len(op.results):
        reading.fail(op, "in_shardings and out_shardings must have one entry an operand and result")
    if not _covers_several_devices(scope, op, (*before.shardings, *after.shardings)):
        return _inlined(scope, op, operands)
    name, metadata = scope.name, scope.metadata
    parts = []
    for operand, shape, sharding in zip(operands, locals_, before.shardings):
        whole = _call(scope, "Sharding", operand.shape, operand)
        whole.sharding = hlo_sharding(scope.program, sharding)
        part = _call(scope, "SPMDFullToShardShape", shape, whole)
        part.sharding = MANUAL
        parts.append(part)
    results = []
    inner = _inlined(scope, op, parts)
    scope.name, scope.metadata = name, metadata
    for value, result, sharding in zip(inner, op.results, after.shardings):
        part = _call(scope, "Sharding", value.shape, value)
        part.sharding = MANUAL
        whole = _call(scope, "SPMDShardToFullShape", shape_of(result.type), part)
        whole.sharding = hlo_sharding(scope.program, sharding)
        results.append(whole)
    return results


def _covers_several_devices(scope: Scope, op: MlirOp, shardings: tuple[SdySharding, ...]) -> bool:
    """Whether the mesh has more than one device; all its axes must be manual then."""
    manual = reading.get(op, "manual_axes")
    names = set(manual.names) if isinstance(manual, SdyManualAxes) else set()
    several = False
    for sharding in shardings:
        mesh: Any = sharding.mesh
        mesh = scope.program.meshes.get(mesh.name) if isinstance(mesh, SymbolRef) else mesh
        if not isinstance(mesh, SdyMesh):
            reading.fail(op, "a sharding names a mesh that the module does not have")
        large = {name for name, size in mesh.axes if size > 1}
        several = several or bool(large)
        if large - names:
            left = ", ".join(sorted(large - names))
            reading.unimplemented(op, f"manual over some axes only: {left} is left to propagation")
    return several


def _call(scope: Scope, target: str, shape: Shape, operand: HloInstruction) -> HloInstruction:
    return scope.add("custom-call", shape, (operand,), custom_call_target=target)


def _body(op: MlirOp) -> MlirBlock:
    body = op.regions[0].blocks[0] if op.regions and op.regions[0].blocks else None
    if body is None or not body.operations:
        reading.fail(op, "it has no body")
    return body


def _inlined(scope: Scope, op: MlirOp, arguments: list[HloInstruction]) -> list[HloInstruction]:
    """The values that the op's body returns, computed in this computation."""
    body = _body(op)
    for argument, value in zip(body.arguments, arguments):
        if shape_of(argument.type).dims != value.shape.dims:
            reading.fail(
                op, f"its argument %{argument.name} is {argument.type}, given {value.shape}"
            )
        scope.values[argument] = value
    for inner in body.operations[:-1]:
        scope.convert(inner)
    return [scope.value(o) for o in body.operations[-1].operands]
