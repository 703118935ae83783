"""How elements are read into the type a contraction computes in, and rounded back to memory."""

from __future__ import annotations

from functools import cache

import numpy as np

from haloc.codegen.kernel import PREFIX
from haloc.cpu.contraction.text import Code, vector
from haloc.errors import UnimplementedError
from haloc.ir.dtype import BF16, F16, F32, F64, PRED, DType

_STORAGE = {"f32": "float", "f64": "double", "f16": "half", "bf16": "i16"}


def storage_type(dtype: DType) -> str:
    """The LLVM type one element has in memory (of a complex type: one component)."""
    dtype = dtype.real
    return _STORAGE.get(dtype.name, f"i{dtype.byte_size * 8}")


def is_tabled(dtype: DType) -> bool:
    """Floats of up to 8 bits are read through a table of their 256 values."""
    return dtype.is_float and dtype.byte_size == 1


def compute_type(lhs: DType, rhs: DType, result: DType, opcode: str) -> str:
    """The LLVM type products are summed in: float, double, i32, i64, or i8 for pred.

    Integers wrap, so any width of at least the result's gives the result's bits.
    """
    operands = (lhs, rhs)
    if result.is_complex:
        supported = lhs.is_complex and rhs.is_complex
        type = "double" if result.real is F64 else "float"
    elif result.is_float:
        supported = not (lhs.is_complex or rhs.is_complex)
        type = "double" if F64 in (lhs, rhs, result) else "float"
    elif result.is_pred:
        supported = lhs is PRED and rhs is PRED
        type = "i8"
    else:
        supported = all(d.is_integer or d.is_pred for d in operands)
        type = "i64" if result.bits == 64 else "i32"
    if not supported:
        raise UnimplementedError(
            f"{opcode}: no {result.name} result from {lhs.name} and {rhs.name} operands on CPU"
        )
    return type


def type_bytes(type: str) -> int:
    return {"float": 4, "double": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2}[type]


# --- Reading -----------------------------------------------------------------------------------


def read(code: Code, dtype: DType, pointer: str, width: int, type: str) -> str:
    """Load `width` consecutive elements as `type`. Tabled types: width 1 only."""
    dtype = dtype.real
    storage = storage_type(dtype)
    loaded = code.load(storage, pointer, dtype.byte_size, width)
    if type == storage and dtype is BF16:  # as it is
        return loaded
    if is_tabled(dtype):
        assert width == 1
        index = code.ins(f"zext i8 {loaded} to i64")
        slot = code.offset("float", f"@{PREFIX}_values_{dtype.name}", index)
        value, got = code.load("float", slot, 4), "float"
    elif dtype is BF16:
        wide = code.ins(f"zext {vector('i16', width)} {loaded} to {vector('i32', width)}")
        shifted = code.ins(f"shl {vector('i32', width)} {wide}, {_splat('i32', 16, width)}")
        t = vector("float", width)
        value, got = code.ins(f"bitcast {vector('i32', width)} {shifted} to {t}"), "float"
    elif dtype.is_float:
        value, got = loaded, storage
    else:
        return _read_integer(code, dtype, loaded, width, type)
    if got == type:
        return value
    grow = type_bytes(got) < type_bytes(type)
    cast = "fpext" if grow else "fptrunc"
    return code.ins(f"{cast} {vector(got, width)} {value} to {vector(type, width)}")


def _read_integer(code: Code, dtype: DType, loaded: str, width: int, type: str) -> str:
    storage = storage_type(dtype)
    t = vector(storage, width)
    if dtype.is_integer and dtype.bits < 8:  # the byte's upper bits may hold anything
        by = _splat("i8", 8 - dtype.bits, width)
        loaded = code.ins(f"shl {t} {loaded}, {by}")
        shift = "ashr" if dtype.is_signed else "lshr"
        loaded = code.ins(f"{shift} {t} {loaded}, {by}")
    if type in ("float", "double"):
        cast = "sitofp" if dtype.is_signed else "uitofp"
    elif storage == type:
        return loaded
    elif type_bytes(storage) > type_bytes(type):
        cast = "trunc"
    else:
        cast = "sext" if dtype.is_signed else "zext"
    return code.ins(f"{cast} {t} {loaded} to {vector(type, width)}")


