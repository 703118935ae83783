"""Check mode's shuffle: any order that respects operands must be good enough for every pass."""

from __future__ import annotations

import heapq
import random

from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ops.table import Effect, op


def shuffle_instructions(module: HloModule, seed: int) -> None:
    """Reorder each computation at random, keeping operands, control predecessors and the mutual
    order of instructions with effects first."""
    rng = random.Random(seed)
    for computation in module.computations.values():
        _shuffle(computation, rng)


def _shuffle(computation: HloComputation, rng: random.Random) -> None:
    waiting: dict[HloInstruction, int] = {}
    unlocks: dict[HloInstruction, list[HloInstruction]] = {}
    last_effect: HloInstruction | None = None
    for instruction in computation.instructions:
        needs = {*instruction.operands, *instruction.control_predecessors}
        if op(instruction).effect is not Effect.PURE:
            if last_effect is not None:
                needs.add(last_effect)
            last_effect = instruction
        waiting[instruction] = len(needs)
        for need in needs:
            unlocks.setdefault(need, []).append(instruction)
    ready = [(rng.random(), i.name, i) for i, n in waiting.items() if n == 0]
    heapq.heapify(ready)
    order: list[HloInstruction] = []
    while ready:
        _, _, instruction = heapq.heappop(ready)
        order.append(instruction)
        for user in unlocks.get(instruction, ()):
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, (rng.random(), user.name, user))
    computation.reorder(order)
