"""Dots and convolutions."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.formats.stablehlo.convert import reading
from haloc.formats.stablehlo.convert.context import Scope, converts, result_shape
from haloc.formats.stablehlo.convert.regions import addition
from haloc.formats.stablehlo.mlir import Enum, MlirOp, Scalar, Struct
from haloc.ir.dtype import PRED, S32
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import ConvDims, WindowDim


def precision(op: MlirOp) -> dict[str, Any]:
    """operand_precision, where it is not the default."""
    value = op.attributes.get("precision_config", ())
    if not isinstance(value, tuple):
        reading.fail(op, "attribute precision_config must be a list")
    words = tuple(v.value.lower() if isinstance(v, Enum) else str(v).lower() for v in value)
    for word in words:
        if word not in ("default", "high", "highest"):
            reading.fail(op, f"unknown precision {word!r}, expected DEFAULT, HIGH or HIGHEST")
    return {"operand_precision": words} if any(w != "default" for w in words) else {}


ALGORITHMS = {
    # (lhs type, rhs type, accumulation type, primitive operations): HLO's word.
    ("f16", "f16", "f16", 1): "dot_f16_f16_f16",
    ("f16", "f16", "f32", 1): "dot_f16_f16_f32",
    ("bf16", "bf16", "bf16", 1): "dot_bf16_bf16_bf16",
    ("bf16", "bf16", "f32", 1): "dot_bf16_bf16_f32",
    ("bf16", "bf16", "f32", 3): "dot_bf16_bf16_f32_x3",
    ("bf16", "bf16", "f32", 6): "dot_bf16_bf16_f32_x6",
    ("bf16", "bf16", "f32", 9): "dot_bf16_bf16_f32_x9",
    ("tf32", "tf32", "f32", 1): "dot_tf32_tf32_f32",
    ("tf32", "tf32", "f32", 3): "dot_tf32_tf32_f32_x3",
    ("f32", "f32", "f32", 1): "dot_f32_f32_f32",
    ("f64", "f64", "f64", 1): "dot_f64_f64_f64",
}


def algorithm(op: MlirOp) -> dict[str, Any]:
    value = op.attributes.get("algorithm")
    if not isinstance(value, Struct):
        return {}
    given: dict[str, Any] = value.fields
    types = [
        t.name if isinstance(t, Scalar) else str(t)
        for t in (
            given.get(f"{k}_type", "") for k in ("lhs_precision", "rhs_precision", "accumulation")
        )
    ]
    count = given.get("num_primitive_operations", 1)
    if types[0].startswith("f8") and types[1].startswith("f8") and types[2] == "f32":
        fast = "_fast_accum" if given.get("allow_imprecise_accumulation") else ""
        return {"algorithm": f"dot_any_f8_any_f8_f32{fast}"}
    word = ALGORITHMS.get((types[0], types[1], types[2], count))
    if word is None:
        pair = " x ".join(types[:2])
        reading.unimplemented(op, f"no HLO algorithm for {pair} -> {types[2]}, {count} operations")
    return {"algorithm": word}


@converts("stablehlo.dot_general")
def _dot_general(scope: Scope, op: MlirOp) -> HloInstruction:
    numbers = reading.struct(op, "dot_dimension_numbers", "dot")
    return dot(scope, op, scope.operands(op, 2), dot_dims(numbers), precision(op) | algorithm(op))


DOT_FIELDS = {
    f"{side}_{long}_dimensions": f"{side}_{short}_dims"
    for short, long in (("batch", "batching"), ("contracting", "contracting"))
    for side in ("lhs", "rhs")
}
"""StableHLO's names of a dot's dimensions, and HLO's."""