# --- Writing -----------------------------------------------------------------------------------


def can_write_vectors(dtype: DType) -> bool:
    return not is_tabled(dtype)


def rounded(code: Code, dtype: DType, value: str, width: int, type: str) -> str:
    """`value` of compute type `type` as the bits memory holds. Tabled types: width 1 only."""
    dtype = dtype.real
    storage = storage_type(dtype)
    t = vector(type, width)
    if dtype.is_float and type == "double" and dtype is not F64:
        value, type, t = _narrowed(code, value, width, keep_odd=dtype is not F32), "float", ""
        t = vector(type, width)
    if is_tabled(dtype):
        assert width == 1
        return _encoded(code, dtype, value)
    if dtype is BF16:
        return _rounded_bf16(code, value, width)
    if dtype is F16:
        return code.ins(f"fptrunc {t} {value} to {vector(storage, width)}")
    if storage != type:
        value = code.ins(f"trunc {t} {value} to {vector(storage, width)}")
    if dtype.is_integer and dtype.bits < 8:
        mask = _splat(storage, (1 << dtype.bits) - 1, width)  # as ml_dtypes stores them
        value = code.ins(f"and {vector(storage, width)} {value}, {mask}")
    return value


def _narrowed(code: Code, value: str, width: int, keep_odd: bool) -> str:
    """double to float; with keep_odd rounded to odd, so that rounding again is exact."""
    d, f, i = vector("double", width), vector("float", width), vector("i32", width)
    near = code.ins(f"fptrunc {d} {value} to {f}")
    if not keep_odd:
        return near
    back = code.ins(f"fpext {f} {near} to {d}")
    bits = code.ins(f"bitcast {f} {near} to {i}")
    size, size_back = (code.intrinsic("fabs", d, v) for v in (value, back))
    too_big = code.ins(f"fcmp olt {d} {size}, {size_back}")
    inexact = code.ins(f"fcmp one {d} {size}, {size_back}")
    step = code.ins(f"sext {vector('i1', width)} {too_big} to {i}")
    down = code.ins(f"add {i} {bits}, {step}")
    odd = code.ins(f"zext {vector('i1', width)} {inexact} to {i}")
    sticky = code.ins(f"or {i} {down}, {odd}")
    return code.ins(f"bitcast {i} {sticky} to {f}")


def _rounded_bf16(code: Code, value: str, width: int) -> str:
    """Round to nearest even in integers: the CPU's own instruction flushes subnormals."""
    f, i = vector("float", width), vector("i32", width)
    bits = code.ins(f"bitcast {f} {value} to {i}")
    high = code.ins(f"lshr {i} {bits}, {_splat('i32', 16, width)}")
    odd = code.ins(f"and {i} {high}, {_splat('i32', 1, width)}")
    bias = code.ins(f"add {i} {odd}, {_splat('i32', 0x7FFF, width)}")
    summed = code.ins(f"add {i} {bits}, {bias}")
    top = code.ins(f"lshr {i} {summed}, {_splat('i32', 16, width)}")
    quiet = code.ins(f"or {i} {high}, {_splat('i32', 0x40, width)}")
    nan = code.ins(f"fcmp uno {f} {value}, {value}")
    chosen = code.ins(f"select {vector('i1', width)} {nan}, {i} {quiet}, {i} {top}")
    return code.ins(f"trunc {i} {chosen} to {vector('i16', width)}")


