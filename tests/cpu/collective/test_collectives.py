"""Every collective natively against the interpreter: types, sizes, groups, dimensions."""

import ml_dtypes
import numpy as np
import pytest

from tests.cpu.collective.programs import check

RNG = np.random.default_rng(0)
DTYPES = {
    "pred": np.bool_,
    "s4": ml_dtypes.int4,
    "u2": ml_dtypes.uint2,
    "s8": np.int8,
    "u16": np.uint16,
    "s32": np.int32,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}


def values(dtype, dims):
    if dtype is np.bool_:
        return RNG.random(dims) < 0.5
    if np.dtype(dtype).kind == "c":
        return (RNG.normal(size=dims) + 1j * RNG.normal(size=dims)).astype(dtype)
    return (RNG.normal(size=dims) * 3).astype(np.float32).astype(dtype)


def region(hlo, opcode):
    return f"""
r {{
  a = {hlo}[] parameter(0)
  b = {hlo}[] parameter(1)
  ROOT c = {hlo}[] {opcode}(a, b)
}}
"""


def program(hlo, result, operand, opcode, attributes, region_text=""):
    return f"""
HloModule m
{region_text}
ENTRY e {{
  p = {operand} parameter(0)
  ROOT x = {result} {opcode}(p), {attributes}
}}
"""


@pytest.mark.parametrize("hlo", DTYPES)
def test_all_reduce_of_every_type(hlo):
    opcode = "or" if hlo == "pred" else "add"
    text = program(hlo, f"{hlo}[37]", f"{hlo}[37]", "all-reduce",
                   "replica_groups={}, to_apply=r", region(hlo, opcode))  # fmt: skip
    check(text, [[values(DTYPES[hlo], 37)] for _ in range(3)], 3)


@pytest.mark.parametrize("hlo", ["f32", "bf16", "s4", "c64", "pred"])
def test_moves_of_types(hlo):
    dtype = DTYPES[hlo]
    text = f"""
HloModule m
ENTRY e {{
  p = {hlo}[4,3] parameter(0)
  g = {hlo}[4,6] all-gather(p), replica_groups={{}}, dimensions={{1}}
  a = {hlo}[4,3] all-to-all(p), replica_groups={{}}, dimensions={{0}}
  t = ({hlo}[4,3], {hlo}[4,3]) all-to-all(p, a), replica_groups={{}}
  b = {hlo}[4,3] collective-broadcast(p), replica_groups={{}}
  c = {hlo}[4,3] collective-permute(p), source_target_pairs={{{{0,1}}}}
  ROOT r = tuple(g, a, t, b, c)
}}
""".replace("tuple(g", f"({hlo}[4,6], {hlo}[4,3], ({hlo}[4,3], {hlo}[4,3]), {hlo}[4,3], "
            f"{hlo}[4,3]) tuple(g")  # fmt: skip
    check(text, [[values(dtype, (4, 3))] for _ in range(2)], 2)


@pytest.mark.parametrize("count", [0, 1, 7, 1000, 1024, 1025, 70_000])
@pytest.mark.parametrize("members", [2, 3, 8])
def test_all_reduce_of_every_size(count, members):
    text = program("f32", f"f32[{count}]", f"f32[{count}]", "all-reduce",
                   "replica_groups={}, to_apply=r", region("f32", "maximum"))  # fmt: skip
    check(text, [[values(np.float32, count)] for _ in range(members)], members)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("scale", [1, 40])
