"""Writes the demo's programs and data. Needs jax and scikit-learn; the demo itself does not.

    python examples/digits/make_hlo.py

train_step.hlo: one Adam step of a convolutional classifier of 8x8 digits.
predict.hlo: class probabilities of a batch. digits.npz: scikit-learn's digits, as bytes.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
BATCH = 128
TEST = 360
LEARNING_RATE = 2e-3

PARAMETERS = {
    "conv1": (3, 3, 1, 16),
    "bias1": (16,),
    "conv2": (3, 3, 16, 32),
    "bias2": (32,),
    "dense1": (4 * 4 * 32, 64),
    "bias3": (64,),
    "dense2": (64, 10),
    "bias4": (10,),
}


def logits(p, images):
    """images: u8[n,8,8], 0 to 16."""
    x = images.astype(jnp.float32)[..., None] / 16.0
    for w, b in (("conv1", "bias1"), ("conv2", "bias2")):
        x = lax.conv_general_dilated(
            x, p[w], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x + p[b])
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.reshape(x.shape[0], -1)
    x = jax.nn.relu(x @ p["dense1"] + p["bias3"])
    return x @ p["dense2"] + p["bias4"]


def loss(p, images, labels):
    log_p = jax.nn.log_softmax(logits(p, images))
    return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))


def train_step(p, m, v, step, images, labels):
    """Adam. Returns the new parameters, moments, step and the loss."""
    value, g = jax.value_and_grad(loss)(p, images, labels)
    step = step + 1
    m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
    v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
    scale = LEARNING_RATE * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    p = jax.tree.map(lambda a, b, c: a - scale * b / (jnp.sqrt(c) + 1e-8), p, m, v)
    return p, m, v, step, value


def predict(p, images):
    return jax.nn.softmax(logits(p, images))


def main():
    digits = load_digits()
    images, labels = digits.images.astype(np.uint8), digits.target.astype(np.int32)
    order = np.random.default_rng(0).permutation(len(labels))
    np.savez_compressed(HERE / "digits.npz", images=images[order], labels=labels[order])
    p = {k: jax.ShapeDtypeStruct(s, jnp.float32) for k, s in PARAMETERS.items()}
    batch = jax.ShapeDtypeStruct((BATCH, 8, 8), jnp.uint8)
    target = jax.ShapeDtypeStruct((BATCH,), jnp.int32)
    step = jax.ShapeDtypeStruct((), jnp.float32)
    test = jax.ShapeDtypeStruct((TEST, 8, 8), jnp.uint8)
    programs = {
        "train_step": jax.jit(train_step).lower(p, p, p, step, batch, target),
        "predict": jax.jit(predict).lower(p, test),
    }
    for name, lowered in programs.items():
        text = lowered.compiler_ir("hlo").as_hlo_text()
        (HERE / f"{name}.hlo").write_text(text)
        print(f"{name}.hlo: {len(text.splitlines())} lines")
    print("parameter order:", sorted(PARAMETERS))


if __name__ == "__main__":
    main()
