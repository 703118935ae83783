"""batch-norm-training, batch-norm-inference, batch-norm-grad.

A feature is an index along `feature_index`; statistics are taken over all other dimensions.
"""

from __future__ import annotations

import numpy as np

from haloc.ir.dtype import F32, F64, DType
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.attrs import Float, Int
from haloc.ops.example import ExampleGraph
from haloc.ops.expand import Beside
from haloc.ops.reference import store
from haloc.ops.regions import text
from haloc.ops.table import Attr, Evaluator, Expand, OpDef, attr, invalid, register

ATTRS = (Attr("epsilon", Float()), Attr("feature_index", Int()))


def _check(instruction: HloInstruction, whole: tuple[int, ...]) -> tuple[Shape, Shape]:
    """(shape of the operand, shape of one number a feature); `whole` operands are like the first,
    the others have one number a feature."""
    name = instruction.opcode.replace("-", "_")
    shapes = [o.shape for o in instruction.operands]
    x, feature = shapes[0], attr(instruction, "feature_index")
    if not x.dtype.is_float:
        invalid(instruction, f"operand is {text(x)}, wanted floats")
    if not 0 <= feature < x.rank:
        invalid(instruction, f"feature_index={feature} is out of range for {text(x)}", f"{name}_c1")
    each = x.keep((feature,))
    for n, shape in enumerate(shapes):
        wanted = x if n in whole else each
        if shape.dims != wanted.dims or shape.dtype is not wanted.dtype:
            invalid(
                instruction, f"operand {n} is {text(shape)}, wanted {text(wanted)}", f"{name}_c2"
            )
    return x.with_default_layout(), each


def _others(instruction: HloInstruction) -> tuple[int, ...]:
    feature = attr(instruction, "feature_index")
    return tuple(d for d in range(instruction.operands[0].shape.rank) if d != feature)


def _count(instruction: HloInstruction) -> int:
    """Elements of one feature."""
    dims = instruction.operands[0].shape.dims
    count = 1
    for d in _others(instruction):
        count *= dims[d]
    return count


# --- Evaluation, in double ---------------------------------------------------------------------


class _Doubles:
    """The operands of a batch norm as f64, numbers of features shaped to broadcast."""

    def __init__(self, instruction: HloInstruction, operands: list[Value]):
        self.instruction = instruction
        rank, feature = instruction.operands[0].shape.rank, attr(instruction, "feature_index")
        self.column = tuple(-1 if d == feature else 1 for d in range(rank))
        self.axes = _others(instruction)
        self.values = []
        for value in operands:
            x = np.asarray(value).astype(np.float64)
            self.values.append(x if x.ndim == rank and rank > 1 else x.reshape(self.column))

    def store(self, x: np.ndarray, shape: Shape) -> np.ndarray:
        return store(x.reshape(shape.dims), shape.dtype)


