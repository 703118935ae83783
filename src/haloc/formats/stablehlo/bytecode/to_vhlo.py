"""StableHLO's ops as VHLO writes them: every property there, structured attributes flat.

The reverse of `vhlo_ops.to_stablehlo`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from haloc.errors import UnimplementedError
from haloc.formats.stablehlo.bytecode.entries import ABSENT
from haloc.formats.stablehlo.bytecode.stablehlo_dialect import ENUMS
from haloc.formats.stablehlo.bytecode.versions import SECOND_VERSIONS, Version
from haloc.formats.stablehlo.bytecode.vhlo_ops import OPTIONAL, PROPERTIES
from haloc.formats.stablehlo.mlir import (
    DenseElements,
    Enum,
    Integer,
    MlirOp,
    RankedTensor,
    Scalar,
    Struct,
    SymbolRef,
    Unit,
)


def vhlo_name(name: str, target: Version) -> str:
    """ "stablehlo.add" to "vhlo.add_v1"."""
    dialect, _, word = name.partition(".")
    if dialect not in ("stablehlo", "func"):
        raise UnimplementedError(f"{name}: portable artifacts hold ops of StableHLO only")
    newer = word in SECOND_VERSIONS and target >= SECOND_VERSIONS[word]
    found = f"vhlo.{word}_v{2 if newer else 1}"
    if found not in PROPERTIES:
        raise UnimplementedError(f"{name}: VHLO has no such op")
    return found


def properties(op: MlirOp, name: str) -> tuple[list[Any], dict[str, Any]]:
    """The properties of an op, in the order they are written, and its other attributes.

    name: VHLO's, from `vhlo_name`.
    """
    flat = _flat(op)
    values = []
    for key in PROPERTIES[name]:
        value = flat.pop(key, None)
        if value is None:
            value = _default(op, key)
        if key == "api_version" and isinstance(value, Integer):
            value = Enum("custom_call_api_version", _API_VERSIONS[value.value])
        values.append(value)
    others = {k: v for k, v in flat.items() if "." in k}
    lost = [k for k in flat if "." not in k and k not in _SILENT]
    if lost:
        raise UnimplementedError(f"{op.name}: {name} has no attribute {', '.join(lost)}")
    return values, others


_SILENT = OPTIONAL | {
    "channel_type",
    "input_batching_dims",
    "operand_batching_dims",
    "result_accuracy",
    "scatter_indices_batching_dims",
    "start_indices_batching_dims",
}
"""What some ops lack, or lacked at first: `versions.needed` sees that nothing is said by it, and
of channels only those of send and recv have a type."""


_API_VERSIONS = ENUMS["custom_call_api_version"]


def without_chlo(op: MlirOp) -> MlirOp:
    """An op of chlo as the custom call that stands for it in artifacts, others as they are."""
    dialect, _, word = op.name.partition(".")
    if dialect != "chlo" or word not in _CALLS:
        return op
    attributes: dict[str, Any] = {
        "call_target_name": f"mhlo.{_CALLS[word]}",
        "mhlo.attributes": {k: v for k, v in op.attributes.items() if "." not in k},
        "mhlo.version": Integer(1),
    }
    attributes |= {k: v for k, v in op.attributes.items() if "." in k}
    return MlirOp(
        "stablehlo.custom_call", op.operands, attributes, [], op.results, op.location, op.position
    )


_CALLS = {w: w for w in ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh")} | {
    "top_k": "topk"
}
"""Ops of chlo that readers of artifacts know as custom calls, by their name there."""


def has_portable_form(operations: list[MlirOp]) -> bool:
    """Whether all ops, nested ones too, are StableHLO's, or calls that stand for chlo's."""
    for op in operations:
        dialect = without_chlo(op).name.partition(".")[0]
        nested = [block.operations for region in op.regions for block in region.blocks]
        if dialect not in ("stablehlo", "func") or not all(map(has_portable_form, nested)):
            return False
    return True


def _flat(op: MlirOp) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in op.attributes.items():
        if isinstance(value, Struct) and key in _STRUCTS:
            flat |= _STRUCTS[key](value.fields)
        elif isinstance(value, SymbolRef):
            flat[key] = value.name
        elif isinstance(value, Unit) and "." not in key:
            flat[key] = True
        elif key == "called_computations" and isinstance(value, tuple):
            flat[key] = tuple(v.name for v in value if isinstance(v, SymbolRef))
        else:
            flat[key] = value
    return flat


def _fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Numbers as integer attributes, lists as tensors."""
    return {k: _dense(v) if isinstance(v, tuple) else Integer(v) for k, v in fields.items()}


