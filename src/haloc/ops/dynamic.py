"""get-dimension-size, set-dimension-size, dynamic-reshape: sizes known when the program runs.

A dimension written `<=8` is dynamic: an array has at most 8 elements there, and how many is part of
its value. In the interpreter such a value is an array of exactly that size. Natively the arrays
have all their elements, and the pass dynamic-padder keeps the sizes beside them.
"""

from __future__ import annotations

from math import prod

import numpy as np

from haloc.errors import InternalError, InvalidArgumentError
from haloc.ir import dtype as dt
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import UNBOUNDED, Shape, scalar_shape
from haloc.ops.attrs import OneDim
from haloc.ops.example import ExampleGraph
from haloc.ops.families import pick_dtype
from haloc.ops.rules import ANY, array_operands, check_dims_in_range, dynamic_flags, label
from haloc.ops.scalar import Indices, Read, Scalar
from haloc.ops.scalar import Value as Element
from haloc.ops.table import (
    Attr,
    Evaluator,
    Indexed,
    OpDef,
    Structure,
    attr,
    invalid,
    register,
)

SIZE = scalar_shape(dt.S32)

# --- get-dimension-size ------------------------------------------------------------------------


def _dimension(instruction: HloInstruction) -> int:
    operand = array_operands(instruction)[0]
    dims = (attr(instruction, "dimensions"),)
    check_dims_in_range(instruction, "dimensions", dims, operand.rank, "c1")
    return dims[0]


def _infer_get_dimension_size(instruction: HloInstruction) -> Shape:
    _dimension(instruction)
    return SIZE


def _get_dimension_size(instruction: HloInstruction, values: list[Value], _: Evaluator) -> Value:
    return np.asarray(np.asarray(values[0]).shape[attr(instruction, "dimensions")], np.int32)


def _static_size(b: Scalar, instruction: HloInstruction, index: Indices, read: Read) -> Element:
    dim = attr(instruction, "dimensions")
    shape = instruction.operands[0].shape
    if dynamic_flags(shape)[dim]:
        raise InternalError(f"get-dimension-size: dimension {dim} of {shape} is still dynamic")
    return b.constant(dt.S32, shape.dims[dim])


def _example_get_dimension_size(graph: ExampleGraph) -> HloInstruction:
    dims = graph.dims(low=1)
    operand = graph.operand(pick_dtype(graph, ANY), dims)
    dim = int(graph.rng.integers(len(dims)))
    return graph.add("get-dimension-size", SIZE, [operand], dimensions=dim)


DIMENSION = Attr("dimensions", OneDim(), proto="dimensions[0]")

register(
    OpDef(
        opcode="get-dimension-size",
        operands=("operand",),
        attrs=(DIMENSION,),
        infer=_infer_get_dimension_size,
        evaluate=_get_dimension_size,
        lower=Indexed(_static_size),
        example=_example_get_dimension_size,
        spec="get_dimension_size",
        any_size=True,
    )
)


# --- set-dimension-size ------------------------------------------------------------------------


def _infer_set_dimension_size(instruction: HloInstruction) -> Shape:
    """Dynamic in that dimension; or static, where the size is the constant bound."""
    operand, size = array_operands(instruction)
    dim = _dimension(instruction)
    if not size.compatible(SIZE):
        invalid(instruction, f"size is {size.to_string(False)}, wanted s32[]")
    flags = list(dynamic_flags(operand))
    flags[dim] = not _is_static(instruction, dim)
    return Shape(operand.dtype, operand.dims, None, tuple(flags))


def _is_static(instruction: HloInstruction, dim: int) -> bool:
    shape, size = instruction.shape, instruction.operands[1]
    if not shape.is_array or shape.rank <= dim or dynamic_flags(shape)[dim]:
        return False
    literal = size.attrs.get("literal")
    return literal is not None and int(literal.array) == shape.dims[dim]


def _set_dimension_size(instruction: HloInstruction, values: list[Value], _: Evaluator) -> Value:
    """Elements behind the size are gone; should a larger one be set later, zeros come back."""
    x, size = np.asarray(values[0]), int(np.asarray(values[1]))
    dim = attr(instruction, "dimensions")
    bound = instruction.shape.dims[dim]
    if size < 0 or (size > bound and bound != UNBOUNDED):
        raise InvalidArgumentError(
            f"set-dimension-size: the size of dimension {dim} is {size}, wanted 0 to {bound}"
        )
    dims = (*x.shape[:dim], size, *x.shape[dim + 1 :])
    result = np.zeros(dims, x.dtype)
    kept = tuple(slice(min(a, b)) for a, b in zip(x.shape, dims))
    result[kept] = x[kept]
    return result


