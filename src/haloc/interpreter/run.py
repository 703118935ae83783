"""`run`: walk a module's computations and evaluate every instruction by its row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from haloc.errors import (
    HloError,
    InternalError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from haloc.formats.quote import quoted, source_of
from haloc.interpreter.arguments import fitted, kind_of
from haloc.interpreter.bounded import evaluation
from haloc.interpreter.elementwise import VectorPlan, vector_plan
from haloc.interpreter.guard import NanGuard
from haloc.interpreter.host_transfers import HostTransfers
from haloc.interpreter.participant import Participant
from haloc.interpreter.rendezvous import Rendezvous
from haloc.ir.literal import Value
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ops.table import Evaluate

OnValue = Callable[[HloInstruction, Value], None]


def run(
    module: HloModule,
    arguments: Sequence[Value],
    *,
    device_id: tuple[int, int] = (0, 0),
    on_value: OnValue | None = None,
    guard: NanGuard | None = None,
    host: HostTransfers | None = None,
) -> Value:
    """Run the entry computation on arguments of its parameters' shapes and return its result.

    Arrays are NumPy arrays of the shape's dtype and dims, with as many elements as there are in a
    dynamic dimension (at most its bound); tuples are tuples, tokens None.
    device_id: the (replica, partition) simulated. on_value: called with each instruction and its
    value, in order of execution, called computations included (not inside elementwise regions,
    which run on whole arrays). guard: stops the run where a NaN is made, with NonFiniteError.
    host: the other end of infeed, outfeed and host transfers.

    There is one participant: a collective works in a group of one, and is refused when its groups
    name more; `run_participants` runs several.

    Raises InvalidArgumentError for arguments that do not fit and ResourceExhaustedError when memory
    or the stack runs out; an error inside an instruction carries notes that name it.
    """
    interpreter = Interpreter(device_id=device_id, on_value=on_value, guard=guard, host=host)
    return run_entry(interpreter, module, arguments)


def run_entry(interpreter: Interpreter, module: HloModule, arguments: Sequence[Value]) -> Value:
    """`run` with a walker at hand."""
    parameters = module.entry.parameters
    if len(arguments) != len(parameters):
        raise InvalidArgumentError(
            f"{module.name} takes {len(parameters)} arguments, given {len(arguments)}"
        )
    values = [
        fitted(argument, p.shape, f"argument {n}")
        for n, (argument, p) in enumerate(zip(arguments, parameters))
    ]
    try:
        return _own(interpreter.call(module.entry, values))
    except MemoryError as error:
        where = "; ".join(getattr(error, "__notes__", [])[:1])
        raise ResourceExhaustedError(f"out of memory {where}".strip()) from error
    except RecursionError:
        raise ResourceExhaustedError(
            f"{module.name}: computations call each other too deeply for the interpreter"
        ) from None


def _own(value: Value) -> Value:
    """Fresh row-major arrays: an evaluated value may be a view of an argument or a constant."""
    if isinstance(value, tuple):
        return tuple(map(_own, value))
    return None if value is None else np.array(value, order="C")


@dataclass(slots=True)
class _Step:
    """One instruction: where its operands are, where its value goes, what is not needed after."""

    instruction: HloInstruction
    evaluate: Evaluate
    operands: tuple[int, ...]
    result: int
    dead: tuple[int, ...]
    dims: tuple[int, ...] | None
    dtype: np.dtype | None


@dataclass(slots=True)
class _Plan:
    steps: list[_Step]
    slots: int
    parameters: list[tuple[HloInstruction, int, int]]
    root: int


class Interpreter(Participant):
    """An `Evaluator` for one run of an unchanging module. Plans are made once a computation."""

    def __init__(
        self,
        device_id: tuple[int, int] = (0, 0),
        on_value: OnValue | None = None,
        guard: NanGuard | None = None,
        host: HostTransfers | None = None,
        rendezvous: Rendezvous | None = None,
        participant: int = 0,
    ):
        super().__init__(device_id, host, rendezvous, participant)
        self.on_value = on_value
        self.guard = guard
        self._plans: dict[HloComputation, _Plan] = {}
        self._vector_plans: dict[HloComputation, VectorPlan | None] = {}

    def call(self, computation: HloComputation, arguments: list[Value]) -> Value:
        """Run a computation on values of its parameters' shapes."""
        plan = self._plans.get(computation)
        if plan is None:
            plan = self._plans[computation] = _plan(computation)
        slots: list[Value] = [None] * plan.slots
        on_value = self.on_value
        for parameter, number, slot in plan.parameters:
            slots[slot] = arguments[number]
            if on_value is not None:
                on_value(parameter, arguments[number])
        for step in plan.steps:
            try:
                operands = [slots[s] for s in step.operands]
                value = step.evaluate(step.instruction, operands, self)
                if step.dtype is not None:
                    value = _checked(value, step)
                if self.guard is not None:
                    self.guard.check(step.instruction, operands, value)
                if on_value is not None:
                    on_value(step.instruction, value)
            except Exception as error:
                _note(error, step.instruction)
                raise
            slots[step.result] = value
            for slot in step.dead:
                slots[slot] = None
        return slots[plan.root]

    def call_elementwise(self, computation: HloComputation, arguments: list[Value]) -> Value:
        """Run a computation of scalars on arrays of one common shape, element by element.

        All at once when its instructions allow that; else one `call` an element.
        """
        if computation not in self._vector_plans:
            self._vector_plans[computation] = vector_plan(computation)
        plan = self._vector_plans[computation]
        arrays = [np.asarray(a) for a in arguments]
        dims = np.broadcast_shapes(*(a.shape for a in arrays))
        if plan is not None:
            try:
                return plan.run(arrays, dims, self)
            except Exception as error:
                error.add_note(f"in {computation.name}, run on whole arrays")
                raise
        return self._element_by_element(computation, arrays, dims)

    def _element_by_element(
        self, computation: HloComputation, arrays: list[np.ndarray], dims: tuple[int, ...]
    ) -> Value:
        shapes = computation.root.shape.leaves()
        outputs = [np.zeros(dims, s.dtype.numpy) for s in shapes]
        spread = [np.broadcast_to(a, dims) for a in arrays]
        for index in np.ndindex(*dims):
            value = self.call(computation, [np.asarray(a[index]) for a in spread])
            values = value if isinstance(value, tuple) else (value,)
            for output, element in zip(outputs, values):
                output[index] = element
        return tuple(outputs) if computation.root.shape.is_tuple else outputs[0]


