"""dense<...>: the elements of constant tensors, as lists, splats or hexadecimal bytes."""

from __future__ import annotations

import json
import re
from math import prod
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from haloc.formats.stablehlo.element_types import numpy_of
from haloc.formats.stablehlo.mlir import DenseElements, DenseStrings, RankedTensor
from haloc.formats.stablehlo.text.cursor import INT64_MAX, MlirCursor
from haloc.formats.stablehlo.text.types import parse_type

# Possessive: an unclosed list is refused in one pass.
_CONTENT = re.compile(r'\s*<((?:[^"<>]++|"(?:[^"\\\n]|\\.)*+")*+)>')
_BLOB = re.compile(r'\s*"0x([0-9A-Fa-f]*)"\s*')
_HEX = re.compile(r"0x[0-9A-Fa-f]+")
_BAD = re.compile(r"[^\[\],\s\d.eE+xA-Fa-frustl\"()-]")
_PARENTHESES = str.maketrans("()", "[]")
_DEEP = re.compile(r"\s*(?:[\[(]\s*)*")

_MOST_DIMS = 32
"""NumPy's own limit, in its older versions."""


def parse_dense(cursor: MlirCursor) -> DenseElements | DenseStrings:
    """The text behind the word `dense`: `<...> : type`."""
    found = cursor.match(_CONTENT)
    if found is None:
        return cursor.expected("the elements, <...>")
    start, end = found.span(1)
    cursor.expect(":")
    type_at = cursor.skip()
    type_ = parse_type(cursor)
    content = found[1]
    if isinstance(type_, RankedTensor) and type_.element == "!stablehlo.string":
        quoted = re.findall(r'"((?:[^"\\\n]|\\.)*)"', content)
        return DenseStrings(tuple(cursor.unescape(s, start) for s in quoted))
    if not isinstance(type_, RankedTensor) or None in type_.dims:
        cursor.fail_at(f"dense<> needs a tensor of known size, not {type_}", type_at, cursor.pos)
    dims: tuple[int, ...] = tuple(type_.dims)  # type: ignore[arg-type]
    dtype = numpy_of(type_.element)
    if dtype is None:
        cursor.fail_at(f"dense<> of {type_.element} elements is not read", type_at, cursor.pos)
    reader = _Reader(cursor, start, end, type_, dims, dtype)
    if len(dims) > _MOST_DIMS or prod(dims) * dtype.itemsize > INT64_MAX:
        cursor.fail_at(f"{type_} is too large for a constant", type_at, cursor.pos)
    blob = _BLOB.fullmatch(content)
    array = reader.blob(blob[1]) if blob else reader.listed(content)
    array.flags.writeable = False
    return DenseElements(type_, array)


def parse_resource(cursor: MlirCursor) -> DenseElements:
    """The text behind `dense_resource`: `<name> : type`."""
    cursor.expect("<")
    start = cursor.skip()
    name = cursor.key()
    end = cursor.pos
    cursor.expect(">")
    cursor.expect(":")
    type_ = parse_type(cursor)
    if name not in cursor.resources:
        cursor.fail_at(f"the text holds no resource {name!r}", start, end)
    if not isinstance(type_, RankedTensor) or None in type_.dims:
        cursor.fail_at(f"dense_resource needs a tensor of known size, not {type_}", start, end)
    dtype = numpy_of(type_.element)
    if dtype is None:
        cursor.fail_at(f"dense_resource of {type_.element} elements is not read", start, end)
    dims: tuple[int, ...] = tuple(type_.dims)  # type: ignore[arg-type]
    reader = _Reader(cursor, start, end, type_, dims, dtype)
    # 4 bytes of alignment stand in front; elements take whole bytes, i1 too.
    array = np.array(reader.raw(cursor.resources[name][4:], may_pack=False))
    array.flags.writeable = False
    return DenseElements(type_, array)


