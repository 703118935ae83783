"""Where export stands: the MLIR module being made, and the block being filled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.formats.stablehlo.export.annotations import annotations
from haloc.formats.stablehlo.export.locations import Locations
from haloc.formats.stablehlo.export.types import type_of
from haloc.formats.stablehlo.mlir import (
    Attribute,
    Integer,
    Location,
    MlirBlock,
    MlirModule,
    MlirOp,
    MlirRegion,
    MlirType,
    MlirValue,
    Tuple,
)
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape

Tree: TypeAlias = "MlirValue | tuple[Tree, ...]"
"""The value of an instruction. StableHLO returns several values where HLO returns a tuple: tuples
are kept apart, and made only where a tuple must stand."""

Exporter = Callable[["Scope", HloInstruction], Tree]
"""Adds the ops of one instruction and gives its value."""

EXPORTERS: dict[str, Exporter] = {}
"""How each HLO op is exported, by opcode."""


def exports(*opcodes: str) -> Callable[[Exporter], Exporter]:
    """Enters a function into EXPORTERS under these opcodes."""

    def enter(exporter: Exporter) -> Exporter:
        for opcode in opcodes:
            assert opcode not in EXPORTERS, opcode
            EXPORTERS[opcode] = exporter
        return exporter

    return enter


class Program:
    """What all functions of one module share. functions: the symbol of each computation that is
    called, exported when it is first asked for."""

    def __init__(self, source: HloModule, module: MlirModule):
        self.source = source
        self.module = module
        self.locations = Locations()
        self.functions: dict[HloComputation, str] = {}
        self.symbols: set[str] = {"main"}

    def symbol(self, wanted: str) -> str:
        """A name no other function has."""
        name, count = wanted, 1
        while name in self.symbols:
            name, count = f"{wanted}_{count}", count + 1
        self.symbols.add(name)
        return name


class Scope:
    """One block while it is filled, with the values of one computation's instructions."""

    def __init__(self, program: Program, block: MlirBlock):
        self.program = program
        self.block = block
        self.values: dict[HloInstruction, Tree] = {}
        self.location: Location | None = None

    # --- Values ----------------------------------------------------------------------------

    def tree(self, instruction: HloInstruction) -> Tree:
        return self.values[instruction]

    def value(self, instruction: HloInstruction) -> MlirValue:
        """The one value of an instruction; a tuple is made if it has several."""
        return self.one(self.values[instruction])

    def operands(self, instruction: HloInstruction) -> list[MlirValue]:
        return [self.value(o) for o in instruction.operands]

    def one(self, tree: Tree) -> MlirValue:
        if isinstance(tree, MlirValue):
            return tree
        members = [self.one(t) for t in tree]
        type_ = Tuple(tuple(m.type for m in members))
        return self.op("stablehlo.tuple", members, [type_])[0]

    def members(self, tree: Tree) -> tuple[Tree, ...]:
        """The elements of a tuple's value."""
        if not isinstance(tree, MlirValue):
            return tree
        assert isinstance(tree.type, Tuple), tree.type
        return tuple(self.element(tree, i) for i in range(len(tree.type.members)))

    def element(self, tree: Tree, index: int) -> Tree:
        if not isinstance(tree, MlirValue):
            return tree[index]
        assert isinstance(tree.type, Tuple), tree.type
        attributes: dict[str, Attribute] = {"index": Integer(index, "i32")}
        type_ = tree.type.members[index]
        return self.op("stablehlo.get_tuple_element", [tree], [type_], attributes)[0]

    def leaves(self, tree: Tree) -> list[MlirValue]:
        """The values that are no tuples, in order."""
        if isinstance(tree, MlirValue) and not isinstance(tree.type, Tuple):
            return [tree]
        return [leaf for member in self.members(tree) for leaf in self.leaves(member)]

    # --- Operations ------------------------------------------------------------------------

    def op(
        self,
        name: str,
        operands: Iterable[MlirValue],
        types: Sequence[MlirType],
        attributes: dict[str, Attribute] | None = None,
        regions: list[MlirRegion] | None = None,
    ) -> list[MlirValue]:
        """Adds an operation; gives its results."""
        results = [MlirValue(t) for t in types]
        made = MlirOp(name, list(operands), attributes, regions, results, self.location)
        self.block.operations.append(made)
        return results

    def emit(
        self,
        name: str,
        instruction: HloInstruction,
        attributes: dict[str, Attribute] | None = None,
        regions: list[MlirRegion] | None = None,
        operands: Iterable[MlirValue] | None = None,
    ) -> Tree:
        """The operation of an instruction: one result a leaf of its shape, and its annotations."""
        given = self.operands(instruction) if operands is None else operands
        attributes = (attributes or {}) | annotations(instruction)
        leaves = instruction.shape.leaves()
        results = self.op(name, given, [type_of(s) for s in leaves], attributes, regions)
        return tree_of(instruction.shape, results)

    def export(self, instruction: HloInstruction) -> None:
        exporter = EXPORTERS.get(instruction.opcode)
        if exporter is None:
            raise UnimplementedError(
                f"{instruction.opcode}: StableHLO has no op for it ({instruction.name})"
            )
        self.location = self.program.locations.of(instruction)
        self.values[instruction] = exporter(self, instruction)


def refuse_attributes(instruction: HloInstruction, *names: str) -> None:
    """UnimplementedError for attributes that StableHLO's op does not have."""
    for name in names:
        if instruction.attrs.get(name):
            raise UnimplementedError(f"{instruction.opcode}: StableHLO has no attribute {name}")


def tree_of(shape: Shape, leaves: Sequence[MlirValue]) -> Tree:
    """Leaves put together to the tuples of a shape."""
    remaining = iter(leaves)

    def build(part: Shape) -> Tree:
        if not part.is_tuple:
            return next(remaining)
        return tuple(build(e) for e in part.elements)

    return build(shape)


def fill(scope: Scope, computation: HloComputation, arguments: Sequence[Tree]) -> Tree:
    """Export a computation's instructions into the scope's block; gives the root's value.

    arguments: the values of the parameters. Their instructions may differ from those of earlier
    calls: a computation is exported anew wherever it is inlined.
    """
    for parameter, argument in zip(computation.parameters, arguments, strict=True):
        scope.values[parameter] = argument
    for instruction in computation.instructions:
        if instruction.opcode == "parameter":
            continue
        try:
            scope.export(instruction)
        except (InvalidArgumentError, UnimplementedError) as error:
            if not getattr(error, "__notes__", None):
                error.add_note(f"  exporting {instruction!r} of {computation.name}")
            raise
    return scope.values[computation.root]


def region_of(scope: Scope, computation: HloComputation) -> MlirRegion:
    """A region that computes a computation: its block's arguments are the leaves of the
    parameters, it returns the leaves of the root."""
    block = MlirBlock()
    inner = Scope(scope.program, block)
    arguments: list[Tree] = []
    for parameter in computation.parameters:
        leaves = [MlirValue(type_of(s)) for s in parameter.shape.leaves()]
        block.arguments += leaves
        arguments.append(tree_of(parameter.shape, leaves))
    finish(inner, fill(inner, computation, arguments))
    return MlirRegion([block])


def finish(scope: Scope, result: Tree, name: str = "stablehlo.return") -> list[MlirValue]:
    """End a block by returning the leaves of a value; gives them."""
    leaves = scope.leaves(result)
    scope.location = None
    scope.op(name, leaves, [])
    return leaves
