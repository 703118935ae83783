"""NumPy's functions that make, join, reorder, reduce and multiply arrays."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from math import prod as product
from typing import Any

import numpy as np

from haloc.frontend.dtypes import element_type
from haloc.frontend.elementary import (
    axes_of,
    broadcast,
    convert,
    emit,
    full,
    full_like,
    promote,
    wrap,
)
from haloc.frontend.elementary import broadcast_to as _broadcast_to
from haloc.frontend.ops.structured import scalar_computation
from haloc.frontend.staging import staged
from haloc.frontend.tracer import TracedArray
from haloc.ir.dtype import F32, PRED, S32, U32
from haloc.ir.shape import Shape


@staged(1)
def array(object: Any, dtype: Any = None) -> TracedArray:
    """An array of an array or number."""
    return object if dtype is None else convert(object, element_type(dtype))


asarray = array


@staged(1)
def reshape(a: TracedArray, shape: int | tuple[int, ...]) -> TracedArray:
    """One size may be -1."""
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if -1 in sizes:
        rest = -product(sizes)
        sizes[sizes.index(-1)] = a.size // rest if rest else 0
    if product(sizes) != a.size:
        raise TypeError(f"cannot reshape array of shape {a.shape} into shape {tuple(sizes)}")
    return emit("reshape", [a], a.op.shape.with_dims(tuple(sizes)), a.weak_type)


@staged(1)
def ravel(a: TracedArray) -> TracedArray:
    return emit("reshape", [a], a.op.shape.with_dims((a.size,)), a.weak_type)


@staged(1)
def transpose(a: TracedArray, axes: tuple[int, ...] | None = None) -> TracedArray:
    order = tuple(range(a.ndim))[::-1] if axes is None else axes_of(axes, a.ndim)
    return emit("transpose", [a], weak=a.weak_type, dimensions=order)


@staged(1)
def expand_dims(a: TracedArray, axis: int) -> TracedArray:
    (place,) = axes_of(axis, a.ndim + 1)
    dims = (*a.shape[:place], 1, *a.shape[place:])
    return emit("reshape", [a], a.op.shape.with_dims(dims), a.weak_type)


@staged(1)
def squeeze(a: TracedArray, axis: int | tuple[int, ...] | None = None) -> TracedArray:
    gone = [d for d, s in enumerate(a.shape) if s == 1] if axis is None else axes_of(axis, a.ndim)
    for d in gone:
        if a.shape[d] != 1:
            raise ValueError(f"cannot squeeze axis {d} of size {a.shape[d]}")
    dims = tuple(s for d, s in enumerate(a.shape) if d not in gone)
    return emit("reshape", [a], a.op.shape.with_dims(dims), a.weak_type)


@staged(1)
def broadcast_to(array: TracedArray, shape: tuple[int, ...]) -> TracedArray:
    return _broadcast_to(array, shape)


@staged(1)
def concatenate(arrays: Sequence[TracedArray], axis: int = 0) -> TracedArray:
    parts, _ = promote(*arrays)
    (dim,) = axes_of(axis, parts[0].ndim)
    return emit("concatenate", parts, dimensions=dim)


@staged(1)
def stack(arrays: Sequence[TracedArray], axis: int = 0) -> TracedArray:
    parts, _ = promote(*arrays)
    return concatenate([expand_dims(p, axis) for p in parts], axis)


@staged(1)
def flip(m: TracedArray, axis: int | tuple[int, ...] | None = None) -> TracedArray:
    return emit("reverse", [m], weak=m.weak_type, dimensions=axes_of(axis, m.ndim))


@staged(1)
def zeros_like(a: TracedArray) -> TracedArray:
    return full_like(a, 0)


@staged(1)
def ones_like(a: TracedArray) -> TracedArray:
    return full_like(a, 1)


@staged(1)
def _full(value: TracedArray, shape: tuple[int, ...], dtype: Any) -> TracedArray:
    made = value if dtype is None else convert(value, element_type(dtype))
    return _broadcast_to(wrap(made, made.op), shape)


def _sizes(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def full_(shape: int | Sequence[int], fill_value: Any, dtype: Any = None) -> Any:
    """fill_value everywhere."""
    return _full(fill_value, _sizes(shape), dtype)


def zeros(shape: int | Sequence[int], dtype: Any = "float32") -> Any:
    return _full(0.0, _sizes(shape), dtype)


def ones(shape: int | Sequence[int], dtype: Any = "float32") -> Any:
    return _full(1.0, _sizes(shape), dtype)


@staged(1)
def _iota(like: TracedArray, count: int, dtype: Any) -> TracedArray:
    return emit_iota(like, count, element_type(dtype))


def emit_iota(like: TracedArray, count: int, dtype: Any) -> TracedArray:
    builder = like.trace.builder
    made = builder.add("iota", Shape(dtype, (count,)), (), iota_dimension=0)
    return wrap(like, type(like.op)(builder, made))


def arange(start: int, stop: int | None = None, step: int = 1, dtype: Any = "int32") -> Any:
    """Whole numbers from start, or 0, up to stop."""
    low, high = (0, start) if stop is None else (start, stop)
    count = builtins.max(0, -(-(high - low) // step))
    return _arange(low, count, step, dtype)


@staged(1)
def _arange(low: TracedArray, count: int, step: int, dtype: Any) -> TracedArray:
    kind = element_type(dtype)
    numbers = emit_iota(low, count, kind)
    if step != 1:
        numbers = emit("multiply", [numbers, full_like(numbers, step)])
    return emit("add", [numbers, _broadcast_to(convert(low, kind), (count,))])


# --- Reductions ----------------------------------------------------------------------------------


def _reduce(opcode: str, x: TracedArray, start: Any, axis: Any, keepdims: bool) -> TracedArray:
    axes = axes_of(axis, x.ndim)
    region = x.trace.builder.embed(scalar_computation(opcode, x.op.shape, "region_0"))
    init = full(x, start, x.element_type)
    found = emit("reduce", [x, init], weak=x.weak_type, dimensions=axes, to_apply=region)
    if not keepdims:
        return found
    dims = tuple(1 if d in axes else s for d, s in enumerate(x.shape))
    return emit("reshape", [found], found.op.shape.with_dims(dims), x.weak_type)


def _summed(x: TracedArray) -> TracedArray:
    """Small integers are summed in s32 or u32."""
    dtype = x.element_type
    if dtype is PRED or (dtype.is_integer and dtype.bits < 32):
        return convert(x, U32 if dtype.is_unsigned else S32)
    return x


@staged(1)
def sum(a: TracedArray, axis: Any = None, keepdims: bool = False) -> TracedArray:
    return _reduce("add", _summed(a), 0, axis, keepdims)


@staged(1)
def prod(a: TracedArray, axis: Any = None, keepdims: bool = False) -> TracedArray:
    return _reduce("multiply", _summed(a), 1, axis, keepdims)


def _least(x: TracedArray) -> Any:
    if x.element_type.is_float:
        return -np.inf
    return False if x.element_type is PRED else np.iinfo(x.dtype).min


@staged(1)
def max(a: TracedArray, axis: Any = None, keepdims: bool = False) -> TracedArray:
    return _reduce("maximum", a, _least(a), axis, keepdims)


@staged(1)
def min(a: TracedArray, axis: Any = None, keepdims: bool = False) -> TracedArray:
    kinds = {True: np.inf, False: True if a.element_type is PRED else None}
    most = kinds[a.element_type.is_float]
    return _reduce("minimum", a, np.iinfo(a.dtype).max if most is None else most, axis, keepdims)


@staged(1)
def any(a: TracedArray, axis: Any = None, keepdims: bool = False) -> TracedArray:
    return _reduce("or", _truth(a), False, axis, keepdims)


@staged(1)
def all(a: TracedArray, axis: Any = None, keepdims: bool = False) -> TracedArray:
    return _reduce("and", _truth(a), True, axis, keepdims)


def _truth(x: TracedArray) -> TracedArray:
    return x if x.element_type is PRED else emit("compare", [x, full_like(x, 0)], direction="NE")


@staged(1)
def mean(a: TracedArray, axis: Any = None, keepdims: bool = False) -> TracedArray:
    (x,), _ = promote(a, inexact=True)
    count = product(x.shape[d] for d in axes_of(axis, x.ndim))
    total = _reduce("add", x, 0, axis, keepdims)
    return emit("divide", [total, full_like(total, count)], weak=x.weak_type)


@staged(1)
def var(a: TracedArray, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> TracedArray:
    (x,), _ = promote(a, inexact=True)
    middle = _broadcast_to(mean(x, axis, True), x.shape)
    apart = emit("subtract", [x, middle])
    count = product(x.shape[d] for d in axes_of(axis, x.ndim)) - ddof
    total = _reduce("add", emit("multiply", [apart, apart]), 0, axis, keepdims)
    return emit("divide", [total, full_like(total, count)])


# --- Products ------------------------------------------------------------------------------------


@staged(2)
def matmul(a: TracedArray, b: TracedArray) -> TracedArray:
    """Products of matrices; leading dimensions are a batch, vectors a row or a column."""
    if not a.shape or not b.shape:
        raise ValueError(f"matmul input operands must have rank at least 1, got {a} and {b}")
    (x, y), weak = promote(a, b)
    inner = -1 if y.ndim == 1 else -2
    if x.shape[-1] != y.shape[inner]:
        raise TypeError(f"matmul: contracted sizes of {x.shape} and {y.shape} differ")
    if x.ndim > 2 and y.ndim > 2 and x.shape[:-2] != y.shape[:-2]:
        batch = broadcast(*(reshape_batch(v) for v in (x, y)))[0].shape
        x, y = (_broadcast_to(v, (*batch, *v.shape[-2:])) for v in (x, y))
    count = x.ndim - 2 if x.ndim > 2 and y.ndim > 2 else 0
    batch_dims = tuple(range(count))
    attrs: dict[str, Any] = {
        "lhs_contracting_dims": (x.ndim - 1,),
        "rhs_contracting_dims": (y.ndim + inner,),
    }
    if count:
        attrs |= {"lhs_batch_dims": batch_dims, "rhs_batch_dims": batch_dims}
    found = emit("dot", [x, y], Shape(x.element_type), weak, **attrs)
    if y.ndim > 2 and not count and x.ndim >= 2:  # rows of x stand before the batch of y
        rows = x.ndim - 1
        order = (*range(rows, rows + y.ndim - 2), *range(rows), found.ndim - 1)
        found = emit("transpose", [found], weak=weak, dimensions=order)
    return found


def reshape_batch(x: TracedArray) -> TracedArray:
    """Something of the shape of the batch."""
    return full(x, 0, F32, x.shape[:-2])


@staged(2)
def dot(a: TracedArray, b: TracedArray) -> TracedArray:
    """The last dimension of a with the last but one of b; scalars multiply."""
    (x, y), weak = promote(a, b)
    if not x.shape or not y.shape:
        return emit("multiply", broadcast(x, y), weak=weak)
    attrs = {"lhs_contracting_dims": (x.ndim - 1,)}
    attrs["rhs_contracting_dims"] = (builtins.max(0, y.ndim - 2),)
    return emit("dot", [x, y], Shape(x.element_type), weak, **attrs)


@staged(3)
def clip(x: TracedArray, min: TracedArray | None, max: TracedArray | None) -> TracedArray:
    """x within [min, max]; None for no bound."""
    for bound, opcode in ((min, "maximum"), (max, "minimum")):
        if bound is not None:
            (y, limit), weak = promote(x, bound)
            x = emit(opcode, broadcast(y, limit), weak=weak)
    return x


# --- Indexing ------------------------------------------------------------------------------------


def getitem(x: TracedArray, index: Any) -> TracedArray:
    """Whole numbers, slices, None, Ellipsis, and traced scalars."""
    entries = list(index) if isinstance(index, tuple) else [index]
    used = [e for e in entries if e is not None and e is not Ellipsis]
    if len(used) > x.ndim:
        raise IndexError(f"Too many indices: {len(used)} for an array of {x.ndim} dimensions")
    place = next((n for n, e in enumerate(entries) if e is Ellipsis), len(entries))
    entries[place : place + 1] = [slice(None)] * (x.ndim - len(used))
    dim, dims, kept = 0, list(x.shape), []
    for entry in entries:
        if entry is None:
            kept.append(1)
            continue
        x, keeps = _cut(x, dim, entry)
        if keeps:
            kept.append(x.shape[dim])
        dims[dim] = x.shape[dim]
        dim += 1
    if tuple(kept) == x.shape:
        return x
    return emit("reshape", [x], x.op.shape.with_dims(tuple(kept)), x.weak_type)


def _cut(x: TracedArray, dim: int, entry: Any) -> tuple[TracedArray, bool]:
    """The part of one dimension, and whether the dimension stays."""
    size = x.shape[dim]
    if isinstance(entry, TracedArray) and not entry.shape and entry.element_type.is_integer:
        zero = full(x, 0, S32)
        place = convert(entry, S32)
        negative = emit("compare", [place, zero], direction="LT")
        wrapped = emit("add", [place, full(x, size, S32)])
        starts = [zero] * x.ndim
        starts[dim] = emit("select", [negative, wrapped, place])
        sizes = tuple(1 if d == dim else s for d, s in enumerate(x.shape))
        attrs = {"dynamic_slice_sizes": sizes}
        return emit("dynamic-slice", [x, *starts], weak=x.weak_type, **attrs), False
    if isinstance(entry, slice):
        start, stop, step = entry.indices(size)
        if step < 0:
            x = emit("reverse", [x], weak=x.weak_type, dimensions=(dim,))
            count = len(range(start, stop, step))
            start, step = size - 1 - start, -step
            stop = start + (count - 1) * step + 1 if count else start
        return _sliced(x, dim, start, builtins.max(start, stop), step), True
    if isinstance(entry, int | np.integer) and not isinstance(entry, bool):
        if not -size <= entry < size:
            raise IndexError(f"index {entry} is out of bounds for axis {dim} with size {size}")
        place = int(entry) % size
        return _sliced(x, dim, place, place + 1, 1), False
    raise TypeError(f"index {entry!r}: whole numbers, slices, None, ... and traced scalars only")


def _sliced(x: TracedArray, dim: int, start: int, stop: int, step: int) -> TracedArray:
    if (start, stop, step) == (0, x.shape[dim], 1):
        return x
    ranges = [(0, s, 1) for s in x.shape]
    ranges[dim] = (start, stop, step)
    return emit("slice", [x], weak=x.weak_type, slice=tuple(ranges))
