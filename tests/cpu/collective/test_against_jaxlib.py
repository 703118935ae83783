"""Native collectives against jaxlib on eight devices."""

import numpy as np
import pytest

from tests.cpu.collective.programs import Native
from tests.cpu.collective.test_collectives import GROUPS, region, values
from tests.oracle import run_on_devices

ALL = "replica_groups={{0,1,2,3,4,5,6,7}}"
HEAD = f"HloModule m\n{region('f32', 'add')}"


def agrees(text, arguments, replicas, partitions, rtol=1e-6):
    got = Native(text, replicas, partitions).run(arguments)
    for own, theirs in zip(got, run_on_devices(text, arguments, replicas, partitions)):
        for x, y in zip(own, theirs, strict=True):
            np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("mode", GROUPS)
def test_groups(mode):
    text = f"""{HEAD}
ENTRY e {{
  p = f32[6] parameter(0)
  ROOT x = f32[6] all-reduce(p), {GROUPS[mode]}, to_apply=r
}}"""
    agrees(text, [[values(np.float32, 6)] for _ in range(8)], 2, 4)


def test_everything_at_once():
    text = f"""{HEAD}
ENTRY e {{
  p = f32[8,16] parameter(0)
  s = f32[8,16] all-reduce(p), replica_groups={{}}, to_apply=r
  g = f32[64,16] all-gather(s), replica_groups={{}}, dimensions={{0}}
  c = f32[8,16] reduce-scatter(g), replica_groups={{}}, dimensions={{0}}, to_apply=r
  a = f32[8,16] all-to-all(c), {ALL}, dimensions={{1}}
  t = f32[8,16] all-to-all(a), {ALL}, dimensions={{0}}
  ROOT q = f32[8,16] collective-permute(t), source_target_pairs={{{{0,3}},{{3,1}},{{5,0}}}}
}}"""
    agrees(text, [[values(np.float32, (8, 16))] for _ in range(8)], 8, 1, rtol=1e-4)
