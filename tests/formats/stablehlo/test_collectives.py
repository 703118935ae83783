"""Collectives and transfers of StableHLO mean in HLO what they say, on several participants."""

from __future__ import annotations

import numpy as np
import pytest

from haloc.errors import UnimplementedError
from haloc.formats.hlo_text import parse_module, to_text
from haloc.formats.stablehlo import parse_mlir, parse_stablehlo, to_hlo
from haloc.interpreter import run_participants
from haloc.ir.module import HloModule
from haloc.verifier import verify
from tests.formats.stablehlo.test_every_op import jaxlib_prints
from tests.formats.stablehlo.trees import tree


def read(text: str) -> HloModule:
    """The module, after checks of both printed forms and of HLO text."""
    pretty, generic = jaxlib_prints(text)
    assert tree(parse_mlir(pretty)) == tree(parse_mlir(generic))
    module = to_hlo(parse_mlir(generic))
    verify(module)
    again = parse_module(to_text(module))
    verify(again)
    assert to_text(again) == to_text(module)
    return module


X = [[np.arange(8, dtype=np.float32).reshape(4, 2) + 100 * k] for k in range(4)]


def test_all_to_all_of_several_arrays():
    module = read("""func.func @main(%a: tensor<4x2xf32>) -> (tensor<2x4xf32>, tensor<1x2xf32>) {
      %s = stablehlo.slice %a [0:2, 0:1] : (tensor<4x2xf32>) -> tensor<2x1xf32>
      %0:2 = "stablehlo.all_to_all"(%a, %s) <{split_dimension = 0 : i64,
        concat_dimension = 1 : i64, split_count = 2 : i64,
        replica_groups = dense<[[2,0],[1,3]]> : tensor<2x2xi64>}>
        : (tensor<4x2xf32>, tensor<2x1xf32>) -> (tensor<2x4xf32>, tensor<1x2xf32>)
      return %0#0, %0#1 : tensor<2x4xf32>, tensor<1x2xf32> }""")
    results = run_participants(module, X, 4)
    x = [one[0] for one in X]
    for group in ([2, 0], [1, 3]):
        for place, participant in enumerate(group):
            pieces = [np.split(x[member], 2)[place] for member in group]
            np.testing.assert_array_equal(results[participant][0], np.concatenate(pieces, 1))
            small = [x[member][place : place + 1, :1] for member in group]
            np.testing.assert_array_equal(results[participant][1], np.concatenate(small, 1))


def test_async_start_and_done():
    module = read("""func.func @main(%a: tensor<4x2xf32>) -> tensor<8x2xf32> {
      %0 = "stablehlo.async_start"(%a) ({
       ^bb0(%x: tensor<4x2xf32>):
        %1 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64,
          replica_groups = dense<[[1,0],[2,3]]> : tensor<2x2xi64>}>
          : (tensor<4x2xf32>) -> tensor<8x2xf32>
        "stablehlo.return"(%1) : (tensor<8x2xf32>) -> ()
      }) : (tensor<4x2xf32>) -> !stablehlo.future<tensor<8x2xf32>>
      %2 = "stablehlo.async_done"(%0)
        : (!stablehlo.future<tensor<8x2xf32>>) -> tensor<8x2xf32>
      return %2 : tensor<8x2xf32> }""")
    assert module.entry.root.opcode == "async-done"
    results = run_participants(module, X, 4)
    np.testing.assert_array_equal(results[0], np.concatenate([X[1][0], X[0][0]]))
    np.testing.assert_array_equal(results[3], np.concatenate([X[2][0], X[3][0]]))


TRANSFER = "channel_handle = #stablehlo.channel_handle<handle = 0, type = 1>"


