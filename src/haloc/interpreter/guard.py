"""`NanGuard`: stops a run at the first instruction that makes a NaN, or an infinity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from haloc.errors import NonFiniteError
from haloc.formats.quote import quoted
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape

NEIGHBOURS = 2
"""How many elements to either side of the first bad one are told."""


class NanGuard:
    """Raises NonFiniteError where a NaN comes out of operands that hold none.

    infinities: the same for infinities. What the program is given (arguments, constants) is not
    blamed, nor is what only passes a NaN on. `checked` counts the values looked at. One guard
    watches one run: `interpreter.run(module, arguments, guard=NanGuard())`.
    """

    def __init__(self, *, infinities: bool = False):
        self.infinities = infinities
        self.checked = 0
        self._executions: Counter[HloInstruction] = Counter()

    def check(self, instruction: HloInstruction, operands: list[Value], value: Value) -> None:
        """Look at the value of an instruction that has just run on these operand values."""
        if not operands:
            return
        self.checked += 1
        self._executions[instruction] += 1
        for what, is_bad in self._kinds():
            bad = _first_leaf(instruction.shape, value, is_bad)
            if bad is None:
                continue
            pairs = zip(instruction.operands, operands, strict=True)
            if all(_first_leaf(o.shape, v, is_bad) is None for o, v in pairs):
                raise self._error(instruction, operands, what, is_bad, *bad)

    def _kinds(self) -> Iterator[tuple[str, Callable[[np.ndarray], np.ndarray]]]:
        yield "a NaN", np.isnan
        if self.infinities:
            yield "an infinity", np.isinf

    def _error(
        self,
        instruction: HloInstruction,
        operands: list[Value],
        what: str,
        is_bad: Callable[[np.ndarray], np.ndarray],
        leaf: int,
        value: np.ndarray,
    ) -> NonFiniteError:
        where = np.argwhere(is_bad(value))
        at = tuple(int(k) for k in where[0])
        member = f" of its result {leaf}" if instruction.shape.is_tuple else ""
        times = self._executions[instruction]
        error = NonFiniteError(
            f"{instruction.opcode} made {what}: {len(where)} of {value.size} elements{member}, "
            f"the first {_at(at)}" + (f", when it ran for the {_nth(times)} time" * (times > 1))
        )
        for number, (operand, given) in enumerate(zip(instruction.operands, operands)):
            error.add_note(f"operand {number}: {_told(operand, given, at, value.shape)}")
        op_name = instruction.metadata.get("op_name")
        if op_name:
            error.add_note(f"op_name: {op_name}")
        return error


def _first_leaf(
    shape: Shape, value: Value, is_bad: Callable[[np.ndarray], np.ndarray]
) -> tuple[int, np.ndarray] | None:
    """The first leaf that has a bad element, and its number; None if there is none."""
    for number, (s, leaf) in enumerate(zip(shape.leaves(), _leaves(value), strict=True)):
        if s.is_array and (s.dtype.is_float or s.dtype.is_complex) and is_bad(leaf).any():
            return number, np.asarray(leaf)
    return None


def _leaves(value: Value) -> Iterator[np.ndarray]:
    if isinstance(value, tuple):
        for member in value:
            yield from _leaves(member)
    else:
        yield value  # type: ignore[misc]  # None stands for a token, which no check looks at


def _told(operand: HloInstruction, value: Value, at: tuple[int, ...], dims: tuple[int, ...]) -> str:
    """The operand, and its elements around the bad one; else its range."""
    text = quoted(operand)
    if not isinstance(value, np.ndarray):
        return text
    if value.shape == dims and dims:
        low = max(0, at[-1] - NEIGHBOURS)
        row: np.ndarray = value[at[:-1]]
        near = row[low : at[-1] + NEIGHBOURS + 1]
        place = _at((*at[:-1], f"{low}:{low + near.shape[0]}"))
        return f"{text}\n    {_element(value[at])} {_at(at)}; {place}: {_list(near)}"
    if value.size <= 2 * NEIGHBOURS + 1:
        return f"{text}\n    {_list(value.reshape(-1)) if value.shape else _element(value[()])}"
    if value.dtype.kind == "c":
        return text
    return f"{text}\n    from {_element(value.min())} to {_element(value.max())}"


def _list(values: np.ndarray) -> str:
    return f"[{', '.join(map(_element, values))}]"


def _element(element: object) -> str:
    if isinstance(element, np.complexfloating):
        return f"{complex(element):.6g}"
    number = element.item() if isinstance(element, np.generic) else element
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def _at(index: tuple[object, ...]) -> str:
    return f"at [{','.join(map(str, index))}]"


def _nth(number: int) -> str:
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 * (number % 100 not in (11, 12, 13)), "th")
    return f"{number}{last}"
