"""Partitioning: from a module of whole arrays to the one each partition runs on its shards."""

from haloc.spmd.partitioner import spmd_partition

__all__ = ["spmd_partition"]
