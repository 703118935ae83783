"""Units to images: by threads, through the cache, and only what has changed."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest

from haloc.codegen.target import host_target
from haloc.cpu import builder
from haloc.cpu.compiler import CpuOptions, compile_module
from haloc.cpu.disk_cache import DiskCache
from haloc.errors import InternalError
from haloc.formats.hlo_text import parse_module

TEXT = """
HloModule m

less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }

ENTRY main {
  x = f32[64,32] parameter(0)
  s = f32[64,32] sine(x)
  d = f32[64,64] dot(s, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT r = f32[64,64] sort(d), dimensions={1}, to_apply=less
}
"""


@pytest.fixture
def cache(tmp_path):
    return DiskCache(tmp_path, 1 << 24)


def compiled(text, cache=None):
    """The program, and the texts that LLVM compiled for it."""
    texts = []

    def record(text, target, level):
        texts.append(text)
        return compile_text(text, target, level)

    compile_text = builder.compile_text
    with mock.patch.object(builder, "compile_text", record):
        program = compile_module(parse_module(text), CpuOptions(cache=cache))
    return program, texts


def run(program, x):
    results = [np.zeros(s.dims, s.dtype.numpy) for s in program.results]
    arena = np.zeros(program.arena_bytes + 64, np.uint8)
    pointer = arena.ctypes.data + -arena.ctypes.data % 64
    program.run([x.ctypes.data], [r.ctypes.data for r in results], pointer)
    return results[0]


X = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)


def test_functions_come_from_the_cache(cache):
    first, texts = compiled(TEXT, cache)
    again, texts_again = compiled(TEXT, cache)
    assert again.image == first.image
    np.testing.assert_array_equal(run(again, X), run(first, X))
    assert sum(map(len, texts_again)) < sum(map(len, texts)) / 4
    assert "@program(" in "".join(texts_again)


def test_a_changed_program_compiles_what_changed(cache):
    compiled(TEXT, cache)
    changed, texts = compiled(TEXT.replace("sine", "cosine"), cache)
    assert "fdiv" not in "".join(texts)
    defined = "".join(texts).count("\ndefine ")
    assert 1 <= defined <= 8
    fresh, texts = compiled(TEXT.replace("sine", "cosine"))
    assert "".join(texts).count("define ") > 2 * defined
    np.testing.assert_array_equal(run(changed, X), run(fresh, X))


def test_damaged_entries_are_compiled_again(cache):
    first, _ = compiled(TEXT, cache)
    entries = list(cache.entries())
    for number, entry in enumerate(entries):
        # Some are damaged on disk; some have a checksum that fits and content that does not.
        if number % 2:
            entry.path.write_bytes(entry.path.read_bytes()[:-3])
        else:
            cache.write(entry.kind, entry.key, b"[[1, 2]]\0")
    again, _ = compiled(TEXT, cache)
    assert again.image == first.image
    assert all(cache.read(e.kind, e.key) is not None for e in entries)
    _, texts = compiled(TEXT, cache)
    assert len(texts) == 1


ANOTHER_PROCESS = """
import sys
from pathlib import Path
from haloc.cpu.compiler import CpuOptions, compile_module
from haloc.cpu.disk_cache import DiskCache
from haloc.formats.hlo_text import parse_module
cache = DiskCache(Path(sys.argv[1]), 1 << 24)
compile_module(parse_module(sys.argv[2]), CpuOptions(cache=cache))
print(" ".join(sorted(entry.key for entry in cache.entries())))
"""


def test_keys_are_the_same_in_every_process(tmp_path):
    """Whatever order Python's sets have there."""
    found = []
    for seed in ("1", "2"):
        command = [sys.executable, "-c", ANOTHER_PROCESS, str(tmp_path / seed), TEXT]
        environ = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
        found.append(done.stdout.split())
    assert len(found[0]) > 3
    assert found[0] == found[1]


@pytest.mark.parametrize("size", [1, 4_000, 10**9])
def test_the_image_does_not_depend_on_the_batches(size, monkeypatch):
    whole, _ = compiled(TEXT)
    monkeypatch.setattr(builder, "BATCH_CHARACTERS", size)
    pieces, texts = compiled(TEXT)
    assert (len(texts) > 3) == (size < 10_000)
    assert pieces.image.code_size_bytes == whole.image.code_size_bytes
    np.testing.assert_array_equal(run(pieces, X), run(whole, X))


def test_a_text_that_does_not_parse_is_a_fault_of_haloc(monkeypatch):
    monkeypatch.setattr(builder, "BATCH_CHARACTERS", 1)
    units = builder.Builder(host_target(), 2)
    units.add(builder.Unit(("f",), "define hidden void @f() {\n  nonsense\n}\n"))
    with pytest.raises(InternalError, match="does not parse"):
        units.image(builder.Unit(("g",), "define hidden void @g() {\n  ret void\n}\n"), "g")


def test_many_threads_compile_at_once():
    """LLVM is entered without llvmlite's lock: what comes out is the same."""
    texts = [TEXT, TEXT.replace("sine", "cosine"), TEXT.replace("sine", "tanh")] * 2
    alone = [run(compiled(text)[0], X) for text in texts[:3]] * 2
    with ThreadPoolExecutor(6) as threads:
        programs = list(threads.map(lambda text: compile_module(parse_module(text)), texts))
    for program, expected in zip(programs, alone, strict=True):
        np.testing.assert_array_equal(run(program, X), expected)
