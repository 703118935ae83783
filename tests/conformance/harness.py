"""JAX's own primitive harnesses as an exam: jaxlib, haloc and haloc's interpreter on each.

    python -m tests.conformance.harness [--mode x32|x64|special] [--part P/N] [pattern ...]

prints every difference and, last, the counts. Mode special feeds the elementwise harnesses with
zeros, infinities, NaN and the ends of their ranges.
"""

from __future__ import annotations

import argparse
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from haloc import interpreter
from haloc.formats.hlo_text import parse_module
from haloc.ops.table import Elementwise, op
from tests.conformance.compare import assert_close, flat, hlo_of, run_native

with jax.enable_x64(True):  # else it leaves out those of 64-bit types
    from jax._src.internal_test_util import test_harnesses

MODES = ("x32", "x64", "special")
"""jax_enable_x64 off; on; on, with special values for arguments."""
ENGINES = ("native", "interpreter")
DIFFERENCES = Path(__file__).with_name("harness_differences.txt")
SCALE = 10.0
"""On the tolerances of `compare`: harnesses of hundreds of products, and of decompositions."""
SCALES = {
    # One matrix has 200 rows and condition 2e5: either f32 factor is within 3e-2 of the exact one.
    "cholesky": 100.0,
}
"""By group."""

_ALL = sorted(test_harnesses.all_harnesses, key=lambda h: h.fullname)
"""JAX's own order changes from process to process."""
HARNESSES = {h.fullname: h for h in _ALL if h.filter("cpu")}
"""By name, those that jaxlib's CPU runs; the others are JAX's own list of what it cannot."""


@dataclass(frozen=True, slots=True)
class Question:
    """A harness with its arguments: what jaxlib answers, and the program as HLO text."""

    text: str
    arguments: list[np.ndarray]
    answers: list[np.ndarray]


def leaves(value) -> list[np.ndarray]:
    """The arrays JAX passes for a value: canonical element types, keys as their words."""
    found = []
    for leaf in jax.tree.leaves(value):
        array = jax.numpy.asarray(leaf)
        if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
            array = jax.random.key_data(array)
        found.append(np.asarray(array))
    return found


def question(name: str, arguments=None) -> Question:
    """Under the caller's x64 mode. Arguments are the harness's own, from a seed of its name."""
    harness = HARNESSES[name]
    if arguments is None:
        rng = np.random.RandomState(number_of(name))
        arguments = harness.dyn_args_maker(rng)
    answers = leaves(jax.jit(harness.dyn_fun)(*arguments))
    return Question(hlo_of(harness.dyn_fun, arguments), leaves(arguments), answers)


def determined(name: str, asked: Question, results: list[np.ndarray]) -> list[np.ndarray]:
    """What of the results does not depend on how an unstable sort orders equal keys.

    Of sorted arrays: the keys, and the rows in one order. Of approximate top k: the values, the
    operand at the indices, and that no index stands twice.
    """
    harness = HARNESSES[name]
    if not harness.params.get("is_stable", True):
        rows = [np.moveaxis(r, harness.params["dimension"], -1) for r in results]
        order = np.lexsort([r.astype(np.float64) for r in reversed(rows)], axis=-1)
        keys = results[: harness.params["num_keys"]]
        return [*keys, *(np.take_along_axis(r, order, -1) for r in rows)]
    if harness.group_name == "approx_top_k":
        values, indices = results
        at = np.take_along_axis(asked.arguments[0], indices, -1)
        found = np.sort(indices, axis=-1)
        return [values, at, np.array((np.diff(found, axis=-1) != 0).all())]
    return results


def answer(engine: str, asked: Question) -> list[np.ndarray]:
    if engine == "native":
        return run_native(asked.text, asked.arguments)
    return flat(interpreter.run(parse_module(asked.text), asked.arguments))


def examine(name: str, asked: Question, engine: str, zeros: bool = False) -> str:
    """What differs from jaxlib, in one line; "" when nothing does. zeros: in their signs too."""
    return difference(name, asked, engine, lambda: answer(engine, asked), zeros)


def difference(
    name: str,
    asked: Question,
    engine: str,
    run: Callable[[], list[np.ndarray]],
    zeros: bool = False,
) -> str:
    """How what `run` gives differs from jaxlib's answers, or what it raised."""
    try:
        scale = SCALES.get(HARNESSES[name].group_name, SCALE)
        got = run()
        assert [g.dtype for g in got] == [w.dtype for w in asked.answers]
        wanted = determined(name, asked, asked.answers)
        assert_close(engine, determined(name, asked, got), wanted, scale)
        for g, w in zip(got, wanted) if zeros else ():
            assert_signs_of_zeros(g, w)
    except Exception as error:
        return one_line(error)
    return ""


def assert_signs_of_zeros(got: np.ndarray, wanted: np.ndarray) -> None:
    """Of real numbers: of complex ones jaxlib's tanh(-0), a.o., are not odd, and haloc's are."""
    if not jax.numpy.issubdtype(wanted.dtype, np.floating):
        return
    other = np.signbit(got) != np.signbit(wanted)
    at = np.flatnonzero((got == 0) & (wanted == 0) & other)
    assert not at.size, f"{at.size} zeros of the other sign, the first at {at[0]}"


def one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def expected_differences() -> dict[tuple[str, str, str], str]:
    """(mode, engine, harness) -> reason: the lines `mode engine harness: reason` of the file.

    Engine jaxlib: JAX itself fails in this mode.
    """
    found = {}
    for line in DIFFERENCES.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        key, colon, reason = line.partition(": ")
        mode, engine, name = key.split()
        assert colon and reason and mode in MODES and engine in (*ENGINES, "jaxlib"), line
        assert name in HARNESSES, f"no harness {name}"
        assert (mode, engine, name) not in found, f"twice: {key}"
        found[mode, engine, name] = reason
    return found


