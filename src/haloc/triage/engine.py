"""Ways to run a module: natively, in the interpreter, or in the interpreter after passes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from haloc import interpreter
from haloc.errors import InvalidArgumentError, NotFoundError
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction, HloModule
from haloc.ir.shape import Shape, tuple_shape
from haloc.passes.driver import PASSES, PassOptions, Pipeline, run_passes
from haloc.passes.pipelines import PIPELINES
from haloc.runtime.backend import nested
from haloc.xla_client import CompileOptions, make_cpu_client

KINDS = ("native", "interpreter", "passes")
_LEVEL = re.compile(r"O([0-3])")


@dataclass(frozen=True, slots=True)
class Engine:
    """kind: one of KINDS; "passes" interprets what the passes make of a module. level: LLVM's
    optimisation level, of native code. passes: those to run, in order; the whole CPU pipeline when
    empty. disable: passes to leave out."""

    kind: str
    level: int | None = None
    passes: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()

    def run(self, module: HloModule, arguments: Sequence[Value]) -> list[np.ndarray]:
        """The array leaves of the result. The module is left as it is."""
        with np.errstate(all="ignore"):
            if self.kind == "native":
                return self._run_native(module, arguments)
            return array_leaves(interpreter.run(self.prepared(module), arguments))

    def values(self, module: HloModule, arguments: Sequence[Value]) -> dict[str, Value]:
        """Intermediate values by name, as `interpreter.trace` has them.

        Native code keeps few: the entry is compiled anew with every value of arrays a result, which
        may change how it is fused.
        """
        with np.errstate(all="ignore"):
            if self.kind != "native":
                return interpreter.trace(self.prepared(module), arguments)
            exposed, kept = _with_all_results(module)
            leaves = iter(self._run_native(exposed, arguments))
            return {name: nested(shape, leaves) for name, shape in kept}

    def prepared(self, module: HloModule) -> HloModule:
        """The module whose values `values` gives."""
        if self.kind != "passes":
            return module
        copy = module.clone()
        steps: Pipeline = [*self.passes] or PIPELINES["cpu"]
        run_passes(copy, steps, PassOptions(disable="|".join(map(re.escape, self.disable))))
        return copy

    def _run_native(self, module: HloModule, arguments: Sequence[Value]) -> list[np.ndarray]:
        client = make_cpu_client()
        options = CompileOptions()
        overrides = options.env_option_overrides
        if self.level is not None:
            overrides.append(("xla_backend_optimization_level", self.level))
        if self.disable:
            overrides.append(("xla_disable_hlo_passes", ",".join(self.disable)))
        executable = client.compile_and_load(module, client.devices()[:1], options)
        leaves = array_leaves(tuple(arguments))
        layouts = executable.get_parameter_layouts()
        given = [
            client.buffer_from_pyval(leaf, force_copy=True, device_layout=layout)
            for leaf, layout in zip(leaves, layouts, strict=True)
        ]
        return [np.array(result) for result in executable.execute(given)]

    def __str__(self) -> str:
        options = [f"O{self.level}"] if self.level is not None else []
        options += [*self.passes, *(f"-{name}" for name in self.disable)]
        return self.kind + (":" + ",".join(options) if options else "")


NATIVE, INTERPRETER = Engine("native"), Engine("interpreter")


def parse_engine(text: str) -> Engine:
    """ "native", "native:O0", "native:-fusion", "interpreter", "passes", "passes:cse,dce", ...

    After the colon: O0 to O3 (native only), passes to leave out with a minus, and, of `passes`,
    those to run. Raises InvalidArgumentError and, for a pass that does not exist, NotFoundError.
    """
    kind, _, options = text.partition(":")
    if kind not in KINDS:
        raise InvalidArgumentError(f"no way to run {text!r}; there are: {', '.join(KINDS)}")
    words = [w for w in options.split(",") if w]
    levels = [m for w in words if (m := _LEVEL.fullmatch(w))]
    names = [w for w in words if not _LEVEL.fullmatch(w)]
    disable = tuple(w[1:] for w in names if w.startswith("-"))
    passes = tuple(w for w in names if not w.startswith("-"))
    for name in (*disable, *passes):
        if name not in PASSES:
            raise NotFoundError(f"{text}: no pass named {name!r}; haloc opt --list-passes has them")
    if (levels and kind != "native") or (passes and kind != "passes"):
        raise InvalidArgumentError(f"{text}: {kind} takes no {'passes' if passes else 'level'}")
    if kind == "interpreter" and words:
        raise InvalidArgumentError(f"{text}: interpreter takes no options; passes does")
    return Engine(kind, int(levels[-1][1]) if levels else None, passes, disable)


def array_leaves(value: Value) -> list[np.ndarray]:
    """The arrays of a value in depth-first order; tokens are left out."""
    if isinstance(value, tuple):
        return [leaf for member in value for leaf in array_leaves(member)]
    return [] if value is None else [np.asarray(value)]


def _with_all_results(module: HloModule) -> tuple[HloModule, list[tuple[str, Shape]]]:
    """A copy whose result is a tuple of all values of the entry; names and shapes of these."""
    copy = module.clone()
    kept = [i for i in copy.entry.instructions if _is_kept(i)]
    shapes = [i.shape for i in kept]
    copy.entry.root = copy.entry.add(HloInstruction("tuple", tuple_shape(*shapes), kept))
    for key in ("entry_computation_layout", "input_output_alias", "is_scheduled"):
        copy.header.pop(key, None)
    return copy, [(i.name, i.shape) for i in kept]


def _is_kept(instruction: HloInstruction) -> bool:
    leaves = instruction.shape.leaves()
    return bool(leaves) and all(s.is_array for s in leaves)


def random_values(shapes: Sequence[Shape], seed: int) -> list[Any]:
    """A value for each shape, made as `haloc run --random` makes them."""
    rng = np.random.default_rng(seed)

    def value(shape: Shape) -> Value:
        if shape.is_tuple:
            return tuple(map(value, shape.elements))
        return random_array(shape, rng) if shape.is_array else None

    return [value(s) for s in shapes]


def random_array(shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Values that most programs can digest: normal floats, integers of at most 8, both booleans."""
    dtype, dims = shape.dtype, shape.dims
    assert dtype.numpy is not None
    if dtype.is_pred:
        return rng.random(dims) < 0.5
    if dtype.is_integer:
        low = -min(8, 1 << (dtype.bits - 1)) if dtype.is_signed else 0
        high = min(8, (1 << (dtype.bits - dtype.is_signed)) - 1)
        return rng.integers(low, high + 1, dims).astype(dtype.numpy)
    values = rng.standard_normal(dims)
    if dtype.is_complex:
        return (values + 1j * rng.standard_normal(dims)).astype(dtype.numpy)
    if dtype.name == "f8e8m0fnu":  # has no sign and no zero
        values = np.abs(values) + 0.25
    return values.astype(dtype.numpy)


def named_leaves(values: dict[str, Value]) -> Iterator[tuple[str, np.ndarray]]:
    """(name, array) of every array in named values: "x", or "x[0]" for a member of a tuple."""

    def walk(name: str, value: Value) -> Iterator[tuple[str, np.ndarray]]:
        if isinstance(value, tuple):
            for number, member in enumerate(value):
                yield from walk(f"{name}[{number}]", member)
        elif value is not None:
            yield name, np.asarray(value)

    for name, value in values.items():
        yield from walk(name, value)
