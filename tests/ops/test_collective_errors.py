"""Wrong collectives, pairs and transfers: one clear line each, from the verifier."""

# ruff: noqa: E501  (one case a line)
from __future__ import annotations

import numpy as np
import pytest

from haloc.errors import VerificationError
from haloc.formats.hlo_text import parse_module
from haloc.ops.example import ExampleGraph
from haloc.ops.table import OPS
from haloc.verifier import verify
from tests.ops_structured.test_cost import assert_cost_is_xlas

HEAD = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
add32 { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b) }
twice { a = f32[4] parameter(0)
  ROOT c = f32[4] add(a, a) }
ENTRY e {
  x = f32[4,6] parameter(0)
  v = f32[4] parameter(1)
  i = s32[2] parameter(2)
  t = token[] after-all()
  s = (f32[4], u32[], token[]) send(v, t), channel_id=1
  n = ((f32[4]), f32[4]) async-start(v), calls=twice
  ROOT r = """

CASES = [
    ("f32[4,6] all-reduce(x), to_apply=add32, replica_groups={}", "to_apply add32 has signature (s32[], s32[]) -> s32[], wanted (f32[], f32[]) -> f32[]   (all_reduce_c5)"),
    ("f32[4] all-reduce(x), to_apply=add, replica_groups={}", "all-reduce: the shape is f32[4], but operands and attributes give f32[4,6]"),
    ("f32[4] all-reduce(t), to_apply=add, replica_groups={}", "operands[0] must be an array, got token[]"),
    ("f32[4,6] all-reduce(x), to_apply=add, replica_groups={{0,1},{}}", "replica_groups has an empty group"),
    ("f32[4,6] all-reduce(x), to_apply=add, replica_groups={{0,1},{1}}", "in CROSS_REPLICA mode replica_groups must contain every replica once; twice: 1"),
    ("f32[4,6] all-reduce(x), to_apply=add, replica_groups={{0}}, use_global_device_ids=true", "use_global_device_ids goes with a channel_id, given none"),
    ("() all-gather(), dimensions={0}, replica_groups={}", "takes at least 1 operand, 0 given"),
    ("f32[8,6] all-gather(x), dimensions={2}, replica_groups={}", "dimensions={2} names dimensions outside [0, 2)"),
    ("f32[8,6] all-gather(x), dimensions={0,1}, replica_groups={}", "wants one dimension, given 2"),
    ("f32[8,6] all-gather(x), dimensions={0}, replica_groups={{0,1,2}}", "the shape is f32[8,6], but operands and attributes give f32[12,6]"),
    ("f32[9,6] all-gather(x), dimensions={0}, replica_groups={}", "the shape is f32[9,6], but operands and attributes give f32[8,6]"),
    ("f32[8,6] all-gather(x), dimensions={0}, replica_groups={{0,1},{2}}", "replica_groups must be of one size, given groups of 1 and 2"),
    ("f32[1,6] reduce-scatter(x), dimensions={0}, to_apply=add, replica_groups={{0,1,2}}", "dimension 0 of f32[4,6] is not scattered evenly over 3   (reduce_scatter_c8)"),
    ("f32[4,6] all-to-all(x), dimensions={0}, replica_groups={{0,1,2}}", "dimension 0 of f32[4,6] is not split evenly by 3   (all_to_all_c2)"),
    ("(f32[4,6], f32[4]) all-to-all(x, v), replica_groups={{0,1}}", "operand 1 is f32[4], operand 0 f32[4,6]; they must be the same"),
    ("(f32[4,6], f32[4,6]) all-to-all(x, x), replica_groups={{0}}", "takes an operand for each of the 1 participants of a group, 2 given"),
    ("f32[4,6] collective-permute(x), source_target_pairs={{0,1},{2,1}}", "source_target_pairs has target 1 twice   (collective_permute_c3)"),
    ("f32[4,6] collective-permute(x), source_target_pairs={{0,1},{0,2}}", "source_target_pairs has source 0 twice   (collective_permute_c2)"),
    ("f32[4,6] collective-permute(x), source_target_pairs={}, slice_sizes={{1,2}}", "with slice_sizes takes 4 operands"),
    ("f32[4] ragged-all-to-all(v, v, i, i, i, v), replica_groups={}", "recv_sizes is f32[4], wanted integers in one dimension"),
    ("f32[4] ragged-all-to-all(v, x, i, i, i, i), replica_groups={}", "operand f32[4] and output f32[4,6] must have one element type"),
    ("f32[4] ragged-all-to-all(v, v, i, i, i, i), replica_groups={{0,1,2}}", "2 slices are not as many for each of the 3 participants"),
    ("((f32[4,6]), f32[4]) async-start(x), calls=twice", "calls twice has signature (f32[4]) -> f32[4], wanted (f32[4,6]) -> ..."),
    ("f32[4] async-done(v)", "operand is f32[4], wanted a tuple (operands, result, ...)"),
    ("f32[4,6] async-done(n)", "async-done: the shape is f32[4,6], but operands and attributes give f32[4]"),
    ("f32[4] async-done(n), calls=add", "calls=add, but n calls twice"),
    ("(f32[4], f32[4,6], u32[]) copy-start(v)", "operands and attributes give (f32[4], f32[4], u32[])"),
    ("(f32[4], u32[], token[]) send(v, v), channel_id=1", "token must be a token, got f32[4]"),
    ("(token[], u32[], token[]) send(t, t), channel_id=1", "moves token[], in which is a token"),
    ("token[] send-done(s), channel_id=2", "channel_id=2, but s has 1"),
    ("token[] send-done(s), channel_id=1, is_host_transfer=true", "is_host_transfer=True, but s has False"),
    ("token[] send-done(n), channel_id=1", "wanted a tuple (data, u32[], token[])"),
    ("(f32[4], token[]) recv(t), channel_id=1", "the result is (f32[4], token[]), wanted a tuple (data, u32[], token[])"),
    ("f32[4] infeed(t)", "the result is f32[4], wanted a tuple (data, token[])"),
    ("token[] outfeed(v, t), outfeed_shape=f32[5]", "outfeed_shape is f32[5], but the operand is f32[4]"),
]  # fmt: skip


@pytest.mark.parametrize(("instruction", "message"), CASES, ids=lambda x: x[:60])
def test_fault(instruction, message):
    module = parse_module(HEAD + instruction + " }")
    with pytest.raises(VerificationError) as info:
        verify(module)
    assert message in str(info.value)


@pytest.mark.parametrize(
    "opcode",
    [
        "all-gather",
        "all-reduce",
        "reduce-scatter",
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "all-gather-start",
        "all-reduce-start",
        "collective-permute-start",
        "copy-start",
        "async-start",
        "send",
        "infeed",
        "outfeed",
    ],
)
def test_cost(opcode):
    for seed in range(4):
        graph = ExampleGraph(np.random.default_rng(seed))
        OPS[opcode].example(graph)
        assert_cost_is_xlas(graph.module)
