"""Where conversion stands: the module being made, and the computation being filled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from haloc.errors import HloError, InvalidArgumentError, UnimplementedError
from haloc.formats.stablehlo.convert.metadata import Metadata
from haloc.formats.stablehlo.convert.reading import at_op
from haloc.formats.stablehlo.convert.shapes import shape_of
from haloc.formats.stablehlo.mlir import MlirModule, MlirOp, MlirValue, SdyMesh
from haloc.ir.dtype import DType
from haloc.ir.literal import Literal
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape, tuple_shape

Handler = Callable[["Scope", MlirOp], "HloInstruction | Sequence[HloInstruction] | None"]
"""Converts one op: gives the instruction of its result, or one instruction a result."""

CONVERSIONS: dict[str, Handler] = {}
"""How each op is converted, by its name."""

_NAME_CHARACTERS = re.compile(r"[^A-Za-z0-9_.-]")


def converts(*names: str) -> Callable[[Handler], Handler]:
    """Enters a function into CONVERSIONS under these op names."""

    def enter(handler: Handler) -> Handler:
        for name in names:
            assert name not in CONVERSIONS, name
            CONVERSIONS[name] = handler
        return handler

    return enter


class Program:
    """What all computations of one module share."""

    def __init__(self, source: MlirModule, hlo: HloModule):
        self.source = source
        self.hlo = hlo
        self.metadata = Metadata()
        self.functions: dict[str, MlirOp] = {}
        self.meshes: dict[str, SdyMesh] = {}
        self.converted: dict[str, HloComputation] = {}
        self.active: list[str] = []

    def explain(self, error: Exception, op: MlirOp) -> None:
        """Add the place of an op to the error it raised."""
        if isinstance(error, HloError):
            at_op(error, op, self.source.source, self.source.filename)


class Scope:
    """One HLO computation while it is filled.

    values: the instruction for each MLIR value, or (tuple, index) until its get-tuple-element is
    needed. outer: the scope a region stands in, whose constants it may repeat.
    """

    def __init__(self, program: Program, computation: HloComputation, outer: Scope | None = None):
        self.program = program
        self.computation = computation
        self.outer = outer
        self.values: dict[MlirValue, HloInstruction | tuple[HloInstruction, int]] = {}
        self.metadata: dict[str, Any] = {}
        self.name = ""

    # --- Values ----------------------------------------------------------------------------

    def value(self, value: MlirValue) -> HloInstruction:
        """The instruction that gives an MLIR value in this computation."""
        found = self.values.get(value)
        if isinstance(found, HloInstruction):
            return found
        if found is not None:
            element = self.values[value] = self.element(*found)
            return element
        outside = self.outside(value)
        if outside is not None and outside.opcode == "constant":
            copy = self.add("constant", outside.shape, (), literal=outside.attrs["literal"])
            self.values[value] = copy
            return copy
        if outside is None:
            raise InvalidArgumentError(f"value %{value.name} is not defined before it is used")
        raise UnimplementedError(
            f"a region uses %{value.name} from outside: HLO passes values into the regions of "
            "while, case and if only"
        )

    def outside(self, value: MlirValue) -> HloInstruction | None:
        """The instruction that gives `value` in the scope around this one."""
        scope = self.outer
        while scope is not None:
            found = scope.values.get(value)
            if found is not None:
                return scope.value(value)
            scope = scope.outer
        return None

    def operand(self, op: MlirOp, number: int) -> HloInstruction:
        if number >= len(op.operands):
            raise InvalidArgumentError(
                f"{op.name} has {len(op.operands)} operands, expected more than {number}"
            )
        return self.value(op.operands[number])

    def operands(self, op: MlirOp, count: int | None = None) -> list[HloInstruction]:
        """The instructions of the operands; `count` of them, where the op says how many."""
        if count is not None and len(op.operands) != count:
            plural = "" if count == 1 else "s"
            raise InvalidArgumentError(
                f"{op.name} takes {count} operand{plural}, given {len(op.operands)}"
            )
        return [self.value(o) for o in op.operands]

    # --- Instructions ----------------------------------------------------------------------

    def add(
        self, opcode: str, shape: Shape, operands: Iterable[HloInstruction] = (), **attrs: Any
    ) -> HloInstruction:
        """A new instruction, named and annotated after the op being converted."""
        instruction = HloInstruction(opcode, shape, operands, attrs)
        name = "constant" if opcode == "constant" else self.name or opcode
        self.computation.add(instruction, name)
        instruction.metadata = self.metadata
        return instruction

    def parameter(self, number: int, shape: Shape, name: str = "") -> HloInstruction:
        instruction = HloInstruction("parameter", shape, (), {"parameter_number": number})
        return self.computation.add(instruction, clean_name(name) or "param")

    def constant(self, array: object, dtype: DType | None = None) -> HloInstruction:
        """A constant of a NumPy array or number."""
        value = np.asarray(array, None if dtype is None else dtype.numpy)
        literal = Literal.of(value)
        return self.add("constant", literal.shape, (), literal=literal)

    def element(self, whole: HloInstruction, index: int) -> HloInstruction:
        shape = whole.shape.elements[index]
        instruction = HloInstruction("get-tuple-element", shape, (whole,), {"index": index})
        instruction.metadata = whole.metadata
        return self.computation.add(instruction, whole.name)

    def elements(self, whole: HloInstruction) -> list[HloInstruction]:
        return [self.element(whole, i) for i in range(len(whole.shape.elements))]

    def tuple(self, members: Sequence[HloInstruction]) -> HloInstruction:
        shape = tuple_shape(*(m.shape for m in members))
        return self.add("tuple", shape, members)

    def results(self, op: MlirOp, whole: HloInstruction) -> None:
        """Enter the results of an op whose HLO form gives a tuple when there are several."""
        if len(op.results) == 1 and not (
            whole.shape.is_tuple and whole.shape != shape_of(op.results[0].type)
        ):
            self.values[op.results[0]] = whole
            return
        for index, result in enumerate(op.results):
            self.values[result] = (whole, index)

    # --- Operations ------------------------------------------------------------------------

    def convert(self, op: MlirOp) -> None:
        handler = CONVERSIONS.get(op.name)
        if handler is None:
            raise UnimplementedError(f"{op.name}: haloc has no HLO for this operation")
        self.metadata, self.name = self.program.metadata.of(op.location)
        made = handler(self, op)
        if made is None:
            return
        if isinstance(made, HloInstruction):
            if len(op.results) == 1:
                self.values[op.results[0]] = made
            elif op.results:
                raise InvalidArgumentError(f"{op.name} has {len(op.results)} results, expected one")
            return
        if len(made) != len(op.results):
            raise InvalidArgumentError(
                f"{op.name} has {len(op.results)} results, expected {len(made)}"
            )
        self.values.update(zip(op.results, made))


def clean_name(name: str) -> str:
    """`name` with characters HLO names do not have replaced."""
    cleaned = _NAME_CHARACTERS.sub("_", name)
    return f"_{cleaned}" if cleaned[:1].isdigit() or cleaned[:1] in (".", "-") else cleaned


def result_shape(op: MlirOp, number: int = 0) -> Shape:
    """The HLO shape of a result."""
    if number >= len(op.results):
        raise InvalidArgumentError(f"{op.name} has no result")
    return shape_of(op.results[number].type)


def results_shape(op: MlirOp) -> Shape:
    """The one result's shape, or the tuple of several."""
    if len(op.results) == 1:
        return result_shape(op)
    return tuple_shape(*(shape_of(r.type) for r in op.results))
