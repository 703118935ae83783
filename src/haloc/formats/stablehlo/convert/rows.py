"""Ops that differ from HLO in spelling only: one row an op, read for StableHLO to HLO and for HLO
to StableHLO.

A row names both ops and each attribute in both spellings, with the form of its value. Where HLO
has the same operands but reading takes more than a row says (StableHLO's broadcast_in_dim
stretches), the row is for writing, and a function in this room reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from haloc.formats.stablehlo.convert import reading
from haloc.formats.stablehlo.mlir import (
    Attribute,
    DenseElements,
    Enum,
    Float,
    Integer,
    MlirOp,
    RankedTensor,
)

MISSING = reading.MISSING


@dataclass(frozen=True, slots=True)
class Form:
    """How a value is read from an op's attribute, and the attribute made of a value."""

    read: Callable[[MlirOp, str, Any], Any]
    write: Callable[[Any], Attribute]


def dense(values: Any, element: str = "i64") -> DenseElements:
    """A tensor of integers, or of i1; what lists among attributes are made of."""
    array = np.array(values, np.bool_ if element == "i1" else np.int64)
    array.flags.writeable = False
    return DenseElements(RankedTensor(array.shape, element), array)


def words(kind: str, hlo: dict[str, str]) -> Form:
    """An enum; `hlo` has HLO's word for each of StableHLO's."""
    back = {word: name for name, word in hlo.items()}

    def read(op: MlirOp, name: str, default: Any) -> str:
        word = reading.enum(op, name, default)
        if word not in hlo:
            reading.fail(op, f"unknown {name} {word!r}, expected {', '.join(hlo)}")
        return hlo[word]

    return Form(read, lambda value: Enum(kind, back[value]))


def same_words(kind: str, *names: str) -> Form:
    return words(kind, {name: name for name in names})


def _flag(op: MlirOp, name: str, default: Any) -> bool:
    return reading.flag(op, name, default is True)


INTS = Form(reading.ints, dense)
I64 = Form(reading.integer, Integer)
I32 = Form(reading.integer, lambda value: Integer(value, "i32"))
FLAG = Form(_flag, lambda value: value)
F32 = Form(reading.number, lambda value: Float(float(np.float32(value)), "f32"))
FFT = same_words("fft_type", "FFT", "IFFT", "RFFT", "IRFFT")
TRANSPOSE = same_words("transpose", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
ALGORITHM = words(
    "rng_algorithm",
    {"DEFAULT": "rng_default", "THREE_FRY": "rng_three_fry", "PHILOX": "rng_philox"},
)
DISTRIBUTION = words("rng_distribution", {"UNIFORM": "rng_uniform", "NORMAL": "rng_normal"})


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute: its name in StableHLO, its name in HLO, its form; what it is when absent."""

    name: str
    hlo: str
    form: Form
    default: Any = MISSING


@dataclass(frozen=True, slots=True)
class Row:
    opcode: str
    fields: tuple[Field, ...] = ()
    reads: bool = True
    """Whether reading, too, takes no more than this row."""


def _field(name: str, form: Form, hlo: str = "", default: Any = MISSING) -> Field:
    return Field(name, hlo or name, form, default)


_EPSILON = (_field("epsilon", F32), _field("feature_index", I64))

ROWS: dict[str, Row] = {
    "chlo.top_k": Row("topk", (_field("k", I64),), reads=False),
    "stablehlo.batch_norm_grad": Row("batch-norm-grad", _EPSILON),
    "stablehlo.batch_norm_inference": Row("batch-norm-inference", _EPSILON),
    "stablehlo.batch_norm_training": Row("batch-norm-training", _EPSILON),
    "stablehlo.broadcast_in_dim": Row(
        "broadcast", (_field("broadcast_dimensions", INTS, "dimensions"),), reads=False
    ),
    "stablehlo.cholesky": Row("cholesky", (_field("lower", FLAG, default=False),)),
    "stablehlo.clamp": Row("clamp"),
    "stablehlo.concatenate": Row(
        "concatenate", (_field("dimension", I64, "dimensions"),), reads=False
    ),
    "stablehlo.dynamic_slice": Row(
        "dynamic-slice", (_field("slice_sizes", INTS, "dynamic_slice_sizes"),)
    ),
    "stablehlo.dynamic_update_slice": Row("dynamic-update-slice"),
    "stablehlo.fft": Row("fft", (_field("fft_type", FFT), _field("fft_length", INTS))),
    "stablehlo.get_dimension_size": Row(
        "get-dimension-size", (_field("dimension", I64, "dimensions"),), reads=False
    ),
    "stablehlo.iota": Row("iota", (_field("iota_dimension", I64),)),
    "stablehlo.partition_id": Row("partition-id"),
    "stablehlo.reduce_precision": Row(
        "reduce-precision", (_field("exponent_bits", I32), _field("mantissa_bits", I32))
    ),
    "stablehlo.replica_id": Row("replica-id"),
    "stablehlo.reverse": Row("reverse", (_field("dimensions", INTS),)),
    "stablehlo.rng_bit_generator": Row(
        "rng-bit-generator", (_field("rng_algorithm", ALGORITHM, "algorithm"),)
    ),
    "stablehlo.select": Row("select", reads=False),
    "stablehlo.set_dimension_size": Row(
        "set-dimension-size", (_field("dimension", I64, "dimensions"),)
    ),
    "stablehlo.transpose": Row("transpose", (_field("permutation", INTS, "dimensions"),)),
    "stablehlo.triangular_solve": Row(
        "triangular-solve",
        (
            _field("left_side", FLAG),
            _field("lower", FLAG),
            _field("unit_diagonal", FLAG),
            _field("transpose_a", TRANSPOSE),
        ),
    ),
}
"""By StableHLO's name."""
