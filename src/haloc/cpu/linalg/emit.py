"""From a `Call` to a kernel: scratch layout, transposes, the call itself, over a batch."""

from __future__ import annotations

from collections.abc import Sequence

from haloc.codegen.kernel import PREFIX, Kernel, Phase
from haloc.cpu.linalg.arguments import (
    Argument,
    Array,
    Call,
    Char,
    Info,
    Int,
    Null,
    One,
    Work,
    WorkSize,
)
from haloc.cpu.linalg.lapack import address
from haloc.cpu.linalg.workspace import with_work_sizes
from haloc.cpu.writer import Function
from haloc.ir.shape import Shape

MAX_GROUPS = 16
"""Ranges a batch is dealt out in, each with scratch of its own."""

MEMSET = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


class Frame:
    """One call's surroundings, for the code of a `Call.finish`.

    places: each argument's address, in argument order. leaf_bytes: of one batch element of each
    leaf, operands first.
    """

    def __init__(self, f: Function, batch: str, leaf_bytes: list[int], operands: int):
        self.f = f
        self.batch = batch
        self.places: list[str] = []
        self._leaf_bytes = leaf_bytes
        self._operands = operands

    def operand(self, number: int) -> str:
        """The address of this batch element of an operand leaf."""
        offset = self.f.mul(self.batch, self._leaf_bytes[number])
        return self.f.element(f"%b{number}", "i8", offset)

    def result(self, number: int) -> str:
        return self.operand(self._operands + number)

    def zero_result(self, number: int) -> None:
        fill_bytes(self.f, self.result(number), self._leaf_bytes[self._operands + number], 0)

    def fill_all_results(self) -> None:
        """With all bits set: NaN, and -1."""
        for number in range(self._operands, len(self._leaf_bytes)):
            fill_bytes(self.f, self.operand(number), self._leaf_bytes[number], 255)


