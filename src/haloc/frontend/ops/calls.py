"""Calls out of the program: custom calls, feeds, transfers with the host, random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, IntEnum
from typing import Any

from haloc.errors import UnimplementedError
from haloc.frontend.builder import XlaBuilder, XlaOp
from haloc.frontend.ops.arguments import add, add_to, channel, shape_of, value
from haloc.ir.dtype import TOKEN, U32
from haloc.ir.shape import Shape, tuple_shape
from haloc.runtime.xla_computation import XlaComputation
from haloc.runtime.xla_shape import XlaShape


class CustomCallSchedule(Enum):
    SCHEDULE_NONE = 0
    SCHEDULE_LATEST = 1
    SCHEDULE_EARLIEST = 2


class CustomCallApiVersion(IntEnum):
    API_VERSION_ORIGINAL = 1
    API_VERSION_STATUS_RETURNING = 2
    API_VERSION_STATUS_RETURNING_UNIFIED = 3
    API_VERSION_TYPED_FFI = 4


class RandomAlgorithm(IntEnum):
    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


NO_SCHEDULE = CustomCallSchedule.SCHEDULE_NONE
ORIGINAL = CustomCallApiVersion.API_VERSION_ORIGINAL
Aliasing = Sequence[tuple[Sequence[int], tuple[int, Sequence[int]]]]


def CustomCall(
    builder: XlaBuilder,
    call_target_name: bytes,
    operands: Sequence[XlaOp],
    shape: XlaShape,
    opaque: bytes = b"",
    has_side_effect: bool = False,
    schedule: CustomCallSchedule = NO_SCHEDULE,
    api_version: CustomCallApiVersion = ORIGINAL,
) -> XlaOp:
    """A call of a function known by name. opaque: what it gets beside the operands."""
    attrs = _call_attrs(call_target_name, has_side_effect, schedule, api_version)
    return _call(builder, operands, shape, opaque, attrs)


def CustomCallWithLayout(
    builder: XlaBuilder,
    call_target_name: bytes,
    operands: Sequence[XlaOp],
    shape_with_layout: XlaShape,
    operand_shapes_with_layout: Sequence[XlaShape],
    opaque: bytes = b"",
    has_side_effect: bool = False,
    schedule: CustomCallSchedule = NO_SCHEDULE,
    api_version: CustomCallApiVersion = ORIGINAL,
) -> XlaOp:
    """The same with operands and result in these layouts."""
    attrs = _call_attrs(call_target_name, has_side_effect, schedule, api_version)
    attrs["operand_layout_constraints"] = tuple(map(shape_of, operand_shapes_with_layout))
    return _call(builder, operands, shape_with_layout, opaque, attrs)


def CustomCallWithComputation(
    builder: XlaBuilder,
    call_target_name: bytes,
    operands: Sequence[XlaOp],
    computation: XlaComputation,
    shape: XlaShape,
    opaque: bytes = b"",
    has_side_effect: bool = False,
    output_operand_aliasing: Aliasing = (),
    literal: Any = None,
    schedule: CustomCallSchedule = NO_SCHEDULE,
    api_version: CustomCallApiVersion = ORIGINAL,
) -> XlaOp:
    """The same with a computation that the function may use."""
    _no_literal(literal)
    attrs = _call_attrs(call_target_name, has_side_effect, schedule, api_version)
    attrs |= _aliases(output_operand_aliasing) | {"to_apply": builder.embed(computation)}
    return _call(builder, operands, shape, opaque, attrs)


def CustomCallWithAliasing(
    builder: XlaBuilder,
    call_target_name: bytes,
    operands: Sequence[XlaOp],
    shape_with_layout: XlaShape,
    operand_shapes_with_layout: Sequence[XlaShape],
    opaque: bytes = b"",
    has_side_effect: bool = False,
    output_operand_aliasing: Aliasing = (),
    literal: Any = None,
    schedule: CustomCallSchedule = NO_SCHEDULE,
    api_version: CustomCallApiVersion = ORIGINAL,
) -> XlaOp:
    """output_operand_aliasing: (index in the result, (operand, index in it)) that share memory."""
    _no_literal(literal)
    attrs = _call_attrs(call_target_name, has_side_effect, schedule, api_version)
    attrs["operand_layout_constraints"] = tuple(map(shape_of, operand_shapes_with_layout))
    return _call(
        builder, operands, shape_with_layout, opaque, attrs | _aliases(output_operand_aliasing)
    )


def _no_literal(literal: Any) -> None:
    if literal is not None:
        raise UnimplementedError("custom call: literal: pass a constant as an operand")


def _aliases(aliasing: Aliasing) -> dict[str, Any]:
    found = tuple((tuple(out), number, tuple(index)) for out, (number, index) in aliasing)
    return {"output_to_operand_aliasing": found} if found else {}


def _call_attrs(
    target: bytes | str, side_effect: bool, schedule: CustomCallSchedule, version: int
) -> dict[str, Any]:
    name = target.decode() if isinstance(target, bytes) else target
    attrs: dict[str, Any] = {"custom_call_target": name}
    if side_effect:
        attrs["custom_call_has_side_effect"] = True
    if schedule is not NO_SCHEDULE:
        attrs["schedule"] = schedule.name
    if version != ORIGINAL:
        attrs["api_version"] = CustomCallApiVersion(version).name
    return attrs


def _call(
    builder: XlaBuilder,
    operands: Sequence[XlaOp],
    shape: XlaShape,
    opaque: bytes | str,
    attrs: dict[str, Any],
) -> XlaOp:
    call = add_to(builder, "custom-call", operands, shape_of(shape), **attrs)
    text = opaque if isinstance(opaque, str) else opaque.decode("utf-8", "surrogateescape")
    call.instruction.backend_config = text
    return call


# --- The host ----------------------------------------------------------------------------------


def InfeedWithToken(token: XlaOp, shape: XlaShape, config: str | None = "") -> XlaOp:
    """(what the host feeds in, a token), a tuple."""
    result = tuple_shape(shape_of(shape), Shape(TOKEN))
    return add("infeed", [token], result, **({"infeed_config": config} if config else {}))


def OutfeedWithToken(
    operand: XlaOp, token: XlaOp, shape_with_layout: XlaShape, outfeed_config: str | None = ""
) -> XlaOp:
    """Gives the host an array; a token of when that is done."""
    attrs = {"outfeed_config": outfeed_config} if outfeed_config else {}
    return add("outfeed", [operand, token], outfeed_shape=shape_of(shape_with_layout), **attrs)


def SendToHost(operand: XlaOp, token: XlaOp, shape_with_layout: XlaShape, handle: Any) -> XlaOp:
    """A token of when the host has the array."""
    if not shape_of(shape_with_layout).compatible(value(operand).shape):
        raise UnimplementedError(f"SendToHost: {shape_with_layout} is not the shape of {operand!r}")
    attrs = {**channel(handle), "is_host_transfer": True}
    return add("send-done", [add("send", [operand, token], **attrs)], **attrs)


def RecvFromHost(token: XlaOp, shape: XlaShape, handle: Any) -> XlaOp:
    """(what the host sends, a token), a tuple."""
    attrs = {**channel(handle), "is_host_transfer": True}
    state = tuple_shape(shape_of(shape), Shape(U32), Shape(TOKEN))
    return add("recv-done", [add("recv", [token], state, **attrs)], **attrs)


# --- Random numbers ----------------------------------------------------------------------------


def RngUniform(a: XlaOp, b: XlaOp, shape: XlaShape) -> XlaOp:
    """Uniform in [a, b), from the hidden state of the device."""
    return add("rng", [a, b], shape_of(shape), distribution="rng_uniform")


def RngNormal(mu: XlaOp, sigma: XlaOp, shape: XlaShape) -> XlaOp:
    """Normal of mean mu and deviation sigma, from the hidden state of the device."""
    return add("rng", [mu, sigma], shape_of(shape), distribution="rng_normal")


def RngBitGenerator(algorithm: RandomAlgorithm, initial_state: XlaOp, shape: XlaShape) -> XlaOp:
    """(the state afterwards, random bits of a shape), a tuple."""
    result = tuple_shape(value(initial_state).shape, shape_of(shape))
    word = RandomAlgorithm(algorithm).name.lower()
    return add("rng-bit-generator", [initial_state], result, algorithm=word)
