"""How custom calls are partitioned: what users register, for the partitioner to ask for.

haloc runs programs that are partitioned already; it does not partition yet, and nothing here is
called before it does.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from haloc.errors import InvalidArgumentError, UnimplementedError


@dataclass(frozen=True)
class Partitioner:
    """The functions of one target, as `register_custom_call_partitioner` was given them."""

    prop_user_sharding: Callable[..., Any]
    partition: Callable[..., Any]
    infer_sharding_from_operands: Callable[..., Any]
    can_side_effecting_have_replicated_sharding: bool


PARTITIONERS: dict[str, Partitioner] = {}
"""By custom call target."""

BATCH_PARTITIONABLE: set[str] = set()
"""Targets that do the same to each piece of their operands' leading dimensions."""

INSPECTORS: dict[int, Callable[..., Any]] = {}
"""Functions to be shown shardings, by the number in the encoded string."""

_numbers = itertools.count(1)


def register_custom_call_partitioner(
    name: str,
    prop_user_sharding: Callable[..., Any],
    partition: Callable[..., Any],
    infer_sharding_from_operands: Callable[..., Any],
    can_side_effecting_have_replicated_sharding: bool = False,
    c_api: Any = None,
) -> None:
    """Say how custom-calls to `name` are partitioned; a later call replaces an earlier one.

    prop_user_sharding(sharding, shape, backend_config), infer_sharding_from_operands(operand
    shapes, operand shardings, result shape, backend_config) give a sharding; partition(...) the
    partitioned computation. TypeError for what cannot be called, UnimplementedError for c_api:
    a plugin has its own registry.
    """
    _check_no_plugin("register_custom_call_partitioner", c_api)
    functions = (prop_user_sharding, partition, infer_sharding_from_operands)
    for function in functions:
        if not callable(function):
            raise TypeError(
                f"register_custom_call_partitioner({name!r}): {type(function).__name__} cannot be "
                "called"
            )
    PARTITIONERS[name] = Partitioner(*functions, can_side_effecting_have_replicated_sharding)


def register_custom_call_as_batch_partitionable(target_name: str, c_api: Any = None) -> None:
    """Say that custom-calls to `target_name` may run on pieces of their leading dimensions.
    UnimplementedError for c_api."""
    _check_no_plugin("register_custom_call_as_batch_partitionable", c_api)
    BATCH_PARTITIONABLE.add(target_name)


def encode_inspect_sharding_callback(handler: Callable[..., Any]) -> bytes:
    """The backend_config of a custom-call to InspectSharding that shows its operand's sharding to
    `handler(HloSharding)`. TypeError for what cannot be called."""
    if not callable(handler):
        raise TypeError(
            f"encode_inspect_sharding_callback: {type(handler).__name__} cannot be called"
        )
    number = next(_numbers)
    INSPECTORS[number] = handler
    return struct.pack("<QQ", number, 0)


def inspector(backend_config: bytes) -> Callable[..., Any]:
    """The function that `encode_inspect_sharding_callback` encoded; InvalidArgumentError for other
    bytes."""
    if len(backend_config) == 16:
        number, zero = struct.unpack("<QQ", backend_config)
        if not zero and number in INSPECTORS:
            return INSPECTORS[number]
    raise InvalidArgumentError(f"{backend_config!r} is no encoded inspect-sharding callback")


def _check_no_plugin(what: str, c_api: Any) -> None:
    if c_api is not None:
        raise UnimplementedError(f"{what}(c_api=...): haloc registers with itself only")
