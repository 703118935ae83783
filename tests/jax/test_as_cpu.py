"""What JAX does only on its CPU platform, with haloc in its place; and long runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")

ROOT = Path(__file__).parents[2]

INSTALL = """
import jax, haloc.jax
haloc.jax.install("cpu")
assert "haloc" in jax.devices()[0].client.platform_version
"""

DLPACK = """
import numpy as np, torch, jax, jax.numpy as jnp
x = jnp.arange(12.0).reshape(3, 4)
t = torch.from_dlpack(x)
assert t.data_ptr() == x.unsafe_buffer_pointer()
assert t.tolist() == x.tolist()
del x
assert t.sum() == 66
u = torch.arange(6, dtype=torch.float32)
y = jnp.from_dlpack(u)
assert (jax.jit(lambda a: a * 2)(y) == jnp.arange(6) * 2).all()
del u
assert y.tolist() == [0, 1, 2, 3, 4, 5]
v = np.from_dlpack(jnp.ones(3))
assert v.tolist() == [1, 1, 1]
z = jnp.arange(5)
assert np.asarray(z).__array_interface__["data"][0] == z.unsafe_buffer_pointer()
# The program may not write over memory that somebody else sees.
w = jnp.ones(4)
view = np.asarray(w)
jax.jit(lambda a: a + 1, donate_argnums=0)(w)
assert view.tolist() == [1, 1, 1, 1]
"""

CACHE = """
import jax, jax.numpy as jnp
jax.config.update("jax_compilation_cache_dir", {folder!r})
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name))
print(jax.jit(lambda x: jnp.sin(x) + 3)(jnp.zeros(2)).tolist())
print("/jax/compilation_cache/cache_hits" in hits)
"""

THREADS = """
import gc, threading
import jax, jax.numpy as jnp
f = jax.jit(lambda x, y: jnp.tanh(x) + y)
wrong = []
def work(seed):
    for k in range(300):
        x = f(jnp.full(64, float(k)), jnp.full(64, float(seed)))
        if k % 50 == 0:
            gc.collect()
            jax.jit(lambda v: v * seed + k)(x)
        if abs(float(x[3]) - seed) > 1.001:
            wrong.append((seed, k))
threads = [threading.Thread(target=work, args=[n]) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not wrong, wrong[:3]
"""

COMPILES = """
import gc, os
import jax, jax.numpy as jnp
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
def compile(start, count):
    for k in range(start, start + count):
        assert float(jax.jit(lambda x, k=k: x * (k + 0.5))(2.0)) == 2 * k + 1
        if k % 50 == 0:
            jax.clear_caches()
    jax.clear_caches()
    gc.collect()
compile(0, 200)
before = resident()
compile(200, {count})
grown = (resident() - before) / {count}
assert grown < 10_000, f"{{grown:.0f}} bytes a program"
"""


def run(source: str, **environment: str) -> str:
    given = {**os.environ, "JAX_PLATFORMS": "cpu", "HALOC_AS_CPU": "1", "JAX_ENABLE_X64": "0"}
    given["PYTHONPATH"] = os.pathsep.join(["src", *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", INSTALL + source],
        cwd=ROOT,
        env={**given, **environment},
        capture_output=True,
        check=False,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_dlpack_and_views():
    pytest.importorskip("torch")
    run(DLPACK)


def test_persistent_compilation_cache(tmp_path):
    source = CACHE.format(folder=str(tmp_path))
    assert run(source).split("\n")[:2] == ["[3.0, 3.0]", "False"]
    assert list(tmp_path.iterdir())
    assert run(source).split("\n")[:2] == ["[3.0, 3.0]", "True"]


@pytest.mark.nightly
def test_threads_and_collections():
    run(THREADS)


@pytest.mark.nightly
def test_a_thousand_compilations_do_not_grow():
    run(COMPILES.format(count=1000), HALOC_CACHE_DIR="", XLA_FLAGS="")
