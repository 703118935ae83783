"""What users register for the partitioner, and the traits and types of targets."""

from __future__ import annotations

import ctypes

import pytest

from haloc import xla_client
from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.ffi.partitioners import BATCH_PARTITIONABLE, PARTITIONERS, inspector


def nothing(*arguments: object) -> None:
    """Never called here."""


def test_a_partitioner_is_known_by_its_target() -> None:
    register = xla_client.register_custom_call_partitioner
    try:
        register("test_target", nothing, nothing, print)
        register("test_target", nothing, print, nothing, True)
        found = PARTITIONERS["test_target"]
        assert found.partition is print
        assert found.can_side_effecting_have_replicated_sharding
    finally:
        PARTITIONERS.pop("test_target", None)
    with pytest.raises(TypeError, match="'test_target'\\): str cannot be called"):
        register("test_target", "text", nothing, nothing)
    with pytest.raises(UnimplementedError, match="c_api"):
        register("test_target", nothing, nothing, nothing, c_api=object())


def test_batch_partitionable_targets() -> None:
    register = xla_client.register_custom_call_as_batch_partitionable
    try:
        register("test_target")
        assert "test_target" in BATCH_PARTITIONABLE
    finally:
        BATCH_PARTITIONABLE.discard("test_target")
    with pytest.raises(UnimplementedError, match="c_api"):
        register("test_target", c_api=object())


def test_an_encoded_callback_is_found_again() -> None:
    encoded = xla_client.encode_inspect_sharding_callback(nothing)
    assert inspector(encoded) is nothing
    assert xla_client.encode_inspect_sharding_callback(nothing) != encoded
    with pytest.raises(InvalidArgumentError, match="no encoded inspect-sharding callback"):
        inspector(b"other")
    with pytest.raises(TypeError, match="str cannot be called"):
        xla_client.encode_inspect_sharding_callback("text")


def test_a_type_is_given_an_id() -> None:
    cells = [ctypes.c_int64(0), ctypes.c_int64(0)]
    for number, cell in enumerate(cells):
        xla_client.register_custom_type_id(f"test_type_{number}", ctypes.addressof(cell))
    assert cells[0].value > 0 and cells[0].value != cells[1].value
    taken = ctypes.c_int64(cells[1].value)
    with pytest.raises(InvalidArgumentError, match="test_type_0"):
        xla_client.register_custom_type_id("test_type_0", ctypes.addressof(taken))


def test_types_of_another_platform_wait_for_its_handler() -> None:
    seen: list[tuple[str, object]] = []

    def handler(name: str, type_id: object) -> None:
        seen.append((name, type_id))

    xla_client.register_custom_type_id("first", 1, "test_types")
    xla_client.register_custom_type_id_handler("test_types", handler)
    xla_client.register_custom_type_id_handler("test_types", nothing)  # the first stays
    xla_client.register_custom_type_id("second", 2, "test_types")
    assert seen == [("first", 1), ("second", 2)]


def test_traits() -> None:
    traits = xla_client.CustomCallTargetTraits
    assert (traits.DEFAULT, traits.COMMAND_BUFFER_COMPATIBLE) == (0, 1)
    assert traits(1) is traits.COMMAND_BUFFER_COMPATIBLE
