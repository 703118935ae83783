"""The tree of an artifact equals the tree of jaxlib's text of the same artifact."""

import os
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib import _jax

from haloc.formats.stablehlo.bytecode import is_bytecode, parse_bytecode
from haloc.formats.stablehlo.mlir import (
    CallLocation,
    FileLocation,
    MlirModule,
    NameLocation,
    SdyManualAxes,
    SdySharding,
)
from haloc.formats.stablehlo.text import parse_mlir
from tests.conformance.arguments import argument
from tests.conformance.small import PROGRAMS as SMALL
from tests.formats.stablehlo.bytecode.programs import PROGRAMS
from tests.formats.stablehlo.bytecode.trees import (
    CURRENT,
    artifact,
    assert_same,
    assert_same_plain,
    compare,
)

VERSIONS = ("0.9.0", "0.11.0", "0.12.0", "0.13.0", "0.14.0", "0.15.0", "0.20.0", "1.0.0", "1.3.0",
            "1.5.0", "1.8.0", "1.9.0", "1.11.0", "1.13.0", "1.15.0", "1.16.0", CURRENT)  # fmt: skip


def lowered(function, *arguments):
    return jax.jit(function).lower(*arguments).compiler_ir("stablehlo")


def check_small(entry):
    """As a portable artifact, and as MLIR writes the module itself."""
    _, function, specs = entry
    rng = np.random.default_rng(0)
    module = lowered(function, *[argument(s, rng) for s in specs])
    assert_same(artifact(module))
    assert_same_plain(module)


@pytest.mark.parametrize("entry", SMALL[::12], ids=[p[0] for p in SMALL[::12]])
def test_small_program(entry):
    check_small(entry)


@pytest.mark.nightly
@pytest.mark.parametrize("entry", SMALL, ids=[p[0] for p in SMALL])
def test_every_small_program(entry):
    check_small(entry)


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_program(name):
    assert_same(artifact(PROGRAMS[name]))


@pytest.mark.parametrize(
    "name", sorted(set(PROGRAMS) - {"quantized"})
)  # of another dialect, "quant"
def test_plain_bytecode(name):
    assert_same_plain(PROGRAMS[name])


CHLO = """
func.func @main(%x: tensor<4x4xf32>, %y: tensor<4xf32>, %n: tensor<2xindex>) -> tensor<4x4xi1> {
  %0:2 = chlo.top_k(%x, k = 2) : tensor<4x4xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)
  %1 = chlo.erf %x : tensor<4x4xf32> -> tensor<4x4xf32>
  %2 = chlo.broadcast_compare %1, %y {comparison_direction = #chlo<comparison_direction GT>,
    compare_type = #chlo<comparison_type TOTALORDER>}
    : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xi1>
  %3 = chlo.broadcast_add %1, %y {broadcast_dimensions = array<i64: 1>}
    : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xi1>
}"""
SCATTER = """
func.func @main(%a: tensor<4x5x6xf32>, %i: tensor<4x2x1xi32>, %u: tensor<4x2x6xf32>)
    -> tensor<4x5x6xf32> {
  %0 = "stablehlo.scatter"(%a, %i, %u) <{indices_are_sorted = true, unique_indices = false,
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2],
      inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0],
      scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) : (tensor<4x5x6xf32>, tensor<4x2x1xi32>, tensor<4x2x6xf32>) -> tensor<4x5x6xf32>
  return %0 : tensor<4x5x6xf32>
}"""


RESOURCES = """
module {
  func.func @main() -> (tensor<4xf32>, tensor<3xi32>) {
    %0 = stablehlo.constant dense_resource<first> : tensor<4xf32>
    %1 = stablehlo.constant dense_resource<second> : tensor<3xi32>
    return %0, %1 : tensor<4xf32>, tensor<3xi32>
  }
}
{-# dialect_resources: { builtin: {
  first: "0x040000000000803F000000400000404000008040",
  second: "0x04000000010000000200000003000000" } } #-}"""