def _plan(computation: HloComputation) -> _Plan:
    instructions = computation.instructions
    slots = {instruction: n for n, instruction in enumerate(instructions)}
    root = slots[computation.root]
    last_use: dict[int, int] = {}
    for n, instruction in enumerate(instructions):
        last_use[n] = n
        for operand in instruction.operands:
            last_use[slots[operand]] = n
    dead: dict[int, list[int]] = {}
    for slot, n in last_use.items():
        if slot != root:
            dead.setdefault(n, []).append(slot)
    steps, parameters = [], []
    for n, i in enumerate(instructions):
        if i.opcode == "parameter":
            parameters.append((i, i.attrs["parameter_number"], n))
            continue
        steps.append(
            _Step(
                i,
                evaluation(i),
                tuple(slots[o] for o in i.operands),
                n,
                tuple(dead.get(n, ())),
                i.shape.dims if i.shape.is_array and i.shape.is_static else None,
                i.shape.dtype.numpy if i.shape.is_array else None,
            )
        )
    return _Plan(steps, len(instructions), parameters, root)


def _checked(value: Value, step: _Step) -> Value:
    """An array of exactly the instruction's type; a row that gives another is a bug."""
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    if value.dtype != step.dtype or (step.dims is not None and value.shape != step.dims):
        raise InternalError(
            f"{step.instruction.opcode}: the row's evaluate gave {kind_of(value)}, "
            f"wanted {step.instruction.shape}"
        )
    return value


def _note(error: Exception, instruction: HloInstruction) -> None:
    source = source_of(instruction)
    at = f"  ({source})" if source else ""
    note = f"evaluating {quoted(instruction)}{at}"
    if not isinstance(error, HloError) or note not in getattr(error, "__notes__", ()):
        error.add_note(note)
