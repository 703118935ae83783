"""rng-bit-generator, rng, rng-get-and-update-state."""

from __future__ import annotations

from threading import Lock

import numpy as np

from haloc.errors import UnimplementedError
from haloc.ir.dtype import F32, S32, U8, U16, U32, U64, DType
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.attrs import Int, Name
from haloc.ops.example import ExampleGraph
from haloc.ops.expand import Beside
from haloc.ops.prng import Arrays, Instructions, philox_bits, three_fry_bits
from haloc.ops.regions import text
from haloc.ops.table import (
    Attr,
    Cost,
    Effect,
    Evaluator,
    Expand,
    OpDef,
    Structure,
    attr,
    invalid,
    register,
)

ALGORITHMS = ("rng_default", "rng_three_fry", "rng_philox")
DISTRIBUTIONS = ("rng_uniform", "rng_normal")
_UNSIGNED = {8: U8, 16: U16, 32: U32, 64: U64}


def _infer_bit_generator(instruction: HloInstruction) -> Shape:
    state = instruction.operands[0].shape
    sizes = (2,) if attr(instruction, "algorithm") == "rng_three_fry" else (2, 3)
    if state.dtype is not U64 or state.rank != 1 or state.dims[0] not in sizes:
        wanted = " or ".join(f"u64[{n}]" for n in sizes)
        invalid(
            instruction, f"initial_state is {text(state)}, wanted {wanted}", "rng_bit_generator_c2"
        )
    result = instruction.shape
    if not result.is_tuple or len(result.elements) != 2:
        invalid(instruction, f"the result is {text(result)}, wanted a tuple of state and bits")
    bits = result.elements[1]
    if not bits.dtype.is_integer and not bits.dtype.is_float:
        invalid(instruction, f"cannot generate {text(bits)}: wanted integers or floats")
    return tuple_shape(state.with_dims(state.dims), bits)


