"""Cost analysis: the conventions, and XLA's own answers for the same text."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from haloc.analysis.cost import cost_analysis
from haloc.formats.hlo_text import parse_module

REGIONS = """HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

add_arrays {
  a = f32[4,6] parameter(0)
  b = f32[4,6] parameter(1)
  ROOT r = f32[4,6] add(a, b)
}

slices {
  a = f32[4,6] parameter(0)
  b = f32[4,6] parameter(1)
  s = f32[2,6] slice(a), slice={[0:2],[0:6]}
  t = f32[2,6] slice(b), slice={[1:3],[0:6]}
  ROOT r = f32[2,6] multiply(s, t)
}

condition {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT r = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] multiply(x, x)
  ROOT r = (s32[], f32[4]) tuple(j, y)
}

cheap {
  p = f32[4] parameter(0)
  ROOT r = f32[4] add(p, p)
}

dear {
  p = f32[4] parameter(0)
  q = f32[4] exponential(p)
  ROOT r = f32[4] multiply(q, p)
}

"""

X = "x = f32[4,6] parameter(0)"
Z = "z = f32[] constant(0)"
INDEX = "i = s32[] constant(0)"

CASES = {
    "add": f"{X}\nROOT r = f32[4,6] add(x, x)",
    "exponential": f"{X}\nROOT r = f32[4,6] exponential(x)",
    "chain": f"{X}\ny = f32[4,6] exponential(x)\nz = f32[4,6] sine(y)\nROOT r = f32[4,6] tanh(z)",
    "copy": f"{X}\nROOT r = f32[4,6] copy(x)",
    "transpose": f"{X}\nROOT r = f32[6,4] transpose(x), dimensions={{1,0}}",
    "bitcast": f"{X}\nROOT r = f32[24] bitcast(x)",
    "slice": f"{X}\nROOT r = f32[2,3] slice(x), slice={{[0:2],[0:3]}}",
    "broadcast": f"{X}\nROOT r = f32[2,4,6] broadcast(x), dimensions={{1,2}}",
    "convert": f"{X}\nROOT r = s32[4,6] convert(x)",
    "tuple": f"{X}\nROOT r = (f32[4,6], f32[4,6]) tuple(x, x)",
    "concatenate": f"{X}\nROOT r = f32[4,12] concatenate(x, x), dimensions={{1}}",
    "compare": f"{X}\nROOT r = pred[4,6] compare(x, x), direction=LT",
    "select": f"p = pred[4,6] parameter(1)\n{X}\nROOT r = f32[4,6] select(p, x, x)",
    "power": f"{X}\nROOT r = f32[4,6] power(x, x)",
    "dot": f"{X}\nROOT r = f32[4,4] dot(x, x), lhs_contracting_dims={{1}}, "
    "rhs_contracting_dims={1}",
    "iota": "ROOT r = f32[4,6] iota(), iota_dimension=0",
    "reduce": f"{X}\n{Z}\nROOT r = f32[4] reduce(x, z), dimensions={{1}}, to_apply=add",
    "pad": f"{X}\n{Z}\nROOT r = f32[5,7] pad(x, z), padding=0_1x0_1",
    "dynamic-slice": f"{X}\n{INDEX}\nROOT r = f32[2,3] dynamic-slice(x, i, i), "
    "dynamic_slice_sizes={2,3}",
    "dynamic-update-slice": f"{X}\n{INDEX}\nu = f32[2,3] parameter(1)\n"
    "ROOT r = f32[4,6] dynamic-update-slice(x, u, i, i)",
    "gather": f"{X}\nj = s32[2,1] parameter(1)\nROOT r = f32[2,6] gather(x, j), offset_dims={{1}}, "
    "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,6}",
    "scatter": f"{X}\nj = s32[2,1] parameter(1)\nu = f32[2,6] parameter(2)\n"
    "ROOT r = f32[4,6] scatter(x, j, u), update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    "convolution": "x = f32[1,8,8,3] parameter(0)\nk = f32[3,3,3,4] parameter(1)\n"
    "ROOT r = f32[1,8,8,4] convolution(x, k), window={size=3x3 pad=1_1x1_1}, "
    "dim_labels=b01f_01io->b01f",
    "map": f"{X}\nROOT r = f32[4,6] map(x, x), dimensions={{0,1}}, to_apply=add",
    "call": f"{X}\nROOT r = f32[4,6] call(x, x), to_apply=add_arrays",
    "fusion": f"{X}\nROOT r = f32[4,6] fusion(x, x), kind=kLoop, calls=add_arrays",
    "while": "i = s32[] constant(0)\nx = f32[4] parameter(0)\nt = (s32[], f32[4]) tuple(i, x)\n"
    "ROOT w = (s32[], f32[4]) while(t), condition=condition, body=body",
    "conditional": "p = pred[] parameter(0)\nx = f32[4] parameter(1)\n"
    "ROOT w = f32[4] conditional(p, x, x), true_computation=cheap, false_computation=dear",
    "get-tuple-element": "t = (f32[4,6], f32[2]) parameter(0)\n"
    "ROOT r = f32[2] get-tuple-element(t), index=1",
}

_ORACLE = """
import json, sys
from jaxlib import _hlo, _jax, xla_client
client = xla_client.make_cpu_client()
answers = {}
for name, text in json.load(sys.stdin).items():
    costs = _jax.hlo_module_cost_analysis(client, _hlo.hlo_module_from_text(text))
    answers[name] = {k: v for k, v in costs.items() if k != "optimal_seconds"}
json.dump(answers, sys.stdout)
"""


def program(case: str) -> str:
    lines = "\n".join(f"  {line}" for line in CASES[case].splitlines())
    return f"{REGIONS}ENTRY e {{\n{lines}\n}}\n"


@pytest.fixture(scope="module")
def xla() -> dict[str, dict[str, float]]:
    texts = json.dumps({case: program(case) for case in CASES})
    done = subprocess.run(
        [sys.executable, "-c", _ORACLE], input=texts, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


MORE_BYTES = {"dynamic-slice": 4, "dynamic-update-slice": 4}
"""XLA's total counts one of these ops' index operands only; here it is the sum of its parts."""


@pytest.mark.parametrize("case", CASES)
def test_same_as_xla(case: str, xla: dict[str, dict[str, float]]) -> None:
    expected = {k: v for k, v in xla[case].items() if v}
    if case in MORE_BYTES:
        expected["bytes accessed"] += MORE_BYTES[case]
    assert cost_analysis(parse_module(program(case))) == expected


def test_a_fusion_that_takes_slices_reads_the_slices() -> None:
    text = REGIONS + (
        f"ENTRY e {{\n{X}\nROOT r = f32[2,6] fusion(x, x), kind=kLoop, calls=slices\n}}"
    )
    costs = cost_analysis(parse_module(text))
    assert costs["bytes accessed"] == 3 * 48
    assert costs["flops"] == 12
