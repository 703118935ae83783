"""send, recv and their dones, infeed, outfeed: values that come from or go to somewhere else."""

from __future__ import annotations

import numpy as np

from haloc.ir import dtype as dt
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, scalar_shape, tuple_shape
from haloc.ops.async_pairs import blank
from haloc.ops.attrs import Bool, OneShape, Text
from haloc.ops.basic import TOKEN_SHAPE
from haloc.ops.collective_rules import CHANNEL, EXAMPLE_DTYPES
from haloc.ops.example import ExampleGraph
from haloc.ops.families import pick_dtype
from haloc.ops.regions import text
from haloc.ops.rules import check_operand_count, label, operand_name
from haloc.ops.table import Attr, Effect, Evaluator, OpDef, Structure, attr, invalid, register

HOST_TRANSFER = Attr("is_host_transfer", Bool(), False)
TRANSFER_ATTRS = (CHANNEL, HOST_TRANSFER)
NUMBER = scalar_shape(dt.U32)


def _check_token(instruction: HloInstruction, number: int) -> None:
    check_operand_count(instruction)
    shape = instruction.operands[number].shape
    if not shape.is_token:
        name = operand_name(instruction, number)
        invalid(instruction, f"{name} must be a token, got {text(shape)}")


def _check_data(instruction: HloInstruction, data: Shape) -> None:
    if any(leaf.is_token for leaf in data.leaves()):
        invalid(instruction, f"moves {text(data)}, in which is a token")


# --- send, send-done -----------------------------------------------------------------------------


def _infer_send(instruction: HloInstruction) -> Shape:
    _check_token(instruction, 1)
    data = instruction.operands[0].shape
    _check_data(instruction, data)
    return tuple_shape(data, NUMBER, TOKEN_SHAPE)


