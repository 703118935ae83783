"""Tuples, tokens, barriers, and transfers with the host."""

from __future__ import annotations

from haloc.formats.stablehlo.export.context import Scope, Tree, exports
from haloc.formats.stablehlo.export.types import type_of
from haloc.formats.stablehlo.mlir import Attribute, Struct, Token
from haloc.ir.module import HloInstruction
from haloc.ops.table import attr


@exports("tuple")
def _tuple(scope: Scope, instruction: HloInstruction) -> Tree:
    return tuple(scope.tree(o) for o in instruction.operands)


@exports("get-tuple-element")
def _get_tuple_element(scope: Scope, instruction: HloInstruction) -> Tree:
    return scope.element(scope.tree(instruction.operands[0]), attr(instruction, "index"))


@exports("opt-barrier")
def _barrier(scope: Scope, instruction: HloInstruction) -> Tree:
    operands = scope.leaves(scope.tree(instruction.operands[0]))
    return scope.emit("stablehlo.optimization_barrier", instruction, operands=operands)


@exports("after-all")
def _after_all(scope: Scope, instruction: HloInstruction) -> Tree:
    name = "stablehlo.after_all" if instruction.operands else "stablehlo.create_token"
    return scope.emit(name, instruction)


@exports("add-dependency", "domain")
def _operand(scope: Scope, instruction: HloInstruction) -> Tree:
    """Order and shardings are carried by the values that are there already."""
    return scope.tree(instruction.operands[0])


# --- The host ------------------------------------------------------------------------------------


@exports("infeed")
def _infeed(scope: Scope, instruction: HloInstruction) -> Tree:
    attributes: dict[str, Attribute] = {}
    if attr(instruction, "infeed_config"):
        attributes["infeed_config"] = attr(instruction, "infeed_config")
    return scope.emit("stablehlo.infeed", instruction, attributes)


@exports("outfeed")
def _outfeed(scope: Scope, instruction: HloInstruction) -> Tree:
    attributes: dict[str, Attribute] = {}
    if attr(instruction, "outfeed_config"):
        attributes["outfeed_config"] = attr(instruction, "outfeed_config")
    data, token = instruction.operands
    operands = [*scope.leaves(scope.tree(data)), scope.value(token)]
    return scope.emit("stablehlo.outfeed", instruction, attributes, operands=operands)


DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE = 1, 2, 3
"""Types of channels."""


def channel(number: int, kind: int) -> Attribute:
    return Struct("stablehlo.channel_handle", {"handle": number, "type": kind})


def _channel(instruction: HloInstruction, of_host: int) -> dict[str, Attribute]:
    is_host = attr(instruction, "is_host_transfer")
    kind = of_host if is_host else DEVICE_TO_DEVICE
    return {
        "channel_handle": channel(attr(instruction, "channel_id"), kind),
        "is_host_transfer": is_host,
    }


@exports("send")
def _send(scope: Scope, instruction: HloInstruction) -> Tree:
    """The token; send-done gives it."""
    data, token = instruction.operands
    operands = [*scope.leaves(scope.tree(data)), scope.value(token)]
    attributes = _channel(instruction, DEVICE_TO_HOST)
    return scope.op("stablehlo.send", operands, [Token()], attributes)[0]


@exports("recv")
def _recv(scope: Scope, instruction: HloInstruction) -> Tree:
    """(data, token); recv-done gives them."""
    leaves = instruction.shape.elements[0].leaves()
    types = [*(type_of(s) for s in leaves), Token()]
    operands = scope.operands(instruction)
    made = scope.op("stablehlo.recv", operands, types, _channel(instruction, HOST_TO_DEVICE))
    data: Tree = tuple(made[:-1]) if instruction.shape.elements[0].is_tuple else made[0]
    return data, made[-1]


@exports("send-done", "recv-done")
def _done(scope: Scope, instruction: HloInstruction) -> Tree:
    return scope.tree(instruction.operands[0])