def _example_set_dimension_size(graph: ExampleGraph) -> HloInstruction:
    """A few ops on what is left, and its sum: sizes end inside the example, so that others take
    its result."""
    dtype, dims = graph.pick([dt.F32, dt.S32]), graph.dims(low=1)
    dim = int(graph.rng.integers(len(dims)))
    size = graph.constant(int(graph.rng.integers(dims[dim] + 1)), dt.S32)
    shape = Shape(dtype, dims, None, tuple(d == dim for d in range(len(dims))))
    x = graph.add("set-dimension-size", shape, [graph.operand(dtype, dims), size], dimensions=dim)
    for opcode in graph.rng.permutation(["negate", "reverse", "concatenate", "transpose"])[:2]:
        if opcode == "concatenate":
            doubled = (*dims[:dim], 2 * dims[dim], *dims[dim + 1 :])
            dims, shape = doubled, Shape(dtype, doubled, None, shape.dynamic)
            x = graph.add("concatenate", shape, (x, x), dimensions=dim)
        elif opcode == "transpose":
            order = tuple(reversed(range(len(dims))))
            dims, shape, dim = dims[::-1], shape.keep(order), len(dims) - 1 - dim
            x = graph.add("transpose", shape, (x,), dimensions=order)
        else:
            attrs = {"dimensions": (dim,)} if opcode == "reverse" else {}
            x = graph.add(str(opcode), shape, (x,), **attrs)
    kept = (*dims[:dim], *dims[dim + 1 :])
    zero, region = graph.constant(0, dtype), graph.binary_region("add", dtype)
    return graph.add("reduce", Shape(dtype, kept), (x, zero), dimensions=(dim,), to_apply=region)


register(
    OpDef(
        opcode="set-dimension-size",
        operands=("operand", "size"),
        attrs=(DIMENSION,),
        infer=_infer_set_dimension_size,
        evaluate=_set_dimension_size,
        lower=Structure.NO_CODE,
        example=_example_set_dimension_size,
        spec="set_dimension_size",
        any_size=True,
    )
)


# --- dynamic-reshape ---------------------------------------------------------------------------


def _infer_dynamic_reshape(instruction: HloInstruction) -> Shape:
    operand, *sizes = array_operands(instruction)
    result = instruction.shape
    if not result.is_array:
        invalid(instruction, f"the result must be an array, got {result}")
    if len(sizes) != result.rank:
        fault = f"{len(sizes)} sizes given for the {result.rank} dimensions of {result}"
        invalid(instruction, fault, label(instruction, "c4"))
    for number, size in enumerate(sizes):
        if not size.compatible(SIZE):
            invalid(instruction, f"sizes[{number}] is {size.to_string(False)}, wanted s32[]")
    known = UNBOUNDED not in (*operand.dims, *result.dims)
    if known and operand.element_count != result.element_count:
        invalid(
            instruction,
            f"the operand {operand.to_string(False)} has {operand.element_count} elements, "
            f"the result {result.to_string(False)} {result.element_count}",
            label(instruction, "c2"),
        )
    return result.with_dtype(operand.dtype)


def _dynamic_reshape(instruction: HloInstruction, values: list[Value], _: Evaluator) -> Value:
    x = np.asarray(values[0])
    dims = tuple(int(np.asarray(v)) for v in values[1:])
    if prod(dims) != x.size or min(dims, default=0) < 0:
        raise InvalidArgumentError(
            f"dynamic-reshape: the sizes {list(dims)} do not hold the {x.size} elements there are"
        )
    return x.reshape(dims)


def _example_dynamic_reshape(graph: ExampleGraph) -> HloInstruction:
    """Static sizes: what is dynamic would have to stay inside, as with set-dimension-size."""
    dtype, dims = pick_dtype(graph, ANY), graph.dims()
    wanted = graph.pick([dims[::-1], (prod(dims),), (1, *dims)])
    sizes = [graph.constant(n, dt.S32) for n in wanted]
    return graph.add("dynamic-reshape", Shape(dtype, wanted), [graph.operand(dtype, dims), *sizes])


register(
    OpDef(
        opcode="dynamic-reshape",
        operands=("operand", "sizes*"),
        infer=_infer_dynamic_reshape,
        evaluate=_dynamic_reshape,
        lower=Structure.NO_CODE,
        example=_example_dynamic_reshape,
        spec="dynamic_reshape",
        any_size=True,
    )
)