def test_dimensions(dim, scale):
    dims = [4, 8, 4 * scale]
    gathered = [d * (4 if k == dim else 1) for k, d in enumerate(dims)]
    piece = [d // (4 if k == dim else 1) for k, d in enumerate(dims)]

    def s(d):
        return f"s32[{','.join(map(str, d))}]"

    text = f"""
HloModule m
{region("s32", "add")}
ENTRY e {{
  p = {s(dims)} parameter(0)
  g = {s(gathered)} all-gather(p), replica_groups={{}}, dimensions={{{dim}}}
  a = {s(dims)} all-to-all(p), replica_groups={{}}, dimensions={{{dim}}}
  c = {s(piece)} reduce-scatter(p), replica_groups={{}}, dimensions={{{dim}}}, to_apply=r
  ROOT t = ({s(gathered)}, {s(dims)}, {s(piece)}) tuple(g, a, c)
}}
"""
    check(text, [[RNG.integers(-99, 99, dims, np.int32)] for _ in range(4)], 4)


GROUPS = {
    "replicas": "replica_groups={{0,1}}",
    "each replica": "replica_groups={{0},{1}}",
    "all replicas": "replica_groups={}",
    "replicas and partitions": "replica_groups={{0},{1}}, channel_id=1",
    "all of both": "replica_groups={{1,0}}, channel_id=1",
    "flattened": "replica_groups={{0,7,2,5},{6,1,4,3}}, channel_id=1, use_global_device_ids=true",
    "iota": "replica_groups=[4,2]<=[2,4]T(1,0), channel_id=1, use_global_device_ids=true",
}


@pytest.mark.parametrize("mode", GROUPS)
def test_groups_of_two_replicas_of_four_partitions(mode):
    text = program("f32", "f32[6]", "f32[6]", "all-reduce", f"{GROUPS[mode]}, to_apply=r",
                   region("f32", "add"))  # fmt: skip
    check(text, [[values(np.float32, 6)] for _ in range(8)], 2, 4)


def test_groups_of_different_sizes():
    text = program("f32", "f32[6]", "f32[6]", "all-reduce", "replica_groups={{0,3},{1},{2,4,5}}, "
                   "to_apply=r", region("f32", "add"))  # fmt: skip
    check(text, [[values(np.float32, 6)] for _ in range(6)], 6)


@pytest.mark.parametrize("channel", ["", ", channel_id=3"])
def test_permutes_by_replica_and_by_partition(channel):
    text = program("f32", "f32[6]", "f32[6]", "collective-permute",
                   "source_target_pairs={{0,1},{1,0}}" + channel)  # fmt: skip
    check(text, [[values(np.float32, 6)] for _ in range(8)], 2, 4)


def test_any_region_and_several_operands():
    text = """
HloModule m
r {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  two = f32[] constant(2)
  m = f32[] multiply(b, two)
  s = f32[] subtract(a, m)
  g = pred[] compare(a, b), direction=GT
  ROOT c = f32[] select(g, s, b)
}
ENTRY e {
  p = f32[1500] parameter(0)
  q = f32[3,3] parameter(1)
  ROOT x = (f32[1500], f32[3,3]) all-reduce(p, q), replica_groups={}, to_apply=r
}
"""
    arguments = [[values(np.float32, 1500), values(np.float32, (3, 3))] for _ in range(5)]
    check(text, arguments, 5)


RAGGED = """
HloModule m
ENTRY e {
  x = f32[6,2] parameter(0)
  o = f32[6,2] parameter(1)
  i = s32[2] parameter(2)
  n = s32[2] parameter(3)
  j = s32[2] parameter(4)
  w = s32[2] parameter(5)
  ROOT r = f32[6,2] ragged-all-to-all(x, o, i, n, j, w), replica_groups={}
}
"""


def ragged_arguments():
    def table(*numbers):
        return np.array(numbers, np.int32)

    def rows():
        return values(np.float32, (6, 2))

    return [
        [rows(), rows(), table(0, 2), table(2, 3), table(1, 0), table(2, 1)],
        [rows(), rows(), table(5, 0), table(1, 2), table(4, 3), table(3, 2)],
    ]


def test_ragged_all_to_all():
    check(RAGGED, ragged_arguments(), 2)


def test_ids_and_loops():
    text = """
HloModule m
r {
  a = u32[] parameter(0)
  b = u32[] parameter(1)
  ROOT c = u32[] add(a, b)
}
go_on {
  s = (s32[], u32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(50)
  ROOT l = pred[] compare(i, n), direction=LT
}
step {
  s = (s32[], u32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = u32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = u32[] all-reduce(x), replica_groups={{0,1},{2}}, to_apply=r
  z = u32[] collective-permute(y), source_target_pairs={{0,1},{1,2},{2,0}}
  ROOT t = (s32[], u32[]) tuple(next, z)
}
ENTRY e {
  zero = s32[] constant(0)
  replica = u32[] replica-id()
  partition = u32[] partition-id()
  ten = u32[] constant(10)
  m = u32[] multiply(replica, ten)
  own = u32[] add(m, partition)
  t = (s32[], u32[]) tuple(zero, own)
  w = (s32[], u32[]) while(t), condition=go_on, body=step
  v = u32[] get-tuple-element(w), index=1
  ROOT o = (u32[], u32[]) tuple(v, own)
}
"""
    got = check(text, [[] for _ in range(6)], 3, 2)
    assert [int(own) for _, own in got] == [0, 1, 10, 11, 20, 21]