def dot_dims(numbers: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {hlo: tuple(numbers.get(name, ())) for name, hlo in DOT_FIELDS.items()}


def dot(
    scope: Scope,
    op: MlirOp,
    operands: list[HloInstruction],
    dims: dict[str, tuple[int, ...]],
    attrs: dict[str, Any],
) -> HloInstruction:
    given = {k: v for k, v in dims.items() if v}
    return scope.add("dot", result_shape(op), operands, **given, **attrs)


@converts("stablehlo.dot")
def _dot(scope: Scope, op: MlirOp) -> HloInstruction:
    lhs, rhs = scope.operands(op, 2)
    dims: dict[str, tuple[int, ...]] = {
        "lhs_contracting_dims": (lhs.shape.rank - 1,),
        "rhs_contracting_dims": (0,),
    }
    return dot(scope, op, [lhs, rhs], dims, precision(op))


@converts("stablehlo.einsum")
def _einsum(scope: Scope, op: MlirOp) -> HloInstruction:
    """ "ij,jk->ik": a dot over the letters both operands have, put in the result's order."""
    lhs, rhs = scope.operands(op, 2)
    config = reading.text(op, "einsum_config").replace(" ", "")
    inputs, arrow, out = config.partition("->")
    a, comma, b = inputs.partition(",")
    shape = result_shape(op)
    plain = a.isalpha() and b.isalpha() and (out.isalpha() or not out)
    fits = len(a) == lhs.shape.rank and len(b) == rhs.shape.rank and len(out) == shape.rank
    once = len(set(out)) == len(out) and set(out) <= set(a + b)
    if not (arrow and comma and plain and fits and once):
        reading.unimplemented(op, f"the equation {config!r}")
    lhs, a = _letters_once(scope, lhs, a, set(b + out))
    rhs, b = _letters_once(scope, rhs, b, set(a + out))
    batch = [x for x in a if x in b and x in out]
    summed = [x for x in a if x in b and x not in out]
    order = [*batch, *(x for x in a if x not in b), *(x for x in b if x not in a)]
    sizes = dict(zip(a + b, (*lhs.shape.dims, *rhs.shape.dims)))
    made = scope.add(
        "dot",
        shape.with_dims(tuple(sizes[x] for x in order)),
        (lhs, rhs),
        lhs_batch_dims=tuple(a.index(x) for x in batch),
        lhs_contracting_dims=tuple(a.index(x) for x in summed),
        rhs_batch_dims=tuple(b.index(x) for x in batch),
        rhs_contracting_dims=tuple(b.index(x) for x in summed),
        **precision(op),
    )
    if order == list(out):
        return made
    return scope.add("transpose", shape, (made,), dimensions=tuple(order.index(x) for x in out))


@converts("stablehlo.unary_einsum")
def _unary_einsum(scope: Scope, op: MlirOp) -> HloInstruction:
    """ "ij->j": sums over the letters the result has not, the rest in the result's order."""
    (operand,) = scope.operands(op, 1)
    config = reading.text(op, "einsum_config").replace(" ", "")
    a, arrow, out = config.partition("->")
    shape = result_shape(op)
    once = len(set(out)) == len(out) == shape.rank and set(out) <= set(a)
    if not (arrow and once and len(a) == operand.shape.rank):
        reading.unimplemented(op, f"the equation {config!r}")
    operand, kept = _letters_once(scope, operand, a, set(out))
    return scope.add("transpose", shape, (operand,), dimensions=tuple(map(kept.index, out)))


def _letters_once(
    scope: Scope, x: HloInstruction, letters: str, wanted: set[str]
) -> tuple[HloInstruction, str]:
    """x with each letter once and only those wanted: of one that stands twice the diagonal, the
    sum over others."""
    if len(set(letters)) == len(letters) and set(letters) <= wanted:
        return x, letters
    shape, zero = x.shape, scope.constant(0, x.shape.dtype)
    summed = [n for n, letter in enumerate(letters) if letter not in wanted]
    for n, letter in enumerate(letters):
        first = letters.index(letter)
        if first == n:
            continue
        if shape.dims[first] != shape.dims[n]:
            raise InvalidArgumentError(
                f"einsum: {letter} stands for dimensions of {shape.dims[first]} and {shape.dims[n]}"
            )
        places = [
            scope.add("iota", Shape(S32, shape.dims), (), iota_dimension=d) for d in (first, n)
        ]
        diagonal = scope.add("compare", Shape(PRED, shape.dims), places, direction="EQ")
        zeros = scope.add("broadcast", shape, (zero,), dimensions=())
        x = scope.add("select", shape, (diagonal, x, zeros))
        summed.append(n)
    dims = tuple(sorted(set(summed)))
    kept = [n for n in range(shape.rank) if n not in dims]
    region = addition(scope, shape.dtype)
    x = scope.add("reduce", shape.keep(kept), (x, zero), dimensions=dims, to_apply=region)
    return x, "".join(letters[n] for n in kept)


@converts("chlo.ragged_dot")
def _ragged_dot(scope: Scope, op: MlirOp) -> HloInstruction:
    value = reading.get(op, "ragged_dot_dimension_numbers")
    numbers: dict[str, Any] = value.fields if isinstance(value, Struct) else {}
    attrs = {k: v for k, v in dot_dims(numbers).items() if v}
    attrs["lhs_ragged_dims"] = tuple(numbers.get("lhs_ragged_dimensions", ()))
    attrs["rhs_group_dims"] = tuple(numbers.get("rhs_group_dimensions", ()))
    operands = scope.operands(op, 3)
    return scope.add("ragged-dot", result_shape(op), operands, **attrs, **precision(op))


@converts("chlo.scaled_dot")
def _scaled_dot(scope: Scope, op: MlirOp) -> HloInstruction:
    value = reading.get(op, "dot_dimension_numbers")
    numbers = value.fields if isinstance(value, Struct) else {}
    attrs = {k: v for k, v in dot_dims(numbers).items() if v}
    return scope.add("scaled-dot", result_shape(op), scope.operands(op, 4), **attrs)


# --- Convolution ---------------------------------------------------------------------------------


@converts("stablehlo.convolution")
def _convolution(scope: Scope, op: MlirOp) -> HloInstruction:
    padding = reading.pairs(op, "padding", None)
    return convolution(scope, op, scope.operands(op, 2), padding)


def convolution(
    scope: Scope,
    op: MlirOp,
    operands: list[HloInstruction],
    padding: list[tuple[int, int]] | None,
) -> HloInstruction:
    numbers = reading.struct(op, "dimension_numbers", "conv")
    labels = _conv_dims(op, numbers)
    kernel = operands[1].shape
    spatial = labels.kernel_spatial
    if any(not 0 <= d < kernel.rank for d in spatial):
        reading.fail(op, f"dimension_numbers do not fit the kernel {kernel.to_string(False)}")
    count = len(spatial)
    ones = (1,) * count
    strides = reading.ints(op, "window_strides", ones)
    lhs_dilation = reading.ints(op, "lhs_dilation", ones)
    rhs_dilation = reading.ints(op, "rhs_dilation", ones)
    reversal = reading.ints(op, "window_reversal", (0,) * count)
    padding = [(0, 0)] * count if padding is None else padding
    lists = {
        "window_strides": strides,
        "lhs_dilation": lhs_dilation,
        "rhs_dilation": rhs_dilation,
        "window_reversal": reversal,
        "padding": padding,
    }
    for name, values in lists.items():
        if len(values) != count:
            reading.fail(op, f"{name} has {len(values)} entries for {count} spatial dimensions")
    window = tuple(
        WindowDim(kernel.dims[d], strides[i], *padding[i], lhs_dilation[i], rhs_dilation[i],
                  bool(reversal[i]))
        for i, d in enumerate(spatial)
    )  # fmt: skip
    attrs: dict[str, Any] = {"window": window} if window else {}
    attrs["dim_labels"] = labels
    for name in ("feature_group_count", "batch_group_count"):
        groups = reading.integer(op, name, 1)
        if groups != 1:
            attrs[name] = groups
    return scope.add("convolution", result_shape(op), operands, **attrs, **precision(op))


CONV_FIELDS = {
    f.name + ("_dimensions" if f.name.endswith("spatial") else "_dimension"): f.name
    for f in fields(ConvDims)
}
"""StableHLO's names of a convolution's dimensions, and HLO's."""


def _conv_dims(op: MlirOp, numbers: dict[str, Any]) -> ConvDims:
    values = {}
    try:
        for name, hlo in CONV_FIELDS.items():
            is_list = hlo.endswith("spatial")
            values[hlo] = tuple(numbers.get(name, ())) if is_list else numbers[name]
    except KeyError as missing:
        return reading.fail(op, f"dimension_numbers lack {missing.args[0]}")
    return ConvDims(**values)
