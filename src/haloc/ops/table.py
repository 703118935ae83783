"""The op table: one `OpDef` row per HLO opcode, and nothing about an op anywhere else.

The verifier, the interpreter, constant folding, the text and proto formats, cost analysis, fusion,
code generation, the fuzzer and docs/ops.md are all derived from these rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, NoReturn, Protocol

from haloc.errors import VerificationError
from haloc.ir.literal import Value
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import Codec
from haloc.ops.example import ExampleGraph
from haloc.ops.scalar import EmitElement, EmitIndexed


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()
"""Default of an attribute that must be written."""


@dataclass(frozen=True, slots=True)
class Attr:
    """One attribute: its HLO text key, how its value is written, its default, and its proto field.

    An attribute equal to its default is not printed. When it is absent from text, the
    instruction's `attrs` has no such key; `attr(instruction, name)` gives the default then.

    proto: the attribute's field in HloInstructionProto, where it is not called as the attribute:
    `field`, `message.field`, `message.` for the field called as the attribute inside a message,
    `field[0]` for one element of a repeated field; "*" when the codec takes and gives several
    fields of the instruction, as a dict.
    """

    name: str
    codec: Codec
    default: Any = REQUIRED
    proto: str = ""


class Effect(Enum):
    PURE = "pure"
    """Same operands, same result; may be removed, merged, folded, moved."""
    STATEFUL = "stateful"
    """Depends on more than its operands: hidden state (rng), which participant runs it, or what
    other participants give. May be removed, not merged, folded, repeated or moved into or out of
    other computations."""
    SIDE_EFFECT = "side effect"
    """Must happen, once, in order."""


# --- How an op is executed natively ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Each result element is a function of the operands' elements at the same index.

    An operand that is a scalar where the result is an array (the pred of select, the bounds of
    clamp) stands for that one value at every index: read it at ().
    """

    emit: EmitElement


@dataclass(frozen=True, slots=True)
class Indexed:
    """Each result element is read from the operands at computed indices.

    is_remap: exactly one element of operand 0 is read per result element, at an index that
    depends on the result index only (broadcast, transpose, slice, reverse, reshape, copy):
    fusing it into its consumer never repeats work. keeps_order: the result is operand 0's elements
    in the same row-major order (reshape, bitcast, copy): in memory it is the same array.
    """

    emit: EmitIndexed
    is_remap: bool = False
    keeps_order: bool = False


class Structure(Enum):
    """Ops with a native form of their own, written in `codegen/` or `cpu/`."""

    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    UPDATE = "update"  # writes part of an operand: dynamic-update-slice, scatter
    SORT = "sort"
    CONTROL = "control"
    LIBRARY = "library"
    COLLECTIVE = "collective"  # who works together: `ops.participants.participant_groups`
    POINT_TO_POINT = "point to point"  # send and recv, of another participant or of the host
    HOST = "host"
    NO_CODE = "no code"  # parameter, constant, tuple, get-tuple-element, bitcast, ...


@dataclass(frozen=True, slots=True)
class Expand:
    """Defined by other ops: `fn(instruction)` adds them beside it and returns the result."""

    fn: Callable[[HloInstruction], HloInstruction]


Lowering = Elementwise | Indexed | Structure | Expand


# --- Cost --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cost:
    """Work of one execution, counted by XLA's HloCostAnalysis conventions."""

    flops: float = 0.0
    transcendentals: float = 0.0


def no_cost(instruction: HloInstruction) -> Cost:
    return Cost()


def flop_per_element(instruction: HloInstruction) -> Cost:
    return Cost(flops=float(instruction.shape.element_count))


def transcendental_per_element(instruction: HloInstruction) -> Cost:
    return Cost(transcendentals=float(instruction.shape.element_count))


# --- The row -----------------------------------------------------------------------------------


class Meeting(NamedTuple):
    """What a collective learns from the others: each member's value, in the order of the group,
    and which member this participant is."""

    values: list[Any]
    place: int


