"""Programs written for jaxlib 0.6.0's builder. Run under it, this file records what they give:

    python tests/frontend/builder_cases.py > tests/frontend/builder_060.json

A case takes (xla_client, builder, parameters) and returns the root; INPUTS are its arguments.
"""

import json
import sys

import numpy as np

CASES = {}
INPUTS = {}


def case(*inputs):
    def enter(function):
        CASES[function.__name__] = function
        INPUTS[function.__name__] = [np.asarray(x) for x in inputs]
        return function

    return enter


X = np.linspace(-2.5, 3.5, 6, dtype=np.float32).reshape(2, 3)
POSITIVE = np.array([0.1, 0.5, 1, 2.5, 10, 40], np.float32)
UNIT = np.array([-0.99, -0.5, -0.01, 0, 0.3, 0.999], np.float32)
S32 = np.array([5, -3, 7, 0], np.int32)
MATRIX = np.array([[4, 1, 2], [1, 5, 3], [2, 3, 6]], np.float32)

for _name in [
    "Abs",
    "Atan",
    "Ceil",
    "Cos",
    "Cosh",
    "Digamma",
    "Erf",
    "Erfc",
    "Exp",
    "Expm1",
    "Floor",
    "IsFinite",
    "Logistic",
    "Neg",
    "Reciprocal",
    "Round",
    "Sign",
    "Sin",
    "Sinh",
    "Square",
    "Tan",
    "Tanh",
    "Asinh",
    "BesselI0e",
    "BesselI1e",
    "Cbrt",
    "Lgamma",
]:
    CASES[_name] = lambda xc, b, x, _name=_name: getattr(xc.ops, _name)(x)
    INPUTS[_name] = [X]
for _name in ["Log", "Log1p", "Sqrt", "Rsqrt"]:
    CASES[_name] = lambda xc, b, x, _name=_name: getattr(xc.ops, _name)(x)
    INPUTS[_name] = [POSITIVE]
for _name in ["Acos", "Asin", "Atanh", "ErfInv"]:
    CASES[_name] = lambda xc, b, x, _name=_name: getattr(xc.ops, _name)(x)
    INPUTS[_name] = [UNIT]
for _name in [
    "Add",
    "Atan2",
    "Div",
    "Eq",
    "Ge",
    "Gt",
    "Le",
    "Lt",
    "Max",
    "Min",
    "Mul",
    "Ne",
    "Pow",
    "Rem",
    "Sub",
    "NextAfter",
]:
    CASES[_name] = lambda xc, b, x, y, _name=_name: getattr(xc.ops, _name)(x, y)
    INPUTS[_name] = [X, np.float32(1.5) if _name != "NextAfter" else X[::-1]]
for _name in ["And", "Or", "Xor", "ShiftLeft", "ShiftRightArithmetic", "ShiftRightLogical"]:
    CASES[_name] = lambda xc, b, x, y, _name=_name: getattr(xc.ops, _name)(x, y)
    INPUTS[_name] = [S32, S32[::-1] % 8]
for _name in ["Clz", "PopulationCount", "Not"]:
    CASES[_name] = lambda xc, b, x, _name=_name: getattr(xc.ops, _name)(x)
    INPUTS[_name] = [S32]
for _name in ["Igamma", "Igammac", "IgammaGradA", "Zeta"]:
    CASES[_name] = lambda xc, b, x, y, _name=_name: getattr(xc.ops, _name)(x, y)
    INPUTS[_name] = [POSITIVE + 1, POSITIVE[::-1].copy()]
CASES["RandomGammaGrad"] = lambda xc, b, a, x: xc.ops.RandomGammaGrad(a, x)
INPUTS["RandomGammaGrad"] = [POSITIVE + 1, POSITIVE * 2]


def binary(xc, name, dtype=np.float32):
    c = xc.XlaBuilder(name.lower())
    scalar = xc.Shape.array_shape(np.dtype(dtype), ())
    x, y = (xc.ops.Parameter(c, n, scalar) for n in range(2))
    return c.build(getattr(xc.ops, name)(x, y))


@case(X, np.arange(3, dtype=np.float32))
def broadcast_dimensions(xc, b, x, y):
    return xc.ops.Add(x, y, [1])


@case(X, np.ones((1, 3), np.float32))
def degenerate_dimensions(xc, b, x, y):
    return xc.ops.Sub(y, x)


@case(X)
def broadcast_in_dim(xc, b, x):
    return xc.ops.BroadcastInDim(xc.ops.SliceInDim(x, 0, 1, 1, 0), [4, 2, 3], [1, 2])


@case(X)
def shaping(xc, b, x):
    o = xc.ops
    turned = o.Rev(o.Transpose(o.Reshape(x, [3, 2]), [1, 0]), [1])
    wide = o.ConcatInDim(b, [turned, x, o.Broadcast(o.Collapse(x, [0, 1]), [2])], 1)
    return o.Slice(wide, [0, 1], [2, 11], [1, 2])


