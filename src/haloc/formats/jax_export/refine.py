"""Gives every value of a shape-polymorphic module its size, from the sizes of the arguments.

The module is copied from `main` on. What computes sizes (`get_dimension_size` and arithmetic on
it) is evaluated, dynamic ops become static ones, other ops' results follow from their operands,
functions are copied once for each set of argument types and known values, and branches chosen by
a known value (the platform) are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.formats.jax_export.refine_ops import BODY_CALLS, STATIC, Known, constant_op
from haloc.formats.jax_export.refine_shapes import result_dims
from haloc.formats.jax_export.refine_values import evaluate
from haloc.formats.stablehlo.mlir import (
    Function,
    MlirBlock,
    MlirModule,
    MlirOp,
    MlirRegion,
    MlirType,
    MlirValue,
    RankedTensor,
    SymbolRef,
)

DEPTH_LIMIT = 100
"""How deep functions may call each other."""

_SELECTING = {"stablehlo.case", "stablehlo.if"}
_CALLS = {"func.call": "callee", "stablehlo.composite": "decomposition"}


def is_dynamic(type: MlirType) -> bool:
    """Whether a size is unknown: `?` without a bound."""
    if not isinstance(type, RankedTensor):
        return False
    bounds = type.bounds or (None,) * len(type.dims)
    return any(d is None and b is None for d, b in zip(type.dims, bounds, strict=True))


def has_dynamic_sizes(module: MlirModule) -> bool:
    """Whether any value of the module has an unknown size."""
    stack = list(module.operations)
    while stack:
        op = stack.pop()
        if any(is_dynamic(v.type) for v in op.results):
            return True
        for region in op.regions:
            for block in region.blocks:
                if any(is_dynamic(v.type) for v in block.arguments):
                    return True
                stack += block.operations
    return False


def refine(
    module: MlirModule,
    types: Sequence[MlirType],
    known: dict[int, np.ndarray] | None = None,
) -> MlirModule:
    """A copy of the module with static sizes throughout.

    types: of all arguments of `main`. known: arguments whose value is known, by number; the copy's
    `main` does not take them. Raises InvalidArgumentError with the program's own message when the
    sizes break one of its shape assertions; UnimplementedError for sizes only a run can tell.
    """
    return _Refiner(module).run(types, known or {})


class _Refiner:
    def __init__(self, module: MlirModule):
        self.module = module
        self.functions: dict[str, MlirOp] = {}
        for op in module.operations:
            if op.name == "func.func":
                self.functions[str(op.attributes.get("sym_name", ""))] = op
        self.copies: dict[tuple, tuple[str, list[MlirValue]]] = {}
        self.names: set[str] = set()
        self.operations = [op for op in module.operations if op.name != "func.func"]
        self.known = Known()
        self.known.body_of = self.body_of
        self.depth = 0

    def run(self, types: Sequence[MlirType], known: dict[int, np.ndarray]) -> MlirModule:
        if "main" not in self.functions:
            raise InvalidArgumentError("the module has no function 'main'")
        constants = [known.get(i) for i in range(len(types))]
        self.function("main", types, constants, "main")
        old = self.module
        return MlirModule(
            old.name, dict(old.attributes), self.operations, old.location, "", old.filename
        )

    # --- Functions -------------------------------------------------------------------------------

    def function(
        self,
        name: str,
        types: Sequence[MlirType],
        constants: Sequence[np.ndarray | None],
        caller: str,
    ) -> tuple[str, list[MlirValue]]:
        """The copy for these arguments: its name, and what it returns."""
        source = self.functions.get(name)
        if source is None:
            raise InvalidArgumentError(f"{caller}: there is no function {name!r}")
        if self.depth >= DEPTH_LIMIT:
            raise InvalidArgumentError(f"functions call each other more than {DEPTH_LIMIT} deep")
        key = (name, tuple(types), tuple([None if c is None else c.tobytes() for c in constants]))
        if key not in self.copies:
            self.depth += 1
            self.copies[key] = self.copy_function(source, types, constants)
            self.depth -= 1
        return self.copies[key]

    def copy_function(
        self, source: MlirOp, types: Sequence[MlirType], constants: Sequence[np.ndarray | None]
    ) -> tuple[str, list[MlirValue]]:
        name = self.unique(str(source.attributes["sym_name"]))
        if not source.regions or not source.regions[0].blocks:
            raise InvalidArgumentError(f"function {name!r} has no body")
        block = source.regions[0].blocks[0]
        if len(types) != len(block.arguments):
            raise InvalidArgumentError(
                f"function {name!r} takes {len(block.arguments)} arguments, not {len(types)}"
            )
        is_main = source.attributes["sym_name"] == "main"
        values: dict[MlirValue, MlirValue] = {}
        new = MlirBlock()
        kept = []
        for i, (old, type) in enumerate(zip(block.arguments, types, strict=True)):
            value = values[old] = MlirValue(type, old.name, old.location)
            constant = constants[i]
            if constant is not None:
                self.known.constants[value] = constant
            if constant is not None and is_main:
                assert isinstance(type, RankedTensor)
                op = constant_op(type, constant, source)
                op.results = [value]
                new.operations.append(op)
            else:
                new.arguments.append(value)
                kept.append(i)
        returned = self.operations_of(block, values, new)
        op = MlirOp("func.func", [], dict(source.attributes), [MlirRegion([new])])
        op.location, op.position = source.location, source.position
        op.attributes["sym_name"] = name
        op.attributes["function_type"] = Function(
            tuple([v.type for v in new.arguments]), tuple([v.type for v in returned])
        )
        attributes = op.attributes.get("arg_attrs")
        if isinstance(attributes, tuple):
            op.attributes["arg_attrs"] = tuple([attributes[i] for i in kept if i < len(attributes)])
        self.operations.append(op)
        return name, returned

    def unique(self, name: str) -> str:
        wanted, count = name, 0
        while name in self.names:
            count += 1
            name = f"{wanted}_{count}"
        self.names.add(name)
        return name

    def body_of(self, name: str) -> MlirRegion:
        """A function's body as the region of an op."""
        source = self.functions.get(name)
        if source is None or not source.regions or not source.regions[0].blocks:
            raise InvalidArgumentError(f"there is no function {name!r} with a body")
        block = source.regions[0].blocks[0]
        new = MlirBlock()
        values: dict[MlirValue, MlirValue] = {}
        for old in block.arguments:
            values[old] = MlirValue(old.type, old.name)
            new.arguments.append(values[old])
        self.operations_of(block, values, new)
        new.operations[-1].name = "stablehlo.return"
        return MlirRegion([new])

    # --- Operations ------------------------------------------------------------------------------

    def operations_of(
        self, block: MlirBlock, values: dict[MlirValue, MlirValue], new: MlirBlock
    ) -> list[MlirValue]:
        """Copy the ops of a block to the end of `new`; returns what the block returns."""
        returned: list[MlirValue] = []
        for op in block.operations:
            if op.name.endswith(".return"):
                returned = [values[v] for v in op.operands]
                new.operations.append(
                    MlirOp(op.name, list(returned), dict(op.attributes), [], [], op.location)
                )
            else:
                self.operation(op, values, new)
        return returned

    def operation(self, op: MlirOp, values: dict[MlirValue, MlirValue], new: MlirBlock) -> None:
        copy = MlirOp(op.name, [values[v] for v in op.operands], dict(op.attributes))
        copy.location, copy.position = op.location, op.position
        copy.results = [MlirValue(v.type, v.name, v.location) for v in op.results]
        for old, value in zip(op.results, copy.results, strict=True):
            values[old] = value
        if op.name in _SELECTING and copy.operands and copy.operands[0] in self.known.constants:
            self.take_branch(op, copy, values, new)
            return
        if op.name in _CALLS:
            self.call(copy)
            new.operations.append(copy)
            return
        try:
            self.called_functions(copy)
            self.regions(op, copy, values)
            done = STATIC[op.name](copy, self.known) if op.name in STATIC else [copy]
            self.result_types(copy)
            for each in done:
                self.finish(each, copy, new)
        except (
            IndexError,
            KeyError,
            AttributeError,
            ValueError,
            TypeError,
            AssertionError,
        ) as error:
            raise InvalidArgumentError(
                f"{op.name}: its attributes do not fit its operands "
                f"{', '.join(str(v.type) for v in copy.operands)} ({error})"
            ) from error

    def finish(self, op: MlirOp, copy: MlirOp, new: MlirBlock) -> None:
        """Take an op in; when its value can be known, a constant of that value instead."""
        if op is not copy and op.name == "stablehlo.constant" and len(copy.results) == 1:
            op.results = copy.results
        if len(op.results) == 1 and isinstance(op.results[0].type, RankedTensor):
            result = op.results[0]
            operands = [self.known.constants.get(v) for v in op.operands]
            if all(c is not None for c in operands):
                value = evaluate(op, operands, result.type)  # type: ignore[arg-type]
                if value is not None:
                    self.known.constants[result] = value
                    op = constant_op(result.type, value, op)  # type: ignore[arg-type]
                    op.results = [result]
        for result in op.results:
            self.known.producers[result] = op
        new.operations.append(op)

    def call(self, op: MlirOp) -> None:
        """Point a call at the copy of its function for these operands."""
        key = _CALLS[op.name]
        symbol = op.attributes.get(key)
        name = symbol.name if isinstance(symbol, SymbolRef) else str(symbol)
        constants = [self.known.constants.get(v) for v in op.operands]
        types = [v.type for v in op.operands]
        name, returned = self.function(name, types, constants, op.name)
        op.attributes[key] = SymbolRef(name)
        if len(returned) != len(op.results):
            raise InvalidArgumentError(f"{op.name}: {name!r} returns {len(returned)} values")
        for result, value in zip(op.results, returned, strict=True):
            result.type = value.type
            if value in self.known.constants:
                self.known.constants[result] = self.known.constants[value]

    def called_functions(self, op: MlirOp) -> None:
        """Take over the functions that a custom call names, which must be static."""
        called = op.attributes.get("called_computations")
        if not isinstance(called, tuple) or op.attributes.get("call_target_name") in BODY_CALLS:
            return
        names = []
        for symbol in called:
            assert isinstance(symbol, SymbolRef)
            source = self.functions.get(symbol.name)
            if source is None or not source.regions or not source.regions[0].blocks:
                raise InvalidArgumentError(f"{op.name}: there is no function {symbol.name!r}")
            types = [v.type for v in source.regions[0].blocks[0].arguments]
            name, _ = self.function(symbol.name, types, [None] * len(types), op.name)
            names.append(SymbolRef(name))
        op.attributes["called_computations"] = tuple(names)

    def take_branch(
        self, op: MlirOp, copy: MlirOp, values: dict[MlirValue, MlirValue], new: MlirBlock
    ) -> None:
        """case or if of a known value: the branch's ops stand in its place."""
        chosen = int(self.known.constants[copy.operands[0]])
        last = len(op.regions) - 1
        if op.name == "stablehlo.if":
            number = 0 if chosen else 1
        else:
            number = chosen if 0 <= chosen <= last else last
        if not 0 <= number <= last or not op.regions[number].blocks:
            raise InvalidArgumentError(f"{op.name}: it has no branch {number}")
        branch = MlirBlock()
        returned = self.operations_of(op.regions[number].blocks[0], values, branch)
        new.operations += branch.operations[:-1]
        if len(returned) != len(op.results):
            raise InvalidArgumentError(f"{op.name}: branch {number} returns {len(returned)} values")
        for old, value in zip(op.results, returned, strict=True):
            values[old] = value

    # --- Types -----------------------------------------------------------------------------------

    def regions(self, op: MlirOp, copy: MlirOp, values: dict[MlirValue, MlirValue]) -> None:
        """Copy an op's regions; while's take its operands, other ops' what they declare."""
        results: list[list[MlirValue]] = []
        for region in op.regions:
            new = MlirRegion()
            copy.regions.append(new)
            for block in region.blocks:
                target = MlirBlock()
                new.blocks.append(target)
                for i, old in enumerate(block.arguments):
                    type = copy.operands[i].type if op.name == "stablehlo.while" else old.type
                    values[old] = MlirValue(type, old.name, old.location)
                    target.arguments.append(values[old])
                results.append(self.operations_of(block, values, target))
        if op.name in _SELECTING and results:
            for value, branch_value in zip(copy.results, results[0], strict=True):
                value.type = branch_value.type
        if op.name == "stablehlo.while" and len(results) == 2:
            self.check_loop(copy, results[1])

    def check_loop(self, op: MlirOp, body: Iterable[MlirValue]) -> None:
        for number, (operand, value) in enumerate(zip(op.operands, body, strict=True)):
            if operand.type != value.type:
                raise InvalidArgumentError(
                    f"stablehlo.while: value {number} enters as {operand.type}, but the body "
                    f"returns {value.type}"
                )

    def result_types(self, op: MlirOp) -> None:
        """Fill in the dynamic sizes of an op's results."""
        if not any(is_dynamic(v.type) for v in op.results):
            return
        dims: list[tuple[int, ...]] = []
        for value in op.operands:
            type = value.type
            if isinstance(type, RankedTensor):
                dims.append(tuple([d if d is not None else -1 for d in type.dims]))
        found = result_dims(op, dims)
        if found is None:
            raise UnimplementedError(
                f"{op.name}: haloc has no rule for the shape of its result, "
                f"{', '.join(str(v.type) for v in op.results)}"
            )
        for value, sizes in zip(op.results, found, strict=False):
            if is_dynamic(value.type) and isinstance(value.type, RankedTensor):
                if len(sizes) != len(value.type.dims):
                    raise InvalidArgumentError(
                        f"{op.name}: a result of rank {len(sizes)}, declared as {value.type}"
                    )
                value.type = RankedTensor(tuple(sizes), value.type.element)
