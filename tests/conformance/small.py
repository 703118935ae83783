"""Small programs over every opcode JAX emits for CPU, in many element types.

Each entry is (name, function, argument specifications). Names say op and type; the function is
traced by JAX at test time.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

PROGRAMS: list[tuple[str, Callable, tuple[str, ...]]] = []


def add(name: str, function: Callable, *specs: str) -> None:
    PROGRAMS.append((name, function, specs))


# --- Elementwise -------------------------------------------------------------------------------

UNARY_FLOAT = {
    "abs": (lax.abs, "f32[40]!"),
    "neg": (lax.neg, "f32[40]!"),
    "sign": (lax.sign, "f32[40]!"),
    "floor": (lax.floor, "f32[40]!"),
    "ceil": (lax.ceil, "f32[40]!"),
    "round_afz": (lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), "f32[40]!"),
    "round_even": (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), "f32[40]!"),
    "is_finite": (lax.is_finite, "f32[40]!"),
    "exp": (lax.exp, "f32[100]"),
    "exp2": (lax.exp2, "f32[100]"),
    "expm1": (lax.expm1, "f32[100]"),
    "log": (lax.log, "f32[100]+"),
    "log1p": (lax.log1p, "f32[100]+"),
    "logistic": (lax.logistic, "f32[100]"),
    "sqrt": (lax.sqrt, "f32[100]+"),
    "rsqrt": (lax.rsqrt, "f32[100]+"),
    "cbrt": (lax.cbrt, "f32[100]"),
    "sin": (lax.sin, "f32[100]"),
    "cos": (lax.cos, "f32[100]"),
    "tan": (lax.tan, "f32[100]u"),
    "asin": (lax.asin, "f32[100]u"),
    "acos": (lax.acos, "f32[100]u"),
    "atan": (lax.atan, "f32[100]"),
    "sinh": (lax.sinh, "f32[100]"),
    "cosh": (lax.cosh, "f32[100]"),
    "tanh": (lax.tanh, "f32[100]"),
    "asinh": (lax.asinh, "f32[100]"),
    "acosh": (lambda x: lax.acosh(x + 1.0), "f32[100]+"),
    "atanh": (lax.atanh, "f32[100]u"),
    "erf": (lax.erf, "f32[100]"),
    "erfc": (lax.erfc, "f32[100]"),
    "erf_inv": (lax.erf_inv, "f32[100]u"),
    "lgamma": (lax.lgamma, "f32[100]+"),
    "digamma": (lax.digamma, "f32[100]+"),
    "bessel_i1e": (lax.bessel_i1e, "f32[100]"),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 7), "f32[40]!"),
}
for op_name, (function, spec) in UNARY_FLOAT.items():
    add(f"{op_name}_f32", function, spec)
for op_name in ("exp", "log", "sin", "tanh", "sqrt", "erf", "cbrt", "log1p", "expm1", "floor"):
    function, spec = UNARY_FLOAT[op_name]
    for dtype in ("f64", "bf16", "f16"):
        add(f"{op_name}_{dtype}", function, spec.replace("f32", dtype))
for op_name in ("exp", "log", "sin", "cos", "tanh", "sqrt", "rsqrt", "abs", "neg", "sign", "log1p"):
    add(f"{op_name}_c64", UNARY_FLOAT[op_name][0], "c64[60]")
add("exp_c128", lax.exp, "c128[60]")
add("real_imag_conj", lambda z: (lax.real(z), lax.imag(z), lax.conj(z)), "c64[20]")
add("complex_make", lax.complex, "f32[20]", "f32[20]")

BINARY = {
    "add": lax.add,
    "sub": lax.sub,
    "mul": lax.mul,
    "div": lax.div,
    "max": lax.max,
    "min": lax.min,
    "rem": lax.rem,
}
for op_name, function in BINARY.items():
    for dtype in ("f32", "f64", "bf16", "f16", "s32", "s8", "u16", "s64", "u32"):
        add(f"{op_name}_{dtype}", function, f"{dtype}[5,9]", f"{dtype}[5,9]")
    add(f"{op_name}_f32_special", function, "f32[28]!", "f32[28]=2.0")
for op_name in ("add", "sub", "mul", "div"):
    for dtype in ("c64", "c128"):
        add(f"{op_name}_{dtype}", BINARY[op_name], f"{dtype}[7]", f"{dtype}[7]")
for dtype in ("f8_e5m2", "f8_e4m3fn"):
    name = dtype.replace("_", "")
    add(f"add_{name}", lax.add, f"{name}[30]", f"{name}[30]")
    add(f"mul_{name}", lax.mul, f"{name}[30]", f"{name}[30]")
for dtype in ("s4", "u4"):
    add(f"add_{dtype}", lax.add, f"{dtype}[11]", f"{dtype}[11]")
add("pow_f32", lax.pow, "f32[50]+", "f32[50]")
add("pow_f64", lax.pow, "f64[50]+", "f64[50]")
add("integer_pow", lambda x: lax.integer_pow(x, 5), "f32[50]")
add("integer_pow_s32", lambda x: lax.integer_pow(x, 3), "s32[50]")
add("atan2_f32", lax.atan2, "f32[50]", "f32[50]")
add("nextafter", lax.nextafter, "f32[50]", "f32[50]")
for op_name, function in {
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
}.items():
    for dtype in ("pred", "s32", "u8"):
        add(f"{op_name}_{dtype}", function, f"{dtype}[33]", f"{dtype}[33]")
add("not_pred", lax.bitwise_not, "pred[9]")
add("not_s32", lax.bitwise_not, "s32[9]")
for op_name, function in {
    "shift_left": lax.shift_left,
    "shift_right_logical": lax.shift_right_logical,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
}.items():
    add(f"{op_name}_s32", function, "s32[60]", "s32[60]<40")
    add(f"{op_name}_u8", function, "u8[60]", "u8[60]<12")
add("popcount", lax.population_count, "u32[60]<100000")
add("clz", lax.clz, "s32[60]")
for direction in ("eq", "ne", "lt", "le", "gt", "ge"):
    for dtype in ("f32", "s32", "u8"):
        add(f"{direction}_{dtype}", getattr(lax, direction), f"{dtype}[50]", f"{dtype}[50]")
add("lt_special", lax.lt, "f32[28]!", "f32[28]=0.0")
add("select", lambda p, x, y: lax.select(p, x, y), "pred[4,5]", "f32[4,5]", "f32[4,5]")
add("select_n", lambda w, x, y, z: lax.select_n(w, x, y, z), "s32[9]<3", *["f32[9]"] * 3)
add("clamp", lambda x: lax.clamp(jnp.float32(-0.5), x, jnp.float32(0.5)), "f32[40]!")
TYPES = {
    "f32": jnp.float32,
    "f64": jnp.float64,
    "bf16": jnp.bfloat16,
    "f16": jnp.float16,
    "s8": jnp.int8,
    "u8": jnp.uint8,
    "s32": jnp.int32,
    "s64": jnp.int64,
    "u32": jnp.uint32,
    "pred": jnp.bool_,
    "c64": jnp.complex64,
    "f8e4m3fn": jnp.float8_e4m3fn,
    "f8e5m2": jnp.float8_e5m2,
}
for source in ("f32", "bf16", "s32", "u8", "pred", "f64"):
    for target, jax_type in TYPES.items():
        if source != target:
            add(
                f"convert_{source}_{target}",
                lambda x, t=jax_type: lax.convert_element_type(x, t),
                f"{source}[40]",
            )
add("convert_special_s32", lambda x: lax.convert_element_type(x, jnp.int32), "f32[28]!")
add("bitcast_f32_s32", lambda x: lax.bitcast_convert_type(x, jnp.int32), "f32[28]!")
add("bitcast_s32_f32", lambda x: lax.bitcast_convert_type(x, jnp.float32), "s32[28]")
add("bitcast_f32_u8", lambda x: lax.bitcast_convert_type(x, jnp.uint8), "f32[6]")
add("bitcast_u8_f32", lambda x: lax.bitcast_convert_type(x, jnp.float32), "u8[6,4]")

# --- Moving elements ---------------------------------------------------------------------------

add("broadcast", lambda x: lax.broadcast_in_dim(x, (3, 4, 5), (1,)), "f32[4]")
add("reshape", lambda x: x.reshape(6, 10), "f32[3,4,5]")
add("transpose", lambda x: x.transpose(2, 0, 1), "f32[7,20,33]")
add("transpose_2d_s8", lambda x: x.T, "s8[37,70]")
add("slice_strided", lambda x: lax.slice(x, (1, 2), (7, 19), (2, 3)), "f32[8,20]")
add("reverse", lambda x: lax.rev(x, (0, 2)), "f32[3,4,37]")
add("pad", lambda x: lax.pad(x, jnp.float32(9), ((1, 2, 0), (-1, 3, 2))), "f32[5,20]")
add(
    "concatenate",
    lambda x, y, z: lax.concatenate([x, y, z], 1),
    "f32[3,4]",
    "f32[3,1]",
    "f32[3,30]",
)
add("concatenate_0", lambda x, y: lax.concatenate([x * 2, y + 1], 0), "f32[3,40]", "f32[5,40]")
add("iota", lambda x: lax.broadcasted_iota(jnp.float32, (4, 50), 1) + x, "f32[4,50]")
add("iota_s64", lambda: lax.iota(jnp.int64, 77))
add("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, i - 5), (3, 17)), "f32[9,20]", "s32[]=7")
add(
    "dynamic_update_slice",
    lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i - 7)),
    "f32[9,20]",
    "f32[3,18]",
    "s32[]=8",
)
add("gather_rows", lambda x, i: x[i], "f32[30,16]", "s32[12]<30")
add("gather_scalar", lambda x, i: jnp.take(x, i), "f32[100]", "s32[40]<100")
add("gather_2", lambda x, i, j: x[i, :, j], "f32[6,5,7]", "s32[4]<6", "s32[4]<7")
add("take_along", lambda x, i: jnp.take_along_axis(x, i, 1), "f32[6,9]", "s32[6,4]<9")
add("gather_fill", lambda x, i: x.at[i].get(mode="fill", fill_value=-1), "f32[9]", "s32[12]")
add("scatter_set", lambda x, i, u: x.at[i].set(u), "f32[30,16]", "s32[1]<30", "f32[1,16]")
add("scatter_add", lambda x, i, u: x.at[i].add(u), "f32[30,16]", "s32[50]<30", "f32[50,16]")
add("scatter_add_1d", lambda x, i, u: x.at[i].add(u), "f32[30]", "s32[500]<30", "f32[500]")
add("scatter_max", lambda x, i, u: x.at[i].max(u), "s32[30]", "s32[50]<30", "s32[50]")
add("scatter_mul", lambda x, i, u: x.at[i].mul(u), "f32[30]", "s32[20]<30", "f32[20]")
add("scatter_drop", lambda x, i, u: x.at[i].add(u, mode="drop"), "f32[5]", "s32[20]", "f32[20]")
add("scatter_bf16", lambda x, i, u: x.at[:, i].add(u), "bf16[4,9]", "s32[5]<9", "bf16[4,5]")

# --- Reductions --------------------------------------------------------------------------------

for op_name, function in {"sum": jnp.sum, "max": jnp.max, "min": jnp.min, "prod": jnp.prod}.items():
    for axis in (0, 1, None):
        add(f"reduce_{op_name}_{axis}", lambda x, f=function, a=axis: f(x, a), "f32[33,70]u")
for dtype in ("f64", "bf16", "f16", "s32", "s8", "u32", "c64"):
    add(
        f"reduce_sum_{dtype}",
        lambda x: lax.reduce(x, jnp.zeros((), x.dtype), lax.add, (1,)),
        f"{dtype}[5,40]",
    )
add("reduce_mid", lambda x: jnp.sum(x, (0, 2)), "f32[5,6,70]")
add("reduce_and", lambda x: jnp.all(x, 0), "pred[5,6]")
add("reduce_or", lambda x: jnp.any(x, 1), "pred[5,6]")
add("reduce_xor", lambda x: lax.reduce(x, jnp.uint32(0), lax.bitwise_xor, (0,)), "u32[50]<1000")
add("argmax", lambda x: jnp.argmax(x, 1), "f32[9,50]")
add("argmin_0", lambda x: jnp.argmin(x, 0), "f32[50,9]")
add("argmax_special", lambda x: jnp.argmax(x), "f32[28]!")
add(
    "reduce_pair",
    lambda x, y: lax.reduce(
        (x, y), (jnp.float32(0), jnp.int32(1)), lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,)
    ),
    "f32[4,30]",
    "s32[4,30]<2",
)
add("logsumexp", lambda x: jax.nn.logsumexp(x, axis=-1), "f32[9,50]")
add("cumsum", lambda x: jnp.cumsum(x, 1), "f32[4,50]")
add("cumprod", lambda x: jnp.cumprod(x), "f32[30]+")
add("cummax", lambda x: lax.cummax(x), "f32[40]")
add("cumlogsumexp", lambda x: lax.cumlogsumexp(x), "f32[40]")
for op_name, function, init in (("max", lax.max, -jnp.inf), ("add", lax.add, 0.0)):
    add(
        f"reduce_window_{op_name}",
        lambda x, f=function, i=init: lax.reduce_window(
            x, i, f, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"
        ),
        "f32[2,9,10,20]",
    )
add(
    "reduce_window_dilated",
    lambda x: lax.reduce_window(
        x,
        0.0,
        lax.add,
        (3, 2),
        (1, 2),
        [(1, 1), (0, 2)],
        base_dilation=(2, 1),
        window_dilation=(1, 3),
    ),
    "f32[7,19]",
)
add(
    "max_pool_grad",
    jax.grad(
        lambda x: jnp.sum(
            lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2
        )
    ),
    "f32[2,8,8,5]",
)

# --- Contractions ------------------------------------------------------------------------------

for dtype in ("f32", "f64", "bf16", "f16", "s32", "s8", "u8", "c64", "c128", "s64"):
    add(f"dot_{dtype}", jnp.dot, f"{dtype}[17,33]", f"{dtype}[33,9]")
add(
    "dot_bf16_f32",
    lambda x, y: jnp.dot(x, y, preferred_element_type=jnp.float32),
    "bf16[17,33]",
    "bf16[33,40]",
)
add(
    "dot_s8_s32",
    lambda x, y: jnp.dot(x, y, preferred_element_type=jnp.int32),
    "s8[17,33]",
    "s8[33,40]",
)
add(
    "dot_f8",
    lambda x, y: jnp.dot(x, y, preferred_element_type=jnp.float32),
    "f8e4m3fn[17,33]",
    "f8e4m3fn[33,40]",
)
add("dot_vector", jnp.dot, "f32[133]", "f32[133]")
add("dot_matrix_vector", jnp.dot, "f32[40,133]", "f32[133]")
add("dot_vector_matrix", jnp.dot, "f32[40]", "f32[40,133]")
add("dot_batch", lambda x, y: jnp.einsum("bij,bjk->bik", x, y), "f32[5,17,33]", "f32[5,33,40]")
add("dot_transposed", lambda x, y: jnp.einsum("ji,kj->ik", x, y), "f32[33,17]", "f32[40,33]")
add(
    "dot_two_dims", lambda x, y: jnp.einsum("aibj,jbkc->iakc", x, y), "f32[3,4,5,6]", "f32[6,5,7,2]"
)
add("dot_big", jnp.dot, "f32[200,300]", "f32[300,170]")
add(
    "einsum_attention",
    lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k),
    "f32[2,9,3,8]",
    "f32[2,11,3,8]",
)
CONV = lax.conv_general_dilated
NHWC = ("NHWC", "HWIO", "NHWC")
add(
    "conv_2d",
    lambda x, k: CONV(x, k, (1, 1), "SAME", dimension_numbers=NHWC),
    "f32[2,9,10,5]",
    "f32[3,3,5,7]",
)
add("conv_nchw", lambda x, k: CONV(x, k, (2, 1), "VALID"), "f32[2,5,9,10]", "f32[7,5,3,2]")
add(
    "conv_dilated",
    lambda x, k: CONV(x, k, (1, 2), [(2, 1), (0, 3)], rhs_dilation=(2, 3)),
    "f32[2,5,12,13]",
    "f32[7,5,3,2]",
)
add(
    "conv_transposed",
    lambda x, k: CONV(x, k, (1, 1), [(1, 2), (2, 1)], lhs_dilation=(2, 3)),
    "f32[2,5,6,7]",
    "f32[7,5,3,3]",
)
add(
    "conv_grouped",
    lambda x, k: CONV(x, k, (1, 1), "SAME", feature_group_count=3, dimension_numbers=NHWC),
    "f32[2,9,10,6]",
    "f32[3,3,2,9]",
)
add(
    "conv_depthwise",
    lambda x, k: CONV(x, k, (1, 1), "SAME", feature_group_count=20, dimension_numbers=NHWC),
    "f32[2,9,10,20]",
    "f32[3,3,1,20]",
)
add(
    "conv_batch_grouped",
    lambda x, k: CONV(x, k, (1, 1), "VALID", batch_group_count=2),
    "f32[4,3,8,8]",
    "f32[6,3,3,3]",
)
add("conv_1d", lambda x, k: CONV(x, k, (1,), "SAME"), "f32[2,5,30]", "f32[7,5,3]")
add("conv_3d", lambda x, k: CONV(x, k, (1, 1, 1), "SAME"), "f32[1,2,5,6,7]", "f32[3,2,3,3,3]")
add(
    "conv_bf16",
    lambda x, k: CONV(x, k, (1, 1), "SAME", dimension_numbers=NHWC),
    "bf16[2,9,10,5]",
    "bf16[3,3,5,7]",
)
add("conv_s32", lambda x, k: CONV(x, k, (1, 1), "SAME"), "s32[2,5,9,10]", "s32[7,5,3,3]")
add(
    "conv_grad",
    jax.grad(lambda x, k: jnp.sum(CONV(x, k, (2, 2), "SAME", dimension_numbers=NHWC) ** 2), (0, 1)),
    "f32[2,9,10,5]",
    "f32[3,3,5,7]",
)

# --- Sorting -----------------------------------------------------------------------------------

for dtype in ("f32", "f64", "bf16", "s32", "u8", "s64"):
    add(f"sort_{dtype}", lambda x: lax.sort(x), f"{dtype}[7,50]")
add("sort_axis0", lambda x: lax.sort(x, 0), "f32[50,7]")
add("sort_special", lambda x: lax.sort(x), "f32[28]!")
add("argsort", lambda x: jnp.argsort(x), "s32[100]")
add("sort_pair", lambda x, y: lax.sort((x, y), num_keys=1), "s32[60]", "f32[60]")
add(
    "sort_two_keys",
    lambda x, y, z: lax.sort((x, y, z), num_keys=2),
    "s32[60]",
    "f32[60]",
    "s32[60]",
)
add("sort_complex", lambda x: lax.sort(x), "c64[20]")
add("top_k", lambda x: lax.top_k(x, 5), "f32[4,40]")
add("median", lambda x: jnp.median(x), "f32[41]")
add("unique", lambda x: jnp.unique(x, size=8), "s32[40]<6")

# --- Control flow ------------------------------------------------------------------------------

add(
    "while",
    lambda x: lax.while_loop(lambda c: c[0] < 20, lambda c: (c[0] + 1, c[1] * 1.1), (0, x)),
    "f32[5]",
)
add(
    "while_data",
    lambda x: lax.while_loop(lambda c: jnp.sum(c) < 100.0, lambda c: c * 1.5 + 0.1, x),
    "f32[5]+",
)
add(
    "while_swap",
    lambda x, y: lax.fori_loop(0, 7, lambda i, c: (c[1], c[0] + 1), (x, y)),
    "f32[9]",
    "f32[9]",
)
add(
    "while_rotate",
    lambda x, y, z: lax.fori_loop(0, 5, lambda i, c: (c[1], c[2], c[0]), (x, y, z)),
    *["f32[9]"] * 3,
)
add(
    "while_nested",
    lambda x: lax.fori_loop(
        0, 4, lambda i, a: lax.fori_loop(0, i + 1, lambda j, b: b * 0.9 + j, a), x
    ),
    "f32[6]",
)
add(
    "while_unchanged",
    lambda x, y: lax.fori_loop(0, 4, lambda i, c: (c[0] + c[1], c[1]), (x, y)),
    "f32[6]",
    "f32[6]",
)
add(
    "while_update",
    lambda x: lax.fori_loop(0, 9, lambda i, a: a.at[i].set(a[i - 1] * 0.5 + i), x),
    "f32[10]",
)
add(
    "scan",
    lambda x, h: lax.scan(lambda c, v: (jnp.tanh(c + v), c * v), h, x),
    "f32[12,5]",
    "f32[5]",
)
add(
    "scan_reverse",
    lambda x, h: lax.scan(lambda c, v: (c * 0.5 + v, c), h, x, reverse=True),
    "f32[12,5]",
    "f32[5]",
)
add("cond", lambda p, x: lax.cond(p, lambda v: v * 2, lambda v: v - 1, x), "pred[]=1", "f32[6]")
add(
    "cond_else",
    lambda p, x: lax.cond(p, lambda v: (v * 2, v), lambda v: (v - 1, v * v), x),
    "pred[]=0",
    "f32[6]",
)
for which in (-3, 0, 1, 2, 9):
    add(
        f"switch_{which}",
        lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda v: v * v], x),
        f"s32[]={which}",
        "f32[6]",
    )
add("map", lambda x: lax.map(lambda v: jnp.sum(v * v), x), "f32[6,7]")
add("associative_scan", lambda x: lax.associative_scan(jnp.multiply, x), "f32[17]+")
add("call", lambda x: jax.jit(jnp.sin)(x) + jax.jit(lambda v: v * 2)(x), "f32[6]")
add("optimization_barrier", lambda x: lax.optimization_barrier((x + 1, x * 2)), "f32[6]")

# --- Random numbers ----------------------------------------------------------------------------

add("threefry_uniform", lambda s: jax.random.uniform(jax.random.PRNGKey(s), (50,)), "s32[]=7")
add("threefry_normal", lambda s: jax.random.normal(jax.random.PRNGKey(s), (50,)), "s32[]=7")
add("threefry_split", lambda s: jax.random.split(jax.random.PRNGKey(s), 5), "s32[]=7")
add("permutation", lambda s: jax.random.permutation(jax.random.PRNGKey(s), 30), "s32[]=7")
add(
    "categorical",
    lambda s, x: jax.random.categorical(jax.random.PRNGKey(s), x),
    "s32[]=7",
    "f32[9,5]",
)
for algorithm in ("RNG_THREE_FRY", "RNG_PHILOX", "RNG_DEFAULT"):
    add(
        f"bit_generator_{algorithm.lower()}",
        lambda k, a=algorithm: lax.rng_bit_generator(
            k, (5, 9), jnp.uint32, algorithm=getattr(lax.RandomAlgorithm, a)
        ),
        "u32[4]<1000",
    )
add(
    "bit_generator_u64",
    lambda k: lax.rng_bit_generator(k, (11,), jnp.uint64, algorithm=lax.RandomAlgorithm.RNG_PHILOX),
    "u32[4]<1000",
)

# --- Linear algebra and FFT --------------------------------------------------------------------


def spd(x):
    """A symmetric positive definite matrix."""
    return x @ jnp.conj(jnp.swapaxes(x, -1, -2)) + 3 * jnp.eye(x.shape[-1], dtype=x.dtype)


for dtype in ("f32", "f64", "c64"):
    add(f"cholesky_{dtype}", lambda x: jnp.linalg.cholesky(spd(x)), f"{dtype}[6,6]")
    add(
        f"triangular_solve_{dtype}",
        lambda a, b: lax.linalg.triangular_solve(spd(a), b, left_side=True, lower=True),
        f"{dtype}[6,6]",
        f"{dtype}[6,3]",
    )
add(
    "triangular_solve_right",
    lambda a, b: lax.linalg.triangular_solve(spd(a), b, lower=False, transpose_a=True),
    "f32[6,6]",
    "f32[3,6]",
)
add(
    "triangular_solve_unit",
    lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, unit_diagonal=True),
    "f32[6,6]",
    "f32[6,3]",
)
add("cholesky_batch", lambda x: jnp.linalg.cholesky(spd(x)), "f32[4,5,5]")
add("solve", lambda a, b: jnp.linalg.solve(spd(a), b), "f32[6,6]", "f32[6]")
add("inverse", lambda a: jnp.linalg.inv(spd(a)), "f32[5,5]")
add("determinant", lambda a: jnp.linalg.det(spd(a)), "f32[5,5]")
add("qr_r", lambda a: jnp.abs(jnp.linalg.qr(a, mode="r")), "f32[7,5]")
add("svd_values", lambda a: jnp.linalg.svd(a, compute_uv=False), "f32[7,5]")
add("eigh_values", lambda a: jnp.linalg.eigh(spd(a))[0], "f32[6,6]")
add("eig_values", lambda a: jnp.sort(jnp.abs(jnp.linalg.eigvals(a))), "f32[6,6]")
for n in (8, 30, 17):
    add(f"fft_{n}", lambda x: jnp.fft.fft(x), f"c64[3,{n}]")
    add(f"ifft_{n}", lambda x: jnp.fft.ifft(x), f"c64[3,{n}]")
    add(f"rfft_{n}", lambda x: jnp.fft.rfft(x), f"f32[3,{n}]")
    add(f"irfft_{n}", lambda x, m=n: jnp.fft.irfft(x, m), f"c64[3,{n // 2 + 1}]")
add("fft2", lambda x: jnp.fft.fft2(x), "c64[6,10]")
add("fft_f64", lambda x: jnp.fft.rfft(x), "f64[64]")

# --- Odd shapes --------------------------------------------------------------------------------

add("zero_sized", lambda x: (jnp.sin(x), jnp.sum(x, 0), jnp.concatenate([x, x], 0)), "f32[0,3]")
add("zero_dot", jnp.dot, "f32[3,0]", "f32[0,4]")
add("scalars", lambda x, y: (x + y, x * y, jnp.sin(x)), "f32[]", "f32[]")
add("same_output_twice", lambda x: (x, x + 1, x + 1, x), "f32[5]")
add("constant_output", lambda: (jnp.arange(6.0), jnp.float32(3)))
add(
    "big_constant",
    lambda x: (
        x
        + jnp.asarray(__import__("numpy").random.default_rng(0).normal(size=300).astype("float32"))
    ),
    "f32[300]",
)
