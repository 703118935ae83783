"""What partitions compute on their shards is what one device computes on the whole arrays."""

import numpy as np
import pytest

from haloc import interpreter
from haloc.errors import UnimplementedError
from haloc.formats.hlo_text import parse_module
from haloc.ir.sharding import parse_sharding
from haloc.spmd import spmd_partition
from haloc.spmd.tiling import tiling_of
from haloc.verifier import verify

PARTITIONS = 4
RNG = np.random.default_rng(0)

PROGRAMS = {
    "elementwise on shards": """
  a = f32[8,6] parameter(0), sharding={devices=[4,1]<=[4]}
  b = f32[8,6] parameter(1)
  s = f32[8,6] add(a, b)
  ROOT r = f32[8,6] multiply(s, a), sharding={devices=[4,1]<=[4]}""",
    "uneven tiles": """
  a = f32[7,6] parameter(0), sharding={devices=[2,2]<=[4]}
  ROOT r = f32[7,6] negate(a)""",
    "other tilings meet": """
  a = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  b = f32[8,8] parameter(1), sharding={devices=[1,4]<=[4]}
  ROOT r = f32[8,8] subtract(a, b), sharding={devices=[2,2]<=[2,2]T(1,0)}""",
    "tiles on several partitions": """
  a = f32[8,4] parameter(0), sharding={devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}
  ROOT r = f32[8,4] abs(a)""",
    "any op runs whole": """
  a = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}
  t = f32[4,8] transpose(a), dimensions={1,0}
  d = f32[8,8] dot(a, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[8,8] negate(d), sharding={devices=[1,4]<=[4]}""",
    "tuples": """
  p = (f32[8], f32[4]) parameter(0), sharding={{devices=[4]<=[4]}, {replicated}}
  a = f32[8] get-tuple-element(p), index=0
  b = f32[4] get-tuple-element(p), index=1
  n = f32[8] negate(a)
  ROOT r = (f32[4], f32[8]) tuple(b, n), sharding={{devices=[4]<=[4]}, {devices=[4]<=[4]}}""",
    "a hint in a loop": """
  p = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  z = s32[] constant(0)
  t = (s32[], f32[8]) tuple(z, p)
  w = (s32[], f32[8]) while(t), condition=more, body=step
  ROOT r = f32[8] get-tuple-element(w), index=1""",
}
REGIONS = """
more {
  t = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
step {
  t = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[8] get-tuple-element(t), index=1
  y = f32[8] add(x, x)
  h = f32[8] custom-call(y), custom_call_target="Sharding", sharding={devices=[4]<=[4]}
  ROOT o = (s32[], f32[8]) tuple(j, h)
}
"""


def module_of(body):
    regions = REGIONS if "while" in body else ""
    return parse_module(f"HloModule m\n{regions}\nENTRY e {{{body}\n}}")


def shards(value, shape, sharding, partition):
    """What a partition holds of a value, by the sharding's text."""
    if shape.is_tuple:
        each = sharding.elements
        parts = zip(value, shape.elements, each)
        return tuple(shards(v, s, e, partition) for v, s, e in parts)
    tiling = tiling_of(sharding, len(shape.dims), PARTITIONS) if sharding else None
    if tiling is None:
        return value
    sizes = [tiling.tile_size(shape, d) for d in range(len(shape.dims))]
    room = [(0, n * t - s) for n, t, s in zip(sizes, tiling.tiles, shape.dims)]
    starts = [c * n for c, n in zip(tiling.coordinates[partition], sizes)]
    return np.pad(value, room)[tuple(slice(s, s + n) for s, n in zip(starts, sizes))]


def random_value(shape):
    if shape.is_tuple:
        return tuple(map(random_value, shape.elements))
    return RNG.standard_normal(shape.dims).astype(shape.dtype.numpy)


def same(given, wanted):
    if isinstance(wanted, tuple):
        for g, w in zip(given, wanted, strict=True):
            same(g, w)
    else:
        np.testing.assert_allclose(given, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_shards_compute_what_the_whole_does(name):
    body = PROGRAMS[name]
    whole = module_of(body)
    parameters = [(p.shape, p.sharding) for p in whole.entry.parameters]
    result = (whole.entry.root.shape, whole.entry.root.sharding)
    arguments = [random_value(s) for s, _ in parameters]
    # Without hints, which the interpreter has no meaning for.
    plain = module_of(body) if "while" not in body else None
    wanted = interpreter.run(plain, arguments) if plain else arguments[0] * 8
    spmd_partition(whole, PARTITIONS)
    verify(whole)
    given = interpreter.run_participants(
        whole,
        [
            [shards(a, s, h, k) for a, (s, h) in zip(arguments, parameters)]
            for k in range(PARTITIONS)
        ],
        num_partitions=PARTITIONS,
    )
    for partition, value in enumerate(given):
        same(value, shards(wanted, *result, partition))


def test_elementwise_ops_need_no_communication():
    module = module_of(PROGRAMS["elementwise on shards"])
    spmd_partition(module, PARTITIONS)
    opcodes = {i.opcode for i in module.entry.instructions}
    assert "all-gather" not in opcodes
    assert module.entry.parameters[0].shape.dims == (2, 6)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "a = f32[8] parameter(0), sharding={devices=[2]<=[2]}\n ROOT r = f32[8] abs(a)",
            "is over 2 devices of 4 partitions",
        ),
        (
            "a = f32[8] parameter(0), sharding={devices=[4]<=[4]}\n t = token[] after-all()\n"
            " o = token[] outfeed(a, t)\n ROOT r = f32[8] abs(a)",
            "outfeed o outside a manual region would happen on every partition",
        ),
        (
            "a = f32[8] parameter(0), sharding={devices=[4]<=[4]}\n"
            ' ROOT r = f32[4] custom-call(a), custom_call_target="SPMDFullToShardShape"',
            "takes shards of f32[4]{0} where its operand has f32[2]{0}",
        ),
    ],
)
def test_what_cannot_be_partitioned_is_refused_by_name(body, message):
    with pytest.raises(UnimplementedError) as caught:
        spmd_partition(module_of("\n" + body), PARTITIONS)
    assert message in str(caught.value)


def test_tilings_of_meshes_and_tiles_agree():
    mesh = parse_sharding("{mesh['a'=2,'b'=2], [{'b'}, {}]}")
    tiles = parse_sharding("{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}")
    assert tiling_of(mesh, 2, 4) == tiling_of(tiles, 2, 4)
