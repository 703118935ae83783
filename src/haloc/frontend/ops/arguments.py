"""How ops read their arguments, and give their results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.frontend.builder import XlaBuilder, XlaOp
from haloc.frontend.messages import PrecisionConfig, ReplicaGroup
from haloc.ir.dtype import DType, dtype_from_number
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Layout, Shape
from haloc.ops.attrs import ReplicaGroups
from haloc.runtime.xla_shape import XlaLayout, XlaShape


def value(op: XlaOp) -> HloInstruction:
    """The instruction of an operand; TypeError for anything else."""
    if not isinstance(op, XlaOp):
        raise TypeError(f"an operand is an XlaOp, not {type(op).__name__}: {op!r}")
    return op.instruction


def values(ops: Iterable[XlaOp]) -> list[HloInstruction]:
    return [value(op) for op in ops]


def add(opcode: str, operands: Sequence[XlaOp], shape: Shape | None = None, **attrs: Any) -> XlaOp:
    """One instruction in the builder of its operands, of which there is at least one."""
    if not operands:
        raise InvalidArgumentError(f"{opcode}: given no operands")
    instructions = values(operands)
    builder = operands[0].builder
    return XlaOp(builder, builder.add(opcode, shape, instructions, **attrs))


def add_to(
    builder: XlaBuilder,
    opcode: str,
    operands: Sequence[XlaOp] = (),
    shape: Shape | None = None,
    name: str = "",
    **attrs: Any,
) -> XlaOp:
    return XlaOp(builder, builder.add(opcode, shape, values(operands), name, **attrs))


def constant(like: XlaOp, number: Any, dtype: DType | None = None) -> XlaOp:
    """A scalar constant of the dtype of `like`."""
    return XlaOp(like.builder, like.builder.constant(number, dtype or like.shape.dtype))


def element_type(primitive_type: int) -> DType:
    return dtype_from_number(int(primitive_type))


def shape_of(shape: XlaShape) -> Shape:
    if not isinstance(shape, XlaShape):
        raise TypeError(f"a shape is a Shape, not {type(shape).__name__}")
    return shape.ir


def layout_of(layout: XlaLayout | None) -> Layout | None:
    return None if layout is None else layout.ir


def ints(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(int(n) for n in numbers)


def groups_of(groups: Iterable[ReplicaGroup | Iterable[int]]) -> ReplicaGroups:
    lists = [g.replica_ids if isinstance(g, ReplicaGroup) else g for g in groups]
    return ReplicaGroups(lists=tuple(ints(g) for g in lists))


def channel(handle: Any) -> dict[str, int]:
    """The channel_id attribute of a ChannelHandle or number, where there is one."""
    if handle is None:
        return {}
    return {"channel_id": int(getattr(handle, "handle", handle))}


def precision(config: PrecisionConfig | None) -> dict[str, Any]:
    """The operand_precision attribute, where it is not the default."""
    words = tuple(p.name.lower() for p in config.operand_precision) if config else ()
    return {"operand_precision": words} if any(w != "default" for w in words) else {}
