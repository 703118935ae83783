"""Every op reads in both forms that jaxlib prints, to one tree, and becomes HLO that verifies."""

import pytest
from jax._src.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir

from haloc.formats.hlo_text import parse_module, to_text
from haloc.formats.stablehlo import parse_mlir, to_hlo
from haloc.formats.stablehlo.convert.context import CONVERSIONS
from haloc.formats.stablehlo.vocabulary import OP_NAMES
from haloc.verifier import verify
from tests.formats.stablehlo.ops import LINES, module_of
from tests.formats.stablehlo.trees import tree


def jaxlib_prints(text: str) -> tuple[str, str]:
    """(pretty, generic)."""
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(text)
        return str(module), module.operation.get_asm(print_generic_op_form=True)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split('"')[1])
def test_op(line):
    text = module_of(line)
    pretty, generic = jaxlib_prints(text)
    trees = [parse_mlir(t) for t in (text, generic, pretty)]
    assert tree(trees[2]) == tree(trees[1])
    for module in trees:
        hlo = to_hlo(module)
        verify(hlo)
        printed = to_text(hlo)
        assert to_text(parse_module(printed)) == printed


REFUSED = {
    # Read, and refused by name when converted; or without a meaning of their own in HLO.
    "chlo._asin_acos_kernel",
    "stablehlo.trace",
}
HELD = {"builtin.module", "func.func", "func.return", "sdy.mesh", "sdy.return", "stablehlo.return"}


def test_every_name_is_converted_or_listed():
    assert OP_NAMES - CONVERSIONS.keys() == REFUSED | HELD
    assert CONVERSIONS.keys() <= OP_NAMES


def test_every_conversion_of_stablehlo_is_tried():
    tried = {line.split('"')[1] for line in LINES}
    elementwise = """abs add and atan2 ceil cosine divide exponential_minus_one floor log
    log_plus_one logistic maximum minimum multiply negate not or popcnt power remainder
    round_nearest_afz round_nearest_even rsqrt shift_left shift_right_arithmetic
    shift_right_logical sign sine sqrt subtract tanh xor"""
    elsewhere = ("async_start", "async_done")  # test_collectives.py: they come in pairs
    others = {"uniform_quantize", "uniform_dequantize", *elsewhere, *elementwise.split()}
    wanted = {n for n in CONVERSIONS if n.startswith("stablehlo.")}
    assert wanted - tried == {f"stablehlo.{n}" for n in others} - tried
