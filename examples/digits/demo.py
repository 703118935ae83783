"""Trains a convolutional digit classifier from HLO text and shows what it learnt.

Two programs written out by JAX (`make_hlo.py`) are compiled to native code by haloc: one Adam
step, and inference. The loop below only feeds them; every number comes from executing the HLO.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from haloc import xla_client
from haloc.cli.progress import ProgressLine

HERE = Path(__file__).parent
BATCH, TEST = 128, 360

SHAPES = {
    "bias1": (16,),
    "bias2": (32,),
    "bias3": (64,),
    "bias4": (10,),
    "conv1": (3, 3, 1, 16),
    "conv2": (3, 3, 16, 32),
    "dense1": (512, 64),
    "dense2": (64, 10),
}


class Program:
    """A compiled HLO text file; calls count and time themselves."""

    def __init__(self, client, name: str):
        text = (HERE / f"{name}.hlo").read_text()
        start = time.perf_counter()
        with ProgressLine(f"compiling {name}") as line:
            self.executable = client.compile_and_load(
                text, executable_devices=client.local_devices(), on_progress=line
            )
        self.compile_s = time.perf_counter() - start
        self.name, self.calls, self.run_s = name, 0, 0.0

    def __call__(self, arguments):
        start = time.perf_counter()
        results = self.executable.execute(arguments)
        for result in results:
            result.block_until_ready()
        self.run_s += time.perf_counter() - start
        self.calls += 1
        return results


def initial_parameters(rng) -> list[np.ndarray]:
    """He initialisation: normal with variance 2 / fan-in; biases zero."""
    values = []
    for name, shape in SHAPES.items():
        scale = 0.0 if name.startswith("bias") else np.sqrt(2.0 / np.prod(shape[:-1]))
        values.append((rng.normal(size=shape) * scale).astype(np.float32))
    return values


def train(client, step_program, images, labels, steps, rng):
    """Run `steps` Adam steps; returns the trained parameters as device arrays."""
    put = client.buffer_from_pyval
    p = [put(x) for x in initial_parameters(rng)]
    moments = [put(np.zeros(s, np.float32)) for s in (*SHAPES.values(), *SHAPES.values())]
    state = [*p, *moments, put(np.float32(0.0))]
    start = time.perf_counter()
    shown = 0.0
    for number in range(1, steps + 1):
        pick = rng.integers(0, len(labels), BATCH)
        *state, loss = step_program([*state, put(images[pick]), put(labels[pick])])
        now = time.perf_counter()
        if now - shown > 0.1 or number == steps:
            shown = now
            progress(number, steps, float(np.asarray(loss)), number / (now - start))
    return state[: len(SHAPES)]


def progress(number: int, steps: int, loss: float, rate: float) -> None:
    done = 30 * number // steps
    bar = "█" * done + "░" * (30 - done)
    line = f"training {bar} {number}/{steps}  loss {loss:7.4f}  {rate:6.0f} steps/s"
    if sys.stdout.isatty():
        print("\r" + line, end="\n" if number == steps else "", flush=True)
    elif number == steps:
        print(line)


def show_time(programs: list[Program], total_s: float) -> None:
    print("\nwhere the time went")
    spent = 0.0
    for p in programs:
        spent += p.compile_s + p.run_s
        print(f"  compile {p.name:<11}{p.compile_s * 1e3:9.1f} ms")
        each = p.run_s / p.calls * 1e6
        print(f"  run     {p.name:<11}{p.run_s * 1e3:9.1f} ms   {p.calls} calls of {each:.0f} µs")
    print(f"  Python and the rest{(total_s - spent) * 1e3:10.1f} ms")


def shaded(row) -> str:
    """One line of an image, two characters a pixel; 0 is blank, 16 is full."""
    return "".join(" ░▒▓█"[min(4, int(value) * 5 // 17)] * 2 for value in row)


def show_digits(images, labels, predicted, count: int = 6) -> None:
    """A few test digits side by side, in blocks of grey."""
    wrong = np.flatnonzero(labels != predicted)[:2]
    right = np.flatnonzero(labels == predicted)[: count - len(wrong)]
    chosen = [*right, *wrong]
    print("\na few test digits, and what the network says")
    for row in range(8):
        print("  " + "   ".join(shaded(images[i][row]) for i in chosen))
    verdicts = [
        f"{predicted[i]}" + ("" if predicted[i] == labels[i] else f" (really {labels[i]})")
        for i in chosen
    ]
    print("  " + "   ".join(f"{v:^16}" for v in verdicts))


def save_picture(images, labels, predicted, path: Path) -> None:
    try:
        import matplotlib  # noqa: PLC0415  (optional: only for the picture)
    except ImportError:
        print("\n(no picture: matplotlib is not installed)")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    wrong = np.flatnonzero(labels != predicted)[:6]
    chosen = [*np.flatnonzero(labels == predicted)[: 24 - len(wrong)], *wrong]
    figure, axes = plt.subplots(3, 8, figsize=(9, 4.2), layout="constrained")
    for axis, i in zip(axes.flat, chosen):
        axis.imshow(16 - images[i].astype(int), cmap="gray")
        good = predicted[i] == labels[i]
        title = str(predicted[i]) if good else f"{predicted[i]}, not {labels[i]}"
        axis.set_title(title, color="black" if good else "crimson", fontsize=10)
        axis.axis("off")
    figure.suptitle(f"test accuracy {np.mean(labels == predicted):.1%}")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"\npicture: {path}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, default=Path("out/digits.png"))
    options = parser.parse_args()

    begin = time.perf_counter()
    data = np.load(HERE / "digits.npz")
    images, labels = data["images"], data["labels"]
    client = xla_client.make_cpu_client()
    print(f"compiling {HERE / 'train_step.hlo'} and predict.hlo for {client.local_devices()[0]}")
    step_program, predict = Program(client, "train_step"), Program(client, "predict")
    rng = np.random.default_rng(options.seed)
    parameters = train(client, step_program, images[TEST:], labels[TEST:], options.steps, rng)
    (probabilities,) = predict([*parameters, client.buffer_from_pyval(images[:TEST])])
    predicted = np.asarray(probabilities).argmax(axis=1)
    accuracy = float(np.mean(predicted == labels[:TEST]))
    print(f"test accuracy {accuracy:.1%} on {TEST} digits the training never saw")
    show_time([step_program, predict], time.perf_counter() - begin)
    show_digits(images[:TEST], labels[:TEST], predicted)
    save_picture(images[:TEST], labels[:TEST], predicted, options.picture)
    if accuracy < 0.97:
        print(f"accuracy is below the 97% this demo promises: {accuracy:.1%}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
