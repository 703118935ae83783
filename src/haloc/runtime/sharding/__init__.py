"""How arrays lie on devices: shardings, meshes, partition specs."""

from haloc.runtime.sharding.base import Sharding
from haloc.runtime.sharding.gspmd import GSPMDSharding
from haloc.runtime.sharding.mesh import AxisType, Mesh
from haloc.runtime.sharding.named import DuplicateSpecError, NamedSharding
from haloc.runtime.sharding.partition_spec import PartitionSpec
from haloc.runtime.sharding.pmap import PmapSharding
from haloc.runtime.sharding.sharding_spec import (
    Chunked,
    NoSharding,
    Replicated,
    ShardedAxis,
    ShardingSpec,
    Unstacked,
)
from haloc.runtime.sharding.single_device import SingleDeviceSharding

__all__ = [
    "AxisType",
    "Chunked",
    "DuplicateSpecError",
    "GSPMDSharding",
    "Mesh",
    "NamedSharding",
    "NoSharding",
    "PartitionSpec",
    "PmapSharding",
    "Replicated",
    "ShardedAxis",
    "Sharding",
    "ShardingSpec",
    "SingleDeviceSharding",
    "Unstacked",
]