def emit_call(
    call: Call, operands: Sequence[Shape], results: Sequence[Shape], batch: int
) -> Kernel:
    """The kernel that makes the call for each of `batch` elements. Shapes are of the leaves.

    Where operand 0's matrices have no elements nothing is called and results are zero.
    """
    leaf_bytes = [s.byte_size // max(batch, 1) for s in (*operands, *results)]
    arrays = [a for a in call.arguments if isinstance(a, Array)]
    parameters = ", ".join(f"ptr %b{i}" for i in range(len(leaf_bytes)))
    f = Function(f"{PREFIX}.call", f"{parameters}, ptr %scratch, i64 %begin, i64 %end")
    if batch == 0 or any(a.size == 0 for a in arrays if a.operand == 0):
        for number, shape in enumerate(results, len(operands)):
            fill_bytes(f, f"%b{number}", shape.byte_size, 0)
        return Kernel(f.text(), (Phase(f"{PREFIX}.call"),), (MEMSET,))
    call = with_work_sizes(call)
    globals_text, constants = _constants(call)
    offsets, group_bytes = _scratch_layout(call)
    groups = min(batch, MAX_GROUPS)
    with f.loop("%begin", "%end") as group:
        base = f.element("%scratch", "i8", f.mul(group, group_bytes))
        first, _ = f.divmod(f.mul(group, batch), groups)
        last, _ = f.divmod(f.mul(f.add(group, 1), batch), groups)
        with f.loop(first, last) as element:
            frame = Frame(f, element, leaf_bytes, len(operands))
            for number, argument in enumerate(call.arguments):
                offset = offsets[number]
                if offset is not None:
                    frame.places.append(f.element(base, "i8", offset))
                else:
                    frame.places.append(constants[number] or _leaf_place(frame, argument))
            _emit_element(f, frame, call, operands)
    elements = max(a.size for a in arrays)
    symbol = f"haloc_lapack_{call.symbol}"
    types = ", ".join(["ptr"] * len(call.arguments))
    return Kernel(
        globals_text + f.text(),
        (Phase(f"{PREFIX}.call", groups, 2.0 * elements**1.5 * batch / groups),),
        (MEMSET, MEMCPY, f"declare void @{symbol}({types})"),
        {symbol: address(call.symbol)},
        groups * group_bytes,
    )


def fill_bytes(f: Function, pointer: str, size_bytes: int, byte: int) -> None:
    f.do(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 {byte}, i64 {size_bytes}, i1 false)")


def _constants(call: Call) -> tuple[str, list[str]]:
    """Globals for the arguments known now, and all arguments' names ("": not known now)."""
    lines, names = [], []
    counts: dict[str, int] = {}
    for number, argument in enumerate(call.arguments):
        match argument:
            case Char(code):
                value = f"i8 {code}"
            case Int(count):
                value = f"i32 {count}"
            case WorkSize(dtype):
                value = f"i32 {counts[dtype.name]}"
            case One(dtype):
                t = "float" if dtype.real.byte_size == 4 else "double"
                value = f"[2 x {t}] [{t} 1.0, {t} 0.0]"
            case Work(dtype, count):
                assert count is not None
                counts[dtype.name] = count
                value = ""
            case _:
                value = ""
        name = "null" if isinstance(argument, Null) else f"@{PREFIX}.c{number}" if value else ""
        names.append(name)
        if value:
            lines.append(f"{name} = private constant {value}, align 16\n")
    return "".join(lines), names


def _scratch_bytes(argument: Argument) -> int | None:
    """Scratch an argument needs; None where it is a constant or a leaf's memory."""
    match argument:
        case Work(dtype, count):
            return max(1, count or 0) * dtype.byte_size
        case Info(result=None):
            return 4
        case Array() as a:
            has_leaf = a.result is not None or (a.operand is not None and not a.is_destroyed)
            return None if a.is_in_place and has_leaf else a.size_bytes
    return None


def _scratch_layout(call: Call) -> tuple[list[int | None], int]:
    """Each argument's offset in a group's scratch, and the group's size in bytes."""
    offsets: list[int | None] = []
    total = 0
    for argument in call.arguments:
        size = _scratch_bytes(argument)
        offsets.append(None if size is None else total)
        total += -(-(size or 0) // 64) * 64
    return offsets, total


def _leaf_place(frame: Frame, argument: Argument) -> str:
    match argument:
        case Info(result=int(number)):
            return frame.result(number)
        case Array(result=int(number)):
            return frame.result(number)
        case Array(operand=int(number)):
            return frame.operand(number)
    raise AssertionError(argument)


def _emit_element(f: Function, frame: Frame, call: Call, operands: Sequence[Shape]) -> None:
    """One batch element, with the test that operand `call.finite` is finite."""
    if call.finite is None:
        _emit_call(f, frame, call)
        return
    dtype = operands[call.finite].dtype
    array = next(a for a in call.arguments if isinstance(a, Array) and a.operand == call.finite)
    count = array.size * (2 if dtype.is_complex else 1)
    t = "float" if dtype.real.byte_size == 4 else "double"
    is_finite = f.variable("i1", "true")
    with f.loop(0, count) as i:
        x = f.load(t, f.element(frame.operand(call.finite), t, i))
        # x - x is 0 for finite numbers, NaN for the others.
        is_number = f.op(f"fcmp oeq {t} {f.op(f'fsub {t} {x}, {x}')}, 0.0")
        f.set(is_finite, f.op(f"and i1 {f.get(is_finite)}, {is_number}"))
    with f.when(f.get(is_finite)):
        _emit_call(f, frame, call)
    with f.when(f.op(f"xor i1 {f.get(is_finite)}, true")):
        frame.fill_all_results()
        for argument, place in zip(call.arguments, frame.places, strict=True):
            if isinstance(argument, Info):
                f.store("i32", -4, place)


def _emit_call(f: Function, frame: Frame, call: Call) -> None:
    arrays = [
        (a, place)
        for a, place in zip(call.arguments, frame.places, strict=True)
        if isinstance(a, Array)
    ]
    for array, place in arrays:
        if array.operand is not None:
            source = frame.operand(array.operand)
            if not array.is_in_place:
                transpose(f, array, source, place)
            elif place != source:
                size = array.size_bytes
                f.do(
                    f"call void @llvm.memcpy.p0.p0.i64(ptr {place}, ptr {source}, i64 {size}, i1 0)"
                )
        if array.unused and array.result is not None:
            frame.zero_result(array.result)
    passed = []
    for argument, place in zip(call.arguments, frame.places, strict=True):
        if isinstance(argument, Array) and argument.skip:
            place = f.element(place, "i8", argument.skip * argument.dtype.byte_size)
        passed.append(f"ptr {place}")
    f.do(f"call void @haloc_lapack_{call.symbol}({', '.join(passed)})")
    for array, place in arrays:
        if array.result is not None and not array.is_in_place and not array.unused:
            transpose(f, array, place, frame.result(array.result), to_rows=True)
    if call.finish is not None:
        call.finish(f, frame)


def transpose(f: Function, array: Array, source: str, out: str, *, to_rows: bool = False) -> None:
    """A matrix by rows to one by columns, or back."""
    rows, columns = (array.columns, array.rows) if to_rows else (array.rows, array.columns)
    t, align = f"i{8 * array.dtype.byte_size}", array.dtype.real.byte_size
    with f.loop(0, rows) as i, f.loop(0, columns) as j:
        x = f.load(t, f.element(source, t, f.add(f.mul(i, columns), j)), align)
        f.store(t, x, f.element(out, t, f.add(f.mul(j, rows), i)), align)