def _encoded(code: Code, dtype: DType, value: str) -> str:
    """float to an 8-bit float: how many of the type's rounding bounds |value| reaches."""
    bounds, _, _, _ = _encoding(dtype)
    bits = code.ins(f"bitcast float {value} to i32")
    size = code.ins(f"and i32 {bits}, 2147483647")
    count: str = "0"
    step = 1 << (len(bounds).bit_length() - 1)
    while step:
        tried = code.ins(f"add i64 {count}, {step - 1}")
        slot = code.offset("i32", f"@{PREFIX}_bounds_{dtype.name}", tried)
        bound = code.load("i32", slot, 4)
        reached = code.ins(f"icmp uge i32 {size}, {bound}")
        further = code.ins(f"add i64 {count}, {step}")
        count = code.ins(f"select i1 {reached}, i64 {further}, i64 {count}")
        step //= 2
    negative = code.ins(f"icmp slt i32 {bits}, 0")
    row = code.ins(f"select i1 {negative}, i64 512, i64 0")
    slot = code.offset("i8", f"@{PREFIX}_codes_{dtype.name}", code.add(row, count))
    return code.load("i8", slot, 1)


@cache
def _encoding(dtype: DType) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(bounds, codes of positive, of negative numbers, all 256 values) of an 8-bit float.

    A float whose magnitude has bits b gets code number `count of bounds <= b`. The bounds are
    found by bisecting the type's own conversion, which is monotonic in b; NaNs are the last step.
    bounds is padded to 2**n - 1 entries that nothing reaches.
    """

    def encode(bits: np.ndarray) -> np.ndarray:
        return bits.astype(np.uint32).view(np.float32).astype(dtype.numpy).view(np.uint8)

    with np.errstate(all="ignore"):
        values = np.arange(256, dtype=np.uint8).view(dtype.numpy).astype(np.float32)
        infinity = 0x7F800000
        samples = np.unique(
            np.concatenate(
                [
                    np.abs(values[np.isfinite(values)]).view(np.uint32).astype(np.int64),
                    [0, infinity - 1, infinity, infinity + 1],
                ]
            )
        )
        # Between neighbouring samples the code changes once at most.
        low, high = samples[:-1].copy(), samples[1:].copy()
        ends = encode(high)
        changes = encode(low) != ends
        low, high, ends = low[changes], high[changes], ends[changes]
        while (high - low > 1).any():
            middle = (low + high) // 2
            is_high = encode(middle) == ends
            low, high = np.where(is_high, low, middle), np.where(is_high, middle, high)
        starts = np.concatenate([[0], high])
        positive = encode(starts)
        negative = encode(starts | 0x80000000)
    size = (1 << len(high).bit_length()) - 1
    bounds = np.concatenate([high, np.full(size - len(high), 0xFFFFFFFF)]).astype(np.uint32)
    return bounds, positive, negative, values


def tables(read_types: set[DType], written: DType) -> str:
    """The constants that `read` and `rounded` refer to."""
    lines = []
    for dtype in sorted((d for d in read_types if is_tabled(d)), key=lambda d: d.name):
        values = _encoding(dtype)[3]
        entries = _array("float", [_float_text(v) for v in values])
        lines.append(f"@{PREFIX}_values_{dtype.name} = internal constant {entries}")
    if is_tabled(written):
        bounds, positive, negative, _ = _encoding(written)
        entries = _array("i32", bounds.tolist())
        lines.append(f"@{PREFIX}_bounds_{written.name} = internal constant {entries}")
        codes = np.zeros((2, 512), np.uint8)
        codes[0, : len(positive)], codes[1, : len(negative)] = positive, negative
        entries = _array("i8", codes.reshape(-1).tolist())
        lines.append(f"@{PREFIX}_codes_{written.name} = internal constant {entries}")
    return "".join(line + "\n" for line in lines)


def _array(type: str, entries: list[str] | list[int]) -> str:
    return f"[{len(entries)} x {type}] [" + ", ".join(f"{type} {e}" for e in entries) + "]"


def _float_text(value: np.float32) -> str:
    """A float constant as LLVM wants it: the bits of the equal double."""
    with np.errstate(all="ignore"):
        return f"0x{int(np.float64(value).view(np.uint64)):016X}"


def _splat(type: str, number: int, width: int) -> str:
    return str(number) if width == 1 else f"splat ({type} {number})"