def names_of(mode: str) -> list[str]:
    """Those a mode asks: with x64 off, not those of 64-bit types, which JAX would cut to 32."""
    wide = ("int64", "float64", "complex128") if mode == "x32" else ()
    return [n for n in HARNESSES if not any(w in n for w in wide)]


def groups(mode: str) -> dict[str, list[str]]:
    """The harnesses' names by group, which is nearly always a JAX primitive."""
    found: dict[str, list[str]] = {}
    for name in names_of(mode):
        found.setdefault(HARNESSES[name].group_name, []).append(name)
    return found


def sample(count: int) -> list[str]:
    """`count` harnesses of mode x64, one of each group in turn."""
    turns: list[tuple[int, str]] = []
    for members in groups("x64").values():
        turns += enumerate(sorted(members, key=number_of))
    return [name for _, name in sorted(turns, key=lambda t: (t[0], number_of(t[1])))[:count]]


def number_of(name: str) -> int:
    """The seed of a harness's arguments."""
    return zlib.crc32(name.encode())


# --- Special values ----------------------------------------------------------------------------


def special_values(dtype: np.dtype) -> np.ndarray:
    """Zeros, ones, the ends of the range, infinities, NaN; no subnormals, which XLA:CPU's threads
    flush to zero and haloc keeps."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "c":
        parts = special_values(np.dtype(f"f{dtype.itemsize // 2}"))
        real, imag = np.meshgrid(parts, parts)
        values = np.empty(real.shape, dtype)
        values.real, values.imag = real, imag
        return values.reshape(-1)
    if jax.numpy.issubdtype(dtype, np.integer):
        info = jax.numpy.iinfo(dtype)
        values = {0, 1, 2, 7, info.max, info.max - 1, info.min, info.min + 1}
        if info.min < 0:
            values |= {-1, -2}
        return np.array(sorted(int(v) for v in values)).astype(dtype)
    info = jax.numpy.finfo(dtype)
    positive = [0, info.tiny, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 17.25, info.max, np.inf]
    positive = [float(v) for v in positive]
    return np.array([*(-v for v in positive), *positive, np.nan]).astype(dtype)


def special_arguments(name: str) -> list[np.ndarray] | None:
    """Every combination of special values; None for a harness that is not elementwise or takes
    arguments of several shapes."""
    own = HARNESSES[name].dyn_args_maker(np.random.RandomState(0))
    if not own or len(own) > 3 or not all(isinstance(a, np.ndarray) for a in own):
        return None
    if len({a.shape for a in own}) > 1:
        return None
    values = [special_values(a.dtype) for a in own]
    values = [v[:: 1 + (len(own) > 1) * (len(v) // 30)] for v in values]
    return [m.reshape(-1).copy() for m in np.meshgrid(*values, indexing="ij")]


def is_elementwise(text: str) -> bool:
    """Each of the program's instructions is elementwise, a constant spread, or structure."""
    structure = {"parameter", "constant", "broadcast", "tuple", "call"}
    return all(
        i.opcode in structure or isinstance(op(i).lower, Elementwise)
        for i in parse_module(text).instructions()
    )


def special_question(name: str) -> Question | None:
    arguments = special_arguments(name)
    if arguments is None:
        return None
    try:
        text = hlo_of(HARNESSES[name].dyn_fun, arguments)
    except Exception:
        return None  # JAX's own: the function wants its own shapes
    # Asked before it runs: a loop may not end on these values.
    return question(name, arguments) if is_elementwise(text) else None


# --- The exam ----------------------------------------------------------------------------------


def differences(mode: str, name: str, engines=ENGINES) -> dict[tuple[str, str, str], str] | None:
    """(mode, engine, harness) -> what differs; of engine "jaxlib", why JAX cannot be asked.

    None where there is no question: in mode special, a harness that is not elementwise.
    """
    with jax.enable_x64(mode != "x32"):
        try:
            asked = special_question(name) if mode == "special" else question(name)
        except Exception as error:
            return {(mode, "jaxlib", name): one_line(error)}
        if asked is None:
            return None
        told = {
            (mode, engine, name): examine(name, asked, engine, mode == "special")
            for engine in engines
        }
    return {key: difference for key, difference in told.items() if difference}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("patterns", nargs="*", help="parts of names; a harness needs one of them")
    parser.add_argument("--mode", choices=MODES, default="x64")
    parser.add_argument("--part", default="0/1", help="P/N: every N-th harness, from the P-th")
    parser.add_argument("--engine", choices=ENGINES, help="only this one")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    jax.config.update("jax_platforms", "cpu")
    part, parts = map(int, options.part.split("/"))
    names = names_of(options.mode)[part::parts]
    if options.patterns:
        names = [n for n in names if any(p in n for p in options.patterns)]
    engines = (options.engine,) if options.engine else ENGINES
    expected = expected_differences()
    count: Counter[str] = Counter()
    for name in names:
        found = differences(options.mode, name, engines)
        if found is None:
            continue
        for key, difference in found.items():
            print(f"{' '.join(key)}: {difference[:300]}", flush=True)
        if (options.mode, "jaxlib", name) in found:
            count["jaxlib cannot"] += 1
            continue
        count["jaxlib answers"] += 1
        for engine in engines:
            key = (options.mode, engine, name)
            count[f"{engine} equal"] += key not in found
            count[f"{engine} differs as expected"] += key in found and key in expected
            count[f"{engine} differs"] += key in found and key not in expected
    counts = ", ".join(f"{what} {n}" for what, n in count.items())
    print(f"{options.mode}: {len(names)} harnesses; {counts}")


if __name__ == "__main__":
    main()