class Evaluator(Protocol):
    """What an `evaluate` function may ask of the interpreter."""

    def call(self, computation: HloComputation, arguments: list[Value]) -> Value:
        """Run a computation on values of its parameters' shapes."""
        ...

    def call_elementwise(self, computation: HloComputation, arguments: list[Value]) -> Value:
        """Run a computation of scalars on arrays of one common shape, element by element."""
        ...

    @property
    def device_id(self) -> tuple[int, int]:
        """(replica, partition) of the participant being simulated."""
        ...

    @property
    def participants(self) -> tuple[int, int]:
        """(number of replicas, number of partitions) that run the program together."""
        ...

    @property
    def host(self) -> Any:
        """What stands on the host's side: the other end of transfers, host callbacks; or None."""
        ...

    def meet(self, instruction: HloInstruction, value: Any) -> Meeting:
        """Give `value` to the members of this participant's group, and wait for theirs."""
        ...

    def send(self, instruction: HloInstruction, value: Value) -> int:
        """Send to the participant or host that `instruction` names, without waiting for it to
        receive; a number for the transfer."""
        ...

    def receive(self, instruction: HloInstruction) -> int:
        """Begin to receive; a number by which `received` knows the transfer."""
        ...

    def received(self, instruction: HloInstruction, transfer: int) -> Value:
        """Wait for what `receive` began, at the instruction that ends it; None when no
        participant sends to this one."""
        ...

    def infeed(self, shape: Shape) -> Value:
        """Wait for the next value that the host feeds in; it is of `shape`."""
        ...

    def outfeed(self, value: Value) -> None:
        """Give the host a value."""
        ...


Evaluate = Callable[[HloInstruction, list[Value], Evaluator], Value]

AtSizes = Callable[[HloInstruction, list[tuple[int, ...]]], tuple[tuple[int, ...], dict[str, Any]]]
"""(instruction, sizes of each operand) -> (sizes of the result, attributes that change)."""


@dataclass(frozen=True, kw_only=True)
class OpDef:
    """One opcode.

    operands: names, used in error messages; a last name ending in "*" takes any number.
    infer: the shape the instruction must have, from operand shapes and attributes; where they
        leave it open (convert, iota, reshape, ...) it checks `instruction.shape` and returns it.
        Raises through `invalid`, citing the StableHLO spec's constraint label where there is one.
    evaluate: the meaning, in NumPy; gets operand values, returns the result value.
    lower: how it runs natively.
    example: adds a random valid instance to a graph and returns it.
    """

    opcode: str
    operands: tuple[str, ...] = ()
    attrs: tuple[Attr, ...] = ()
    infer: Callable[[HloInstruction], Shape]
    evaluate: Evaluate
    lower: Lowering
    cost: Callable[[HloInstruction], Cost] = no_cost
    effect: Effect = Effect.PURE
    example: Callable[[ExampleGraph], HloInstruction]
    sharding: str = ""
    spec: str = ""
    commutative: bool = False
    any_size: bool = False
    """`evaluate` goes by the values it gets, whatever sizes its dynamic dimensions have."""
    at_sizes: AtSizes | None = None
    """For rows whose shape or attributes state sizes: what they are when dynamic dimensions of the
    operands have the sizes given. Rows without it, other than any_size, infer their result."""
    settle: Callable[[HloInstruction], None] | None = None
    """Gives the attributes that were read from a proto the form they have in text, where protos
    say less or more: takes out what is the default for these operands, or said twice."""
    attr_defaults: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attr_defaults", {a.name: a.default for a in self.attrs})

    @property
    def is_elementwise(self) -> bool:
        return isinstance(self.lower, Elementwise)

    @property
    def is_variadic(self) -> bool:
        return bool(self.operands) and self.operands[-1].endswith("*")


OPS: dict[str, OpDef] = {}
"""Every row by opcode. Filled by the family files that `haloc.ops` imports."""


def register(row: OpDef) -> OpDef:
    assert row.opcode not in OPS, row.opcode
    OPS[row.opcode] = row
    return row


def op(instruction: HloInstruction) -> OpDef:
    """The row of an instruction's opcode."""
    return OPS[instruction.opcode]


def attr(instruction: HloInstruction, name: str) -> Any:
    """An attribute's value, or the row's default when it is not written."""
    value = instruction.attrs.get(name, REQUIRED)
    if value is not REQUIRED:
        return value
    default = OPS[instruction.opcode].attr_defaults[name]
    if default is REQUIRED:
        raise VerificationError(f"{instruction.opcode}: attribute {name} is missing")
    return default


def invalid(instruction: HloInstruction, fault: str, label: str = "") -> NoReturn:
    """Raise VerificationError: "<opcode>: <fault>   (<spec constraint label>)"."""
    suffix = f"   ({label})" if label else ""
    raise VerificationError(f"{instruction.opcode}: {fault}{suffix}")
