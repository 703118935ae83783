"""Shardings: mhlo's text and Shardy's attributes, as HLO shardings."""

from __future__ import annotations

from math import prod
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.formats.stablehlo.convert import reading
from haloc.formats.stablehlo.convert.context import Program, Scope, converts, result_shape
from haloc.formats.stablehlo.convert.printing import attribute_text
from haloc.formats.stablehlo.mlir import (
    Attribute,
    MlirOp,
    SdyAxis,
    SdyMesh,
    SdyPerValue,
    SdySharding,
    SymbolRef,
)
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.sharding import (
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
    if root.opcode == "parameter" or root.sharding is not None:
        # It has a sharding of its own, which may be another one.
        root = entry.add(HloInstruction("copy", root.shape, (root,)))
        entry.root = root
    root.sharding = filled[0]


# --- Ops -----------------------------------------------------------------------------------------


@converts("sdy.sharding_constraint", "sdy.reshard")
def _constraint(scope: Scope, op: MlirOp) -> HloInstruction:
    """XLA's custom call "Sharding": the identity, with a sharding."""
    operands = scope.operands(op, 1)
    sharding = reading.get(op, "sharding")
    if not isinstance(sharding, SdySharding):
        reading.fail(op, "attribute sharding must be #sdy.sharding<...>")
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


@converts("sdy.manual_computation", "sdy.named_computation")
def _manual_computation(scope: Scope, op: MlirOp) -> list[HloInstruction]:
    """Over one device the body is the whole program; more devices need the partitioner."""
    body = op.regions[0].blocks[0] if op.regions and op.regions[0].blocks else None
    if body is None or not body.operations:
        reading.fail(op, "it has no body")
    operands = scope.operands(op)
    if len(operands) != len(body.arguments):
        reading.fail(op, f"its body has {len(body.arguments)} arguments, given {len(operands)}")
    for argument, operand in zip(body.arguments, operands):
        if argument.type != op.operands[body.arguments.index(argument)].type:
            reading.unimplemented(op, "a mesh of several devices: haloc does not partition yet")
        scope.values[argument] = operand
    for inner in body.operations[:-1]:
        scope.convert(inner)
    return [scope.value(o) for o in body.operations[-1].operands]
