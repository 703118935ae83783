"""custom-call: functions known by name. `CUSTOM_CALLS` holds those the interpreter can run."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from haloc.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from haloc.ir.dtype import F32
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import (
    Aliasing,
    Bool,
    Computation,
    Computations,
    DimLabels,
    Int,
    Name,
    Shapes,
    Text,
    WindowAttr,
)
from haloc.ops.codec import ProtoReader, ProtoWriter
from haloc.ops.example import ExampleGraph
from haloc.ops.regions import text
from haloc.ops.table import (
    Attr,
    Effect,
    Evaluate,
    Evaluator,
    OpDef,
    Structure,
    attr,
    invalid,
    register,
)

CustomCall = Callable[[HloInstruction, list[Value], dict[str, Any]], Value]
"""(instruction, operand values, backend_config attributes) -> result value"""

CUSTOM_CALLS: dict[str, CustomCall] = {}
"""NumPy implementations by custom_call_target."""

REGISTERED: dict[str, Evaluate] = {}
"""Targets that users register (`haloc.ffi`), which come before those of haloc."""


def custom_call(*targets: str) -> Callable[[CustomCall], CustomCall]:
    """Register a function as the meaning of these targets."""

    def add(function: CustomCall) -> CustomCall:
        for target in targets:
            assert target not in CUSTOM_CALLS, target
            CUSTOM_CALLS[target] = function
        return function

    return add


_ENTRY = re.compile(
    r'\s*"?(?P<name>[A-Za-z_][\w.]*)"?\s*=\s*'
    r'(?:"(?P<text>(?:[^"\\]|\\.)*)"|(?P<word>true|false)|(?P<number>-?[\d.]+(?:[eE][-+]?\d+)?))'
    r"(?:\s*:\s*\w+)?\s*(?:,|$)"
)


def config_attributes(instruction: HloInstruction) -> dict[str, Any]:
    """The entries of backend_config, from its MLIR form `{uplo = 76 : ui8}` or from JSON."""
    config = instruction.backend_config.strip()
    if not config:
        return {}
    if ":" in config and re.match(r'\{\s*"[^"]*"\s*:', config):
        return dict(json.loads(config))
    inner = config[1:-1].strip() if config.startswith("{") and config.endswith("}") else config
    entries: dict[str, Any] = {}
    position = 0
    while position < len(inner):
        match = _ENTRY.match(inner, position)
        if match is None:
            raise InvalidArgumentError(
                f"custom-call {instruction.name}: backend_config {config!r} is neither JSON nor "
                "an MLIR dictionary of numbers, booleans and strings"
            )
        entries[match["name"]] = _entry_value(match)
        position = match.end()
    return entries


def _entry_value(match: re.Match[str]) -> Any:
    if match["text"] is not None:
        return match["text"]
    if match["word"] is not None:
        return match["word"] == "true"
    number = match["number"]
    return int(number) if re.fullmatch(r"-?\d+", number) else float(number)


def _infer(instruction: HloInstruction) -> Shape:
    constraints = attr(instruction, "operand_layout_constraints")
    if constraints:
        if len(constraints) != len(instruction.operands):
            invalid(
                instruction,
                f"{len(constraints)} operand_layout_constraints for "
                f"{len(instruction.operands)} operands",
            )
        for n, (wanted, operand) in enumerate(zip(constraints, instruction.operands)):
            if not wanted.compatible(operand.shape):
                invalid(
                    instruction,
                    f"operand {n} is {text(operand.shape)}, but its layout constraint says "
                    f"{text(wanted)}",
                )
    return instruction.shape


def _evaluate(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    target = attr(instruction, "custom_call_target")
    if target in REGISTERED:
        return REGISTERED[target](instruction, operands, context)
    function = CUSTOM_CALLS.get(target)
    if function is None:
        raise not_found(instruction, CUSTOM_CALLS)
    attributes = config_attributes(instruction) if target.endswith("_ffi") else {}
    return function(instruction, operands, attributes)


def not_found(instruction: HloInstruction, known: Iterable[str]) -> NotFoundError:
    """The error of a custom-call whose target there is not. known: the backend's targets."""
    target = attr(instruction, "custom_call_target")
    near = difflib.get_close_matches(target, {*known, *REGISTERED}, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    if attr(instruction, "api_version") == "API_VERSION_TYPED_FFI":
        what = f"No FFI handler registered for {target} on a platform Host (canonical host)"
    else:
        what = f"No registered implementation for untyped custom call to {target} for Host"
    return NotFoundError(what + hint)


@custom_call(
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "annotate_device_placement",
    "Pin",
    "Unpin",
)
def identity(
    instruction: HloInstruction, operands: list[Value], attributes: dict[str, Any]
) -> Value:
    """Annotations: the value passes through."""
    if len(operands) != 1 or not instruction.operands[0].shape.compatible(instruction.shape):
        raise UnimplementedError(
            f'custom-call: custom_call_target="{attr(instruction, "custom_call_target")}" from '
            f"{', '.join(text(o.shape) for o in instruction.operands)} to "
            f"{text(instruction.shape)} is not the identity on one device"
        )
    return operands[0]


SCHEDULES = ("", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST")
API_VERSIONS = (
    "API_VERSION_UNSPECIFIED",
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
)
"""Names by XLA's number."""


class LayoutConstraints(Shapes):
    """operand_layout_constraints: in protos a flag, and the shapes."""

    __slots__ = ()
    proto_fields: ClassVar[tuple[str, ...]] = ("constrain_layout", "operand_shapes_with_layout")

    def from_proto(self, data: Any, reader: ProtoReader) -> tuple[Shape, ...] | None:
        if not data.get("constrain_layout"):
            return None
        return super().from_proto(data.get("operand_shapes_with_layout", ()), reader)

    def to_proto(self, value: tuple[Shape, ...], writer: ProtoWriter) -> Any:
        shapes = super().to_proto(value, writer)
        return {"constrain_layout": True, "operand_shapes_with_layout": shapes}


def _example(graph: ExampleGraph) -> HloInstruction:
    operand = graph.operand(F32, graph.dims())
    return graph.add("custom-call", operand.shape, (operand,), custom_call_target="Sharding")


register(
    OpDef(
        opcode="custom-call",
        operands=("operands*",),
        attrs=(
            Attr("window", WindowAttr(), (), "window.dimensions"),
            Attr("dim_labels", DimLabels(), None, "convolution_dimension_numbers"),
            Attr("feature_group_count", Int(), 1),
            Attr("batch_group_count", Int(), 1),
            Attr("custom_call_target", Text()),
            Attr("operand_layout_constraints", LayoutConstraints(), (), "*"),
            Attr("custom_call_has_side_effect", Bool(), False),
            Attr("output_to_operand_aliasing", Aliasing(), (), "output_operand_aliasing"),
            Attr("schedule", Name(enum=SCHEDULES), "", "custom_call_schedule"),
            Attr(
                "api_version",
                Name(enum=API_VERSIONS),
                "API_VERSION_ORIGINAL",
                "custom_call_api_version",
            ),
            Attr("to_apply", Computation(), None, "called_computation_ids[0]"),
            Attr("called_computations", Computations(), (), "called_computation_ids"),
        ),
        infer=_infer,
        evaluate=_evaluate,
        lower=Structure.LIBRARY,
        # Of one without custom_call_has_side_effect; see that attribute.
        effect=Effect.PURE,
        example=_example,
        spec="custom_call",
        settle=lambda instruction: instruction.attrs.pop("to_apply", None),
    )
)
