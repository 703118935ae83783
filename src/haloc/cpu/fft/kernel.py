"""fft: FFT, IFFT, RFFT and IRFFT over the last one to three dimensions.

One pass a dimension. A dimension too long for the cache, or with too few lines to fill a vector
register, takes two: n = n1 n2 values as an n1 x n2 array, transformed down its columns, multiplied
by exp(sign 2 pi i k1 j2 / n), transformed along its rows, and read transposed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from haloc.codegen.kernel import PREFIX, Kernel, Phase, kernel_for
from haloc.codegen.target import Target
from haloc.cpu.fft.lines import LineSpec, Turn, line_function, work_length
from haloc.cpu.fft.passes import Element, Form, Pass, Side, emit_pass
from haloc.cpu.fft.plan import split
from haloc.cpu.fft.real import MAX_LENGTH, Conversion, emit_conversion
from haloc.cpu.fft.vectors import Tables, Vectors
from haloc.cpu.writer import Function
from haloc.ir.module import HloInstruction
from haloc.ops.table import attr

MAX_LINE_BYTES = 1 << 19
"""Work memory of a block of lines above which a long line is split, or lanes are given up."""

MIN_SPLIT = 64
"""A line shorter than this is not split to fill lanes."""

_MEMSET = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


@dataclass
class _Plan:
    """The kernel as it grows: passes go from the operand to the result, through temporaries."""

    target: Target
    element: Element
    tables: Tables
    sign: int
    texts: list[str] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    declares: dict[str, None] = field(default_factory=dict)
    temporary_bytes: int = 0
    work_bytes: int = 0

    def lanes(self, n: int, lines: int) -> int:
        """Lanes worth using: no more than lines, nor than fit the cache."""
        lanes = self.target.lanes(self.element.bytes)
        line_bytes = 4 * work_length(n) * self.element.bytes
        while lanes > 1 and (lanes >= 2 * lines or lanes * line_bytes > 4 * MAX_LINE_BYTES):
            lanes //= 2
        return lanes

    def add(self, p: Pass, spec: LineSpec) -> None:
        lanes = self.lanes(p.n, p.lines)
        number = len(self.phases)
        function = line_function(number, spec, self.element.scalar, lanes, self.tables)
        text, phase, used = emit_pass(p, function, self.element, lanes, self.temporary_bytes)
        self.texts += [function.text, text]
        self.phases.append(phase)
        self.declares.update(dict.fromkeys(function.declares))
        self.work_bytes = max(self.work_bytes, used)

    def convert(self, conversion: Conversion) -> None:
        lanes = self.target.lanes(self.element.bytes)
        name = f"pass{len(self.phases)}"
        text, phase = emit_conversion(name, conversion, self.element.scalar, lanes, self.tables)
        self.texts.append(text)
        self.phases.append(phase)
        for width in (1, lanes):
            v = Vectors(Function(""), self.element.scalar, width)
            self.declares.update(dict.fromkeys(v.declares))


@kernel_for("fft")
def fft_kernel(instruction: HloInstruction, target: Target) -> Kernel:
    """Results are those of numpy.fft, to a few units in the last place times log n."""
    operand, result = instruction.operands[0].shape, instruction.shape
    if operand.element_count == 0 or result.element_count == 0:
        return _zeros(result.byte_size)
    kind = attr(instruction, "fft_type")
    lengths = tuple(attr(instruction, "fft_length"))
    real_bytes = result.dtype.real.byte_size
    element = Element("float" if real_bytes == 4 else "double")
    plan = _Plan(
        target,
        element,
        Tables(np.dtype(np.float32 if real_bytes == 4 else np.float64)),
        -1 if kind in ("FFT", "RFFT") else 1,
    )
    batch = prod(result.dims[: result.rank - len(lengths)])
    _add_dimensions(plan, kind, lengths, batch)
    return Kernel(
        "".join(plan.texts),
        tuple(plan.phases),
        tuple(plan.declares),
        scratch_bytes=plan.temporary_bytes + plan.work_bytes,
        data=plan.tables.data,
    )


def _zeros(size: int) -> Kernel:
    f = Function(f"{PREFIX}.zeros", "ptr %b0, ptr %b1, ptr %scratch, i64 %begin, i64 %end")
    f.do(f"call void @llvm.memset.p0.i64(ptr %b1, i8 0, i64 {size}, i1 false)")
    return Kernel(f.text(), (Phase(f"{PREFIX}.zeros"),), (_MEMSET,))


@dataclass(frozen=True, slots=True)
class _Step:
    """One dimension's transform between two arrays (buffers, or offsets in scratch) of
    outer x n x inner elements."""

    n: int
    outer: int
    inner: int
    source: str | int
    target: str | int
    source_form: Form = Form.COMPLEX
    target_form: Form = Form.COMPLEX
    scale: float = 1.0
    source_stride: int = 0
    target_stride: int = 0
    """Elements from line to line where inner is 1; 0: as many as a line holds."""

    @property
    def strides(self) -> tuple[int, int]:
        return (
            self.source_stride or _stored(self.source_form, self.n),
            self.target_stride or _stored(self.target_form, self.n),
        )


def _add_dimensions(plan: _Plan, kind: str, lengths: tuple[int, ...], batch: int) -> None:
    """RFFT begins with the last dimension and IRFFT ends with it; both are half as long between."""
    pair_bytes = 2 * plan.element.bytes
    half = lengths[-1] // 2 + 1
    widths = lengths if kind in ("FFT", "IFFT") else (*lengths[:-1], half)
    order = list(reversed(range(len(lengths))))
    scale = 1.0 / prod(lengths) if plan.sign > 0 else 1.0
    where: str | int = "%b0"
    if kind == "IRFFT":
        order.reverse()
        order = [*(d for d in order if d != len(lengths) - 1), len(lengths) - 1]
    needs_temporary = kind == "IRFFT" and len(lengths) > 1
    steps: list[_Step] = []
    for number, d in enumerate(order):
        is_last_dimension = d == len(lengths) - 1
        is_final = number == len(order) - 1
        target = 0 if needs_temporary and not is_final else "%b1"
        steps.append(
            _Step(
                n=lengths[d],
                outer=batch * prod(widths[:d]),
                inner=prod(widths[d + 1 :]),
                source=where,
                target=target,
                source_form=_source_form(kind) if is_last_dimension else Form.COMPLEX,
                target_form=_target_form(kind) if is_last_dimension else Form.COMPLEX,
                scale=scale if is_final else 1.0,
            )
        )
        where = target
    if needs_temporary:
        plan.temporary_bytes = _round_up(batch * prod(widths) * pair_bytes)
    packed_at = plan.temporary_bytes
    if kind == "IRFFT" and _is_packed(steps[-1]):
        plan.temporary_bytes += _round_up(steps[-1].outer * lengths[-1] // 2 * pair_bytes)
    parts = [part for step in steps for part in _as_complex(step, packed_at)]
    split_bytes = max(
        (
            s.outer * s.n * s.inner * pair_bytes
            for s in parts
            if isinstance(s, _Step) and _halves(plan, s)
        ),
        default=0,
    )
    split_at = plan.temporary_bytes
    plan.temporary_bytes += _round_up(split_bytes)
    for part in parts:
        if isinstance(part, Conversion):
            plan.convert(part)
        else:
            _add_step(plan, part, split_at)


def _is_packed(step: _Step) -> bool:
    """Whether a real transform is done as a complex one of half the length."""
    is_real = Form.REAL in (step.source_form, step.target_form)
    return is_real and step.n % 2 == 0 and step.n <= MAX_LENGTH


def _as_complex(step: _Step, packed_at: int) -> list[_Step | Conversion]:
    """The step, or for a packed real one the complex transform and the conversion."""
    if not _is_packed(step):
        return [step]
    m = step.n // 2
    if step.source_form is Form.REAL:
        half = _Step(m, step.outer, 1, step.source, step.target, target_stride=m + 1)
        back = Conversion(step.n, step.outer, step.target, step.target, -1, m + 1)
        return [replace(half, scale=step.scale), back]
    there = Conversion(step.n, step.outer, step.source, packed_at, 1, m)
    return [there, _Step(m, step.outer, 1, packed_at, step.target, scale=step.scale)]


def _source_form(kind: str) -> Form:
    return {"RFFT": Form.REAL, "IRFFT": Form.HALF}.get(kind, Form.COMPLEX)


def _target_form(kind: str) -> Form:
    return {"RFFT": Form.HALF, "IRFFT": Form.REAL}.get(kind, Form.COMPLEX)


def _round_up(size: int) -> int:
    return -(-size // 64) * 64


def _halves(plan: _Plan, step: _Step) -> tuple[int, int] | None:
    """How to split a long or lonely line; None: not."""
    if step.inner > 1 or step.n < MIN_SPLIT:
        return None
    halves = split(step.n)
    if halves is None or halves[0] < 4:
        return None
    lanes = plan.target.lanes(plan.element.bytes)
    is_long = 4 * step.n * plan.element.bytes * lanes > 4 * MAX_LINE_BYTES
    is_lonely = step.outer * 2 <= lanes
    return halves if is_long or is_lonely else None


def _stored(form: Form, n: int) -> int:
    """Elements of a line in memory."""
    return n // 2 + 1 if form is Form.HALF else n


def _add_step(plan: _Plan, step: _Step, split_at: int) -> None:
    halves = _halves(plan, step)
    if halves is not None:
        _add_split(plan, step, halves, split_at)
        return
    if step.inner > 1:
        stride = step.n * step.inner
        sides = [Side(p, stride, 1, step.inner) for p in (step.source, step.target)]
        p = Pass(f"pass{len(plan.phases)}", step.n, step.outer, step.inner, *sides)
    else:
        strides = step.strides
        sides = [
            Side(step.source, 0, strides[0], 1, step.source_form, step.n),
            Side(step.target, 0, strides[1], 1, step.target_form, step.n),
        ]
        p = Pass(f"pass{len(plan.phases)}", step.n, 1, step.outer, *sides)
    plan.add(p, LineSpec(step.n, plan.sign, step.scale))


def _add_split(plan: _Plan, step: _Step, halves: tuple[int, int], split_at: int) -> None:
    """Columns first, into a temporary; then rows, whose results go where the transpose has them."""
    n, (n1, n2) = step.n, halves
    source = Side(*(step.source, step.strides[0], 1, n2, step.source_form, n), is_split=True)
    columns = Pass(f"pass{len(plan.phases)}", n1, step.outer, n2, source, Side(split_at, n, 1, n2))
    plan.add(columns, LineSpec(n1, plan.sign, turn=Turn(n)))
    target = Side(*(step.target, step.strides[1], 1, n1, step.target_form, n), is_split=True)
    rows = Pass(f"pass{len(plan.phases)}", n2, step.outer, n1, Side(split_at, n, n2, 1), target)
    plan.add(rows, LineSpec(n2, plan.sign, step.scale))