def _evaluate_bit_generator(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    state = np.asarray(operands[0])
    shape = instruction.shape.elements[1]
    if attr(instruction, "algorithm") == "rng_three_fry":
        words, used = three_fry_bits(Arrays(), state, shape.dims, shape.dtype.bits)
        return _advanced(state, used), _as_type(words, shape.dtype)
    words, used = philox_bits(Arrays(), state, state.size, shape.dims, shape.dtype.bits)
    return _advanced(state, used), _as_type(words, shape.dtype)


def _advanced(state: np.ndarray, count: int) -> np.ndarray:
    """[key, low, high] with low + count, carried into high where there is one."""
    new = state.copy()
    with np.errstate(over="ignore"):
        new[1] = state[1] + np.uint64(count)
        if state.size == 3 and new[1] < state[1]:
            new[2] = state[2] + np.uint64(1)
    return new


def _as_type(words: np.ndarray, dtype: DType) -> np.ndarray:
    """The low bits of unsigned words as elements of dtype."""
    if dtype.bits < 8:
        low = (words & words.dtype.type((1 << dtype.bits) - 1)).astype(np.uint8)
        if dtype.is_signed:
            low = low.astype(np.int8)
            low = np.where(low >> (dtype.bits - 1), low - (1 << dtype.bits), low).astype(np.int8)
        return low.astype(dtype.numpy) if dtype.is_integer else low.view(dtype.numpy)
    return words.astype(_UNSIGNED[dtype.bits].numpy).view(dtype.numpy)


def _cost(instruction: HloInstruction) -> Cost:
    """A transcendental for each element made, the state's included."""
    return Cost(transcendentals=float(sum(s.element_count for s in instruction.shape.leaves())))


def _expand_bit_generator(instruction: HloInstruction) -> HloInstruction:
    """rng-bit-generator(state) => tuple(advanced state, threefry or philox of iota + state)"""
    beside = Beside(instruction)
    state = instruction.operands[0]
    shape = instruction.shape.elements[1]
    bits = shape.dtype.bits
    arithmetic = Instructions(beside)
    if attr(instruction, "algorithm") == "rng_three_fry":
        words, used = three_fry_bits(arithmetic, state, shape.dims, bits)
    else:
        words, used = philox_bits(arithmetic, state, state.shape.dims[0], shape.dims, bits)
    return beside.tuple(_state_after(beside, state, used), _words_as(beside, words, shape.dtype))


def _words_as(beside: Beside, words: HloInstruction, dtype: DType) -> HloInstruction:
    if dtype.is_integer:
        return beside.convert(words, dtype)
    if dtype.bits not in _UNSIGNED:
        raise UnimplementedError(f"rng-bit-generator: {dtype} has no integer type of its width")
    unsigned = beside.convert(words, _UNSIGNED[dtype.bits])
    return beside.bitcast_convert(unsigned, Shape(dtype, words.shape.dims))


def _state_after(beside: Beside, state: HloInstruction, used: int) -> HloInstruction:
    parts = [beside.slice(state, (n, n + 1, 1)) for n in range(state.shape.dims[0])]
    low = beside.binary("add", parts[1], beside.like(parts[1], used))
    if len(parts) == 3:
        carry = beside.convert(beside.compare(low, parts[1], "LT"), U64)
        parts[2] = beside.binary("add", parts[2], carry)
    return beside.concatenate([parts[0], low, *parts[2:]], 0)


def _bit_generator_example(graph: ExampleGraph) -> HloInstruction:
    algorithm = graph.pick(ALGORITHMS)
    size = 2 if algorithm == "rng_three_fry" else graph.pick([2, 3])
    state = graph.operand(U64, (size,))
    bits = Shape(graph.pick([U32, U64, U16, U8, S32]), graph.dims())
    shape = tuple_shape(Shape(U64, (size,)), bits)
    both = graph.add("rng-bit-generator", shape, (state,), algorithm=algorithm)
    return graph.add("get-tuple-element", bits, (both,), index=1)


register(
    OpDef(
        opcode="rng-bit-generator",
        operands=("initial_state",),
        attrs=(Attr("algorithm", Name(ALGORITHMS, ALGORITHMS), proto="rng_algorithm"),),
        infer=_infer_bit_generator,
        evaluate=_evaluate_bit_generator,
        lower=Expand(_expand_bit_generator),
        cost=_cost,
        example=_bit_generator_example,
        spec="rng_bit_generator",
    )
)


class HiddenState:
    """The 128-bit counter behind rng-get-and-update-state: one for the process."""

    def __init__(self, start: int):
        self._value = start
        self._lock = Lock()

    def take(self, delta: int) -> np.ndarray:
        """u64[2], low word first: the counter before `delta` is added."""
        with self._lock:
            value = self._value
            self._value = (value + delta) % (1 << 128)
        return np.array([value % (1 << 64), value >> 64], np.uint64)


HIDDEN_STATE = HiddenState(0x7012395)


def _infer_state(instruction: HloInstruction) -> Shape:
    if instruction.shape.dtype is not U64 or instruction.shape.dims != (2,):
        invalid(instruction, f"the result is {text(instruction.shape)}, wanted u64[2]")
    return Shape(U64, (2,))


def _evaluate_state(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    return HIDDEN_STATE.take(attr(instruction, "delta"))


register(
    OpDef(
        opcode="rng-get-and-update-state",
        attrs=(Attr("delta", Int()),),
        infer=_infer_state,
        evaluate=_evaluate_state,
        lower=Structure.LIBRARY,
        effect=Effect.STATEFUL,
        example=lambda g: g.add("rng-get-and-update-state", Shape(U64, (2,)), (), delta=1),
    )
)


def _infer_rng(instruction: HloInstruction) -> Shape:
    for name, operand in zip(("a", "b"), instruction.operands):
        if operand.shape.dims or operand.shape.dtype is not instruction.shape.dtype:
            invalid(
                instruction,
                f"{name} is {text(operand.shape)}, wanted {instruction.shape.dtype}[]",
                "rng_c1",
            )
    if len(instruction.operands) != 2:
        invalid(instruction, f"takes a and b, given {len(instruction.operands)} operands")
    dtype = instruction.shape.dtype
    normal = attr(instruction, "distribution") == "rng_normal"
    if not dtype.is_float and (normal or not dtype.is_integer):
        invalid(instruction, f"{attr(instruction, 'distribution')} of {dtype} has no meaning")
    return instruction.shape.with_dims(instruction.shape.dims)


def _evaluate_rng(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    a, b = (np.asarray(o) for o in operands)
    dims, dtype = instruction.shape.dims, instruction.shape.dtype
    seed = HIDDEN_STATE.take(max(1, instruction.shape.element_count))
    generator = np.random.Generator(np.random.Philox(key=[int(s) for s in seed]))
    if dtype.is_integer:
        span = max(1, int(b) - int(a))
        words = generator.integers(0, span, dims, np.uint64, endpoint=False)
        return (words.astype(np.int64) + int(a)).astype(dtype.numpy)
    wide = np.float64 if dtype.bits == 64 else np.float32
    a, b = a.astype(wide), b.astype(wide)
    if attr(instruction, "distribution") == "rng_normal":
        return np.asarray(generator.standard_normal(dims) * b + a).astype(dtype.numpy)
    return np.asarray(generator.random(dims) * (b - a) + a).astype(dtype.numpy)


def _expand_rng(instruction: HloInstruction) -> HloInstruction:
    """rng(a, b) => philox bits of a hidden state, shaped to the distribution"""
    beside = Beside(instruction)
    shape = instruction.shape.with_default_layout()
    a, b = (beside.broadcast(o, shape.dims, ()) for o in instruction.operands)
    if shape.dtype.is_integer:
        unsigned = _UNSIGNED[max(8, shape.dtype.bits)]
        words = _hidden_bits(beside, Shape(unsigned, shape.dims))
        span = beside.convert(beside.binary("subtract", b, a), unsigned)
        offset = beside.convert(beside.binary("remainder", words, span), shape.dtype)
        return beside.binary("add", a, offset)
    compute = shape.dtype if shape.dtype.bits >= 32 else F32
    wide = Shape(compute, shape.dims)
    a, b = beside.convert(a, compute), beside.convert(b, compute)
    first = _unit_uniform(beside, wide)
    if attr(instruction, "distribution") == "rng_uniform":
        scaled = beside.binary("multiply", first, beside.binary("subtract", b, a))
        return beside.convert(beside.binary("add", scaled, a), shape.dtype)
    # Box-Muller: sqrt(-2 log(1 - u)) cos(2 pi v).
    one = beside.like(first, 1)
    log = beside.unary("log", beside.binary("subtract", one, first))
    radius = beside.unary("sqrt", beside.binary("multiply", log, beside.like(log, -2)))
    angle = beside.binary("multiply", _unit_uniform(beside, wide), beside.like(log, 2 * np.pi))
    normal = beside.binary("multiply", radius, beside.unary("cosine", angle))
    return beside.convert(
        beside.binary("add", beside.binary("multiply", normal, b), a), shape.dtype
    )


def _hidden_bits(beside: Beside, shape: Shape) -> HloInstruction:
    """Philox bits at the process's counter, with key 0."""
    pair = Shape(U64, (2,))
    counter = beside.add("rng-get-and-update-state", pair, (), delta=max(1, shape.element_count))
    state = beside.concatenate([beside.full(0, Shape(U64, (1,))), counter], 0)
    arithmetic = Instructions(beside)
    words, _ = philox_bits(arithmetic, state, 3, shape.dims, shape.dtype.bits)
    return beside.convert(words, shape.dtype)


def _unit_uniform(beside: Beside, shape: Shape) -> HloInstruction:
    """Uniform in [0, 1): random mantissas under the exponent of 1, less 1."""
    unsigned = _UNSIGNED[shape.dtype.bits]
    mantissa, one = {32: (23, 0x3F800000), 64: (52, 0x3FF0000000000000)}[shape.dtype.bits]
    words = _hidden_bits(beside, Shape(unsigned, shape.dims))
    drop = beside.like(words, shape.dtype.bits - mantissa)
    bits = beside.binary("shift-right-logical", words, drop)
    number = beside.bitcast_convert(beside.binary("or", bits, beside.like(bits, one)), shape)
    return beside.binary("subtract", number, beside.like(number, 1))


def _rng_example(graph: ExampleGraph) -> HloInstruction:
    dtype = graph.pick([F32, S32])
    operands = (graph.constant(1, dtype), graph.constant(5, dtype))
    distribution = graph.pick(["rng_uniform", "rng_normal"]) if dtype is F32 else "rng_uniform"
    return graph.add("rng", Shape(dtype, graph.dims()), operands, distribution=distribution)


register(
    OpDef(
        opcode="rng",
        operands=("a", "b"),
        attrs=(Attr("distribution", Name(DISTRIBUTIONS, ("", *DISTRIBUTIONS))),),
        infer=_infer_rng,
        evaluate=_evaluate_rng,
        lower=Expand(_expand_rng),
        cost=_cost,
        effect=Effect.STATEFUL,
        example=_rng_example,
        spec="rng",
    )
)
