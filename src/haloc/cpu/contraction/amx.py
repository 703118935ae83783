"""Products of bf16 and of 8-bit integers on AMX tiles: 32 x 32 sums in four tile registers.

The left-hand side is packed by rows of k. The right-hand side is packed as `pack` does and then
interleaved: rows k and k + 1 of a panel (of bytes: k to k + 3) become one row of pairs (of fours),
as the instructions want them. Both are padded with zeros to whole steps of k. The unit takes
subnormal bf16 operands as zeros and flushes subnormal sums; `operand_precision` highest keeps a
product off it. Integer products are exact, as everywhere.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from dataclasses import dataclass
from functools import cache

from haloc.codegen.kernel import PREFIX
from haloc.codegen.target import Target
from haloc.cpu.contraction.micro import TileShape
from haloc.cpu.contraction.text import I64, Code
from haloc.ir.dtype import BF16, DType

CHUNK = 64
"""Values of k packed at a time before they are interleaved."""


@dataclass(frozen=True, slots=True)
class AmxForm:
    """element: LLVM type in panels. instruction: of llvm.x86. group: values of k interleaved."""

    element: str
    sum: str
    instruction: str
    group: int

    @property
    def size(self) -> int:
        return 4 // self.group

    @property
    def k_step(self) -> int:
        """Values of k in one tile row of 64 bytes."""
        return 16 * self.group

    @property
    def tile(self) -> TileShape:
        return TileShape(self.sum, 32, 2, 16)


COLUMNS = 32


def amx_form(lhs: DType, rhs: DType, sum: str) -> AmxForm | None:
    """The form of a product of these types whose sums have LLVM type `sum`, if there is one."""
    if lhs is BF16 and rhs is BF16 and sum == "float":
        return AmxForm("i16", "float", "tdpbf16ps", 2)
    if lhs.is_integer and rhs.is_integer and max(lhs.bits, rhs.bits) <= 8 and sum == "i32":
        signs = "".join("s" if d.is_signed else "u" for d in (lhs, rhs))
        return AmxForm("i8", "i32", f"tdpb{signs}d", 4)
    return None


_PERMISSION = (158, 0x1023, 18)  # arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA)
_INTRINSICS = (
    "declare i64 @syscall(i64, ...)",
    "declare void @llvm.x86.ldtilecfg(ptr)",
    "declare void @llvm.x86.tilerelease()",
    "declare void @llvm.x86.tilezero(i8)",
    "declare void @llvm.x86.tileloadd64(i8, ptr, i64)",
    "declare void @llvm.x86.tilestored64(i8, ptr, i64)",
)


def is_available(target: Target, form: AmxForm) -> bool:
    """Whether the target has the instructions, and this machine's kernel lets programs use them."""
    kind = "amx-bf16" if form.element == "i16" else "amx-int8"
    return target.has("amx-tile", kind, "avx512bw") and _is_permitted()


@cache
def _is_permitted() -> bool:
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(*_PERMISSION) == 0


def tile_configuration() -> str:
    """The constant that ldtilecfg loads: palette 1, eight tiles of 16 rows of 64 bytes."""
    content = [1] + [0] * 15 + [64, 0] * 8 + [0] * 16 + [16] * 8 + [0] * 8
    entries = ", ".join(f"i8 {b}" for b in content)
    return f"@{PREFIX}_tiles = internal constant [64 x i8] [{entries}], align 64\n"


def begin(code: Code) -> None:
    """Ask for the permission, which belongs to the process (cheap when given), and set tiles up."""
    for line in _INTRINSICS:
        code.declares[line] = None
    number, request, component = _PERMISSION
    arguments = f"i64 {number}, i64 {request}, i64 {component}"
    code.ins(f"call i64 (i64, ...) @syscall({arguments})")
    code.do(f"call void @llvm.x86.ldtilecfg(ptr @{PREFIX}_tiles)")


def end(code: Code) -> None:
    code.do("call void @llvm.x86.tilerelease()")


