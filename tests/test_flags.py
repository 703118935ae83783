"""Flags: XLA_FLAGS, HALOC_*, what is unknown or malformed."""

from __future__ import annotations

import pytest

from haloc.errors import InvalidArgumentError
from haloc.flags import FLAGS, Flags, parse_flag


def test_defaults_without_an_environment() -> None:
    assert Flags.from_environment({}) == Flags()


def test_values_are_read() -> None:
    flags = Flags.from_environment(
        {
            "XLA_FLAGS": "--xla_dump_to='/tmp/a b' --xla_dump_hlo_as_text "
            "--xla_enable_dumping=false --xla_force_host_platform_device_count=8",
            "HALOC_DEBUG": "3",
            "HALOC_POOL_BYTES": "1024",
        }
    )
    assert flags.xla_dump_to == "/tmp/a b"
    assert flags.xla_dump_hlo_as_text
    assert not flags.xla_enable_dumping
    assert flags.xla_force_host_platform_device_count == 8
    assert (flags.debug, flags.pool_bytes) == (3, 1024)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"XLA_FLAGS": "--xla_bogus=3"}, "No such compile option: 'xla_bogus'"),
        ({"XLA_FLAGS": "--xla_dump_too=3"}, "did you mean xla_dump_to?"),
        ({"XLA_FLAGS": "xla_dump_to=3"}, "is not a --xla_ flag; did you mean --xla_dump_to?"),
        ({"XLA_FLAGS": "--xla_enable_dumping=maybe"}, "'maybe' is not a valid bool value."),
        ({"XLA_FLAGS": "--xla_dump_max_hlo_modules=a"}, "'a' is not a valid int32 value."),
        ({"XLA_FLAGS": "--xla_dump_to='a"}, "No closing quotation"),
        ({"HALOC_DEBUG": "lots"}, "While setting option debug, 'lots' is not a valid int32"),
    ],
)
def test_what_is_wrong_is_said_and_left_out(environment: dict[str, str], message: str) -> None:
    with pytest.warns(UserWarning) as caught:
        flags = Flags.from_environment(environment)
    assert message in str(caught[0].message)
    assert flags == Flags()


@pytest.mark.parametrize(
    ("name", "value", "parsed"),
    [
        ("xla_dump_hlo_as_text", True, True),
        ("xla_dump_hlo_as_text", "True", True),
        ("xla_dump_max_hlo_modules", "-1", -1),
        ("xla_dump_max_hlo_modules", 7, 7),
        ("xla_dump_to", "x", "x"),
    ],
)
def test_parse_flag(name: str, value: object, parsed: object) -> None:
    assert parse_flag(name, value) == parsed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("xla_dump_hlo_as_text", 2),
        ("xla_dump_max_hlo_modules", True),
        ("xla_dump_max_hlo_modules", 1.5),
        ("xla_dump_to", 3),
    ],
)
def test_wrong_types(name: str, value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=f"While setting option {name}"):
        parse_flag(name, value)


def test_every_flag_has_help_and_an_owner() -> None:
    for flag in FLAGS.values():
        assert flag.metadata["help"] and flag.metadata["owner"], flag.name
