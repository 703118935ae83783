"""The plugin file gives hosts in C, and Pythons without haloc, the same working table."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import haloc
from haloc.pjrt.abi import ARGS
from haloc.pjrt.plugin.api import pjrt_api
from haloc.pjrt.plugin_file import path as plugin_path
from haloc.pjrt.plugin_file.bootstrap import bootstrap

HERE = Path(__file__).parent
CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
BARE = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/")}
"""An environment that does not say where haloc is."""


@pytest.fixture(scope="module")
def plugin():
    return haloc.pjrt_plugin_path()


def run(*command, **environment):
    done = subprocess.run(
        [*map(str, command)],
        env={**BARE, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode >= 0, f"killed by signal {-done.returncode}: {done.stderr}"
    return done


def test_the_file_is_made_once(plugin):
    before = os.stat(plugin).st_mtime_ns
    assert haloc.pjrt_plugin_path() == plugin
    assert os.stat(plugin).st_mtime_ns == before
    assert Path(plugin).read_bytes()[:4] == b"\x7fELF"


def test_a_damaged_file_is_written_anew(monkeypatch, tmp_path):
    monkeypatch.setenv("HALOC_CACHE_DIR", str(tmp_path))
    made = Path(haloc.pjrt_plugin_path())
    assert tmp_path in made.parents
    whole = made.read_bytes()
    made.write_bytes(whole[:100])
    assert Path(haloc.pjrt_plugin_path()).read_bytes() == whole


def test_in_this_process_it_is_the_same_table(plugin):
    library = ctypes.CDLL(plugin)
    library.GetPjrtApi.restype = ctypes.c_void_p
    assert library.GetPjrtApi() == ctypes.addressof(pjrt_api())


def test_a_python_that_has_not_imported_haloc(plugin):
    code = (
        "import ctypes, sys; sys.path[:] = [p for p in sys.path if 'src' not in p]\n"
        f"get = ctypes.CDLL({plugin!r}).GetPjrtApi; get.restype = ctypes.c_void_p\n"
        "api = get(); assert api == get(); print(ctypes.c_size_t.from_address(api).value)"
    )
    done = run(sys.executable, "-c", code)
    assert done.stdout.split() == [str(40 + 8 * len(ARGS))], done.stderr


def test_threads_that_ask_together_get_one_answer(plugin):
    # PyDLL: both threads hold the GIL when they call.
    code = (
        "import ctypes, threading\n"
        f"get = ctypes.PyDLL({plugin!r}).GetPjrtApi; get.restype = ctypes.c_void_p\n"
        "found = []\n"
        "threads = [threading.Thread(target=lambda: found.append(get())) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(len(set(found)), len(found))"
    )
    done = run(sys.executable, "-c", code)
    assert done.stdout.split() == ["1", "4"], done.stderr


def test_arrays_may_outlive_everything(plugin):
    code = (
        "import sys, numpy as np; sys.path[:0] = ['src']\n"
        "from haloc import xla_client as xc\n"
        f"xc.load_pjrt_plugin_dynamically('own', {plugin!r})\n"
        "client = xc.make_c_api_client('own')\n"
        "arrays = [client.buffer_from_pyval(np.zeros(9)) for _ in range(9)]\n"
        "cycle = [client, arrays]; cycle.append(cycle); print('end')"
    )
    done = run(sys.executable, "-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.nightly  # JAX takes seconds to start
def test_jax_takes_the_file_alone(plugin):
    pytest.importorskip("jax")
    code = (
        "from jax._src import xla_bridge\n"
        f"path, options = {plugin!r}, {{'num_devices': 2}}\n"
        "xla_bridge.register_plugin('haloc', library_path=path, options=options)\n"
        "import jax, jax.numpy as jnp\n"
        "print(len(jax.devices('haloc')), jax.vmap(jax.grad(lambda x: x**3))(jnp.arange(3.0)))"
    )
    done = run(sys.executable, "-c", code, JAX_PLATFORMS="haloc,cpu")
    assert (done.returncode, done.stdout) == (0, "2 [ 0.  3. 12.]\n"), done.stderr


# --- Hosts in C -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """A program in C that loads a plugin file and runs x + x through it."""
    if CC is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("host")
    numbers = "\n".join(f"#define {name} {number}" for number, name in enumerate(ARGS))
    (folder / "functions.h").write_text(numbers)
    program = folder / "host"
    command = [CC, "-Wall", "-Werror", f"-I{folder}", "-o", program, HERE / "host.c", "-ldl"]
    subprocess.run([*map(str, command), "-lpthread"], check=True)
    return program


def test_a_host_in_c(plugin, host):
    done = run(host, plugin)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["platform"] == "haloc"
    assert told["devices"] == 2
    assert told["result"] == [2, 4, 6, 8]
    assert told["from another thread"] == [4, 8, 12, 16]
    assert "frobnicate" in told["error of a bad program"]
    assert told["code"] == 3


def test_python_that_is_not_there_is_an_error_with_a_reason(host, monkeypatch, tmp_path):
    monkeypatch.setattr(plugin_path, "_libpython", lambda: "/nowhere/libpython3.11.so")
    broken = tmp_path / "plugin.so"
    broken.write_bytes(plugin_path.plugin_file())
    done = run(host, broken)
    assert done.returncode == 2
    assert "cannot load libpython: /nowhere/libpython3.11.so: cannot open" in done.stdout
    assert "code 9" in done.stdout


@pytest.mark.parametrize(
    ("version", "places", "message"),
    [
        ("3.99", None, "is made for Python 3.99 ({executable}), and this process runs Python 3."),
        (None, ["/nowhere"], "cannot start in Python: Traceback"),
    ],
)
def test_the_wrong_python_is_an_error_with_a_reason(
    monkeypatch, tmp_path, version, places, message
):
    def other(libpython, executable, own_version, own_places):
        chosen = own_places if places is None else places
        return bootstrap(libpython, executable, version or own_version, chosen)

    monkeypatch.setattr(plugin_path, "bootstrap", other)
    file = tmp_path / "plugin.so"
    file.write_bytes(plugin_path.plugin_file())
    # -S and -I: a Python that sees nothing but its standard library.
    done = run(sys.executable, "-I", "-S", HERE / "initialize.py", file)
    assert message.format(executable=sys.executable) in done.stdout, done.stdout + done.stderr
    assert "code 9" in done.stdout


def test_systems_without_elf_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(plugin_path.platform, "system", lambda: "Darwin")
    with pytest.raises(haloc.errors.UnimplementedError, match="not Darwin's"):
        haloc.pjrt_plugin_path()
