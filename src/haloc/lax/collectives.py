"""Collectives over named axes, whose sizes `axis_env` gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from haloc.frontend.builder import XlaOp
from haloc.frontend.elementary import convert, emit, full, wrap
from haloc.frontend.ops import collectives as ops
from haloc.frontend.ops.structured import scalar_computation
from haloc.frontend.pytree import tree_map
from haloc.frontend.tracer import Trace, TracedArray, current_trace
from haloc.ir.dtype import S32

AxisName = Any


def _trace() -> Trace:
    trace = current_trace()
    if trace is None:
        raise NameError("unbound axis name: collectives run in functions that are being traced")
    return trace


def _names(axis_name: AxisName) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)


def _grid(trace: Trace, names: Sequence[Any]) -> tuple[np.ndarray, list[int]]:
    """Replica numbers shaped as the mapped axes; which of those the names are."""
    known = [name for name, _ in trace.axis_env]
    for name in names:
        if name not in known:
            raise NameError(
                f"unbound axis name: {name}. The following axis names are in scope: {known}"
            )
    sizes = [size for _, size in trace.axis_env]
    return np.arange(int(np.prod(sizes))).reshape(sizes), [known.index(name) for name in names]


def replica_groups(
    axis_name: AxisName, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> list[list[int]]:
    """The replicas that work together along these axes; axis_index_groups: parts of them."""
    grid, axes = _grid(_trace(), _names(axis_name))
    rows = np.moveaxis(grid, axes, range(-len(axes), 0))
    rows = rows.reshape(-1, int(np.prod(rows.shape[rows.ndim - len(axes) :])))
    if axis_index_groups is None:
        return rows.tolist()
    return [row[list(group)].tolist() for row in rows for group in axis_index_groups]


def axis_size(axis_name: AxisName) -> int:
    """How many participants an axis, or several together, has."""
    return len(replica_groups(axis_name)[0])


def _all_reduce(opcode: str, x: Any, axis_name: AxisName, groups: Any) -> Any:
    lists = replica_groups(axis_name, groups)

    def one(leaf: Any) -> TracedArray:
        leaf = _trace().lift(leaf)
        if leaf.element_type.is_pred:
            leaf = convert(leaf, S32)
        region = scalar_computation(opcode, leaf.op.shape, "region_0")
        return wrap(leaf, ops.AllReduce(leaf.op, region, lists))

    return tree_map(one, x)


def psum(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The sum over mapped axes; of a Python number its product with the number of participants."""
    if isinstance(x, int | float) and not isinstance(x, np.generic):
        return x * len(replica_groups(axis_name, axis_index_groups)[0])
    return _all_reduce("add", x, axis_name, axis_index_groups)


def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    return _all_reduce("maximum", x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    return _all_reduce("minimum", x, axis_name, axis_index_groups)


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    count = len(replica_groups(axis_name, axis_index_groups)[0])
    total = psum(tree_map(_trace().lift, x), axis_name, axis_index_groups=axis_index_groups)
    return tree_map(lambda leaf: leaf / count, total)


def all_gather(
    x: Any,
    axis_name: AxisName,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
) -> Any:
    """The arrays of all participants along `axis`, a new one unless tiled."""
    lists = replica_groups(axis_name, axis_index_groups)

    def one(leaf: Any) -> TracedArray:
        leaf = _trace().lift(leaf)
        if not tiled:
            dims = (*leaf.shape[:axis], 1, *leaf.shape[axis:])
            leaf = emit("reshape", [leaf], leaf.op.shape.with_dims(dims))
        return wrap(leaf, ops.AllGather(leaf.op, axis, len(lists[0]), lists))

    return tree_map(one, x)


def psum_scatter(
    x: Any,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """The sum, of which each participant keeps one piece along a dimension."""
    lists = replica_groups(axis_name, axis_index_groups)

    def one(leaf: Any) -> TracedArray:
        leaf = _trace().lift(leaf)
        region = scalar_computation("add", leaf.op.shape, "region_0")
        found = wrap(
            leaf, ops.ReduceScatter(leaf.op, region, scatter_dimension, len(lists[0]), lists)
        )
        if tiled:
            return found
        dims = [s for d, s in enumerate(found.shape) if d != scatter_dimension]
        return emit("reshape", [found], found.op.shape.with_dims(tuple(dims)))

    return tree_map(one, x)


def all_to_all(
    x: Any,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Each participant's parts along split_axis go to the others, who join them."""
    lists = replica_groups(axis_name, axis_index_groups)
    count = len(lists[0])

    def one(leaf: Any) -> TracedArray:
        leaf = _trace().lift(leaf)
        if not tiled and leaf.shape[split_axis] != count:
            raise ValueError(
                f"all_to_all requires the size of the mapped axis axis_name to equal "
                f"x.shape[split_axis], but they are {count} and {leaf.shape[split_axis]}"
            )
        if tiled:
            return wrap(leaf, ops.AllToAll(leaf.op, split_axis, concat_axis, count, lists))
        swapped = wrap(leaf, ops.AllToAll(leaf.op, split_axis, split_axis, count, lists))
        order = [d for d in range(leaf.ndim) if d != split_axis]
        order.insert(concat_axis, split_axis)
        return emit("transpose", [swapped], dimensions=tuple(order))

    return tree_map(one, x)


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Arrays go along (source, target) pairs; who is no target gets zeros."""
    rows = replica_groups(axis_name)
    pairs = [(row[source], row[target]) for row in rows for source, target in perm]

    def one(leaf: Any) -> TracedArray:
        leaf = _trace().lift(leaf)
        return wrap(leaf, ops.CollectivePermute(leaf.op, pairs))

    return tree_map(one, x)


def axis_index(axis_name: AxisName) -> TracedArray:
    """s32[]: this participant's place along an axis, or along several together."""
    trace = _trace()
    grid, axes = _grid(trace, _names(axis_name))
    replica = TracedArray(trace, XlaOp(trace.builder, trace.builder.add("replica-id")))
    total: TracedArray | None = None
    for axis in axes:
        stride = int(np.prod(grid.shape[axis + 1 :]))
        place = replica
        for opcode, number in (("divide", stride), ("remainder", grid.shape[axis])):
            place = emit(opcode, [place, full(place, number, place.element_type)])
        place = convert(place, S32)
        if total is not None:
            scaled = emit("multiply", [total, full(total, grid.shape[axis], S32)])
            place = emit("add", [scaled, place])
        total = place
    assert total is not None
    return total
