"""Ops that call computations: what they call becomes a region, a function, or part of the block."""

from __future__ import annotations

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.formats.stablehlo.convert.rows import I64, INTS, dense
from haloc.formats.stablehlo.export.context import (
    Program,
    Scope,
    Tree,
    exports,
    fill,
    finish,
    region_of,
    tree_of,
)
from haloc.formats.stablehlo.export.types import type_of
from haloc.formats.stablehlo.mlir import (
    Attribute,
    DenseElements,
    Function,
    Integer,
    MlirBlock,
    MlirOp,
    MlirRegion,
    MlirValue,
    RankedTensor,
    SymbolRef,
)
from haloc.formats.stablehlo.text.attributes import read_dictionary
from haloc.ir.dtype import PRED
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ops.attrs import WindowDim
from haloc.ops.control import branch_operand, branches
from haloc.ops.table import attr

# --- Functions -----------------------------------------------------------------------------------


def function_of(program: Program, computation: HloComputation) -> str:
    """The symbol of the function that computes a computation: its arguments are the leaves of the
    parameters, its results those of the root. Exported at its first call."""
    known = program.functions.get(computation)
    if known is not None:
        return known
    name = program.functions[computation] = program.symbol(computation.name)
    region = MlirRegion([MlirBlock()])
    scope = Scope(program, region.blocks[0])
    arguments: list[Tree] = []
    for parameter in computation.parameters:
        leaves = [MlirValue(type_of(s)) for s in parameter.shape.leaves()]
        region.blocks[0].arguments += leaves
        arguments.append(tree_of(parameter.shape, leaves))
    results = finish(scope, fill(scope, computation, arguments), "func.return")
    types = Function(
        tuple(a.type for a in region.blocks[0].arguments), tuple(r.type for r in results)
    )
    attributes: dict[str, Attribute] = {
        "function_type": types,
        "sym_name": name,
        "sym_visibility": "private",
    }
    program.module.operations.append(MlirOp("func.func", [], attributes, [region]))
    return name


def _arguments(scope: Scope, instruction: HloInstruction) -> list[MlirValue]:
    return [leaf for o in instruction.operands for leaf in scope.leaves(scope.tree(o))]


@exports("call")
def _call(scope: Scope, instruction: HloInstruction) -> Tree:
    name = SymbolRef(function_of(scope.program, attr(instruction, "to_apply")))
    operands = _arguments(scope, instruction)
    if not attr(instruction, "is_composite"):
        return scope.emit("func.call", instruction, {"callee": name}, operands=operands)
    frontend = instruction.frontend_attributes
    attributes: dict[str, Attribute] = {
        "name": frontend.get("composite.name", name.name),
        "decomposition": name,
        "version": Integer(int(frontend.get("composite.version", "0")), "i32"),
    }
    given = read_dictionary(frontend.get("composite.attributes", "{}"))
    if given:
        attributes["composite_attributes"] = given
    types = [type_of(s) for s in instruction.shape.leaves()]
    results = scope.op("stablehlo.composite", operands, types, attributes)
    return tree_of(instruction.shape, results)


@exports("fusion")
def _fusion(scope: Scope, instruction: HloInstruction) -> Tree:
    """A fusion says how to compute, not what: its computation stands in its place."""
    return inlined(scope, instruction, attr(instruction, "calls"))


def inlined(scope: Scope, instruction: HloInstruction, computation: HloComputation) -> Tree:
    inner = Scope(scope.program, scope.block)
    return fill(inner, computation, [scope.tree(o) for o in instruction.operands])


@exports("async-start")
def _async_start(scope: Scope, instruction: HloInstruction) -> Tree:
    """What runs beside the rest runs here at once; its -update and -done pass the value on."""
    return inlined(scope, instruction, attr(instruction, "calls"))


@exports("async-update", "async-done", "copy-start", "copy-done")
def _pass_on(scope: Scope, instruction: HloInstruction) -> Tree:
    return scope.tree(instruction.operands[0])


# --- Control flow --------------------------------------------------------------------------------


@exports("while")
def _while(scope: Scope, instruction: HloInstruction) -> Tree:
    regions = [region_of(scope, attr(instruction, name)) for name in ("condition", "body")]
    operands = _arguments(scope, instruction)
    return scope.emit("stablehlo.while", instruction, {}, regions, operands)


