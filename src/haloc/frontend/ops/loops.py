"""Loops for ops that are defined by iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from haloc.frontend.builder import XlaBuilder, XlaOp
from haloc.frontend.ops.arguments import add, add_to
from haloc.frontend.ops.structured import Tuple, While, elements, scalar_computation
from haloc.ir.shape import tuple_shape

Step = Callable[[XlaBuilder, XlaOp, list[XlaOp]], list[XlaOp]]


def repeat(
    count: int,
    state: Sequence[XlaOp],
    step: Step,
    goes_on: Callable[[list[XlaOp]], XlaOp] | None = None,
) -> list[XlaOp]:
    """`state` after `count` steps; step(builder, i, state) gives the state after step i, an s32[].

    goes_on: a pred array of the state; the loop ends, too, when it is false everywhere. What a step
    needs besides is part of the state.
    """
    outer = state[0].builder
    start = Tuple(outer, [XlaOp(outer, outer.constant(np.int32(0))), *state])
    shape = tuple_shape(*(e.shape for e in elements(start)))
    condition, body = XlaBuilder("condition"), XlaBuilder("body")
    i, *members = elements(add_to(condition, "parameter", (), shape, parameter_number=0))
    limit = XlaOp(condition, condition.constant(np.int32(count)))
    more = add("compare", [i, limit], direction="LT")
    if goes_on is not None:
        add("and", [more, _any(goes_on(members))])
    i, *members = elements(add_to(body, "parameter", (), shape, parameter_number=0))
    after = step(body, i, members)
    one = XlaOp(body, body.constant(np.int32(1)))
    Tuple(body, [add("add", [i, one]), *after])
    return elements(While(condition.build(), body.build(), start))[1:]


def _any(mask: XlaOp) -> XlaOp:
    region = mask.builder.embed(scalar_computation("or", mask.shape))
    false = XlaOp(mask.builder, mask.builder.constant(np.False_))
    dims = tuple(range(mask.shape.rank))
    return add("reduce", [mask, false], dimensions=dims, to_apply=region)