def tile_kernel(
    symbol: str, form: AmxForm, row_step: int, declares: dict[str, None], attributes: str
) -> str:
    """define internal void @symbol(ptr a, ptr b, i64 kn, ptr tile, i1 first): as `micro_kernel`.
    row_step: elements from one row of a to the next."""
    declares[f"declare void @llvm.x86.{form.instruction}(i8, i8, i8)"] = None
    code, row_bytes = Code(declares), row_step * form.size
    corners = [code.offset("float", "%tile", at) for at in (0, 16, 16 * 32, 16 * 32 + 16)]
    code.do("br i1 %first, label %zero, label %resume")
    code.label("zero")
    for number in range(4):
        code.do(f"call void @llvm.x86.tilezero(i8 {number})")
    code.do("br label %start")
    code.label("resume")
    for number, corner in enumerate(corners):
        code.do(f"call void @llvm.x86.tileloadd64(i8 {number}, ptr {corner}, i64 128)")
    code.do("br label %start")
    code.label("start")
    with code.loop(0, "%kn", form.k_step) as (k, _):
        a = code.offset(form.element, "%a", k)
        b = code.offset(form.element, "%b", code.mul(k, COLUMNS))
        loads = (
            (4, a, row_bytes),
            (6, b, 128),
            (7, code.offset("i8", b, 64), 128),
            (5, code.offset(form.element, a, 16 * row_step), row_bytes),
        )
        for number, pointer, stride in loads:
            code.do(f"call void @llvm.x86.tileloadd64(i8 {number}, ptr {pointer}, i64 {stride})")
        for number, (x, y) in enumerate(((4, 6), (4, 7), (5, 6), (5, 7))):
            arguments = f"i8 {number}, i8 {x}, i8 {y}"
            code.do(f"call void @llvm.x86.{form.instruction}({arguments})")
    for number, corner in enumerate(corners):
        code.do(f"call void @llvm.x86.tilestored64(i8 {number}, ptr {corner}, i64 128)")
    parameters = ["ptr %a", "ptr %b", "i64 %kn", "ptr %tile", "i1 %first"]
    return code.function(symbol, parameters, attributes)


def padded(code: Code, count: I64, step: int) -> I64:
    """A number of k as whole steps."""
    return code.mul(code.div(code.add(count, step - 1), step), step)


def pack_functions(
    form: AmxForm,
    row_step: int,
    panel_step: int,
    declares: dict[str, None],
    attributes: str,
) -> str:
    """The two packers: parameters as of `pack_function`, which they call (as KERNEL_pack_lhs and
    KERNEL_pack_rhs). panel_step: of the right-hand side."""
    i64s = [f"i64 %{n}" for n in ("g", "x0", "xn", "k0", "kn")]
    parameters = ["ptr %src", *i64s, "ptr %dst"]
    listed = ", ".join(["ptr %src", *i64s])
    code = Code(declares)
    code.do(f"call void @{PREFIX}_pack_lhs({listed}, ptr %dst)")
    whole = padded(code, "%kn", form.k_step)
    with (
        code.loop(0, padded(code, "%xn", form.tile.rows)) as (row, _),
        code.loop("%kn", whole) as (k, _),
    ):
        slot = code.offset(form.element, "%dst", code.add(code.mul(row, row_step), k))
        code.store(form.element, "0", slot, form.size)
    lhs = code.function(f"{PREFIX}_pack_rows", parameters, attributes)
    code = Code(declares)
    _interleaved_panels(code, form, panel_step)
    return lhs + code.function(f"{PREFIX}_pack_groups", parameters, attributes)


def _interleaved_panels(code: Code, form: AmxForm, panel_step: int) -> None:
    """Pack the right-hand side a chunk at a time, and interleave each chunk's rows."""
    t = form.element
    code.do(f"%chunk = alloca [{CHUNK * COLUMNS} x {t}], align 64")
    with code.loop(0, "%xn", COLUMNS) as (x, _):
        here = code.min(COLUMNS, code.sub("%xn", x))
        panel = code.offset(t, "%dst", code.mul(code.div(x, COLUMNS), panel_step))
        with code.loop(0, "%kn", CHUNK) as (k, _):
            count = code.min(CHUNK, code.sub("%kn", k))
            arguments = ("%g", code.add("%x0", x), here, code.add("%k0", k), count)
            listed = ", ".join(f"i64 {a}" for a in arguments)
            code.do(f"call void @{PREFIX}_pack_rhs(ptr %src, {listed}, ptr %chunk)")
            whole = padded(code, count, form.k_step)
            with code.loop(code.mul(count, COLUMNS), code.mul(whole, COLUMNS)) as (i, _):
                code.store(t, "0", code.offset(t, "%chunk", i), form.size)
            with code.loop(0, whole, form.group) as (first, _):
                source = code.offset(t, "%chunk", code.mul(first, COLUMNS))
                rows = [
                    code.load(t, code.offset(t, source, r * COLUMNS), form.size, COLUMNS)
                    for r in range(form.group)
                ]
                slot = code.offset(t, panel, code.mul(code.add(k, first), COLUMNS))
                mixed = _interleaved(code, t, rows)
                code.store(t, mixed, slot, form.size, form.group * COLUMNS)


def _interleaved(code: Code, type: str, rows: list[str]) -> str:
    """Element i of each row, for i = 0, 1, ...; two or four rows of COLUMNS elements."""
    width, run = COLUMNS, 1
    while len(rows) > 1:
        t = f"<{width} x {type}>"
        chosen = [
            side * width + i * run + r
            for i in range(width // run)
            for side in range(2)
            for r in range(run)
        ]
        mask = ", ".join(f"i32 {c}" for c in chosen)
        rows = [
            code.ins(f"shufflevector {t} {a}, {t} {b}, <{2 * width} x i32> <{mask}>")
            for a, b in zip(rows[::2], rows[1::2], strict=True)
        ]
        width, run = 2 * width, 2 * run
    return rows[0]
