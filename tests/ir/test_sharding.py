"""Shardings: text both ways, XLA's canonical forms, tile assignments."""

import jaxlib._hlo
import numpy as np
import pytest

from haloc.errors import InvalidArgumentError
from haloc.ir.sharding import REPLICATED, Iota, parse_sharding

CANONICAL = [
    "{replicated}",
    "{manual}",
    "{unknown}",
    "{unreduced}",
    "{maximal device=1}",
    "{devices=[2,2]0,1,2,3}",
    "{devices=[2,2]0,2,1,3}",
    "{devices=[2,2]<=[4]}",
    "{devices=[1,1]<=[1]}",
    "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
    "{devices=[2,1,2]0,2,1,3 last_tile_dim_replicate}",
    "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
    "{devices=[4,2]<=[2,2,2]T(1,0,2)}",
    "{devices=[2,1,2,2]<=[8] last_tile_dims={manual, replicated}}",
    "{devices=[2,1,2]<=[4] last_tile_dims={manual}}",
    "{devices=[2,1,2]<=[4] last_tile_dims={unreduced}}",
    "{devices=[2,2]<=[4] shard_as 7}",
    "{replicated shard_like 3}",
    '{maximal device=3 metadata={op_name="a"}}',
    "{mesh['a'=2,'b'=2], [{'a'}, {'b'}]}",
    "{mesh['a'=2,'b'=2], [{'a', 'b'}, {}]}",
    "{mesh['a'=2,'b'=2], [{'a'}, {?}], replicated={'b'}}",
    "{mesh['a'=4], [{'a':(1)2}, {}]}",
    "{mesh['a'=2,'b'=2], [{'a'}, {}], unreduced={'b'}}",
    "{mesh['a'=2,'b'=2], [{'a'}, {}], manual={'b'}}",
    "{mesh['a'=2,'b'=2], device_ids=(3,2,1,0), [{'a'}, {}]}",
    "{mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)), [{'a'}, {}]}",
    "{mesh[], [{}, {}]}",
    "{maximal_mesh[device_id=1]}",
    "{}",
    "{{replicated}}",
    "{{replicated}, {devices=[2,1]<=[2]}}",
]

REWRITTEN = {
    "{devices=[2,1,1,2]<=[4] last_tile_dims={manual,replicated}}": (
        "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"
    ),
    "{devices=[2,1,2]<=[4] last_tile_dims={replicated}}": (
        "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"
    ),
    "{devices=[1,1,4]<=[4] last_tile_dim_replicate}": "{replicated}",
    "{devices=[1,1,4]<=[4] last_tile_dims={manual}}": "{manual}",
    "{devices=[2,2,1]<=[4] last_tile_dim_replicate}": "{devices=[2,2]<=[4]}",
    "{devices=[2,1,2]<=[2,2,1]T(1,0,2) last_tile_dim_replicate}": (
        "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
    ),
    "{devices=[4,1]<=[2,2]T(0,1)}": "{devices=[4,1]<=[4]}",
    "{devices=[4,2]<=[2,2,2]T(2,0,1)}": "{devices=[4,2]<=[4,2]T(1,0)}",
    "{devices=[8,1]<=[2,1,4]T(1,2,0)}": "{devices=[8,1]<=[2,4]T(1,0)}",
}


def xla_text(text: str) -> str:
    module = f"HloModule m\n\nENTRY e {{\n  ROOT p = f32[8,8] parameter(0), sharding={text}\n}}\n"
    printed = jaxlib._hlo.hlo_module_from_text(module).to_string()
    line = next(line for line in printed.splitlines() if "parameter(0)" in line)
    return line.split("sharding=", 1)[1]


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text_stays(text):
    sharding = parse_sharding(text)
    assert str(sharding) == text == xla_text(text)
    assert parse_sharding(str(sharding)) == sharding
    assert hash(parse_sharding(text)) == hash(sharding)


@pytest.mark.parametrize("text", REWRITTEN)
def test_other_spellings_become_canonical(text):
    assert str(parse_sharding(text)) == REWRITTEN[text] == xla_text(text)


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("{devices=[2,2]<=[4]}", [[0, 1], [2, 3]]),
        ("{devices=[2,2]<=[2,2]T(1,0)}", [[0, 2], [1, 3]]),
        ("{devices=[2,2]3,1,2,0}", [[3, 1], [2, 0]]),
        ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", [[[0, 1]], [[2, 3]]]),
    ],
)
def test_tile_assignment(text, devices):
    sharding = parse_sharding(text)
    assert sharding.tile_assignment.tolist() == devices
    assert sharding.tiles == sharding.tile_dims[: 2 if "last" in text else None]


def test_iota_canonical_keeps_the_order_of_devices():
    rng = np.random.default_rng(0)
    for _ in range(300):
        dims = tuple(int(d) for d in rng.integers(1, 4, rng.integers(1, 6)))
        iota = Iota(dims, tuple(int(d) for d in rng.permutation(len(dims))))
        canonical = iota.canonical()
        assert canonical.ids().tolist() == iota.ids().tolist()
        assert canonical.canonical() == canonical
        assert len(canonical.dims) <= max(1, len(dims))


def test_mesh_device_ids():
    turned = parse_sharding("{mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)), [{'a'}, {}]}")
    assert turned.mesh is not None
    assert turned.mesh.ids().tolist() == [[0, 2], [1, 3]]


def test_metadata_does_not_count():
    assert parse_sharding('{replicated metadata={op_name="x"}}') == REPLICATED


def test_predicates():
    assert parse_sharding("{{replicated}, {replicated}}").is_replicated
    assert not parse_sharding("{{replicated}, {manual}}").is_replicated
    assert parse_sharding("{manual}").is_manual
    assert parse_sharding("{devices=[2]<=[2]}").is_tiled


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("replicated", "sharding 'replicated' must stand in braces"),
        ("{devices=[2,2]0,1,2}", "devices=[2,2] has 4 tiles, given 3 devices"),
        ("{devices=[2,2]0,1,2,2}", "sharding names a device twice: 0,1,2,2"),
        ("{devices=[1,1]0}", "a tiled sharding needs more than one device, given 1"),
        ("{devices=[2,2]<=[2,2]T(0,0)}", "T(0,0) is not a permutation of [2,2]"),
        ("{devices=[2,2]<=[4] bad}", "found 'bad' behind a sharding"),
        (
            "{replicated last_tile_dims={manual}}",
            "last_tile_dims belongs to a sharding with devices=[...]",
        ),
        ("{devices=[2]<=[2] last_tile_dims={odd}}", "unknown subgroup kind 'odd' in a sharding"),
        ("{mesh['a'=2], [{'b'}]}", "sharding names axis 'b', which the mesh has not"),
        ("{mesh['a'=2], [{b}]}", "found 'b' in a sharding, expected a mesh axis 'name'"),
        ("{{{replicated}}}", "found {{replicated}} as an element of a tuple sharding"),
    ],
)
def test_bad_shardings(text, message):
    with pytest.raises(InvalidArgumentError) as caught:
        parse_sharding(text)
    assert caught.value.message == message
