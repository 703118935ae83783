"""Turning fusion groups into fusion instructions with computations of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import tuple_shape
from haloc.passes.fusion_group import Group, is_loop, is_reshape, is_scalar_constant

Position = Mapping[HloInstruction, int]


def outline(computation: HloComputation, groups: list[Group], names: Iterator[str]) -> bool:
    """Replace each group worth a kernel of its own by a fusion; whether there was any.

    names: of the fused computations, new ones.
    """
    position = {i: n for n, i in enumerate(computation.instructions)}
    materialised = {root for group in groups for root in group.roots}
    replacements: dict[HloInstruction, HloInstruction] = {}
    outlined: set[HloInstruction] = set()
    for group in reversed(groups):  # producers first, so that names count upwards
        members = sorted(group.members, key=position.__getitem__)
        roots = sorted(group.roots, key=position.__getitem__)
        _peel_reshapes(members, roots, materialised)
        if roots and _is_worth_it(group, members):
            outlined.update(members)
            replacements.update(_make_fusion(computation, group, members, roots, next(names)))
    for old, new in replacements.items():
        old.replace_uses_with(new)
    if outlined:
        for instruction in sorted(outlined, key=position.__getitem__, reverse=True):
            if not instruction.users and instruction is not computation.root:
                computation.remove(instruction)
        computation.sort()
    return bool(outlined)


def _peel_reshapes(
    members: list[HloInstruction], roots: list[HloInstruction], materialised: set[HloInstruction]
) -> None:
    """Leave reshapes at the root and directly on operands outside the fusion."""
    while len(roots) == 1 and is_reshape(roots[0]):
        reshape = roots.pop()
        members.remove(reshape)
        operand = reshape.operands[0]
        # A materialised operand has its own kernel already; then there is nothing left to do here.
        if operand in members and operand not in materialised:
            roots.append(operand)
    inside = set(members)
    for member in list(members):
        if is_reshape(member) and member not in roots and member.operands[0] not in inside:
            inside.remove(member)
            members.remove(member)


def _is_worth_it(group: Group, members: list[HloInstruction]) -> bool:
    """Whether the kernel does more than its root alone would.

    A loop gains from constants that are inside; a reduce or an update does not.
    """
    if is_loop(group):
        return len(members) > 1
    return sum(not is_scalar_constant(m) for m in members) > 1


def _make_fusion(
    computation: HloComputation,
    group: Group,
    members: list[HloInstruction],
    roots: list[HloInstruction],
    name: str,
) -> dict[HloInstruction, HloInstruction]:
    """Add the fusion and its computation; gives what stands for each root from now on."""
    module = computation.module
    assert module is not None
    fused = module.add_computation(name)
    inputs: list[HloInstruction] = []
    copies: dict[HloInstruction, HloInstruction] = {}
    inside = set(members)
    for member in members:
        for operand in member.operands:
            if operand not in inside and operand not in copies:
                copies[operand] = _parameter(fused, operand, len(inputs))
                inputs.append(operand)
        copy = member.copy_on(copies[o] for o in member.operands)
        copies[member] = fused.add(copy, name=member.name)
    results = [copies[root] for root in roots]
    many = len(results) > 1
    if many:
        shape = tuple_shape(*(r.shape for r in results))
        fused.root = fused.add(HloInstruction("tuple", shape, results))
    else:
        fused.root = results[0]
    last = roots[-1]
    fusion = HloInstruction(
        "fusion",
        fused.root.shape,
        inputs,
        {"kind": "kLoop" if group.root.opcode != "reduce" else "kInput", "calls": fused},
    )
    fusion.metadata = last.metadata
    fusion.sharding = last.sharding
    computation.add(fusion, name=f"{last.opcode}_fusion", before=last)
    if not many:
        return {last: fusion}
    return {root: _element(computation, fusion, root, n) for n, root in enumerate(roots)}


def _parameter(fused: HloComputation, value: HloInstruction, number: int) -> HloInstruction:
    attrs = {"parameter_number": number}
    return fused.add(HloInstruction("parameter", value.shape, (), attrs), name=f"param_{number}")


def _element(
    computation: HloComputation, fusion: HloInstruction, root: HloInstruction, number: int
) -> HloInstruction:
    gte = HloInstruction("get-tuple-element", root.shape, [fusion], {"index": number})
    gte.metadata = root.metadata
    return computation.add(gte, name=f"{fusion.name}.gte", before=fusion)
