"""What an instruction does besides giving a value, callees included."""

from __future__ import annotations

from haloc.ir.module import HloComputation, HloInstruction
from haloc.ops.table import Effect, attr, op

_RANK = {Effect.PURE: 0, Effect.STATEFUL: 1, Effect.SIDE_EFFECT: 2}

SIDE_EFFECT_ATTRIBUTE = "custom_call_has_side_effect"


class Effects:
    """Effects of instructions, remembering those of computations. Valid while callees stand."""

    def __init__(self) -> None:
        self._computations: dict[HloComputation, Effect] = {}

    def of(self, instruction: HloInstruction) -> Effect:
        """The strongest effect of the op itself and of every computation it calls."""
        row = op(instruction)
        effect = row.effect
        if SIDE_EFFECT_ATTRIBUTE in row.attr_defaults:
            stated = attr(instruction, SIDE_EFFECT_ATTRIBUTE)
            effect = Effect.SIDE_EFFECT if stated else Effect.PURE
        for callee in instruction.called_computations:
            inner = self._of_computation(callee)
            if _RANK[inner] > _RANK[effect]:
                effect = inner
        return effect

    def _of_computation(self, computation: HloComputation) -> Effect:
        known = self._computations.get(computation)
        if known is None:
            effects = [self.of(i) for i in computation.instructions]
            known = max(effects, key=_RANK.__getitem__, default=Effect.PURE)
            self._computations[computation] = known
        return known

    def is_pure(self, instruction: HloInstruction) -> bool:
        """May be merged with its like, folded and moved."""
        return self.of(instruction) is Effect.PURE

    def is_removable(self, instruction: HloInstruction) -> bool:
        """May be dropped when nothing uses it: not a parameter, no side effect."""
        if "parameter_number" in instruction.attrs:
            return False
        return self.of(instruction) is not Effect.SIDE_EFFECT