def _evaluate_training(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    """(scale (x - mean) / sqrt(variance + epsilon) + offset, mean, variance): biased variance."""
    doubles = _Doubles(instruction, operands)
    x, scale, offset = doubles.values
    with np.errstate(all="ignore"):
        mean = x.sum(doubles.axes, keepdims=True) / _count(instruction)
        variance = np.square(x - mean).sum(doubles.axes, keepdims=True) / _count(instruction)
        deviation = np.sqrt(variance + attr(instruction, "epsilon"))
        out = (x - mean) / deviation * scale + offset
        results = zip((out, mean, variance), instruction.shape.elements)
        return tuple(doubles.store(r, s) for r, s in results)


def _evaluate_inference(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    """scale (x - mean) / sqrt(variance + epsilon) + offset"""
    doubles = _Doubles(instruction, operands)
    x, scale, offset, mean, variance = doubles.values
    with np.errstate(all="ignore"):
        deviation = np.sqrt(variance + attr(instruction, "epsilon"))
        return doubles.store((x - mean) / deviation * scale + offset, instruction.shape)


def _evaluate_grad(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    """With z = (x - mean) / sqrt(variance + epsilon) and n elements a feature:

    grad_offset = sum(g), grad_scale = sum(g z),
    grad_operand = scale / sqrt(variance + epsilon) (g - (grad_offset + z grad_scale) / n).
    """
    doubles = _Doubles(instruction, operands)
    x, scale, mean, variance, g = doubles.values
    with np.errstate(all="ignore"):
        deviation = np.sqrt(variance + attr(instruction, "epsilon"))
        z = (x - mean) / deviation
        grad_offset = g.sum(doubles.axes, keepdims=True)
        grad_scale = (g * z).sum(doubles.axes, keepdims=True)
        shared = (grad_offset + z * grad_scale) / _count(instruction)
        results = zip(
            (scale / deviation * (g - shared), grad_scale, grad_offset), instruction.shape.elements
        )
        return tuple(doubles.store(r, s) for r, s in results)


# --- Expansion ---------------------------------------------------------------------------------


class _Parts(Beside):
    """Arithmetic between arrays of the operand's dims and numbers of features.

    Types narrower than f32 are computed in f32.
    """

    def __init__(self, instruction: HloInstruction):
        super().__init__(instruction)
        shape = instruction.operands[0].shape
        self.dtype: DType = shape.dtype if shape.dtype.bits >= 32 else F32
        self.dims = shape.dims
        self.inputs = [self.convert(o, self.dtype) for o in instruction.operands]

    def spread(self, x: HloInstruction) -> HloInstruction:
        """A number a feature, over the whole array."""
        return self.broadcast(x, self.dims, (attr(self.instruction, "feature_index"),))

    def sum(self, x: HloInstruction) -> HloInstruction:
        return self.reduce("add", x, 0, _others(self.instruction))

    def mean(self, x: HloInstruction) -> HloInstruction:
        total = self.sum(x)
        return self.binary("divide", total, self.like(total, _count(self.instruction)))

    def deviation(self, variance: HloInstruction) -> HloInstruction:
        epsilon = self.like(variance, attr(self.instruction, "epsilon"))
        return self.unary("sqrt", self.binary("add", variance, epsilon))

    def normalised(
        self, x: HloInstruction, mean: HloInstruction, deviation: HloInstruction
    ) -> HloInstruction:
        centred = self.binary("subtract", x, self.spread(mean))
        return self.binary("divide", centred, self.spread(deviation))

    def scaled(
        self, z: HloInstruction, scale: HloInstruction, offset: HloInstruction
    ) -> HloInstruction:
        product = self.binary("multiply", z, self.spread(scale))
        return self.binary("add", product, self.spread(offset))

    def back(self, x: HloInstruction) -> HloInstruction:
        return self.convert(x, self.instruction.operands[0].shape.dtype)


def _expand_training(instruction: HloInstruction) -> HloInstruction:
    """=> means over the other dimensions, then the formula of `_evaluate_training`"""
    b = _Parts(instruction)
    x, scale, offset = b.inputs
    mean = b.mean(x)
    centred = b.binary("subtract", x, b.spread(mean))
    variance = b.mean(b.binary("multiply", centred, centred))
    out = b.scaled(b.normalised(x, mean, b.deviation(variance)), scale, offset)
    return b.tuple(b.back(out), b.back(mean), b.back(variance))


def _expand_inference(instruction: HloInstruction) -> HloInstruction:
    """=> the formula of `_evaluate_inference`"""
    b = _Parts(instruction)
    x, scale, offset, mean, variance = b.inputs
    return b.back(b.scaled(b.normalised(x, mean, b.deviation(variance)), scale, offset))


def _expand_grad(instruction: HloInstruction) -> HloInstruction:
    """=> the formula of `_evaluate_grad`"""
    b = _Parts(instruction)
    x, scale, mean, variance, g = b.inputs
    deviation = b.deviation(variance)
    z = b.normalised(x, mean, deviation)
    grad_offset, grad_scale = b.sum(g), b.sum(b.binary("multiply", g, z))
    shared = b.scaled(z, grad_scale, grad_offset)
    shared = b.binary("divide", shared, b.like(shared, _count(instruction)))
    slope = b.spread(b.binary("divide", scale, deviation))
    grad_operand = b.binary("multiply", slope, b.binary("subtract", g, shared))
    return b.tuple(b.back(grad_operand), b.back(grad_scale), b.back(grad_offset))


# --- Rows --------------------------------------------------------------------------------------


def _infer_training(instruction: HloInstruction) -> Shape:
    whole, each = _check(instruction, (0,))
    return tuple_shape(whole, each, each)


def _infer_inference(instruction: HloInstruction) -> Shape:
    return _check(instruction, (0,))[0]


def _infer_grad(instruction: HloInstruction) -> Shape:
    whole, each = _check(instruction, (0, 4))
    return tuple_shape(whole, each, each)


def _example_parts(graph: ExampleGraph) -> tuple[Shape, Shape, dict[str, float]]:
    dims = tuple(int(d) for d in graph.rng.integers(1, 5, int(graph.rng.integers(2, 5))))
    feature = int(graph.rng.integers(len(dims)))
    dtype = graph.pick([F32, F64])
    attrs = {"epsilon": 0.125, "feature_index": feature}
    return Shape(dtype, dims), Shape(dtype, (dims[feature],)), attrs


def _variance(graph: ExampleGraph, each: Shape) -> HloInstruction:
    return graph.constant(graph.rng.uniform(0.5, 2.0, each.dims), each.dtype)


def _training_example(graph: ExampleGraph) -> HloInstruction:
    whole, each, attrs = _example_parts(graph)
    operands = [graph.operand(s.dtype, s.dims) for s in (whole, each, each)]
    shape = tuple_shape(whole, each, each)
    result = graph.add("batch-norm-training", shape, operands, **attrs)
    return graph.add("get-tuple-element", whole, (result,), index=0)


def _inference_example(graph: ExampleGraph) -> HloInstruction:
    whole, each, attrs = _example_parts(graph)
    operands = [graph.operand(s.dtype, s.dims) for s in (whole, each, each, each)]
    operands.append(_variance(graph, each))
    return graph.add("batch-norm-inference", whole, operands, **attrs)


def _grad_example(graph: ExampleGraph) -> HloInstruction:
    whole, each, attrs = _example_parts(graph)
    x, scale, mean = (graph.operand(s.dtype, s.dims) for s in (whole, each, each))
    grad = graph.operand(whole.dtype, whole.dims)
    operands = (x, scale, mean, _variance(graph, each), grad)
    result = graph.add("batch-norm-grad", tuple_shape(whole, each, each), operands, **attrs)
    return graph.add("get-tuple-element", whole, (result,), index=0)


register(
    OpDef(
        opcode="batch-norm-training",
        operands=("operand", "scale", "offset"),
        attrs=ATTRS,
        infer=_infer_training,
        evaluate=_evaluate_training,
        lower=Expand(_expand_training),
        example=_training_example,
        spec="batch_norm_training",
    )
)
register(
    OpDef(
        opcode="batch-norm-inference",
        operands=("operand", "scale", "offset", "mean", "variance"),
        attrs=ATTRS,
        infer=_infer_inference,
        evaluate=_evaluate_inference,
        lower=Expand(_expand_inference),
        example=_inference_example,
        spec="batch_norm_inference",
    )
)
register(
    OpDef(
        opcode="batch-norm-grad",
        operands=("operand", "scale", "mean", "variance", "grad_output"),
        attrs=ATTRS,
        infer=_infer_grad,
        evaluate=_evaluate_grad,
        lower=Expand(_expand_grad),
        example=_grad_example,
        spec="batch_norm_grad",
    )
)