class _Reader:
    def __init__(
        self,
        cursor: MlirCursor,
        start: int,
        end: int,
        type_: RankedTensor,
        dims: tuple[int, ...],
        dtype: np.dtype,
    ):
        self.cursor, self.start, self.end = cursor, start, end
        self.type, self.dims, self.dtype = type_, dims, dtype

    def fail(self, message: str) -> NoReturn:
        self.cursor.fail_at(message, self.start, min(self.end, self.start + 40))

    # --- Bytes -----------------------------------------------------------------------------

    def blob(self, digits: str) -> np.ndarray:
        if len(digits) % 2:
            self.fail("the hexadecimal bytes have an odd number of digits")
        return self.raw(bytes.fromhex(digits), may_pack=True)

    def raw(self, data: bytes, may_pack: bool) -> np.ndarray:
        """Little-endian elements; i1 packed, 8 a byte, least significant bit first."""
        count, size = prod(self.dims), self.dtype.itemsize
        if self.dtype == np.bool_:
            return self._raw_bools(data, count, may_pack)
        if len(data) == size and count != 1:
            one = np.frombuffer(data, self.dtype)
            return np.broadcast_to(one.reshape(()), self.dims).view()
        if len(data) != count * size:
            self.fail(f"{self.type} has {count * size} bytes, given {len(data)}")
        return np.frombuffer(data, self.dtype).reshape(self.dims).view()

    def _raw_bools(self, data: bytes, count: int, may_pack: bool) -> np.ndarray:
        if may_pack and len(data) == 1 and data[0] in (0, 255) and count != 1:
            return np.broadcast_to(np.bool_(data[0]), self.dims).view()
        if may_pack and len(data) == (count + 7) // 8:
            bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
            return bits[:count].astype(np.bool_).reshape(self.dims)
        if len(data) == count:
            return np.frombuffer(data, np.uint8).astype(np.bool_).reshape(self.dims)
        self.fail(f"{self.type} has {(count + 7) // 8} bytes, given {len(data)}")

    # --- Lists -----------------------------------------------------------------------------

    def listed(self, content: str) -> np.ndarray:
        """Nested lists of numbers, or one number for all elements."""
        bad = _BAD.search(content)
        if bad is not None:
            at = self.start + bad.start()
            self.cursor.fail_at(f"found {bad[0]!r} in a list of elements", at, at + 1)
        if not content.strip():
            if prod(self.dims):
                self.fail(f"dense<> is empty, but {self.type} has {prod(self.dims)} elements")
            return np.zeros(self.dims, self.dtype)
        deepest = _DEEP.match(content)
        if deepest is not None and len(deepest[0]) > 200:
            self.fail("lists nested more than 200 deep")
        values = self._values(content)
        is_complex = self.dtype.kind == "c"
        dims = (*self.dims, 2) if is_complex else self.dims
        try:
            array = self._array(values)
        except (ValueError, TypeError, OverflowError):
            self.fail(f"the elements are not those of {self.type}")
        if is_complex:
            array = self._complex(array)
        if array.ndim == 0 or (is_complex and array.shape == () and dims):
            return np.broadcast_to(array, self.dims).view()
        if array.shape != self.dims:
            given = "x".join(map(str, array.shape))
            self.fail(f"the elements are a list of {given}, but the type is {self.type}")
        return array

    def _values(self, content: str) -> Any:
        """JSON reads numbers fast; what JSON does not know is put in its words first."""
        text = content
        if "0x" in text:
            text = _HEX.sub(lambda m: f'"{m[0]}"', text)
        if "(" in text:
            text = text.translate(_PARENTHESES)
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            if "0x" in content or "." not in content:
                self.fail(f"the elements do not read: {error.msg}")
            # MLIR writes 1.e+00 too, which JSON does not know.
            try:
                return json.loads(re.sub(r"\.(?!\d)", ".0", text))
            except (ValueError, RecursionError):
                self.fail(f"the elements do not read: {error.msg}")
        except (ValueError, RecursionError):
            self.fail("the elements do not read: a number has too many digits")

    def _array(self, values: Any) -> np.ndarray:
        dtype = self.dtype
        if dtype.kind == "b":
            array = np.array(values)
            if array.dtype.kind == "b":
                return array
            if array.size == 0:
                return array.astype(np.bool_)
            if array.dtype.kind not in "iu" or not np.isin(array, (0, 1, -1)).all():
                self.fail(f"the elements of {self.type} are true and false")
            return array != 0
        if self.is_float():
            return self._floats(values)
        return self._integers(values)

    def is_float(self) -> bool:
        return self.dtype.kind in "fc" or (self.dtype.kind == "V" and "int" not in self.dtype.name)

    def _floats(self, values: Any) -> np.ndarray:
        part = {"complex64": np.float32, "complex128": np.float64}.get(self.dtype.name, self.dtype)
        part = np.dtype(part)
        array = np.array(values)
        if array.dtype.kind == "b":
            self.fail(f"the elements of {self.type} are numbers, not true and false")
        if array.dtype.kind in "US" or (array.dtype == object):
            return self._float_mixture(np.array(values, dtype=object), part)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return array.astype(np.float64).astype(part)

    def _float_mixture(self, array: np.ndarray, part: np.dtype) -> np.ndarray:
        """Decimal numbers among bit patterns."""
        unsigned = np.dtype(f"u{part.itemsize}")
        out = np.empty(array.shape, part)
        flat, bits = out.reshape(-1), out.reshape(-1).view(unsigned)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for i, value in enumerate(array.reshape(-1)):
                if isinstance(value, str):
                    pattern = int(value, 16)
                    if pattern >> (8 * part.itemsize):
                        self.fail(f"{value} has more bits than an element of {self.type}")
                    bits[i] = pattern
                else:
                    flat[i] = np.float64(value).astype(part)
        return out

    def _integers(self, values: Any) -> np.ndarray:
        """Of signless types either reading of the top bit may be written."""
        array = np.array(values)
        if array.dtype.kind in "USf":  # f: NumPy makes floats of s64 and u64 numbers together
            array = np.array(values, dtype=object)
        if array.size == 0:
            return array.astype(self.dtype)
        if array.dtype.kind not in "iuO":
            self.fail(f"the elements of {self.type} are integers")
        if array.dtype == object:
            flat = [int(v, 16) if isinstance(v, str) else v for v in array.reshape(-1)]
            if not all(type(v) is int for v in flat):
                self.fail(f"the elements of {self.type} are integers")
            array = np.array(flat, dtype=object).reshape(array.shape)
        info = ml_dtypes.iinfo(self.dtype)
        low, high = int(info.min), int(info.max)
        top = 2 * high + 1 if low < 0 else high
        if int(array.min()) < low or int(array.max()) > top:
            worst = int(array.max()) if int(array.max()) > top else int(array.min())
            self.fail(f"{worst} does not fit an element of {self.type}")
        if low < 0 and int(array.max()) > high:
            array = np.where(array > high, array - (top + 1), array)
        return array.astype(np.int64 if low < 0 else np.uint64).astype(self.dtype)

    def _complex(self, array: np.ndarray) -> np.ndarray:
        if array.size == 0:
            return np.zeros(self.dims, self.dtype)
        if array.shape[-1:] != (2,):
            self.fail(f"the elements of {self.type} are pairs (real, imaginary)")
        return np.ascontiguousarray(array).view(self.dtype)[..., 0]