def _channel(fields: dict[str, Any]) -> dict[str, Any]:
    return {"channel_id": Integer(fields["handle"]), "channel_type": Integer(fields["type"])}


def _algorithm(fields: dict[str, Any]) -> dict[str, Any]:
    plain = (bool, Scalar)
    return {k: v if isinstance(v, plain) else Integer(v) for k, v in fields.items()}


_STRUCTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "algorithm": _algorithm,
    "channel_handle": _channel,
    "dimension_numbers": _fields,
    "dot_dimension_numbers": _fields,
    "scatter_dimension_numbers": _fields,
}
"""Attributes that VHLO has as several."""


def _dense(values: Any, dtype: Any = np.int64) -> DenseElements:
    array = np.array(values, dtype)
    return DenseElements(RankedTensor(array.shape, "i1" if dtype is np.bool_ else "i64"), array)


# --- What is left out ----------------------------------------------------------------------------


def _default(op: MlirOp, key: str) -> Any:
    """What an attribute that is left out stands for."""
    if key in OPTIONAL:
        return ABSENT
    per_dimension = _PER_DIMENSION.get(key)
    if per_dimension is not None:
        rank = _window_rank(op)
        if key == "padding":
            return _dense([[0, 0]] * rank if rank else np.zeros((0, 2)))
        return _dense([per_dimension] * rank, np.bool_ if key == "window_reversal" else np.int64)
    if key in _PLAIN:
        return _PLAIN[key]
    if key.endswith(("_dims", "_dimensions", "_map")):
        return _dense(())
    raise UnimplementedError(f"{op.name}: attribute {key} is missing")


def _window_rank(op: MlirOp) -> int:
    numbers = op.attributes.get("dimension_numbers")
    if isinstance(numbers, Struct):
        spatial: Any = numbers.fields.get("kernel_spatial_dimensions", ())
        return len(spatial)
    type_ = op.operands[0].type
    assert isinstance(type_, RankedTensor)
    return len(type_.dims)


_PER_DIMENSION = {
    "base_dilations": 1,
    "lhs_dilation": 1,
    "padding": 0,
    "rhs_dilation": 1,
    "window_dilations": 1,
    "window_dimensions": 1,
    "window_reversal": False,
    "window_strides": 1,
}
_DEFAULT_PRECISION = Enum("precision", "DEFAULT")
_PLAIN: dict[str, Any] = {
    "api_version": Integer(1, "i32"),
    "arg_attrs": (),
    "backend_config": "",
    "batch_group_count": Integer(1),
    "called_computations": (),
    "channel_id": Integer(0),
    "compare_type": Enum("comparison_type", "NOTYPE"),
    "composite_attributes": {},
    "dimension": Integer(-1),
    "feature_group_count": Integer(1),
    "has_side_effect": False,
    "index_vector_dim": Integer(0),
    "indices_are_sorted": False,
    "infeed_config": "",
    "is_host_transfer": False,
    "is_stable": False,
    "layout": (),
    "lower": False,
    "operand_layouts": (),
    "outfeed_config": "",
    "output_operand_aliases": (),
    "precision_config": (_DEFAULT_PRECISION, _DEFAULT_PRECISION),
    "res_attrs": (),
    "result_accuracy": Struct(
        "stablehlo.result_accuracy",
        {"atol": 0.0, "rtol": 0.0, "ulps": 0, "mode": Enum("result_accuracy_mode", "DEFAULT")},
    ),
    "result_layouts": (),
    "source_target_pairs": _dense(np.zeros((0, 2))),
    "sym_visibility": "",
    "unique_indices": False,
    "use_global_device_ids": False,
    "version": Integer(0, "i32"),
}