@case(X, np.int32(1))
def dynamic(xc, b, x, i):
    o = xc.ops
    zero = o.Constant(b, np.int32(0))
    column = o.DynamicSlice(x, [zero, i], [2, 1])
    return o.DynamicUpdateSlice(x, o.Mul(column, column), [zero, i])


@case(X)
def pad(xc, b, x):
    config = xc.make_padding_config([(1, 0, 1), (-1, 2, 0)])
    return xc.ops.Pad(x, xc.ops.Constant(b, np.float32(9)), config)


@case(X)
def select_clamp_convert(xc, b, x):
    o = xc.ops
    low, high = o.Constant(b, np.float32(-1)), o.Constant(b, np.float32(2))
    kept = o.Select(o.Gt(x, low), o.Clamp(low, x, high), high)
    return o.ConvertElementType(kept, xc.PrimitiveType.S32)


@case(X)
def bits(xc, b, x):
    o = xc.ops
    return o.BitcastConvertType(o.ReducePrecision(x, 8, 3), xc.PrimitiveType.U16)


@case(X)
def complex_numbers(xc, b, x):
    o = xc.ops
    z = o.Conj(o.Complex(x, o.Sin(x)))
    return o.Tuple(b, [o.Real(o.Mul(z, z)), o.Imag(z), o.Imag(o.Atan(z))])


@case()
def iotas(xc, b):
    o = xc.ops
    matrix = o.Iota(b, xc.Shape.array_shape(xc.PrimitiveType.S32, (2, 3)), 1)
    return o.Tuple(b, [matrix, o.Iota(b, xc.PrimitiveType.F32, 4)])


@case(X, X.T.copy())
def dots(xc, b, x, y):
    o = xc.ops
    numbers = xc.make_dot_dimension_numbers((([1], [0]), ([], [])))
    high = xc.PrecisionConfig()
    high.operand_precision = [high.Precision.HIGHEST] * 2
    return o.Tuple(b, [o.Dot(x, y), o.DotGeneral(x, y, numbers, high)])


@case(np.arange(2 * 5 * 5 * 2, dtype=np.float32).reshape(2, 5, 5, 2), np.ones((3, 3, 2, 4), "f"))
def convolution(xc, b, x, k):
    numbers = xc.make_convolution_dimension_numbers(("NHWC", "HWIO", "NHWC"), 2)
    pads = xc.window_padding_type_to_pad_values("SAME", (5, 5), (3, 3), (2, 1))
    return xc.ops.ConvGeneralDilated(x, k, [2, 1], pads, (), (), numbers)


@case(X)
def fft(xc, b, x):
    return xc.ops.Abs(xc.ops.Fft(x, xc.FftType.RFFT, [3]))


@case(X)
def reduce(xc, b, x):
    o, zero = xc.ops, xc.ops.Constant(b, np.float32(0))
    return o.Reduce(b, [x], [zero], binary(xc, "Add"), [1])


@case(np.arange(6, dtype=np.float32))
def windows(xc, b, x):
    o, zero = xc.ops, xc.ops.Constant(b, np.float32(0))
    least = o.Constant(b, np.float32(-np.inf))
    pooled = o.ReduceWindowWithGeneralPadding(
        x, least, binary(xc, "Max"), [2], [2], [], [], [(0, 0)]
    )
    source = o.Mul(pooled, pooled)
    pick, add = binary(xc, "Ge"), binary(xc, "Add")
    spread = o.SelectAndScatterWithGeneralPadding(x, pick, [2], [2], [(0, 0)], source, zero, add)
    return o.Tuple(b, [pooled, spread])


@case(X)
def map_(xc, b, x):
    return xc.ops.Map(b, [x, x], binary(xc, "Mul"), [0, 1])


@case(np.array([3, 1, 2, 1], np.float32), np.arange(4, dtype=np.int32))
def sort(xc, b, x, y):
    o = xc.ops
    return o.Tuple(b, [o.Sort(b, [x]), o.Sort(b, [x, y], None, 0, True)])


@case(np.array([3, 1, 4, 1, 5], np.float32))
def top_k(xc, b, x):
    return xc.ops.TopK(x, 2)


@case(np.array([3, 1, 4, 1, 5], np.float32), np.arange(5, dtype=np.int32))
def approx_top_k(xc, b, x, i):
    o = xc.ops
    c = xc.XlaBuilder("greater")
    kinds = (np.float32, np.float32, np.int32, np.int32)
    ps = [o.Parameter(c, n, xc.Shape.array_shape(np.dtype(t), ())) for n, t in enumerate(kinds)]
    greater = c.build(o.Gt(ps[0], ps[1]))
    inits = [o.Constant(b, np.float32(-np.inf)), o.Constant(b, np.int32(-1))]
    return o.ApproxTopK(b, [x, i], inits, 3, 0, greater)