@pytest.mark.parametrize(
    "pairs",
    [
        "is_host_transfer = false, source_target_pairs = dense<[[0,2],[2,1]]> : tensor<2x2xi64>}>",
        "is_host_transfer = false}> {mhlo.frontend_attributes = "
        '{_xla_send_recv_source_target_pairs = "{{0,2},{2,1}}"}}',
    ],
)
def test_send_and_recv(pairs):
    module = read(f"""func.func @main(%a: tensor<4x2xf32>) -> tensor<4x2xf32> {{
      %t = stablehlo.create_token : !stablehlo.token
      %s = "stablehlo.send"(%a, %t) <{{{TRANSFER}, {pairs}
        : (tensor<4x2xf32>, !stablehlo.token) -> !stablehlo.token
      %r:2 = "stablehlo.recv"(%s) <{{{TRANSFER}, {pairs}
        : (!stablehlo.token) -> (tensor<4x2xf32>, !stablehlo.token)
      return %r#0 : tensor<4x2xf32> }}""")
    results = run_participants(module, X[:3], 3)
    np.testing.assert_array_equal(results[0], np.zeros((4, 2)))
    np.testing.assert_array_equal(results[1], X[2][0])
    np.testing.assert_array_equal(results[2], X[0][0])


def test_ragged_all_to_all_as_jax_writes_it():
    """Both give their row 1 to participant 1."""
    module = read("""func.func @main(%a: tensor<4x2xf32>, %n: tensor<2xi32>) -> tensor<4x2xf32> {
      %o = stablehlo.constant dense<-1.0> : tensor<4x2xf32>
      %starts = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
      %to = stablehlo.constant dense<[0, 2]> : tensor<2xi32>
      %from = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
      %0 = stablehlo.custom_call @ragged_all_to_all(%a, %o, %starts, %from, %to, %n)
        {api_version = 4 : i32, backend_config = {channel_id = 1 : i64,
          replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}
        : (tensor<4x2xf32>, tensor<4x2xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>,
           tensor<2xi32>) -> tensor<4x2xf32>
      return %0 : tensor<4x2xf32> }""")
    given = [
        [X[0][0], np.array([0, 0], np.int32)],
        [X[1][0], np.array([1, 1], np.int32)],
    ]
    first, second = run_participants(module, given, 1, 2)
    np.testing.assert_array_equal(first, -np.ones((4, 2)))
    np.testing.assert_array_equal(second[2], X[1][0][1])  # The later member writes over.


@pytest.mark.parametrize(
    ("op", "sharding"),
    [
        ('all_gather [{}, {"y"}]', '[{"x"}, {}]'),
        ("all_slice [{}, {}]", '[{"x"}, {"y"}]'),
        ('all_to_all [{"y"}: 1->0]', '[{"x", "y"}, {}]'),
        ("collective_permute", '[{"y"}, {"x"}]'),
        ("all_reduce {}", '[{"x"}, {"y"}]'),
        ("reduce_scatter [{}, {}]", '[{"x"}, {"y"}]'),
    ],
)
def test_a_sdy_collective_is_a_change_of_sharding(op, sharding):
    module = read(f"""sdy.mesh @m = <["x"=2,"y"=2]>
    func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {{
      %s = sdy.sharding_constraint %a <@m, [{{"x"}}, {{"y"}}]> : tensor<4x4xf32>
      %0 = sdy.{op} %s out_sharding=<@m, {sharding}> : tensor<4x4xf32>
      return %0 : tensor<4x4xf32> }}""")
    root = module.entry.root
    assert root.attrs["custom_call_target"] == "Sharding"
    wanted = sharding.replace('"', "'")
    assert str(root.sharding) == f"{{mesh['x'=2,'y'=2], {wanted}}}"


def test_a_future_from_elsewhere_is_refused_by_name():
    text = """func.func @main(%a: !stablehlo.future<tensor<2xf32>>) -> tensor<2xf32> {
      %0 = "stablehlo.async_done"(%a) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>
      return %0 : tensor<2xf32> }"""
    with pytest.raises(UnimplementedError, match=r"stablehlo.async_done: a future that is not"):
        parse_stablehlo(text)