@pytest.mark.parametrize("text", [CHLO, SCATTER, RESOURCES], ids=["chlo", "scatter", "resources"])
def test_plain_text(text):
    assert_same_plain(text)


def test_plain_shardy():
    assert_same_plain(sharded())


def everything(x, y):
    z = jnp.dot(x, y) + jnp.cos(x)
    i, w = lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * z), (0, y))
    s = jnp.sort(w, axis=0)[lax.cond(i > 3, lambda: 0, lambda: 1)]
    return lax.conv(w[None, None], z[None, None], (1, 1), "SAME"), s.at[0].add(1.0), jnp.cumsum(s)


@pytest.mark.parametrize("version", VERSIONS)
def test_version(version):
    """Every bytecode version (0, 1, 3, 4, 6) and every op version lead to one tree."""
    module = lowered(everything, jnp.ones((3, 3)), jnp.ones((3, 3)))
    tree = assert_same(artifact(module, version))
    compare(tree.operations, parse_bytecode(artifact(module)).operations, {})


def test_locations_are_kept():
    module = lowered(lambda x: jnp.sin(x), jnp.ones(3))
    tree = parse_bytecode(_jax.mlir.serialize_portable_artifact(module, CURRENT))
    location = tree.operations[-1].regions[0].blocks[0].operations[0].location
    assert isinstance(location, NameLocation)
    assert location.name == "jit(<lambda>)/sin"
    while not isinstance(location, FileLocation):
        location = location.callee if isinstance(location, CallLocation) else location.child
    assert os.path.basename(location.file) == "test_trees.py"
    assert location.line > 0


def sharded() -> MlirModule:
    mesh = AbstractMesh((2, 2), ("x", "y"))

    @partial(jax.shard_map, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))
    def shift(a):
        return lax.psum(a * 2, "y") + lax.ppermute(a, "x", [(0, 1), (1, 0)])

    def f(a, b):
        a = lax.with_sharding_constraint(a, NamedSharding(mesh, P("x", "y")))
        return shift(a) + b

    def typed(*spec):
        return jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

    traced = jax.jit(f).trace(typed("x", "y"), typed(("x", "y"), None))
    return traced.lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo")


def test_mixed_artifact():
    """With Shardy's dialect embedded, as JAX hands programs to a PJRT plugin."""
    module = sharded()
    text = str(module)
    mixed = parse_bytecode(_jax.mlir.serialize_portable_artifact(module, "1.15.0", True))
    # VHLO does not keep the type of a channel.
    tree = parse_mlir(text.replace("handle = 1, type = 1", "handle = 1, type = 0"))
    compare(mixed.operations, tree.operations, {})
    main = mixed.operations[-1]
    assert isinstance(main.attributes["arg_attrs"][0]["sdy.sharding"], SdySharding)
    manual = [o for o in main.regions[0].blocks[0].operations if "manual" in o.name]
    assert manual[0].attributes["manual_axes"] == SdyManualAxes(("x", "y"))


def test_stringified_artifact():
    """Without: shardings become frontend attributes and custom calls."""
    assert_same(_jax.mlir.serialize_portable_artifact(sharded(), CURRENT))


def test_ten_thousand_ops_in_about_a_second():
    def f(x):
        for _ in range(2000):
            x = jnp.dot(x, x) + lax.slice(x, (0, 0), (3, 3)) * 2.0
        return x

    data = artifact(lowered(f, jnp.ones((3, 3))))
    start = time.process_time()
    tree = parse_bytecode(data)
    elapsed_s = time.process_time() - start
    assert len(tree.operations[0].regions[0].blocks[0].operations) > 10_000
    assert elapsed_s < 2, "measured 0.3 s; the limit leaves room for a busy machine"


def test_is_bytecode():
    assert is_bytecode(artifact(PROGRAMS["all_reduce"]))
    assert not is_bytecode(b"HloModule m")
