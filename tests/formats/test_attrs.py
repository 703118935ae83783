"""Attribute codecs: replica groups and windows beyond what the samples show."""

import pytest

from haloc.formats.hlo_text import parse_module, to_text
from haloc.ops.attrs import Float, ReplicaGroups, WindowDim
from haloc.ops.quoting import quote, unquote
from haloc.ops.table import attr


def groups_of(text: str) -> ReplicaGroups:
    module = parse_module(
        "a = f32[4] parameter(0)\n"
        f"r = f32[4] all-to-all(a), replica_groups={text}, dimensions={{0}}"
    )
    assert f"replica_groups={text}" in to_text(module)
    return module.entry.root.attrs["replica_groups"]


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("{}", ((0, 1, 2, 3),)),
        ("[2,2]<=[4]", ((0, 1), (2, 3))),
        ("[2,2]<=[2,2]T(1,0)", ((0, 2), (1, 3))),
        ("[4,2]<=[2,2,2]T(0,2,1)", ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("mesh['a'=2,'b'=2] {'a'}", ((0, 2), (1, 3))),
        ("mesh['a'=2,'b'=2] {'b'}", ((0, 1), (2, 3))),
        ("mesh['a'=2,'b'=2] {'b','a'}", ((0, 2, 1, 3),)),
        ("mesh['a'=2,'b'=2] {}", ((0,), (1,), (2,), (3,))),
        ("mesh['a'=4] {'a':(1)2}", ((0, 2), (1, 3))),
        ("mesh['a'=4] {'a':(2)2}", ((0, 1), (2, 3))),
        ("mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'b'}", ((3, 2), (1, 0))),
        ("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}", ((0, 2), (1, 3))),
    ],
)
def test_replica_groups(text, groups):
    assert groups_of(text).groups(4) == groups


def window_of(text: str) -> tuple[WindowDim, ...]:
    module = parse_module(
        "add { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = add(x, y) }\n"
        "ENTRY e { a = f32[4,4] parameter(0)\n z = f32[] constant(0)\n"
        f" ROOT r = f32[4,4] reduce-window(a, z), window={text}, to_apply=add }}"
    )
    assert f"window={text}" in to_text(module)
    return attr(module.entry.root, "window")


def test_windows():
    assert window_of("{size=3x1}") == (WindowDim(3), WindowDim(1))
    assert window_of(
        "{size=3x2 stride=2x1 pad=-1_2x0_0 lhs_dilate=1x2 rhs_dilate=3x1 rhs_reversal=0x1}"
    ) == (WindowDim(3, 2, -1, 2, 1, 3, False), WindowDim(2, 1, 0, 0, 2, 1, True))


@pytest.mark.parametrize("value", [0.001, 1e-5, 0.1, 1.0, 3.0000001, 1e300])
def test_floats_read_back(value):
    assert float(Float().format(value)) == value


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain text", '"plain text"'),
        ('it\'s "q" \\ \n', '"it\\\'s \\"q\\" \\\\ \\n"'),
        ("é\x01", '"\\303\\251\\001"'),
    ],
)
def test_strings(text, quoted):
    assert quote(text) == quoted
    assert unquote(quoted[1:-1]) == text


def test_other_escapes_are_read():
    assert unquote("\\x41\\u00e9\\a\\?") == "Aé\a?"