@case(np.arange(12, dtype=np.float32).reshape(4, 3), np.array([[2], [0]], np.int32))
def gather_scatter(xc, b, x, i):
    o = xc.ops
    g, s = xc.GatherDimensionNumbers(), xc.ScatterDimensionNumbers()
    g.offset_dims, g.collapsed_slice_dims, g.start_index_map, g.index_vector_dim = [1], [0], [0], 1
    s.update_window_dims, s.inserted_window_dims = [1], [0]
    s.scatter_dims_to_operand_dims, s.index_vector_dim = [0], 1
    rows = o.Gather(x, i, g, [1, 3])
    return o.Scatter(x, i, rows, binary(xc, "Add"), s)


@case(np.float32(3))
def while_(xc, b, x):
    o = xc.ops
    c, d = xc.XlaBuilder("condition"), xc.XlaBuilder("body")
    shape = xc.Shape.array_shape(np.dtype(np.float32), ())
    o.Lt(o.Parameter(c, 0, shape), o.Constant(c, np.float32(50)))
    p = o.Parameter(d, 0, shape)
    o.Add(p, p)
    return o.While(c.build(), d.build(), x)


@case(np.int32(1), np.float32(4))
def conditional(xc, b, i, x):
    o = xc.ops
    shape = xc.Shape.array_shape(np.dtype(np.float32), ())
    branches = []
    for name in ("Sqrt", "Exp"):
        c = xc.XlaBuilder(name)
        getattr(o, name)(o.Parameter(c, 0, shape))
        branches.append(c.build())
    by_index = o.Conditional(i, branches, [x, x])
    by_pred = o.Conditional(o.Gt(x, x), x, branches[0], x, branches[1])
    return o.Tuple(b, [by_index, by_pred, o.Call(b, branches[0], [x])])


@case(MATRIX)
def cholesky(xc, b, a):
    return xc.ops.Cholesky(a)


@case(MATRIX, X)
def triangular_solve(xc, b, a, x):
    no = xc.ops.TriangularSolveOptions_Transpose.NO_TRANSPOSE
    return xc.ops.TriangularSolve(a, x, False, True, False, no)


@case(np.arange(8, dtype=np.float32))
def dynamic_sizes(xc, b, x):
    o = xc.ops
    part = o.SetDimensionSize(x, o.Constant(b, np.int32(3)), 0)
    total = o.Reduce(b, [part], [o.Constant(b, np.float32(0))], binary(xc, "Add"), [0])
    return o.Tuple(b, [total, o.GetDimensionSize(part, 0)])


@case(np.array([1, 2], np.uint64))
def rng_bit_generator(xc, b, state):
    shape = xc.Shape.array_shape(np.dtype(np.uint32), (4,))
    return xc.ops.RngBitGenerator(xc.ops.RandomAlgorithm.RNG_THREE_FRY, state, shape)


@case(X)
def collectives_of_one(xc, b, x):
    o, groups = xc.ops, xc.make_replica_groups([[0]])
    total = o.AllReduce(x, binary(xc, "Add"), groups)
    gathered = o.AllGather(o.CrossReplicaSum(x), 0, 1, groups)
    moved = o.CollectivePermute(o.AllToAll(x, 0, 1, 1, groups), [(0, 0)])
    piece = o.ReduceScatter(x, binary(xc, "Add"), 0, 1, groups)
    return o.Tuple(b, [total, gathered, moved, piece, o.ReplicaId(b)])


@case(np.array([0.5, 1, 2, 30], np.float32), np.array([0.1, 0.5, 0.9, 0.99], np.float32))
def incomplete_beta(xc, b, a, x):
    return xc.ops.RegularizedIncompleteBeta(a, a, x)


def built(xc, name):
    """The computation of a case."""
    b = xc.XlaBuilder(name)
    parameters = [
        xc.ops.Parameter(b, n, xc.shape_from_pyval(x)) for n, x in enumerate(INPUTS[name])
    ]
    return b.build(CASES[name](xc, b, *parameters))


def plain(x):
    """An array as JSON has it."""
    return [str(x.dtype), list(x.shape), np.asarray(x).ravel().tolist()]


def _record():
    from jaxlib import xla_client as xc  # noqa: PLC0415

    client = xc.make_cpu_client()
    answers = {}
    for name in CASES:
        computation = built(xc, name)
        mlir = xc._xla.mlir.xla_computation_to_mlir_module(computation)
        program = client.compile(mlir, xc.CompileOptions())
        buffers = [client.buffer_from_pyval(x) for x in INPUTS[name]]
        results = [plain(np.asarray(r)) for r in program.execute(buffers)]
        answers[name] = {"shape": repr(computation.program_shape().result_shape())}
        answers[name]["results"] = results
    json.dump(answers, sys.stdout, indent=None, separators=(",", ":"))


if __name__ == "__main__":
    _record()