def _evaluate_send(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    return (operands[0], np.asarray(context.send(instruction, operands[0]), np.uint32), None)


def _check_begun(instruction: HloInstruction) -> Shape:
    """The data moved by the send or recv that the operand comes from, which agrees with this."""
    check_operand_count(instruction)
    begun = instruction.operands[0]
    elements = begun.shape.elements
    if len(elements) != 3 or not elements[2].is_token or not elements[1].compatible(NUMBER):
        wanted = "a tuple (data, u32[], token[])"
        invalid(instruction, f"operand is {text(begun.shape)}, wanted {wanted}")
    if begun.opcode == instruction.opcode.removesuffix("-done"):
        for name in ("channel_id", "is_host_transfer"):
            here, there = attr(instruction, name), attr(begun, name)
            if here != there:
                invalid(instruction, f"{name}={here}, but {begun.name} has {there}")
    return elements[0]


def _infer_send_done(instruction: HloInstruction) -> Shape:
    _check_begun(instruction)
    return TOKEN_SHAPE


def _evaluate_send_done(_: HloInstruction, values: list[Value], __: Evaluator) -> Value:
    return None


# --- recv, recv-done -----------------------------------------------------------------------------


def _infer_recv(instruction: HloInstruction) -> Shape:
    _check_token(instruction, 0)
    elements = instruction.shape.elements
    if len(elements) != 3:
        wanted = "a tuple (data, u32[], token[])"
        invalid(instruction, f"the result is {text(instruction.shape)}, wanted {wanted}")
    _check_data(instruction, elements[0])
    return tuple_shape(elements[0], NUMBER, TOKEN_SHAPE)


def _evaluate_recv(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    transfer = np.asarray(context.receive(instruction), np.uint32)
    return (blank(instruction.shape.elements[0]), transfer, None)


def _infer_recv_done(instruction: HloInstruction) -> Shape:
    return tuple_shape(_check_begun(instruction), TOKEN_SHAPE)


def _evaluate_recv_done(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    """What was sent; zeros where no participant sends to this one."""
    (begun,) = operands
    assert isinstance(begun, tuple)
    value = context.received(instruction, int(np.asarray(begun[1])))
    return (begun[0] if value is None else value, None)


def _example_transfer(graph: ExampleGraph) -> HloInstruction:
    """A participant that sends to itself."""
    data = graph.operand(pick_dtype(graph, EXAMPLE_DTYPES), graph.dims())
    state = tuple_shape(data.shape, NUMBER, TOKEN_SHAPE)
    channel = 1 + sum(i.opcode == "send" for i in graph.computation.instructions)
    token = graph.add("after-all", TOKEN_SHAPE)
    sent = graph.add("send", state, [data, token], channel_id=channel)
    token = graph.add("send-done", TOKEN_SHAPE, [sent], channel_id=channel)
    begun = graph.add("recv", state, [token], channel_id=channel)
    result = tuple_shape(data.shape, TOKEN_SHAPE)
    done = graph.add("recv-done", result, [begun], channel_id=channel)
    return graph.add("get-tuple-element", data.shape, [done], index=0)


for _opcode, _operands, _infer, _evaluate in (
    ("send", ("operand", "token"), _infer_send, _evaluate_send),
    ("send-done", ("operand",), _infer_send_done, _evaluate_send_done),
    ("recv", ("token",), _infer_recv, _evaluate_recv),
    ("recv-done", ("operand",), _infer_recv_done, _evaluate_recv_done),
):
    register(
        OpDef(
            opcode=_opcode,
            operands=_operands,
            attrs=TRANSFER_ATTRS,
            infer=_infer,
            evaluate=_evaluate,
            any_size=True,
            lower=Structure.POINT_TO_POINT,
            effect=Effect.SIDE_EFFECT,
            example=_example_transfer,
            spec=_opcode.removesuffix("-done"),
        )
    )


# --- infeed, outfeed -----------------------------------------------------------------------------


def _infer_infeed(instruction: HloInstruction) -> Shape:
    _check_token(instruction, 0)
    elements = instruction.shape.elements
    if len(elements) != 2:
        wanted = "a tuple (data, token[])"
        invalid(instruction, f"the result is {text(instruction.shape)}, wanted {wanted}")
    _check_data(instruction, elements[0])
    return tuple_shape(elements[0], TOKEN_SHAPE)


def _evaluate_infeed(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    return (context.infeed(instruction.shape.elements[0]), None)


def _example_infeed(graph: ExampleGraph) -> HloInstruction:
    data = Shape(pick_dtype(graph, EXAMPLE_DTYPES), graph.dims())
    token = graph.add("after-all", TOKEN_SHAPE)
    fed = graph.add("infeed", tuple_shape(data, TOKEN_SHAPE), [token])
    return graph.add("get-tuple-element", data, [fed], index=0)


register(
    OpDef(
        opcode="infeed",
        operands=("token",),
        attrs=(Attr("infeed_config", Text(), ""),),
        infer=_infer_infeed,
        evaluate=_evaluate_infeed,
        any_size=True,
        lower=Structure.HOST,
        effect=Effect.SIDE_EFFECT,
        example=_example_infeed,
        spec="infeed",
    )
)


def _infer_outfeed(instruction: HloInstruction) -> Shape:
    _check_token(instruction, 1)
    data, stated = instruction.operands[0].shape, attr(instruction, "outfeed_shape")
    _check_data(instruction, data)
    if stated is not None and not stated.compatible(data):
        fault = f"outfeed_shape is {text(stated)}, but the operand is {text(data)}"
        invalid(instruction, fault, label(instruction, "i1"))
    return TOKEN_SHAPE


def _evaluate_outfeed(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    context.outfeed(operands[0])
    return None


def _example_outfeed(graph: ExampleGraph) -> HloInstruction:
    data = graph.operand(pick_dtype(graph, EXAMPLE_DTYPES), graph.dims())
    token = graph.add("after-all", TOKEN_SHAPE)
    return graph.add("outfeed", TOKEN_SHAPE, [data, token], outfeed_shape=data.shape)


register(
    OpDef(
        opcode="outfeed",
        operands=("operand", "token"),
        attrs=(Attr("outfeed_shape", OneShape(), None), Attr("outfeed_config", Text(), "")),
        infer=_infer_outfeed,
        evaluate=_evaluate_outfeed,
        any_size=True,
        lower=Structure.HOST,
        effect=Effect.SIDE_EFFECT,
        example=_example_outfeed,
        spec="outfeed",
    )
)
