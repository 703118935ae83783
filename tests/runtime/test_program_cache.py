"""Whole programs from the disk cache: equal to compiled ones, and only when nothing has changed."""

import subprocess
import sys
from unittest import mock

import numpy as np
import pytest

from haloc import xla_client
from haloc.cpu.disk_cache import DiskCache
from haloc.flags import Flags
from haloc.formats.hlo_text import parse_module
from haloc.runtime import cpu_backend
from haloc.runtime.program_cache import KIND

TEXT = """
HloModule several
ENTRY main {
  x = f32[300,200] parameter(0)
  c = f32[] constant(3)
  b = f32[300,200] broadcast(c), dimensions={}
  y = f32[300,200] multiply(x, b)
  ROOT r = f32[300,200] tanh(y)
}
"""
X = np.random.default_rng(0).normal(size=(300, 200)).astype(np.float32)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HALOC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HALOC_CACHE_BYTES", str(1 << 24))
    return DiskCache.of(Flags.from_environment())


def compiles(computation, **options):
    """The executable, and how often the compiler was at work for it."""
    client = xla_client.make_cpu_client(num_devices=2)
    given = xla_client.CompileOptions()
    for name, value in options.items():
        setattr(given, name, value)
    compiler = mock.Mock(wraps=cpu_backend.compile_module)
    with mock.patch.object(cpu_backend, "compile_module", compiler):
        executable = client.compile_and_load(computation, client.devices()[:1], given)
    return executable, compiler.call_count


def run(executable, *arrays):
    arguments = [executable.client.buffer_from_pyval(a) for a in arrays]
    return [np.asarray(a) for a in executable.execute(arguments)]


@pytest.mark.parametrize("form", [str, str.encode, parse_module])
def test_what_was_compiled_is_loaded(cache, form):
    first, count = compiles(form(TEXT))
    again, count_again = compiles(form(TEXT))
    assert (count, count_again) == (1, 0)
    np.testing.assert_array_equal(run(first, X)[0], run(again, X)[0])
    assert again.fingerprint == first.fingerprint
    assert str(again.hlo_modules()[0]) == str(first.hlo_modules()[0])
    assert again.cost_analysis() == first.cost_analysis()
    assert str(again.get_compiled_memory_stats()) == str(first.get_compiled_memory_stats())
    assert again.serialize() == first.serialize()


def test_what_has_changed_is_compiled(cache, monkeypatch):
    compiles(TEXT)
    assert compiles(TEXT.replace("constant(3)", "constant(4)"))[1] == 1
    assert compiles(TEXT, env_option_overrides=[("xla_backend_optimization_level", "0")])[1] == 1
    assert compiles(TEXT, env_option_overrides=[("xla_disable_hlo_passes", "dce")])[1] == 1
    assert compiles(TEXT)[1] == 0
    monkeypatch.setenv("XLA_FLAGS", "--xla_disable_hlo_passes=dce")
    assert compiles(TEXT)[1] == 1
    monkeypatch.delenv("XLA_FLAGS")
    monkeypatch.setattr("haloc.runtime.program_cache._source_digest", lambda: "other source")
    assert compiles(TEXT)[1] == 1


def test_who_wants_to_see_the_compilation_gets_one(cache, tmp_path, monkeypatch):
    compiles(TEXT)
    assert compiles(TEXT, env_option_overrides=[("xla_dump_to", str(tmp_path / "dump"))])[1] == 1
    assert list((tmp_path / "dump").glob("*after_optimizations.txt"))
    monkeypatch.setenv("HALOC_CACHE_BYTES", "0")
    assert compiles(TEXT)[1] == 1


def test_damaged_programs_are_compiled_and_stored_again(cache):
    compiles(TEXT)
    (entry,) = [e for e in cache.entries() if e.kind == KIND]
    for wrong in (b"", b"nothing", cache.read(KIND, entry.key)[:-5]):
        cache.write(KIND, entry.key, wrong)
        executable, count = compiles(TEXT)
        assert count == 1
        assert compiles(TEXT)[1] == 0
        assert run(executable, X)


PROGRAM = """
import sys
import numpy as np
from haloc import xla_client
client = xla_client.make_cpu_client()
executable = client.compile_and_load(open(sys.argv[1]).read(), client.devices()[:1])
x = np.random.default_rng(0).normal(size=(300, 200)).astype(np.float32)
(result,) = executable.execute([client.buffer_from_pyval(x)])
print(np.asarray(result).tobytes().hex()[:64], "llvmlite" in sys.modules)
"""


def test_processes_at_once_and_afterwards(cache, tmp_path):
    """All compile the same into an empty cache; later ones need no LLVM, nor does the pool."""
    (tmp_path / "p.hlo").write_text(TEXT)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "p.hlo")]
    expected = run(compiles(TEXT.replace("several", "own"))[0], X)[0].tobytes().hex()[:64]
    first = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for process in first:
        assert process.communicate()[0].split()[0] == expected
    later = subprocess.run(command, capture_output=True, text=True, check=True)
    assert later.stdout.split() == [expected, "False"]
