"""Whole models from jax.export artifacts, natively, in a process where jax cannot be imported."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from haloc import load_exported
from tests.conformance.models import MODELS
from tests.conformance.test_models import relative_error

SCRIPT = """
import sys
for name in ("jax", "jaxlib", "flatbuffers"):
    sys.modules[name] = None          # importing it fails
import numpy as np
import haloc
f = haloc.load_exported(sys.argv[1])
given = np.load(sys.argv[2])
leaves = [given[str(i)] for i in range(len(given.files))]
tree = f.exported.artifact.in_tree
arguments, keywords = tree.unflatten(leaves)
results = f.call(*arguments, **keywords)
flat = f.exported.artifact.out_tree.flatten(results)
np.savez(sys.argv[3], *[np.asarray(x) for x in flat])
"""


def run_without_jax(artifact, arguments, folder):
    model, given, out = (folder / n for n in ("model", "given.npz", "out.npz"))
    model.write_bytes(artifact.serialize())
    leaves = jax.tree.leaves(arguments)
    np.savez(given, **{str(i): np.asarray(x) for i, x in enumerate(leaves)})
    command = [sys.executable, "-c", SCRIPT, str(model), str(given), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with np.load(out) as found:
        return [found[name] for name in found.files]


def check(name, folder):
    make, f32_error, _ = MODELS[name]
    with jax.enable_x64(False):
        function, arguments = make(jnp.dtype("float32"))
        types = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), arguments)
        artifact = export.export(jax.jit(function))(*types)
        wanted = jax.tree.leaves(jax.jit(function)(*arguments))
    got = run_without_jax(artifact, arguments, folder)
    assert len(got) == len(wanted)
    for number, (g, w) in enumerate(zip(got, wanted, strict=True)):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        error = relative_error(g, np.asarray(w))
        assert error <= f32_error, f"result {number}: relative error {error:.2e}"


@pytest.mark.parametrize("name", ["mlp_train"])
def test_model(name, tmp_path):
    check(name, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", MODELS)
def test_every_model(name, tmp_path):
    check(name, tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "mlp",
        *(pytest.param(n, marks=pytest.mark.nightly) for n in ("cnn", "gpt", "resnet")),
    ],
)
def test_batches_of_any_size(name):
    """One artifact with a symbolic batch, called with several."""
    make, f32_error, _ = MODELS[name]
    with jax.enable_x64(False):
        function, (*parameters, batch) = make(jnp.dtype("float32"))
        (size,) = export.symbolic_shape("b")
        types = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), parameters)
        batch_type = jax.ShapeDtypeStruct((size, *batch.shape[1:]), batch.dtype)
        artifact = export.export(jax.jit(function))(*types, batch_type)
        ours = load_exported(bytes(artifact.serialize()))
        for count in (1, len(batch)):
            given = (*parameters, batch[:count])
            wanted = jax.tree.leaves(jax.jit(function)(*given))
            got = ours.call(*jax.tree.map(np.asarray, given))
            for g, w in zip(jax.tree.leaves(got), wanted, strict=True):
                assert relative_error(np.asarray(g), np.asarray(w)) <= f32_error
