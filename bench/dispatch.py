"""What a call costs: haloc beside jaxlib's own execute path, one process, taking turns.

    python bench/dispatch.py [--quick]

One device: `execute` of a sum of 8 floats, and an array of 3 floats. Two and eight devices in one
process: elementwise work and collectives, small and of 16 MB a device. Times are the best of many.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
DEVICES = 8
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"

import jax  # noqa: E402 (the path and the flags come first)
import jaxlib  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402
from jaxlib import xla_client as jaxlib_client  # noqa: E402

from haloc import xla_client  # noqa: E402

ADD = """
HloModule add
ENTRY e {{
  x = f32[{n}] parameter(0)
  ROOT s = f32[{n}] add(x, x)
}}
"""

TWO_OPERANDS = """
HloModule add
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  ROOT s = f32[8] add(x, y)
}
"""

PSUM = """
HloModule psum
r {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[{n}] parameter(0)
  ROOT s = f32[{n}] all-reduce(x), replica_groups={{}}, to_apply=r
}}
"""

ALL_GATHER = """
HloModule gather
ENTRY e {{
  x = f32[{n}] parameter(0)
  ROOT s = f32[{all}] all-gather(x), replica_groups={{}}, dimensions={{0}}
}}
"""

ALL_TO_ALL = """
HloModule exchange
ENTRY e {{
  x = f32[{n}] parameter(0)
  ROOT s = f32[{n}] all-to-all(x), replica_groups={{}}, dimensions={{0}}
}}
"""


def jax_add(x: jax.Array) -> jax.Array:
    return x + x


def jax_psum(x: jax.Array) -> jax.Array:
    return jax.lax.psum(x, "d")


def jax_all_gather(x: jax.Array) -> jax.Array:
    return jax.lax.all_gather(x, "d", tiled=True)


def jax_all_to_all(x: jax.Array) -> jax.Array:
    return jax.lax.all_to_all(x, "d", 0, 0, tiled=True)


LARGE = 16 * 2**20 // 4
CASES = (
    ("elementwise, 8 floats a device", ADD, jax_add, 8, "d"),
    ("psum, 1 float a device", PSUM, jax_psum, 1, None),
    ("psum, 16 MB a device", PSUM, jax_psum, LARGE, None),
    ("all_gather, 16 MB a device", ALL_GATHER, jax_all_gather, LARGE, None),
    ("all_to_all, 16 MB a device", ALL_TO_ALL, jax_all_to_all, LARGE, "d"),
)
"""(name, HLO of a participant, the same for jax, floats a device, how the result is spread)"""


def best(ours: Callable[[], object], theirs: Callable[[], object], runs: int) -> tuple[float, ...]:
    """Seconds of one call, the best of `runs` turns each."""
    times: list[list[float]] = [[], []]
    for _ in range(runs):
        for k, call in enumerate((ours, theirs)):
            start = time.perf_counter()
            call()
            times[k].append(time.perf_counter() - start)
    return min(times[0][1:]), min(times[1][1:])


def report(name: str, ours: float, theirs: float) -> None:
    def spelled(seconds: float) -> str:
        return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"

    print(f"{name:44} {spelled(ours):>12} {spelled(theirs):>12} {theirs / ours:8.2f}x", flush=True)


def one_device(runs: int) -> None:
    client = xla_client.make_cpu_client(num_devices=1)
    executable = client.compile_and_load(TWO_OPERANDS, client.devices())
    value = np.arange(8, dtype=np.float32)
    x, y = client.buffer_from_pyval(value), client.buffer_from_pyval(value)
    u, v = jax.device_put(value), jax.device_put(value)
    theirs = jax.jit(lambda a, b: a + b).lower(u, v).compile().runtime_executable()
    times = best(lambda: executable.execute([x, y]), lambda: theirs.execute([u, v]), runs)
    report("execute, two operands of 8 floats", *times)

    three = np.arange(3, dtype=np.float32)
    device = jax.devices()[0]
    sharding = jax.sharding.SingleDeviceSharding(device)
    aval = jax.core.ShapedArray((3,), np.float32)
    times = best(
        lambda: client.buffer_from_pyval(three),
        lambda: jaxlib_client.batched_device_put(aval, sharding, [three], [device]),
        runs,
    )
    report("array of 3 floats", *times)


def many_devices(count: int, runs: int) -> None:
    client = xla_client.make_cpu_client(num_devices=count)
    options = xla_client.CompileOptions()
    options.num_replicas = count
    mesh = Mesh(np.array(jax.devices()[:count]), ("d",))
    spread = PartitionSpec("d")
    for name, text, function, size, out in CASES:
        hlo = text.format(n=size, all=size * count)
        executable = client.compile_and_load(hlo, client.devices(), options)
        value = np.ones(size, np.float32)
        shards = [client.buffer_from_pyval(value, d, force_copy=True) for d in client.devices()]
        whole = jax.device_put(np.ones(size * count, np.float32), NamedSharding(mesh, spread))
        mapped = jax.shard_map(
            function,
            mesh=mesh,
            in_specs=spread,
            out_specs=PartitionSpec(out) if out else PartitionSpec(),
            check_vma=False,
        )
        theirs = jax.jit(mapped).lower(whole).compile().runtime_executable()

        def run_ours(executable=executable, shards=shards) -> None:  # type: ignore[no-untyped-def]
            results = executable.execute_sharded([shards])
            (arrays,) = results.disassemble_into_single_device_arrays()
            for array in arrays:
                array.block_until_ready()

        def run_theirs(theirs=theirs, whole=whole) -> None:  # type: ignore[no-untyped-def]
            (arrays,) = theirs.execute_sharded([whole]).disassemble_into_single_device_arrays()
            for array in arrays:
                array.block_until_ready()

        times = best(run_ours, run_theirs, max(6, runs // 500) if size == LARGE else runs // 5)
        report(f"{count} devices: {name}", *times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    runs = 500 if parser.parse_args().quick else 5000
    print(f"{'':44} {'haloc':>12} {'jaxlib ' + jaxlib.__version__:>12}")
    one_device(runs)
    for count in (2, DEVICES):
        many_devices(count, runs)


if __name__ == "__main__":
    main()
