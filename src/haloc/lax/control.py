"""Control flow that stays in the program. Functions may use traced arrays of their surroundings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from haloc.frontend.builder import XlaBuilder, XlaOp
from haloc.frontend.elementary import convert, emit, full, wrap
from haloc.frontend.pytree import LEAF, TreeDef, flatten, tree_map
from haloc.frontend.staging import staged
from haloc.frontend.tracer import Region, TracedArray, current_trace
from haloc.ir.dtype import S32
from haloc.ir.shape import Shape, tuple_shape
from haloc.runtime.xla_computation import XlaComputation


def _tupled(
    region: Region, shape: Shape, places: Sequence[int], keep: int | None
) -> XlaComputation:
    """The region on one tuple: its parameters are the members at `places`. Its result is a tuple of
    its results and the members from `keep` on; with None, its one result."""
    builder = XlaBuilder(region.name)
    whole = builder.add("parameter", shape, (), "arg_tuple", parameter_number=0)
    members = [
        builder.add("get-tuple-element", None, [whole], index=n) for n in range(len(shape.elements))
    ]
    results = builder.inline(region.computation, [members[p] for p in places])
    if keep is None:
        return builder.build(XlaOp(builder, results[0]))
    return builder.build(XlaOp(builder, builder.add("tuple", None, [*results, *members[keep:]])))


def _members(whole: TracedArray, like: Sequence[TracedArray]) -> list[TracedArray]:
    return [
        emit("get-tuple-element", [whole], weak=x.weak_type, index=n) for n, x in enumerate(like)
    ]


def _same_types(what: str, before: Sequence[TracedArray], after: Sequence[TracedArray]) -> None:
    for x, y in zip(before, after):
        if x.op.shape != y.op.shape:
            raise TypeError(
                f"{what} output and input must have identical types, got "
                f"{y.op.shape.to_string(False)} and {x.op.shape.to_string(False)}"
            )


def _same_tree(what: str, before: TreeDef, after: TreeDef) -> None:
    if before != after:
        raise TypeError(f"{what} output and input trees differ: {after} and {before}")


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """body_fun of the value again and again, while cond_fun of it is true."""
    return _while(init_val, cond_fun, body_fun)


@staged(1)
def _while(init: Any, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any]) -> Any:
    leaves, tree = flatten(init)
    one = TreeDef(tuple, None, (tree,))
    body = Region("body", body_fun, leaves, one)
    # A weak start takes the type that a round gives it.
    if [r.op.shape for r in body.results] != [x.op.shape for x in leaves] and len(leaves) == len(
        body.results
    ):
        leaves = [
            convert(x, r.element_type) if x.weak_type else x for x, r in zip(leaves, body.results)
        ]
        body = Region("body", body_fun, leaves, one)
    condition = Region("condition", cond_fun, leaves, one)
    _same_tree("body_fun", tree, body.tree)
    _same_types("body_fun", leaves, body.results)
    if condition.tree != LEAF or condition.results[0].op.shape.to_string(False) != "pred[]":
        raise TypeError(f"cond_fun must return a boolean scalar, got {condition.results}")
    state = [*leaves, *condition.captured, *body.captured]
    count, middle = len(leaves), len(leaves) + len(condition.captured)
    start = leaves[0].trace if leaves else body.trace.outer
    assert start is not None
    whole = XlaOp(
        start.builder, start.builder.add("tuple", None, [x.op.instruction for x in state])
    )
    shape = tuple_shape(*(x.op.shape for x in state))
    for_body = [*range(count), *range(middle, len(state))]
    regions = {
        "condition": start.builder.embed(_tupled(condition, shape, range(middle), None)),
        "body": start.builder.embed(_tupled(body, shape, for_body, count)),
    }
    found = emit("while", [TracedArray(start, whole)], **regions)
    weak = [wrap(x, x.op, x.weak_type and r.weak_type) for x, r in zip(leaves, body.results)]
    return tree.unflatten(_members(found, weak))


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """body_fun(i, value) for i from lower to upper."""

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        i, limit, value = state
        return i + 1, limit, body_fun(i, value)

    state = (lower, upper, init_val)
    return while_loop(lambda s: s[0] < s[1], step, state)[2]


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """true_fun or false_fun of the operands."""
    return _cond((pred, operands), (false_fun, true_fun))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """The branch of this number, the nearest where there is none."""
    if not branches:
        raise ValueError("Empty branch sequence")
    return _cond((index, operands), tuple(branches))


@staged(1)
def _cond(given: Any, branches: Sequence[Callable[..., Any]]) -> Any:
    chooser, operands = given
    if chooser.shape:
        raise TypeError(f"Pred must be a scalar, got {chooser} of shape {chooser.shape}.")
    if len(branches) != 2 or not chooser.element_type.is_pred:
        limits = (full(chooser, n, chooser.element_type) for n in (0, len(branches) - 1))
        low, high = limits
        chooser = emit("clamp", [low, chooser, high])
    chooser = convert(chooser, S32)
    leaves, tree = flatten(operands)
    regions = [Region(f"branch_{n}", f, leaves, tree) for n, f in enumerate(branches)]
    first = regions[0]
    for region in regions[1:]:
        _same_tree("branch", first.tree, region.tree)
        _same_types("branch", first.results, region.results)
    builder, tuples, computations = chooser.trace.builder, [], []
    for region in regions:
        inputs = [*leaves, *region.captured]
        tuples.append(builder.add("tuple", None, [x.op.instruction for x in inputs]))
        shape = tuple_shape(*(x.op.shape for x in inputs))
        computation = _tupled(region, shape, range(len(inputs)), len(inputs))
        computations.append(builder.embed(computation))
    wholes = [TracedArray(chooser.trace, XlaOp(builder, t)) for t in tuples]
    found = emit("conditional", [chooser, *wholes], branch_computations=tuple(computations))
    return first.tree.unflatten(_members(found, first.results))


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """(carry, y) = f(carry, x) along the leading dimension of xs; the last carry, and the ys.

    unroll: how many steps a round of the loop takes, for the compiler to choose here.
    """
    sizes = {
        np.shape(x)[0] if not isinstance(x, TracedArray) else x.shape[0] for x in flatten(xs)[0]
    }
    if length is not None:
        sizes.add(int(length))
    if len(sizes) != 1:
        raise ValueError(f"scan got values with different leading axis sizes: {sorted(sizes)}")
    return _scan((init, xs), f, sizes.pop(), reverse)


@staged(1)
def _scan(given: Any, f: Callable[..., Any], length: int, reverse: bool) -> tuple[Any, Any]:
    init, xs = given
    trace = current_trace()
    assert trace is not None

    def at(i: TracedArray) -> Any:
        return tree_map(lambda x: _row(trace_of(x), i), xs)

    def trace_of(x: TracedArray) -> TracedArray:
        inner = current_trace()
        assert inner is not None
        return inner.lift(x)

    # One step on its own tells the types of the results.
    leaves, tree = flatten((init, tree_map(lambda x: _row(x, trace.lift(0)), xs)))
    probe = Region("probe", f, leaves, tree)
    (_, ys_tree) = probe.tree.members
    count = probe.tree.members[0].num_leaves
    buffers = [
        full(trace.lift(0), 0, r.element_type, (length, *r.shape)) for r in probe.results[count:]
    ]

    def step(state: Any) -> Any:
        i, carry, found = state
        place = (length - 1) - i if reverse else i
        carry, y = f(carry, at(place))
        rows = [trace_of(leaf) for leaf in flatten(y)[0]]
        return i + 1, carry, [_with_row(b, row, place) for b, row in zip(found, rows)]

    state = (trace.lift(np.int32(0)), init, buffers)
    _, carry, found = while_loop(lambda s: s[0] < length, step, state)
    return carry, ys_tree.unflatten(found)


def _starts(x: TracedArray, i: TracedArray) -> list[TracedArray]:
    return [convert(i, S32), *(full(i, 0, S32) for _ in x.shape[1:])]


def _row(x: TracedArray, i: TracedArray) -> TracedArray:
    sizes = (1, *x.shape[1:])
    row = emit("dynamic-slice", [x, *_starts(x, i)], weak=x.weak_type, dynamic_slice_sizes=sizes)
    return emit("reshape", [row], x.op.shape.with_dims(x.shape[1:]), x.weak_type)


def _with_row(x: TracedArray, row: TracedArray, i: TracedArray) -> TracedArray:
    thick = emit("reshape", [row], row.op.shape.with_dims((1, *row.shape)))
    return emit("dynamic-update-slice", [x, thick, *_starts(x, i)])


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """f of each row of xs."""
    return scan(lambda _, x: ((), f(x)), (), xs)[1]
