"""Dynamic ops as their static counterparts, once the operands that give sizes are known."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.formats.stablehlo.mlir import (
    Attribute,
    DenseElements,
    Integer,
    MlirOp,
    MlirRegion,
    MlirValue,
    RankedTensor,
    SymbolRef,
)

# Custom calls that hand on their operand.
PASSED_THROUGH = frozenset(
    (
        "Sharding",
        "annotate_device_placement",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.PropagationBarrier",
        "LayoutConstraint",
    )
)

BODY_CALLS = frozenset(
    ("stablehlo.dynamic_reduce_window", "stablehlo.dynamic_approx_top_k", "ApproxTopK")
)
"""Custom calls whose function becomes the region of an op."""


@dataclass(slots=True)
class Known:
    """What is known about values of the refined module.

    constants: the values of those that are shapes. producers: the op each comes from.
    body_of: the region of a function, refined for it to become a region of an op.
    """

    constants: dict[MlirValue, np.ndarray] = field(default_factory=dict)
    producers: dict[MlirValue, MlirOp] = field(default_factory=dict)
    body_of: Callable[[str], MlirRegion] | None = None


def ints(values: Any) -> DenseElements:
    """A list of sizes as an attribute."""
    array = np.array(values, np.int64)
    array.flags.writeable = False
    return DenseElements(RankedTensor(array.shape, "i64"), array)


def constant_op(type: RankedTensor, value: np.ndarray, like: MlirOp) -> MlirOp:
    value = np.array(value)
    value.flags.writeable = False
    attributes: dict[str, Attribute] = {"value": DenseElements(type, value)}
    return MlirOp(
        "stablehlo.constant", [], attributes, [], [MlirValue(type)], like.location, like.position
    )


def unknown(op: MlirOp, number: int, what: str) -> NoReturn:
    raise UnimplementedError(
        f"{op.name}: operand {number} ({what}) is not known before the program runs, so its "
        "result's shape cannot be refined"
    )


def _list(op: MlirOp, number: int, known: Known, what: str) -> list[int]:
    """The constant value of an operand that gives sizes."""
    value = known.constants.get(op.operands[number])
    if value is None:
        unknown(op, number, what)
    return value.ravel().tolist()


def _static(
    op: MlirOp, name: str, operands: int, dims: list[int] | None, **attributes: Attribute
) -> list[MlirOp]:
    """The op under another name, with its first operands only and with more attributes."""
    op.name = name
    op.operands = op.operands[:operands]
    op.attributes |= attributes
    if dims is not None:
        result = op.results[0]
        assert isinstance(result.type, RankedTensor)
        if any(d < 0 for d in dims):
            raise InvalidArgumentError(f"{name}: negative size in the computed shape {dims}")
        result.type = RankedTensor(tuple(dims), result.type.element)
    return [op]


def _broadcast(op: MlirOp, known: Known) -> list[MlirOp]:
    for name in ("known_expanding_dimensions", "known_nonexpanding_dimensions"):
        op.attributes.pop(name, None)
    dims = _list(op, 1, known, "output_dimensions")
    return _static(op, "stablehlo.broadcast_in_dim", 1, dims)


def _iota(op: MlirOp, known: Known) -> list[MlirOp]:
    return _static(op, "stablehlo.iota", 0, _list(op, 0, known, "output_shape"))


def _reshape(op: MlirOp, known: Known) -> list[MlirOp]:
    return _static(op, "stablehlo.reshape", 1, _list(op, 1, known, "output_shape"))


def _pad(op: MlirOp, known: Known) -> list[MlirOp]:
    low, high, interior = (
        ints(_list(op, i + 2, known, name))
        for i, name in enumerate(("edge_padding_low", "edge_padding_high", "interior_padding"))
    )
    attributes = {
        "edge_padding_low": low,
        "edge_padding_high": high,
        "interior_padding": interior,
    }
    return _static(op, "stablehlo.pad", 2, None, **attributes)


def _gather(op: MlirOp, known: Known) -> list[MlirOp]:
    sizes = ints(_list(op, 2, known, "slice_sizes"))
    return _static(op, "stablehlo.gather", 2, None, slice_sizes=sizes)


def _convolution(op: MlirOp, known: Known) -> list[MlirOp]:
    flat = _list(op, 2, known, "padding")
    pairs = ints(np.array(flat, np.int64).reshape(-1, 2))
    return _static(op, "stablehlo.convolution", 2, None, padding=pairs)


def _slice(op: MlirOp, known: Known) -> list[MlirOp]:
    strides = _list(op, 3, known, "strides")
    start, limit = (known.constants.get(v) for v in op.operands[1:3])
    if start is not None and limit is not None:
        return _static(
            op,
            "stablehlo.slice",
            1,
            None,
            start_indices=ints(start.ravel()),
            limit_indices=ints(limit.ravel()),
            strides=ints(strides),
        )
    sizes = _difference(op, known)
    if any(s != 1 for s in strides):
        unknown(op, 1, "start_indices")
    # A dynamic start with a known size: that is dynamic_slice, which takes scalar starts.
    parts: list[MlirOp] = []
    starts = [_element(op.operands[1], i, op, parts) for i in range(len(sizes))]
    op.operands = [op.operands[0], *starts]
    op.name = "stablehlo.dynamic_slice"
    op.attributes["slice_sizes"] = ints(sizes)
    return [*parts, op]


def _difference(op: MlirOp, known: Known) -> list[int]:
    """limit - start where limit is computed as start + a known size."""
    start, limit = op.operands[1:3]
    producer = known.producers.get(limit)
    if producer is not None and producer.name == "stablehlo.add" and start in producer.operands:
        other = producer.operands[1 - producer.operands.index(start)]
        if other in known.constants:
            return known.constants[other].ravel().tolist()
    unknown(op, 2, "limit_indices")


def _element(vector: MlirValue, index: int, op: MlirOp, parts: list[MlirOp]) -> MlirValue:
    """One element of a vector as a scalar; the ops for it are added to `parts`."""
    assert isinstance(vector.type, RankedTensor)
    element = vector.type.element
    one, scalar = MlirValue(RankedTensor((1,), element)), MlirValue(RankedTensor((), element))
    attributes: dict[str, Attribute] = {
        "start_indices": ints([index]),
        "limit_indices": ints([index + 1]),
        "strides": ints([1]),
    }
    parts.append(MlirOp("stablehlo.slice", [vector], attributes, [], [one], op.location))
    parts.append(MlirOp("stablehlo.reshape", [one], {}, [], [scalar], op.location))
    return scalar


def _dimension_size(op: MlirOp, known: Known) -> list[MlirOp]:
    type = op.operands[0].type
    dimension: Any = op.attributes["dimension"]
    axis: int = dimension.value
    if not isinstance(type, RankedTensor) or type.bounds or type.dims[axis] is None:
        return [op]
    result = op.results[0].type
    assert isinstance(result, RankedTensor)
    dtype = np.int64 if result.element == "i64" else np.int32
    return [constant_op(result, np.array(type.dims[axis], dtype), op)]


def _rng(op: MlirOp, known: Known) -> list[MlirOp]:
    """rng keeps its shape operand."""
    result = op.results[0].type
    assert isinstance(result, RankedTensor)
    dims = tuple(_list(op, 2, known, "shape"))
    op.results[0].type = RankedTensor(dims, result.element)
    return [op]


# --- Custom calls --------------------------------------------------------------------------------


def _assertion(op: MlirOp, known: Known) -> list[MlirOp]:
    """Checked now; the program need not check again."""
    truth = known.constants.get(op.operands[0])
    if truth is None:
        raise UnimplementedError(
            "shape_assertion: the condition is not known before the program runs"
        )
    if not bool(truth):
        values = [known.constants.get(v) for v in op.operands[1:]]
        message = str(op.attributes.get("error_message", "a shape assertion does not hold"))

        def fill(found: re.Match[str]) -> str:
            number = int(found[1])
            value = values[number] if number < len(values) else None
            return found[0] if value is None else str(value)

        raise InvalidArgumentError(re.sub(r"\{(\d{1,3})\}", fill, message))
    return []


def _dynamic_rng_bits(op: MlirOp, known: Known) -> list[MlirOp]:
    dims = _list(op, 1, known, "output_shape")
    result = op.results[1]
    assert isinstance(result.type, RankedTensor)
    result.type = RankedTensor(tuple(dims), result.type.element)
    return _static(op, "stablehlo.rng_bit_generator", 1, None)


def _dynamic_top_k(op: MlirOp, known: Known) -> list[MlirOp]:
    k = Integer(_list(op, 1, known, "k")[0], "i64")
    op.attributes = {"k": k}
    return _static(op, "chlo.top_k", 1, None)


def _approx_top_k(op: MlirOp, known: Known) -> list[MlirOp]:
    """The exact answer is allowed: sort by the comparator, keep the first.

    Operands: inputs, initial values, k and the result shapes, of which only inputs matter here.
    """
    config: Any = op.attributes.get("mhlo.backend_config", op.attributes.get("backend_config"))
    axis: int = config["reduction_dim"].value
    if "indices_of_shape_operands" in op.attributes:
        _shaped_call(op, known)
    count = len(op.results)
    inputs = op.operands[:count]
    attributes: dict[str, Attribute] = {"dimension": Integer(axis), "is_stable": True}
    region = _called_body(op, known)
    sort = MlirOp("stablehlo.sort", inputs, attributes, [region], [], op.location)
    sort.results = [MlirValue(v.type) for v in inputs]
    done = [sort]
    for whole, result in zip(sort.results, op.results, strict=True):
        assert isinstance(result.type, RankedTensor)
        assert isinstance(whole.type, RankedTensor)
        limits = list(whole.type.dims)
        limits[axis] = result.type.dims[axis]
        part: dict[str, Attribute] = {
            "start_indices": ints([0] * len(limits)),
            "limit_indices": ints(limits),
            "strides": ints([1] * len(limits)),
        }
        done.append(MlirOp("stablehlo.slice", [whole], part, [], [result], op.location))
    return done


def _called_body(op: MlirOp, known: Known) -> MlirRegion:
    """The function that a custom call names, as a region."""
    called = op.attributes.get("called_computations")
    if not isinstance(called, tuple) or not called or not isinstance(called[0], SymbolRef):
        raise InvalidArgumentError(f"{op.name}: called_computations names no function")
    assert known.body_of is not None
    return known.body_of(called[0].name)


def _dynamic_reduce_window(op: MlirOp, known: Known) -> list[MlirOp]:
    """Operands: inputs, initial values, then window sizes, strides, dilations and padding."""
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
    first = len(op.operands) - len(names)
    lists = [_list(op, first + i, known, name) for i, name in enumerate(names)]
    pairs = np.array(lists.pop(), np.int64).reshape(-1, 2)
    op.regions = [_called_body(op, known)]
    op.attributes = {n: ints(v) for n, v in zip(names, lists, strict=False)}
    return _static(op, "stablehlo.reduce_window", first, None, padding=ints(pairs))


def _shaped_call(op: MlirOp, known: Known) -> list[MlirOp]:
    """A custom call with `indices_of_shape_operands`: those operands give the result shapes."""
    where = op.attributes.pop("indices_of_shape_operands")
    numbers = where.array.ravel().tolist()  # type: ignore[union-attr]
    if len(numbers) != len(op.results):
        raise InvalidArgumentError(
            f"custom_call: {len(numbers)} shape operands for {len(op.results)} results"
        )
    for number, result in zip(numbers, op.results, strict=True):
        dims = tuple(_list(op, number, known, "a result's shape"))
        if isinstance(result.type, RankedTensor):
            result.type = RankedTensor(dims, result.type.element)
    kept = [i for i in range(len(op.operands)) if i not in numbers]
    op.operands = [op.operands[i] for i in kept]
    layouts = op.attributes.get("operand_layouts")
    if isinstance(layouts, tuple):
        op.attributes["operand_layouts"] = tuple([layouts[i] for i in kept if i < len(layouts)])
    return [op]


_CUSTOM_CALLS: Mapping[str, Callable[[MlirOp, Known], list[MlirOp]]] = {
    "ApproxTopK": _approx_top_k,
    "shape_assertion": _assertion,
    "stablehlo.dynamic_approx_top_k": _approx_top_k,
    "stablehlo.dynamic_reduce_window": _dynamic_reduce_window,
    "stablehlo.dynamic_rng_bit_generator": _dynamic_rng_bits,
    "stablehlo.dynamic_top_k": _dynamic_top_k,
}


def _custom_call(op: MlirOp, known: Known) -> list[MlirOp]:
    target = str(op.attributes.get("call_target_name", ""))
    handler = _CUSTOM_CALLS.get(target)
    if handler is not None:
        return handler(op, known)
    if "indices_of_shape_operands" in op.attributes:
        return _shaped_call(op, known)
    if target in PASSED_THROUGH and op.operands:
        op.results[0].type = op.operands[0].type
    return [op]


STATIC: Mapping[str, Callable[[MlirOp, Known], list[MlirOp]]] = {
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dynamic_broadcast_in_dim": _broadcast,
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.dynamic_pad": _pad,
    "stablehlo.dynamic_reshape": _reshape,
    "stablehlo.get_dimension_size": _dimension_size,
    "stablehlo.real_dynamic_slice": _slice,
    "stablehlo.rng": _rng,
}
"""What each dynamic op becomes. The op given is the caller's copy; the results are kept."""
