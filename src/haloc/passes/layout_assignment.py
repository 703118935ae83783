"""Layouts of the entry's parameters and result: what a program's callers see of layouts."""

from __future__ import annotations

from haloc.formats.hlo_text.header import entry_layout
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape
from haloc.passes.driver import hlo_pass


@hlo_pass("layout-assignment")
def layout_assignment(module: HloModule) -> bool:
    """p{layout} => transpose(bitcast(p{layout}));  root => bitcast{layout}(transpose(root))

    Parameters and result get the layouts that the header (entry_computation_layout) states. All
    that is between them stays row-major: a bitcast reads a parameter's memory as the row-major
    array of permuted dimensions that it is, and the transpose is one like any other, to be folded
    and fused.
    """
    entry = module.entry
    parameters, result = entry_layout(module)
    changed = False
    for parameter, shape in zip(entry.parameters, parameters, strict=True):
        if shape != parameter.shape and shape.is_static:
            users, is_root = list(parameter.users), parameter.is_root
            parameter.shape = shape
            value = _row_major(entry, parameter)
            for user in users:
                for number, operand in enumerate(user.operands):
                    if operand is parameter:
                        user.set_operand(number, value)
            if is_root:
                entry.root = value
            changed = True
    root = entry.root.shape
    if result.is_static and not result == root == root.with_default_layout():
        entry.root = _laid_out(entry, entry.root, result)
        changed = True
    if changed:
        entry.sort()
    return changed


def _row_major(entry: HloComputation, value: HloInstruction) -> HloInstruction:
    """A value in the layouts of its shape as one in default layouts."""
    shape = value.shape
    if shape == shape.with_default_layout():
        return value
    if shape.is_tuple:
        elements = [_row_major(entry, e) for e in _elements(entry, value)]
        return entry.add(HloInstruction("tuple", shape.with_default_layout(), elements))
    if shape.is_row_major:
        return entry.add(HloInstruction("bitcast", shape.with_default_layout(), (value,)))
    order = shape.major_to_minor
    memory = entry.add(HloInstruction("bitcast", shape.in_memory(), (value,)))
    inverse = tuple(order.index(d) for d in range(shape.rank))
    return _transposed(entry, memory, inverse)


def _laid_out(entry: HloComputation, value: HloInstruction, shape: Shape) -> HloInstruction:
    """A value in row-major layouts as one in the layouts of `shape`.

    The shape of a custom-call has the layouts that its target writes; what the program sees of it
    is row-major like all else.
    """
    default = value.shape.with_default_layout()
    if shape == value.shape == default:
        return value
    if shape.is_tuple:
        elements = zip(_elements(entry, value), shape.elements, strict=True)
        members = [_laid_out(entry, e, wanted) for e, wanted in elements]
        return entry.add(HloInstruction("tuple", shape, members))
    if value.shape != default:
        value = entry.add(HloInstruction("bitcast", default, (value,)))
    if not shape.is_row_major:
        value = _transposed(entry, value, shape.major_to_minor)
    if value.shape == shape:
        return value
    return entry.add(HloInstruction("bitcast", shape, (value,)))


def _elements(entry: HloComputation, value: HloInstruction) -> list[HloInstruction]:
    if value.opcode == "tuple":
        return list(value.operands)
    return [
        entry.add(HloInstruction("get-tuple-element", shape, (value,), {"index": index}))
        for index, shape in enumerate(value.shape.elements)
    ]


def _transposed(
    entry: HloComputation, value: HloInstruction, order: tuple[int, ...]
) -> HloInstruction:
    shape = value.shape.with_dims(tuple(value.shape.dims[d] for d in order))
    return entry.add(HloInstruction("transpose", shape, (value,), {"dimensions": order}))
