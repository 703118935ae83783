"""The passes that apply rules: each is a choice among the families in `passes/rules/`."""

from __future__ import annotations

from haloc.ir.module import HloModule
from haloc.passes.driver import hlo_pass
from haloc.passes.fuel import Fuel
from haloc.passes.rules.arithmetic import ARITHMETIC
from haloc.passes.rules.broadcast import BROADCAST
from haloc.passes.rules.choice import CHOICE
from haloc.passes.rules.empty import EMPTY
from haloc.passes.rules.folding import DOTS, REDUCTIONS
from haloc.passes.rules.movement import MOVEMENT
from haloc.passes.rules.reshape_mover import RESHAPE_MOVES
from haloc.passes.rules.structure import CONTROL, DYNAMIC, TUPLES
from haloc.passes.simplify import RuleSet, simplify

ALGEBRA: RuleSet = (
    ARITHMETIC + CHOICE + BROADCAST + MOVEMENT + EMPTY + TUPLES + DYNAMIC + REDUCTIONS
)


@hlo_pass("algebraic-simplifier")
def algebraic_simplifier(module: HloModule, *, fuel: Fuel) -> bool:
    """x * 1 => x;  -(-x) => x;  reshape(reshape(x)) => reshape(x);  and so on, rule by rule"""
    return simplify(module, ALGEBRA, fuel)


@hlo_pass("tuple-simplifier")
def tuple_simplifier(module: HloModule, *, fuel: Fuel) -> bool:
    """get-tuple-element(tuple(..., x, ...)) => x;  tuple of all elements of t => t"""
    return simplify(module, TUPLES, fuel)


@hlo_pass("transpose-folding")
def transpose_folding(module: HloModule, *, fuel: Fuel) -> bool:
    """dot(transpose(x), y) => dot(x, y) with other dimension numbers"""
    return simplify(module, DOTS, fuel)


@hlo_pass("reshape-mover")
def reshape_mover(module: HloModule, *, fuel: Fuel) -> bool:
    """op(reshape(x), reshape(y)) => reshape(op(x, y))"""
    return simplify(module, RESHAPE_MOVES, fuel)


@hlo_pass("control-flow-simplifier")
def control_flow_simplifier(module: HloModule, *, fuel: Fuel) -> bool:
    """conditional(constant, ...) => call(branch);  while(x) that never runs => x

    Expects call-inliner afterwards.
    """
    return simplify(module, CONTROL, fuel)