@exports("conditional")
def _conditional(scope: Scope, instruction: HloInstruction) -> Tree:
    """The branches see the operands from outside, instead of arguments."""
    index = scope.value(instruction.operands[0])
    listed = branches(instruction)
    operands = [instruction.operands[branch_operand(instruction, n)] for n in range(len(listed))]
    regions = []
    for computation, operand in zip(listed, operands, strict=True):
        block = MlirBlock()
        inner = Scope(scope.program, block)
        finish(inner, fill(inner, computation, [scope.tree(operand)]))
        regions.append(MlirRegion([block]))
    name = "stablehlo.case"
    if instruction.operands[0].shape.dtype is PRED:
        name = "stablehlo.if"
        if not attr(instruction, "branch_computations"):
            regions.reverse()  # listed by number here, false first; StableHLO has true first
    return scope.emit(name, instruction, {}, regions, [index])


# --- Reductions ----------------------------------------------------------------------------------


def _applied(scope: Scope, instruction: HloInstruction) -> list[MlirRegion]:
    return [region_of(scope, attr(instruction, "to_apply"))]


@exports("reduce", "map")
def _over_dimensions(scope: Scope, instruction: HloInstruction) -> Tree:
    attributes: dict[str, Attribute] = {"dimensions": INTS.write(attr(instruction, "dimensions"))}
    if instruction.opcode == "map" and not attr(instruction, "dimensions"):
        attributes["dimensions"] = INTS.write(range(instruction.shape.rank))
    name = f"stablehlo.{instruction.opcode}"
    return scope.emit(name, instruction, attributes, _applied(scope, instruction))


@exports("sort")
def _sort(scope: Scope, instruction: HloInstruction) -> Tree:
    attributes: dict[str, Attribute] = {
        "dimension": I64.write(attr(instruction, "dimensions")),
        "is_stable": attr(instruction, "is_stable"),
    }
    return scope.emit("stablehlo.sort", instruction, attributes, _applied(scope, instruction))


def _window(instruction: HloInstruction) -> tuple[WindowDim, ...]:
    window = attr(instruction, "window")
    return window or (WindowDim(1),) * instruction.operands[0].shape.rank


def _window_attributes(window: tuple[WindowDim, ...]) -> dict[str, Attribute]:
    pairs = np.array([(w.padding_low, w.padding_high) for w in window], np.int64).reshape(-1, 2)
    return {
        "window_dimensions": INTS.write([w.size for w in window]),
        "window_strides": INTS.write([w.stride for w in window]),
        "padding": dense(pairs),
    }


@exports("reduce-window")
def _reduce_window(scope: Scope, instruction: HloInstruction) -> Tree:
    window = _window(instruction)
    if any(w.reversal for w in window):
        raise InvalidArgumentError("reduce-window: StableHLO has no reversed windows")
    attributes = _window_attributes(window) | {
        "base_dilations": INTS.write([w.base_dilation for w in window]),
        "window_dilations": INTS.write([w.window_dilation for w in window]),
    }
    regions = _applied(scope, instruction)
    return scope.emit("stablehlo.reduce_window", instruction, attributes, regions)


@exports("select-and-scatter")
def _select_and_scatter(scope: Scope, instruction: HloInstruction) -> Tree:
    attributes = _window_attributes(_window(instruction))
    regions = [region_of(scope, attr(instruction, name)) for name in ("select", "scatter")]
    return scope.emit("stablehlo.select_and_scatter", instruction, attributes, regions)


@exports("scan")
def _scan(scope: Scope, instruction: HloInstruction) -> Tree:
    carries = attr(instruction, "num_carries")
    (dimension,) = attr(instruction, "dimensions")
    results = len(instruction.shape.leaves())
    attributes: dict[str, Attribute] = {
        "dimension": I64.write(dimension),
        "is_reverse": attr(instruction, "is_reverse"),
        "operandSegmentSizes": _segments(len(instruction.operands) - carries, carries),
        "resultSegmentSizes": _segments(results - carries, carries),
    }
    if attr(instruction, "is_associative") in ("true", "false"):
        attributes["is_associative"] = attr(instruction, "is_associative") == "true"
    return scope.emit("chlo.scan", instruction, attributes, _applied(scope, instruction))


def _segments(*sizes: int) -> Attribute:
    return DenseElements(RankedTensor((len(sizes),), "i32"), np.array(sizes, np.int32))
