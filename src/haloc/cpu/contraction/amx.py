"""Products of bf16 on AMX tiles: 32 x 32 sums in four tile registers, 32 values of k at a time.

The left-hand side is packed by rows of k. The right-hand side is packed as `pack` does and then
interleaved: rows k and k + 1 of a panel become one row of pairs, as the instruction wants them.
Both are padded with zeros to whole steps of k. The unit takes subnormal operands as zeros and
flushes subnormal sums; `operand_precision` highest keeps a product off it.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache

from haloc.codegen.kernel import PREFIX
from haloc.codegen.target import Target
from haloc.cpu.contraction.micro import TileShape
from haloc.cpu.contraction.text import I64, Code

K_STEP = 32
"""Values of k in one tile row."""
TILE = TileShape("float", 32, 2, 16)
CHUNK = 64
"""Values of k packed at a time before they are interleaved."""

_PERMISSION = (158, 0x1023, 18)  # arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA)
_INTRINSICS = (
    "declare i64 @syscall(i64, ...)",
    "declare void @llvm.x86.ldtilecfg(ptr)",
    "declare void @llvm.x86.tilerelease()",
    "declare void @llvm.x86.tilezero(i8)",
    "declare void @llvm.x86.tileloadd64(i8, ptr, i64)",
    "declare void @llvm.x86.tilestored64(i8, ptr, i64)",
    "declare void @llvm.x86.tdpbf16ps(i8, i8, i8)",
)


def is_available(target: Target) -> bool:
    """Whether the target has AMX for bf16, and this machine's kernel lets programs use it."""
    return target.has("amx-tile", "amx-bf16", "avx512f") and _is_permitted()


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


def tile_kernel(symbol: str, row_step: int, declares: dict[str, None], attributes: str) -> str:
    """define internal void @symbol(ptr a, ptr b, i64 kn, ptr tile, i1 first): as `micro_kernel`.
    row_step: elements from one row of a to the next."""
    code = Code(declares)
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
    with code.loop(0, "%kn", K_STEP) as (k, _):
        a = code.offset("i16", "%a", k)
        b = code.offset("i16", "%b", code.mul(k, TILE.columns))
        loads = (
            (4, a, 2 * row_step),
            (6, b, 128),
            (7, code.offset("i16", b, 32), 128),
            (5, code.offset("i16", a, 16 * row_step), 2 * row_step),
        )
        for number, pointer, stride in loads:
            code.do(f"call void @llvm.x86.tileloadd64(i8 {number}, ptr {pointer}, i64 {stride})")
        for number, (x, y) in enumerate(((4, 6), (4, 7), (5, 6), (5, 7))):
            code.do(f"call void @llvm.x86.tdpbf16ps(i8 {number}, i8 {x}, i8 {y})")
    for number, corner in enumerate(corners):
        code.do(f"call void @llvm.x86.tilestored64(i8 {number}, ptr {corner}, i64 128)")
    parameters = ["ptr %a", "ptr %b", "i64 %kn", "ptr %tile", "i1 %first"]
    return code.function(symbol, parameters, attributes)


def padded(code: Code, count: I64) -> I64:
    """A number of k as whole steps."""
    return code.mul(code.div(code.add(count, K_STEP - 1), K_STEP), K_STEP)


def pack_functions(
    row_step: int, panel_step: int, declares: dict[str, None], attributes: str
) -> str:
    """The two packers: parameters as of `pack_function`, which they call (as KERNEL_pack_lhs and
    KERNEL_pack_rhs). panel_step: of the right-hand side."""
    i64s = [f"i64 %{n}" for n in ("g", "x0", "xn", "k0", "kn")]
    parameters = ["ptr %src", *i64s, "ptr %dst"]
    listed = ", ".join(["ptr %src", *i64s])
    code = Code(declares)
    code.do(f"call void @{PREFIX}_pack_lhs({listed}, ptr %dst)")
    whole = padded(code, "%kn")
    with (
        code.loop(0, padded(code, "%xn")) as (row, _),
        code.loop("%kn", whole) as (k, _),
    ):
        slot = code.offset("i16", "%dst", code.add(code.mul(row, row_step), k))
        code.store("i16", "0", slot, 2)
    lhs = code.function(f"{PREFIX}_pack_rows", parameters, attributes)
    return lhs + _pack_pairs(panel_step, parameters, declares, attributes)


def _pack_pairs(
    panel_step: int, parameters: list[str], declares: dict[str, None], attributes: str
) -> str:
    code, columns = Code(declares), TILE.columns
    code.do(f"%chunk = alloca [{CHUNK * columns} x i16], align 64")
    with code.loop(0, "%xn", columns) as (x, _):
        here = code.min(columns, code.sub("%xn", x))
        panel = code.offset("i16", "%dst", code.mul(code.div(x, columns), panel_step))
        with code.loop(0, "%kn", CHUNK) as (k, _):
            count = code.min(CHUNK, code.sub("%kn", k))
            arguments = ("%g", code.add("%x0", x), here, code.add("%k0", k), count)
            listed = ", ".join(f"i64 {a}" for a in arguments)
            code.do(f"call void @{PREFIX}_pack_rhs(ptr %src, {listed}, ptr %chunk)")
            with code.loop(code.mul(count, columns), padded_elements(code, count)) as (i, _):
                code.store("i16", "0", code.offset("i16", "%chunk", i), 2)
            with code.loop(0, padded(code, count), 2) as (pair, _):
                source = code.offset("i16", "%chunk", code.mul(pair, columns))
                rows = [
                    code.load("i16", code.offset("i16", source, r * columns), 2, columns)
                    for r in range(2)
                ]
                order = ", ".join(f"i32 {i}, i32 {columns + i}" for i in range(columns))
                mixed = code.ins(
                    f"shufflevector <{columns} x i16> {rows[0]}, <{columns} x i16> {rows[1]}, "
                    f"<{2 * columns} x i32> <{order}>"
                )
                slot = code.offset("i16", panel, code.mul(code.add(k, pair), columns))
                code.store("i16", mixed, slot, 2, 2 * columns)
    return code.function(f"{PREFIX}_pack_pairs", parameters, attributes)


def padded_elements(code: Code, count: I64) -> I64:
    """Elements of a chunk with whole steps of k."""
    return code.mul(padded(code, count), TILE.columns)
