"""The rewrite engine: small directional rules, keyed by opcode, applied until none fires.

A rule looks at one instruction and returns what may stand in its place (an operand, or something
made with `Beside`), or None. Its docstring's first line is its equation; its `example` is HLO text
of an entry computation in which it fires, from which its test is made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from haloc.analysis.effects import Effects
from haloc.errors import InternalError
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ops.expand import Beside
from haloc.passes.fuel import Fuel

Rewrite: TypeAlias = Callable[[HloInstruction, Beside], "HloInstruction | None"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite with its name, the opcodes it looks at, its equation and its example."""

    name: str
    opcodes: tuple[str, ...]
    rewrite: Rewrite
    equation: str
    example: str


class RuleSet:
    """The rules of one pass, by opcode, in the order in which they were written."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.by_opcode: dict[str, list[Rule]] = {}

    def rule(self, *opcodes: str, example: str) -> Callable[[Rewrite], Rewrite]:
        """Register a function as the rule named after it."""

        def register(rewrite: Rewrite) -> Rewrite:
            name = rewrite.__name__.replace("_", "-")
            equation = (rewrite.__doc__ or "").strip().partition("\n")[0]
            assert equation, f"rule {name} has no equation"
            assert all(r.name != name for r in self.rules), name
            self.add(Rule(name, opcodes, rewrite, equation, example))
            return rewrite

        return register

    def add(self, rule: Rule) -> None:
        self.rules.append(rule)
        for opcode in rule.opcodes:
            self.by_opcode.setdefault(opcode, []).append(rule)

    def __add__(self, other: RuleSet) -> RuleSet:
        both = RuleSet()
        for rule in (*self.rules, *other.rules):
            both.add(rule)
        return both


def simplify(module: HloModule, rules: RuleSet, fuel: Fuel) -> bool:
    """Apply the rules everywhere until none fires; whether any did. What falls dead is removed."""
    effects = Effects()
    changed = False
    for computation in module.post_order():
        changed |= _Simplifier(computation, rules, fuel, effects).run()
    return changed


MAX_REWRITES_PER_INSTRUCTION = 50


class _Simplifier:
    """A worklist over one computation: operands first, then what a rewrite touched."""

    def __init__(self, computation: HloComputation, rules: RuleSet, fuel: Fuel, effects: Effects):
        self.computation = computation
        self.by_opcode = rules.by_opcode
        self.fuel = fuel
        self.effects = effects
        self.known = set(computation.instructions)
        self.queue: deque[HloInstruction] = deque(computation.instructions)
        self.queued = set(self.queue)
        self.left = MAX_REWRITES_PER_INSTRUCTION * (len(self.queue) + 10)

    def run(self) -> bool:
        changed = False
        while self.queue:
            instruction = self.queue.popleft()
            self.queued.discard(instruction)
            if instruction.parent is None or instruction.control_predecessors:
                continue
            if instruction.shape.dynamic or any(o.shape.dynamic for o in instruction.operands):
                continue  # rules compute with sizes, and these are only bounds
            for rule in self.by_opcode.get(instruction.opcode, ()):
                if self.fuel.allows(rule.name) and self._apply(rule, instruction):
                    changed = True
                    break
        return changed

    def _apply(self, rule: Rule, old: HloInstruction) -> bool:
        new = rule.rewrite(old, Beside(old))
        if new is None:
            return False
        if not new.shape.compatible(old.shape):
            raise InternalError(f"rule {rule.name} made {new.shape} of {old.shape} for {old!r}")
        self.left -= 1
        if self.left < 0:
            raise InternalError(f"rules do not settle in {self.computation.name}: {self.fuel.hits}")
        self.fuel.burn(rule.name)
        if new not in self.known:
            new.sharding = old.sharding
            new.frontend_attributes = old.frontend_attributes
        users = list(old.users)
        old.replace_uses_with(new)
        self._enqueue_new(new)
        self._enqueue(users)
        self._remove_dead(old)
        return True

    def _enqueue_new(self, result: HloInstruction) -> None:
        """Take up what the rule made, operands first."""
        made: list[HloInstruction] = []
        stack = [result]
        while stack:
            instruction = stack.pop()
            if instruction not in self.known:
                self.known.add(instruction)
                made.append(instruction)
                stack.extend(instruction.operands)
        self._enqueue(reversed(made))
        if not made:
            self._enqueue((result,))

    def _enqueue(self, instructions: Iterable[HloInstruction]) -> None:
        for instruction in instructions:
            if instruction not in self.queued:
                self.queued.add(instruction)
                self.queue.append(instruction)

    def _remove_dead(self, instruction: HloInstruction) -> None:
        stack = [instruction]
        while stack:
            dead = stack.pop()
            if dead.parent is None or dead.users or dead is self.computation.root:
                continue
            if not self.effects.is_removable(dead):
                continue
            operands = set(dead.operands)
            self.computation.remove(dead)
            stack.extend(operands)
            # One user less may be what a rule about single uses waits for.
            self._enqueue(u for o in operands if len(o.users) == 1 for u in o.users)
