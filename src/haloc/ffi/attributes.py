"""Attributes of a typed custom call: backend_config read, and written as `XLA_FFI_Attrs`."""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from haloc.errors import HloParseError, InvalidArgumentError, UnimplementedError
from haloc.ffi import c_api
from haloc.ffi.c_api import AttrType
from haloc.formats.stablehlo.element_types import ELEMENT_TYPES
from haloc.formats.stablehlo.mlir import UNIT, DenseElements, Float, Integer
from haloc.formats.stablehlo.text.attributes import AttributeCursor, parse_dictionary
from haloc.ir.dtype import PRED, dtype_from_numpy

AttributeValue: TypeAlias = "str | np.generic | np.ndarray | dict[str, AttributeValue]"
"""A string; a scalar (np.bool_, np.int64, ...); an array of rank 1; a dictionary."""


def read_attributes(config: str, where: str) -> dict[str, AttributeValue]:
    """The attributes in a backend_config: an MLIR dictionary `{n = 1 : i32}`, JSON or nothing.

    Numbers of JSON are s64 and f64. where: names the instruction in errors. Raises
    InvalidArgumentError for other text, UnimplementedError for attributes a call cannot be given.
    """
    config = config.strip()
    if not config:
        return {}
    if re.match(r'\{\s*("[^"]*"\s*:|\})', config):
        try:
            parsed: Any = json.loads(config)
        except json.JSONDecodeError as error:
            raise InvalidArgumentError(f"{where}: backend_config {config!r}: {error}") from None
    else:
        cursor = AttributeCursor(config if config.startswith("{") else f"{{{config}}}", where)
        try:
            parsed = parse_dictionary(cursor)
        except HloParseError as error:
            raise InvalidArgumentError(
                f"{where}: backend_config {config!r} is neither JSON nor a dictionary of MLIR: "
                f"{error.message}"
            ) from None
    return {name: _value(value, f"{where}, attribute {name}") for name, value in parsed.items()}


def _value(value: Any, where: str) -> AttributeValue:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.int64(value)
    if isinstance(value, float):
        return np.float64(value)
    if isinstance(value, Integer | Float):
        dtype = ELEMENT_TYPES.get(value.type)
        if dtype is not None and dtype.numpy is not None:
            return np.array(value.value).astype(dtype.numpy)[()]  # type: ignore[no-any-return]
    if isinstance(value, DenseElements):
        return np.ascontiguousarray(value.array).reshape(-1)
    if isinstance(value, Mapping):
        return {str(k): _value(v, f"{where}.{k}") for k, v in value.items()}
    if isinstance(value, Sequence) and all(isinstance(v, int | float) for v in value):
        return np.array(value)
    kind = "unit" if value is UNIT else type(value).__name__
    raise UnimplementedError(
        f"{where}: custom calls take strings, numbers, arrays of numbers and dictionaries, not "
        f"{kind} {value}"
    )


class NativeAttributes:
    """Attributes as C sees them, sorted by name. `struct` is valid as long as this lives."""

    def __init__(self, attributes: Mapping[str, AttributeValue]):
        self._kept: list[object] = []
        names, types, values = [], [], []
        for name, value in sorted(attributes.items(), key=lambda item: item[0].encode()):
            kind, address = self._native(value)
            names.append(self._keep(self._span(name)))
            types.append(kind)
            values.append(address)
        count = len(names)
        self.struct = c_api.Attrs(
            size=count,
            types=self._keep((ctypes.c_int * max(1, count))(*types)),
            names=self._keep((ctypes.c_void_p * max(1, count))(*names)),
            attrs=self._keep((ctypes.c_void_p * max(1, count))(*values)),
        )

    def _keep(self, data: Any) -> int:
        self._kept.append(data)
        return ctypes.addressof(data)

    def _span(self, text: str) -> c_api.ByteSpan:
        data = text.encode("utf-8", "surrogateescape")
        return c_api.ByteSpan(self._keep(ctypes.create_string_buffer(data)), len(data))

    def _native(self, value: AttributeValue) -> tuple[AttrType, int]:
        if isinstance(value, str):
            return AttrType.STRING, self._keep(self._span(value))
        if isinstance(value, dict):
            nested = NativeAttributes(value)
            self._kept.append(nested)
            return AttrType.DICTIONARY, ctypes.addressof(nested.struct)
        data = np.ascontiguousarray(value).reshape(-1)
        self._kept.append(data)
        dtype = PRED if data.dtype == np.bool_ else dtype_from_numpy(data.dtype)
        if isinstance(value, np.ndarray):
            array = c_api.Array(dtype.number, data.size, data.ctypes.data)
            return AttrType.ARRAY, self._keep(array)
        return AttrType.SCALAR, self._keep(c_api.Scalar(dtype.number, data.ctypes.data))
