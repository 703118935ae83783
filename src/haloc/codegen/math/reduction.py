"""Arguments of sine, cosine and tangent modulo pi/2, exact up to the largest float.

Up to a bound: Cody and Waite, subtracting k pi/2 in parts by fma; the first part's difference is
exact. Beyond (Payne and Hanek): x = m 2^E, and m times a 192-bit window of the bits of 2/pi gives
x (2/pi) modulo 4 with some 130 bits after the point; done lane by lane, when any lane needs it.
"""

from __future__ import annotations

from functools import cache

from haloc.codegen.builder import Builder, Reg, mangle, vector
from haloc.codegen.math.format import fast_two_sum, format_of, is_float, two_product, two_sum
from haloc.codegen.scalar_expr import Expr, outlined, shape_of

_TWO_OVER_PI_BITS = 1280
_TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921c"
    "fe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980f"
    "ef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d08"
    "56033046fc7b6babf0cfbc209af4361d",
    16,
)
_TABLE = "@haloc.two_over_pi"
_WORDS = _TWO_OVER_PI_BITS // 64 + 1
_TWO_OVER_PI_FLOAT = 0.6366197723675814
_HALF_PI = {
    "float": (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    "double": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
_BOUND = {"float": 2.0**17, "double": 2.0**22}

Reduced = tuple[Expr, Expr, Expr]
"""(r, low, q): x = q pi/2 + r + low, |r| <= pi/4 about, q as integer of which two bits count."""


def reduce_argument(x: Expr) -> Reduced:
    """One outlined function: the quick way, and a branch to the slow one."""
    builder, type = x.builder, x.type
    symbol = f"@haloc.reduce_pi_2.{mangle(type)}"
    text, declares, library = _reduce_text(symbol, type)
    for line in declares:
        builder.declare(line)
    for inner, inner_text in library:
        builder.define(inner, inner_text)
    builder.define(symbol, text)
    returned = _returned(type)
    struct = returned.replace("{", "{{").replace("}", "}}")  # the template's own braces
    call = builder.op(returned, f"call {struct} {symbol}({type} {{0}})", x.reg)
    r, low, q = (
        Expr(builder, builder.op(t, f"extractvalue {struct} {{0}}, {i}", call))
        for i, t in enumerate(_parts(type))
    )
    return r, low, q


def _parts(type: str) -> tuple[str, str, str]:
    width, element = shape_of(type)
    return type, type, vector("i32" if element == "float" else "i64", width)


def _returned(type: str) -> str:
    return "{ " + ", ".join(_parts(type)) + " }"


@cache
def _reduce_text(
    symbol: str, type: str
) -> tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]:
    builder = Builder()
    x = Expr(builder, Reg("%x", type, builder.root))
    quick = _cody_waite(x)
    is_far = x.abs().ge(_BOUND[x.element]) & x.abs().lt(float("inf"))
    any_far = is_far
    if x.width > 1:
        masks = is_far.type
        name = f"@llvm.vector.reduce.or.{mangle(masks)}"
        builder.declare(f"declare i1 {name}({masks})")
        any_far = is_far.raw("i1", f"call i1 {name}({masks} {{0}})")
    branch = len(builder.root.items)
    slow: Reduced = outlined("reduce_pi_2_far", _reduce_far, x)  # type: ignore[assignment]
    mixed = [is_far.choose(s, f) for s, f in zip(slow, quick, strict=True)]
    lines = [f"  {item}" for item in builder.root.items]
    lines.insert(branch, f"  br i1 {any_far.reg.ref}, label %slow, label %done\nslow:")
    lines.append("  br label %done\ndone:")
    returned, value = _returned(type), "poison"
    for i, (near, far) in enumerate(zip(quick, mixed, strict=True)):
        lines.append(f"  %p{i} = phi {near.type} [{near.reg.ref}, %entry], [{far.reg.ref}, %slow]")
    for i, near in enumerate(quick):
        lines.append(f"  %r{i} = insertvalue {returned} {value}, {near.type} %p{i}, {i}")
        value = f"%r{i}"
    head = f"define internal {returned} {symbol}({type} %x) nounwind noinline memory(none) {{"
    text = "\n".join([head, "entry:", *lines, f"  ret {returned} {value}", "}\n"])
    return text, tuple(builder.declares), tuple(builder.library.items())


def _cody_waite(x: Expr) -> Reduced:
    magic = x.like(format_of(x).magic)
    shifted = x.fma(_TWO_OVER_PI_FLOAT, magic)
    k, q = shifted - magic, shifted.bits()
    first, second, third = _HALF_PI[x.element]
    r = (-k).fma(first, x)
    part, part_error = two_product(k, k.like(second))
    r, low = two_sum(r, -part)
    low = (-k).fma(third, low - part_error)
    return (*fast_two_sum(r, low), q)


def _reduce_far(x: Expr) -> Reduced:
    """`_payne_hanek` of every lane, one after the other."""
    if x.width == 1:
        return _reduce_far_lane(x)
    builder, element = x.builder, x.element
    with builder.loop(0, x.width) as lanes:
        carried = [lanes.carry(Reg("poison", t)) for t in _parts(x.type)]
        at = Expr(builder, lanes.index)
        lane = x.raw(element, f"extractelement {x.type} {{0}}, i64 {{1}}", at)
        filled = [
            Expr(builder, old).raw(
                old.type, f"insertelement {old.type} {{0}}, {new.type} {{1}}, i64 {{2}}", new, at
            )
            for old, new in zip(carried, _reduce_far_lane(lane), strict=True)
        ]
        lanes.next(*[f.reg for f in filled])
    r, low, q = (Expr(builder, reg) for reg in lanes.results())
    return r, low, q


def _reduce_far_lane(x: Expr) -> Reduced:
    wide = x.cast("fpext", "double")
    r, low, q = outlined("payne_hanek", _payne_hanek, wide)  # type: ignore[misc]
    if not is_float(x):
        return r, low, q
    near = r.cast("fptrunc", "float")
    low = (r - near.cast("fpext", "double")).cast("fptrunc", "float")
    return near, low, q.cast("trunc", "i32")


def _payne_hanek(x: Expr) -> Reduced:
    """For a double scalar, finite and at least 2^16; anything (but no crash) for others."""
    bits = x.bits()
    exponent = bits.lshr(52) & 0x7FF
    mantissa = (bits & ((1 << 52) - 1)) | (1 << 52)
    # x = mantissa 2^E, E = exponent - 1075. The window starts at 2/pi's bit of weight 2^(1-E):
    # what stands before gives multiples of 4. The table has 64 zero bits in front.
    start = exponent + (64 - 1075 - 2)
    # Lanes that need none of this come along with any exponent: stay within the table.
    start = start.call("smax", 0).call("smin", 64 * (_WORDS - 3) - 1)
    window = _window(start)
    product = window * mantissa.cast("zext", "i192")
    q = product.lshr(190).cast("trunc", "i64")
    fraction = product.shl(2)
    is_upper = fraction.lt(0)
    q = q + is_upper.cast("zext", "i64")
    size = is_upper.choose(-fraction, fraction)
    zeros = size.call_flag("ctlz")
    size = size.shl(zeros)
    head = size.lshr(192 - 53).cast("trunc", "i64").cast("uitofp", "double")
    rest = size.lshr(192 - 53 - 64).cast("trunc", "i64").cast("uitofp", "double")
    scale = (1023 - 53 - zeros.cast("trunc", "i64")).shl(52).as_float()
    high = head * scale
    high_pi, low_pi, _ = _HALF_PI["double"]
    r, error = two_product(high, high.like(high_pi))
    low = error + high.fma(low_pi, rest * scale * 2.0**-64 * high_pi)
    r, low = fast_two_sum(r, low)
    flip = is_upper ^ x.lt(0.0)
    return flip.choose(-r, r), flip.choose(-low, low), x.lt(0.0).choose(-q, q)


def _window(start: Expr) -> Expr:
    """192 bits of the table from bit `start` on."""
    builder = start.builder
    value = _TWO_OVER_PI
    words = [0] + [value >> (64 * i) & (2**64 - 1) for i in reversed(range(_WORDS - 1))]
    entries = ", ".join(f"i64 {w}" for w in words)
    type = f"[{_WORDS} x i64]"
    builder.define(_TABLE, f"{_TABLE} = internal unnamed_addr constant {type} [{entries}]\n")
    first = start.lshr(6)
    wide: Expr | None = None
    for i in range(4):
        at = (first + i).raw("ptr", f"getelementptr {type}, ptr {_TABLE}, i64 0, i64 {{0}}")
        word = at.raw("i64", "load i64, ptr {0}").cast("zext", "i256")
        wide = word if wide is None else wide.shl(64) | word
    assert wide is not None
    shifted = wide.shl((start & 63).cast("zext", "i256"))
    return shifted.lshr(64).cast("trunc", "i192")
