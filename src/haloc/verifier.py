"""`verify`: a module is well formed, and every instruction is what its row says it must be.

All faults are collected and reported in one VerificationError, each with the instruction it is at.
"""

from __future__ import annotations

from collections.abc import Iterator

from haloc.errors import InvalidArgumentError, VerificationError
from haloc.formats.quote import quoted, source_of
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape
from haloc.ops.regions import text
from haloc.ops.table import OPS, OpDef

ANYWHERE = ("literal", "parameter_number", "statistics")
"""Attributes that no row lists: two stand between the parentheses, one is a profiler's note."""

MAX_FAULTS = 20
"""Faults written out in one error; the rest are counted."""


def verify(module: HloModule) -> None:
    """Raise VerificationError, with every fault, unless `module` is well formed.

    Checked: entry and roots; parameters numbered 0..n-1; no recursion; operands in the same
    computation and before their users; users that match operands; names; known opcodes, attributes
    and operand counts; declared shapes equal, layouts aside, to those inferred from the op table;
    the header's layout and aliasing against the entry computation.
    """
    faults = list(_module_faults(module))
    for computation in module.computations.values():
        faults.extend(_computation_faults(module, computation))
    if faults:
        raise VerificationError(_report(module, faults))


def _report(module: HloModule, faults: list[str]) -> str:
    if len(faults) == 1:
        return faults[0]
    shown = faults[:MAX_FAULTS]
    if len(faults) > MAX_FAULTS:
        shown.append(f"... and {len(faults) - MAX_FAULTS} more")
    return f"{len(faults)} faults in module {module.name}\n" + "\n".join(shown)


# --- The module --------------------------------------------------------------------------------


def _module_faults(module: HloModule) -> Iterator[str]:
    entry = module.entry
    if entry is None or module.computations.get(entry.name) is not entry:
        yield f"module {module.name} has no entry computation"
        return
    for name, computation in module.computations.items():
        if name != computation.name or computation.module is not module:
            yield f"computation {computation.name} is listed as {name}, or has another module"
    try:
        module.post_order()
    except InvalidArgumentError as error:
        yield error.message
    if entry.root is not None:
        yield from _layout_faults(module, entry)
        yield from _alias_faults(module, entry)


def _layout_faults(module: HloModule, entry: HloComputation) -> Iterator[str]:
    layout = module.header.get("entry_computation_layout")
    if layout is None:
        return
    parameters, result = layout
    given = [p.shape for p in entry.parameters]
    if len(parameters) != len(given):
        yield (
            f"entry_computation_layout has {len(parameters)} parameters, but {entry.name} has "
            f"{len(given)}"
        )
    for n, (wanted, shape) in enumerate(zip(parameters, given)):
        if not wanted.compatible(shape):
            yield (
                f"entry_computation_layout says parameter {n} is {text(wanted)}, "
                f"but it is {text(shape)}"
            )
    if not result.compatible(entry.root.shape):
        yield (
            f"entry_computation_layout says the result is {text(result)}, "
            f"but the root is {text(entry.root.shape)}"
        )


def _alias_faults(module: HloModule, entry: HloComputation) -> Iterator[str]:
    parameters = entry.parameters
    taken: set[tuple[int, tuple[int, ...]]] = set()
    for output_index, number, parameter_index, *_ in module.header.get("input_output_alias", ()):
        if (number, tuple(parameter_index)) in taken:
            member = ",".join(map(str, parameter_index))
            yield f"input_output_alias gives parameter {number} {{{member}}} to two results"
        taken.add((number, tuple(parameter_index)))
        if not 0 <= number < len(parameters):
            yield f"input_output_alias names parameter {number} of {len(parameters)}"
            continue
        output = _member(entry.root.shape, output_index)
        parameter = _member(parameters[number].shape, parameter_index)
        for what, index, shape in (
            ("the result", output_index, output),
            (f"parameter {number}", parameter_index, parameter),
        ):
            if shape is None:
                yield f"input_output_alias: {what} has no member {{{','.join(map(str, index))}}}"
        if output is not None and parameter is not None and output.byte_size != parameter.byte_size:
            yield (
                f"input_output_alias: the result's {text(output)} and parameter {number}'s "
                f"{text(parameter)} differ in size"
            )


def _member(shape: Shape, index: tuple[int, ...]) -> Shape | None:
    for i in index:
        if i >= len(shape.elements):
            return None
        shape = shape.elements[i]
    return shape


# --- Computations ------------------------------------------------------------------------------


