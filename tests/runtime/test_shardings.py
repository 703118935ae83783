"""Shardings: what they refuse, what they are equal to, the way to HLO shardings and back."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from haloc.errors import InvalidArgumentError
from haloc.xla_client import (
    Chunked,
    GSPMDSharding,
    HloSharding,
    Mesh,
    NamedSharding,
    NoSharding,
    OpSharding,
    PartitionSpec,
    PmapSharding,
    Replicated,
    ShardedAxis,
    ShardingSpec,
    SingleDeviceSharding,
    Unstacked,
    hlo_sharding_util,
    make_interpreter_client,
)

CLIENT = make_interpreter_client(num_devices=8)
DEVICES = CLIENT.devices()
GRID = np.array(DEVICES).reshape(2, 4)
P = PartitionSpec


@pytest.mark.parametrize(
    "spec",
    [P("x"), P(None, "y"), P(("y", "x")), P("y", "x"), P(), P("x", unreduced={"y"})],
    ids=str,
)
def test_a_named_sharding_lies_as_its_hlo_sharding_says(spec: PartitionSpec) -> None:
    named = NamedSharding(Mesh(GRID, ("x", "y")), spec)
    hlo = named._to_xla_hlo_sharding(2)
    for proto in (hlo, hlo.to_proto()):
        gspmd = GSPMDSharding(DEVICES, proto)
        assert gspmd.devices_indices_map((8, 8)) == named.devices_indices_map((8, 8))
        assert gspmd.is_equivalent_to(named, 2)
        assert named.is_equivalent_to(gspmd, 2)
        assert gspmd.is_fully_replicated is named.is_fully_replicated


def test_devices_in_another_order_lie_elsewhere() -> None:
    one = NamedSharding(Mesh(GRID.T, ("y", "x")), P("x"))
    other = NamedSharding(Mesh(GRID, ("x", "y")), P("x"))
    assert one.devices_indices_map((4,)) == other.devices_indices_map((4,))
    assert not one.is_equivalent_to(other, 1)
    assert list(one.devices_indices_map((4,)))[1] is GRID[1, 0]


def test_a_mesh_of_another_library() -> None:
    mesh = SimpleNamespace(devices=GRID, axis_names=("x", "y"), shape={"x": 2, "y": 4})
    assert NamedSharding(mesh, P("y")).shard_shape((8,)) == (2,)


def test_a_spec_of_another_library() -> None:
    class Spec(tuple):
        UNCONSTRAINED = "?"
        unreduced = frozenset({"y"})

    named = NamedSharding(Mesh(GRID, ("x", "y")), Spec(("x", None, "?")))
    assert named.spec == P("x", None, P.UNCONSTRAINED, unreduced={"y"})


def test_meshes_and_shardings_of_jax() -> None:
    jax = pytest.importorskip("jax")
    mesh = jax.sharding.Mesh(GRID, ("x", "y"))
    ours = NamedSharding(mesh, jax.P("y", None))
    assert ours.spec == P("y", None)
    theirs = jax.sharding.NamedSharding(mesh, jax.P("y", None))
    assert theirs.devices_indices_map((8, 3)) == ours.devices_indices_map((8, 3))


def test_unreduced_axes() -> None:
    named = NamedSharding(Mesh(GRID, ("x", "y")), P("x", unreduced={"y"}))
    assert "unreduced" in str(named._to_xla_hlo_sharding(1))
    assert not named.is_fully_replicated
    assert named.shard_shape((4,)) == (2,)


def test_memory_kinds() -> None:
    sharding = SingleDeviceSharding(DEVICES[0])
    assert sharding.with_memory_kind("pinned_host").memory_kind == "pinned_host"
    assert sharding.with_memory_kind("device") == sharding
    here = NamedSharding(Mesh(GRID, ("x", "y")), P())
    assert not here.is_equivalent_to(here.with_memory_kind("unpinned_host"), 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mesh(GRID, ("x", "x")), "axis names must be different"),
        (lambda: Mesh([DEVICES[0]] * 2, "x"), "devices must be different"),
        (lambda: Mesh(GRID, ("x", "y"), axis_types=()), "0 axis types"),
        (lambda: ShardingSpec([Chunked([2])], []), "each split dimension needs one ShardedAxis"),
        (
            lambda: PmapSharding(DEVICES[:3], ShardingSpec([NoSharding()], [Replicated(2)])),
            "is of 2 devices, given 3",
        ),
        (
            lambda: GSPMDSharding(DEVICES, HloSharding.iota_tile((4,))).devices_indices_map((8,)),
            "is of 4 devices, given 8",
        ),
        (
            lambda: GSPMDSharding(DEVICES, HloSharding.iota_tile((8,))).shard_shape((8, 8)),
            "is of 1 dimensions, the array of 2",
        ),
        (
            lambda: GSPMDSharding(DEVICES, HloSharding.manual()).shard_shape((8,)),
            "does not tell which device holds which elements",
        ),
    ],
)
def test_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_pmap_with_several_axes() -> None:
    spec = ShardingSpec(
        [Unstacked(2), Chunked([2]), NoSharding()], [ShardedAxis(1), ShardedAxis(0), Replicated(2)]
    )
    sharding = PmapSharding(np.array(DEVICES).reshape(2, 2, 2), spec)
    assert sharding.sharding_spec == spec
    assert sharding.shard_shape((2, 4, 3)) == (2, 3)
    indices = sharding.devices_indices_map((2, 4, 3))
    everything = slice(None)
    assert indices[DEVICES[0]] == indices[DEVICES[1]] == (0, slice(0, 2), everything)
    assert indices[DEVICES[2]] == (1, slice(0, 2), everything)
    assert indices[DEVICES[6]] == (1, slice(2, 4), everything)


def test_an_unknown_sharding() -> None:
    unknown = HloSharding.unknown()
    assert unknown.is_unknown() and not unknown.is_replicated()
    assert repr(unknown) == "{unknown}"
    assert HloSharding.from_proto(unknown.to_proto()) == unknown


def test_specs_are_pickled_and_devices_are_not() -> None:
    for spec in (P("x", None, ("y", "z")), P(P.UNCONSTRAINED, unreduced={"x"})):
        assert pickle.loads(pickle.dumps(spec)) == spec
    assert pickle.loads(pickle.dumps(P(P.UNCONSTRAINED)))[0] is P.UNCONSTRAINED
    with pytest.raises(TypeError, match="a device belongs to a client of this process"):
        pickle.dumps(SingleDeviceSharding(DEVICES[0]))
    sharding = SingleDeviceSharding(DEVICES[0])
    assert copy.deepcopy(sharding) == sharding


def test_specs_are_sequences() -> None:
    spec = P("x", ("y",), None)
    assert (len(spec), spec[1], spec.index("y"), spec.count(None)) == (3, "y", 1, 1)
    assert spec.update(partitions=("z",)) == P("z")
    assert spec + P("w") == P("x", "y", None, "w")
    assert P([]) == P(None)


@pytest.mark.parametrize(
    "text",
    [
        "{devices=[2,4]<=[8]}",
        "{devices=[2,4]<=[4,2]T(1,0)}",
        "{devices=[2,3]<=[3,2]T(1,0)}",
        "{devices=[2,2,2]<=[2,2,2]T(2,0,1) last_tile_dim_replicate}",
        "{devices=[2,2,2]7,6,5,4,3,2,1,0 last_tile_dims={manual}}",
        "{devices=[2,2,2]<=[8] last_tile_dims={unreduced}}",
    ],
)
@pytest.mark.parametrize("dim", [0, 1])
def test_copies_over_a_dimension(text: str, dim: int) -> None:
    before = HloSharding.from_string(text)
    after = hlo_sharding_util.PartiallyReplicateTiledShardingOnDims(before, [dim])
    tiles = before.ir.tile_assignment
    other = 1 - dim
    for part in range(tiles.shape[other]):
        devices = set(np.take(tiles, part, other).flat)
        assert set(np.take(after.ir.tile_assignment, part, other).flat) == devices
    assert after.tile_assignment_dimensions()[dim] == 1
    assert after.num_devices() == before.num_devices()
    with pytest.raises(InvalidArgumentError, match="has no dimension 2"):
        hlo_sharding_util.PartiallyReplicateTiledShardingOnDims(before, [2])


def test_op_shardings_check_their_fields() -> None:
    sharding = OpSharding()
    with pytest.raises(TypeError, match=r"OpSharding\.type is 'OTHER', not an OpShardingType"):
        sharding.type = "OTHER"  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        sharding.typ = OpSharding.Type.OTHER  # type: ignore[attr-defined]
