"""Running sums and the like: reduce-windows as long as their dimension."""

import numpy as np
import pytest

from haloc import xla_client
from haloc.codegen.scan import scanned_dimension
from haloc.formats.hlo_text import parse_module

TEXT = """HloModule scan
combine {{ a = {t}[] parameter(0)  b = {t}[] parameter(1)  ROOT c = {t}[] {op}(a, b) }}
ENTRY e {{
  x = {t}[{dims}] parameter(0)
  start = {t}[] constant({start})
  ROOT r = {t}[{dims}] reduce-window(x, start), window={{size={size} pad={pad}}}, to_apply=combine
}}
"""
ARRAYS = {
    "f32": np.float32,
    "s32": np.int32,
    "c64": np.complex64,
}
CASES = [
    ("f32", (100,), 0, False),
    ("f32", (100,), 0, True),
    ("s32", (5, 33), 1, False),
    ("s32", (5, 33), 1, True),
    ("s32", (9, 33), 0, False),
    ("f32", (9, 3), 0, True),
    ("s32", (3, 9, 17), 1, False),
    ("c64", (12, 17), 0, False),
]


def program(t, dims, d, from_end, op="add", start="0"):
    n = dims[d]
    size = "x".join(str(n if k == d else 1) for k in range(len(dims)))
    own = f"0_{n - 1}" if from_end else f"{n - 1}_0"
    pad = "x".join(own if k == d else "0_0" for k in range(len(dims)))
    listed = ",".join(map(str, dims))
    return TEXT.format(t=t, dims=listed, size=size, pad=pad, op=op, start=start)


def run(text, x):
    client = xla_client.make_cpu_client()
    executable = client.compile_and_load(text, client.devices()[:1])
    return np.asarray(executable.execute([client.buffer_from_pyval(x)])[0])


@pytest.mark.parametrize(("t", "dims", "d", "from_end"), CASES)
def test_running_sum(t, dims, d, from_end):
    text = program(t, dims, d, from_end, start="(0, 0)" if t == "c64" else "0")
    window = next(parse_module(text).instructions("reduce-window"))
    assert scanned_dimension(window) == (d, from_end)
    x = np.random.default_rng(0).integers(-9, 9, dims).astype(ARRAYS[t])
    flipped = np.flip(x, d) if from_end else x
    wanted = np.cumsum(flipped, d).astype(x.dtype)
    np.testing.assert_array_equal(run(text, x), np.flip(wanted, d) if from_end else wanted)


def test_running_maximum_keeps_nan_and_start():
    x = np.array([1, -5, 3, 2, np.nan, 9, 0, 1, 2], np.float32)
    got = run(program("f32", (9,), 0, False, "maximum", "2"), x)
    np.testing.assert_array_equal(got, np.maximum.accumulate(np.maximum(x, 2)))


def test_a_million_elements_take_one_pass():
    x = np.ones(1 << 20, np.int32)
    text = program("s32", x.shape, 0, False)
    np.testing.assert_array_equal(run(text, x), np.arange(1, x.size + 1))


def test_other_windows_are_no_scan():
    for window in ("size=9 pad=7_0", "size=9 stride=2 pad=8_0", "size=5 pad=2_2"):
        text = program("f32", (9,), 0, False)
        start = text.index("window=")
        text = text[:start] + f"window={{{window}}}, to_apply=combine\n}}\n"
        module = parse_module(text)
        assert scanned_dimension(next(module.instructions("reduce-window"))) is None