def _computation_faults(module: HloModule, computation: HloComputation) -> Iterator[str]:
    instructions = computation.instructions
    if not instructions:
        yield f"computation {computation.name} is empty"
        return
    root = computation.root
    if root is None or root not in computation:
        yield f"computation {computation.name} has no root among its instructions"
    parameters = [i for i in instructions if i.opcode == "parameter"]
    numbers = sorted(p.attrs.get("parameter_number", -1) for p in parameters)
    if numbers != list(range(len(numbers))):
        listed = ", ".join(map(str, numbers))
        wanted = f"0 to {len(numbers) - 1}, each once"
        yield f"computation {computation.name} has parameters numbered {listed}, wanted {wanted}"
    yield from _order_faults(computation, instructions)
    yield from _user_faults(computation, instructions)
    for instruction in instructions:
        fault = _instruction_fault(module, instruction)
        if fault:
            yield _at(instruction, fault)


def _order_faults(computation: HloComputation, instructions: list[HloInstruction]) -> Iterator[str]:
    """Operands and control predecessors stand in the computation, before their users."""
    before: set[HloInstruction] = set()
    names: set[str] = set()
    for i in instructions:
        if i.parent is not computation:
            yield _at(i, f"stands in {computation.name}, but its parent is another computation")
        if i.name in names:
            yield _at(i, f"another instruction of {computation.name} is named {i.name}")
        names.add(i.name)
        for what, used in (
            ("operand", i.operands),
            ("control predecessor", i.control_predecessors),
        ):
            for other in used:
                if other in before:
                    continue
                if other not in computation:
                    yield _at(i, f"{what} {other.name} is not in computation {computation.name}")
                else:
                    yield _at(i, f"{what} {other.name} stands after its user")
        before.add(i)


def _user_faults(computation: HloComputation, instructions: list[HloInstruction]) -> Iterator[str]:
    """`users` says of every instruction what the others' operands say."""
    wanted: dict[HloInstruction, dict[HloInstruction, int]] = {i: {} for i in instructions}
    for i in instructions:
        for operand in i.operands:
            if operand in wanted:
                uses = wanted[operand]
                uses[i] = uses.get(i, 0) + 1
    for i in instructions:
        if i.users != wanted[i]:
            yield _at(
                i,
                f"users are {_names(i.users)}, but the operands of {computation.name} say "
                f"{_names(wanted[i])}",
            )


def _names(users: dict[HloInstruction, int]) -> str:
    listed = (f"{u.name} x{n}" if n > 1 else u.name for u, n in users.items())
    return "{" + ", ".join(listed) + "}"


# --- Instructions ------------------------------------------------------------------------------


def _instruction_fault(module: HloModule, i: HloInstruction) -> str:
    """What is wrong with an instruction, or ""."""
    row = OPS.get(i.opcode)
    if row is None:
        return f"unknown opcode {i.opcode}"
    fault = _operand_count_fault(row, i) or _attribute_fault(row, i) or _callee_fault(module, i)
    if fault:
        return f"{i.opcode}: {fault}"
    try:
        shape = row.infer(i)
    except VerificationError as error:
        return error.message
    except InvalidArgumentError as error:
        return f"{i.opcode}: {error.message}"
    except Exception as error:
        error.add_note(f"inferring the shape of {quoted(i)}")
        raise
    if not shape.compatible(i.shape):
        given, wanted = text(i.shape), text(shape)
        return f"{i.opcode}: the shape is {given}, but operands and attributes give {wanted}"
    return ""


def _operand_count_fault(row: OpDef, i: HloInstruction) -> str:
    given, fixed = len(i.operands), len(row.operands)
    names = ", ".join(row.operands).replace("*", "...")
    if row.is_variadic:
        return f"takes ({names}), given {given} operands" if given < fixed - 1 else ""
    if given == fixed:
        return ""
    count = f"{fixed} operand{'' if fixed == 1 else 's'}"
    return f"takes {count}{f' ({names})' if names else ''}, given {given}"


def _attribute_fault(row: OpDef, i: HloInstruction) -> str:
    for name in i.attrs:
        if name not in row.attr_defaults and name not in ANYWHERE:
            known = ", ".join(row.attr_defaults)
            return f"has no attribute {name}" + (f"; it has {known}" if known else "")
    return ""


def _callee_fault(module: HloModule, i: HloInstruction) -> str:
    for callee in i.called_computations:
        if module.computations.get(callee.name) is not callee:
            return f"computation {callee.name}, which it calls, is not in module {module.name}"
        if callee.root is None:
            return f"computation {callee.name}, which it calls, has no root"
    return ""


# --- Text --------------------------------------------------------------------------------------


def _at(i: HloInstruction, fault: str) -> str:
    """The fault; the instruction, with its source when known; its operands; its computation."""
    source = source_of(i)
    lines = [fault, f"  {source}   {quoted(i)}" if source else f"  {quoted(i)}"]
    lines += [f"  operand {n}: {quoted(o)}" for n, o in enumerate(i.operands)]
    if i.parent is not None:
        module = i.parent.module
        entry = "ENTRY " if module is not None and module.entry is i.parent else ""
        lines.append(f"  in {entry}%{i.parent.name}")
    return "\n".join(lines)
