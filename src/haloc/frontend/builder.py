"""`XlaBuilder`: a computation put together op by op, and `XlaOp`, a value in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.frontend.messages import FrontendAttributes, OpMetadata
from haloc.ir.dtype import TUPLE, DType
from haloc.ir.literal import Literal
from haloc.ir.module import HloComputation, HloInstruction, HloModule, copy_annotations
from haloc.ir.shape import Shape
from haloc.ir.sharding import HloSharding
from haloc.ops.table import OPS, Effect, Structure
from haloc.runtime.op_sharding import OpSharding, XlaHloSharding
from haloc.runtime.xla_computation import XlaComputation
from haloc.runtime.xla_shape import XlaProgramShape, XlaShape

_OPEN = Shape(TUPLE)
"""Stands for the shape of an instruction until its row has inferred it."""


class XlaOp:
    """A value of a computation under construction. Ops in `ops` make them."""

    __slots__ = ("builder", "instruction")

    def __init__(self, builder: XlaBuilder, instruction: HloInstruction):
        self.builder = builder
        self.instruction = instruction

    @property
    def shape(self) -> Shape:
        return self.instruction.shape

    def __repr__(self) -> str:
        return f"XlaOp({self.instruction!r})"


class XlaBuilder:
    """Instructions are checked as they are added: a wrong op raises where it is made, not when the
    computation is built. Names are XLA's: opcode or given name, and a number of the module."""

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"XlaBuilder: the name is a str, not {type(name).__name__}")
        self._name = name
        self._module = HloModule(name)
        self._entry = self._module.add_computation(name, entry=True)
        self._ids = 0
        self._sharding: HloSharding | None = None
        self._metadata: dict[str, Any] = {}
        self._attributes: dict[str, str] = {}
        self._aliases: list[tuple[tuple[int, ...], int, tuple[int, ...], str]] = []

    # --- Instructions ----------------------------------------------------------------------

    def _next(self, stem: str) -> str:
        self._ids += 1
        return f"{stem}.{self._ids}"

    def add(
        self,
        opcode: str,
        shape: Shape | None = None,
        operands: Iterable[HloInstruction] = (),
        name: str = "",
        **attrs: Any,
    ) -> HloInstruction:
        """An instruction at the end; its row infers the shape. shape: where the row leaves it open.

        Raises the row's VerificationError.
        """
        instruction = HloInstruction(opcode, shape or _OPEN, operands, attrs)
        try:
            for operand in instruction.operands:
                if operand.parent is not self._entry:
                    raise InvalidArgumentError(
                        f"{opcode}: operand {operand.name} is of another builder than {self._name}"
                    )
            instruction.shape = OPS[opcode].infer(instruction)
        except BaseException:
            instruction.set_operands(())
            raise
        instruction.sharding = self._sharding
        instruction.metadata = self._metadata
        instruction.frontend_attributes = self._attributes
        self._entry.add(instruction, self._next(name or opcode))
        self._entry.root = instruction
        return instruction

    def constant(self, array: Any, dtype: DType | None = None) -> HloInstruction:
        """A constant of a NumPy array or number."""
        value = np.asarray(array) if dtype is None else np.asarray(array).astype(dtype.numpy)
        literal = Literal.of(value)
        return self.add("constant", literal.shape, (), literal=literal)

    def embed(self, computation: XlaComputation) -> HloComputation:
        """A copy of a computation, and of all it calls, in this one's module."""
        if not isinstance(computation, XlaComputation):
            given = type(computation).__name__
            raise TypeError(f"a computation is an XlaComputation, not {given}")
        mapping: dict[HloComputation, HloComputation] = {}
        for old in computation.as_hlo_module().ir.post_order():
            new = self._module.add_computation(self._next(_stem(old.name)))
            values: dict[HloInstruction, HloInstruction] = {}
            for instruction in old.instructions:
                attrs = {k: _mapped(v, mapping) for k, v in instruction.attrs.items()}
                operands = [values[o] for o in instruction.operands]
                copy = HloInstruction(instruction.opcode, instruction.shape, operands, attrs)
                copy_annotations(instruction, copy)
                copy.control_predecessors = tuple(
                    values[p] for p in instruction.control_predecessors
                )
                values[instruction] = new.add(copy, self._next(_stem(instruction.name)))
            new.root = values[old.root]
            mapping[old] = new
        return new

    def inline(
        self, computation: XlaComputation, operands: Sequence[HloInstruction]
    ) -> list[HloInstruction]:
        """The instructions of a computation with a tuple for its root, on operands of this one;
        the members of the tuple."""
        called = self.embed(computation)
        del self._module.computations[called.name]
        values: dict[HloInstruction, HloInstruction] = dict(zip(called.parameters, operands))
        for instruction in called.instructions:
            if instruction not in values and instruction is not called.root:
                inputs = [values[o] for o in instruction.operands]
                copy = HloInstruction(
                    instruction.opcode, instruction.shape, inputs, instruction.attrs
                )
                copy_annotations(instruction, copy)
                values[instruction] = self._entry.add(copy, instruction.name)
        return [values[member] for member in called.root.operands]

    @property
    def count(self) -> int:
        """How many numbers names have taken."""
        return self._ids

    @property
    def parameters(self) -> list[HloInstruction]:
        """The parameters so far, by number."""
        return self._entry.parameters

    # --- XLA's interface -------------------------------------------------------------------

    def build(self, root: XlaOp | None = None) -> XlaComputation:
        """The computation; its result is `root`, by default the op added last."""
        name = f"{self._name}.{self._ids + 1}"
        return XlaComputation.of_module(self.module(root, name, name))

    def module(self, root: XlaOp | None, name: str, entry_name: str) -> HloModule:
        """A copy of the module under these names."""
        self._set_root(root)
        module = self._module.clone()
        del module.computations[module.entry.name]
        module.name, module.entry.name = name, entry_name
        module.computations[entry_name] = module.entry
        if self._aliases:
            module.header["input_output_alias"] = tuple(self._aliases)
        return module

    Build = build

    def _set_root(self, root: XlaOp | None) -> None:
        if root is not None:
            self._entry.root = self._own(root)
        if not len(self._entry):
            raise InvalidArgumentError(f"builder {self._name} has no instructions to build")

    def _own(self, op: XlaOp) -> HloInstruction:
        if not isinstance(op, XlaOp):
            raise TypeError(f"an op is an XlaOp, not {type(op).__name__}")
        if op.builder is not self:
            raise InvalidArgumentError(f"{op!r} is of another builder than {self._name}")
        return op.instruction

    def get_shape(self, op: XlaOp) -> XlaShape:
        return XlaShape(self._own(op).shape)

    GetShape = get_shape

    def get_program_shape(self, root: XlaOp | None = None) -> XlaProgramShape:
        """Shapes of the parameters so far and of `root`, by default the op added last."""
        if root is None and not len(self._entry):
            raise InvalidArgumentError(f"builder {self._name} has no instructions")
        result = self._entry.root if root is None else self._own(root)
        parameters = self._entry.parameters
        return XlaProgramShape(
            [XlaShape(p.shape) for p in parameters],
            XlaShape(result.shape),
            [p.name for p in parameters],
        )

    def is_constant(self, op: XlaOp) -> bool:
        """Whether the value is known before the program runs: of constants and pure ops alone."""
        waiting, seen = [self._own(op)], set()
        while waiting:
            instruction = waiting.pop()
            if instruction in seen:
                continue
            seen.add(instruction)
            row = OPS[instruction.opcode]
            calls = row.lower is Structure.CONTROL or instruction.opcode == "custom-call"
            if instruction.opcode == "parameter" or calls or row.effect is not Effect.PURE:
                return False
            waiting.extend(instruction.operands)
        return True

    def setup_alias(
        self, output_index: Sequence[int], param_number: int, param_index: Sequence[int]
    ) -> None:
        """A part of the result may take the memory of a part of a parameter."""
        entry = (tuple(output_index), int(param_number), tuple(param_index), "may-alias")
        self._aliases.append(entry)

    def set_sharding(self, sharding: OpSharding) -> None:
        """Of the ops added from now on."""
        self._sharding = XlaHloSharding.from_proto(sharding).ir

    def clear_sharding(self) -> None:
        self._sharding = None

    def set_op_metadata(self, metadata: OpMetadata) -> None:
        """Of the ops added from now on."""
        fields = ("op_type", "op_name", "source_file", "source_line")
        values = {name: getattr(metadata, name) for name in fields}
        self._metadata = {name: value for name, value in values.items() if value}

    def clear_op_metadata(self) -> None:
        self._metadata = {}

    def set_frontend_attributes(self, attributes: FrontendAttributes) -> None:
        """Of the ops added from now on."""
        self._attributes = dict(attributes.map)

    def clear_frontend_attributes(self) -> None:
        self._attributes = {}


def _stem(name: str) -> str:
    """A name without its number."""
    stem, dot, tail = name.rpartition(".")
    return stem if dot and tail.isdigit() else name


def _mapped(value: Any, mapping: dict[HloComputation, HloComputation]) -> Any:
    if isinstance(value, HloComputation):
        return mapping[value]
    if isinstance(value, tuple) and value and isinstance(value[0], HloComputation):
        return tuple(mapping[v] for v in value)
    return value
