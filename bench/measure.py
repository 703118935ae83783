"""One case, all sides: compiled, compared, timed in turn."""

from __future__ import annotations

import gc
import shutil
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from bench.cases.case import Case
from bench.row import HALOC, JAXLIB, NUMPY, TORCH, Row
from jax.interpreters import mlir
from jaxlib import xla_client as jaxlib_client

from haloc import xla_client

try:
    import torch
except ImportError:
    torch = None

Call = Callable[[], Any]

BLOCK_S = 0.005
PAUSE_S = 0.003
RETRY_BELOW_S = 0.3
RESTING = (HALOC, JAXLIB)
"""Sides whose threads sleep soon after a call; those of others turn round for a while."""


class Bench:
    """Measures cases for one process. cache: the folder of haloc's disk cache.

    budget_s: how long the sides of a case run in turn. threads: of each side.
    """

    def __init__(self, cache: Path, budget_s: float, threads: int):
        self._cache = cache
        self._budget_s = budget_s
        self._client = xla_client.make_cpu_client()
        self._device = self._client.devices()[0]
        self._jaxlib = jax.devices("cpu")[0].client
        if torch is not None:
            torch.set_num_threads(threads)
            torch.set_grad_enabled(False)
        # Both compilers load their LLVM before anything is timed.
        jax.jit(lambda x: x + 1).lower(1.0).compile()
        text = "HloModule m\nENTRY e { ROOT c = f32[] constant(1) }"
        self._client.compile_and_load(text, [self._device])

    def measure(self, case: Case) -> Row:
        row = Row(case.family, case.name, case.dtype, flops=case.flops, has_floor=case.floor)
        jax.config.update("jax_enable_x64", case.x64)
        arguments = case.arguments(np.random.default_rng(0))
        lowered = jax.jit(case.function, keep_unused=True).lower(*arguments)
        calls: dict[str, Call] = {}
        for side, prepare in ((JAXLIB, self._prepare_jaxlib), (HALOC, self._prepare_haloc)):
            call = _attempt(row, side, partial(prepare, row, lowered, arguments))
            if call is not None:
                calls[side] = call
        calls |= peers(case, arguments)
        self._compare(case, row, calls)
        row.read_bytes = sum(x.nbytes for x in jax.tree.leaves(arguments))
        gc.collect()
        times = alternate(calls, self._budget_s)
        row.runs = len(times[HALOC]) if HALOC in times else 0
        row.best = {side: min(taken) for side, taken in times.items()}
        row.median = {side: statistics.median(taken) for side, taken in times.items()}
        return row

    def _prepare_jaxlib(self, row: Row, lowered: Any, arguments: tuple[Any, ...]) -> Call:
        start = time.perf_counter()
        compiled = lowered.compile()
        cold = time.perf_counter() - start
        code = mlir.module_to_bytecode(lowered.compiler_ir("stablehlo"))
        devices = jaxlib_client.DeviceList(tuple(self._jaxlib.devices()[:1]))
        options = jaxlib_client.CompileOptions()
        if cold < RETRY_BELOW_S:
            again = lambda: self._jaxlib.compile_and_load(code, devices, options)  # noqa: E731
            cold = min(cold, *(seconds(again) for _ in range(2)))
        row.cold[JAXLIB] = cold
        stored = self._jaxlib.serialize_executable(compiled.runtime_executable())
        load = lambda: self._jaxlib.deserialize_executable(stored, devices, options)  # noqa: E731
        row.warm[JAXLIB] = min(seconds(load) for _ in range(3))
        row.memory[JAXLIB] = needed_bytes(compiled.memory_analysis())
        return lambda: jax.block_until_ready(compiled(*arguments))

    def _prepare_haloc(self, row: Row, lowered: Any, arguments: tuple[Any, ...]) -> Call:
        code = mlir.module_to_bytecode(lowered.compiler_ir("stablehlo"))
        compile_it = lambda: self._client.compile_and_load(code, [self._device])  # noqa: E731
        cold: list[float] = []
        while not cold or (cold[0] < RETRY_BELOW_S and len(cold) < 3):
            self._empty_cache()
            cold.append(seconds(compile_it))
        row.cold[HALOC] = min(cold)
        row.warm[HALOC] = min(seconds(compile_it) for _ in range(3))
        executable = compile_it()
        row.memory[HALOC] = needed_bytes(executable.get_compiled_memory_stats())
        put = self._client.buffer_from_pyval
        buffers = [put(np.asarray(x)) for x in jax.tree.leaves(arguments)]

        def run() -> list[Any]:
            results = executable.execute(buffers)
            for r in results:
                r.block_until_ready()
            return results

        return run

    def _empty_cache(self) -> None:
        for folder in self._cache.iterdir():
            if folder.is_dir():
                shutil.rmtree(folder)

    def _compare(self, case: Case, row: Row, calls: dict[str, Call]) -> None:
        """Run each side once; what raises is taken out of `calls`."""
        wanted: list[np.ndarray] | None = None
        for side in (JAXLIB, HALOC, TORCH, NUMPY):
            if side not in calls:
                continue
            made = _attempt(row, side, lambda c=calls[side]: arrays(c()))
            if made is None:
                del calls[side]
            elif side == JAXLIB:
                wanted = made
                row.written_bytes = sum(x.nbytes for x in made)
            elif wanted is not None:
                exact = side == HALOC
                row.error[side] = difference(made, wanted, exact)
                if not row.error[side] <= (case.error if exact else case.peer_error):
                    row.wrong.append(side)


def _attempt(row: Row, side: str, action: Callable[[], Any]) -> Any:
    """The action's result; None and a note in the row if it raises."""
    try:
        return action()
    except Exception as error:  # whatever it is: the report shows it
        row.failure[side] = f"{type(error).__name__}: {error}"[:500]
        return None


def peers(case: Case, arguments: tuple[Any, ...]) -> dict[str, Call]:
    """What PyTorch, NumPy and SciPy do for the same answer."""
    calls: dict[str, Call] = {}
    if case.torch is not None and torch is not None:
        tensors = jax.tree.map(tensor, arguments)
        calls[TORCH] = lambda: case.torch(torch, *tensors)
    if case.numpy is not None:
        plain = jax.tree.map(np.asarray, arguments)
        calls[NUMPY] = lambda: case.numpy(*plain)
    return calls


def tensor(x: Any) -> Any:
    """A tensor of its own memory."""
    array = np.array(x)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def arrays(results: Any) -> list[np.ndarray]:
    """The leaves of anybody's results."""
    return [
        (x.float().numpy() if x.dtype == torch.bfloat16 else x.numpy())
        if torch is not None and isinstance(x, torch.Tensor)
        else np.asarray(x)
        for x in jax.tree.leaves(results)
    ]


def difference(got: list[np.ndarray], wanted: list[np.ndarray], same_type: bool) -> float:
    """The largest ||got - wanted|| / ||wanted|| of a result; inf for another shape (or type)."""
    if len(got) != len(wanted):
        return float("inf")
    worst = 0.0
    for g, w in zip(got, wanted, strict=True):
        if g.shape != w.shape or (same_type and g.dtype != w.dtype):
            return float("inf")
        wide = np.complex128 if w.dtype.kind == "c" else np.float64
        g, w = g.astype(wide), w.astype(wide)
        error = np.linalg.norm((g - w).ravel()) / max(np.linalg.norm(w.ravel()), 1e-30)
        worst = max(worst, float(error))
        if np.isnan(error):
            return float("inf")
    return worst


def needed_bytes(stats: Any) -> int:
    """Arguments, results and scratch memory of a run, donated memory once."""
    both = stats.argument_size_in_bytes + stats.output_size_in_bytes
    return int(both + stats.temp_size_in_bytes - stats.alias_size_in_bytes)


def seconds(call: Call, repeat: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - start) / repeat


def alternate(calls: dict[str, Call], budget_s: float) -> dict[str, list[float]]:
    """Seconds a call of each side, in turn and back again until the budget is spent.

    Short calls are timed by the block, after one that is not timed: other sides' threads have had
    the caches. At least 5 rounds, fewer of what takes seconds.
    """
    repeat = {s: max(1, min(1000, int(BLOCK_S / max(seconds(c), 1e-7)))) for s, c in calls.items()}
    times: dict[str, list[float]] = {side: [] for side in calls}
    order = list(calls)
    start, rounds = time.perf_counter(), 0
    while rounds < 300:
        spent = time.perf_counter() - start
        if spent > budget_s and (rounds >= 5 or spent > 3 * budget_s):
            break
        for side in order:
            if repeat[side] > 1:
                calls[side]()
            times[side].append(seconds(calls[side], repeat[side]))
            if side not in RESTING:
                time.sleep(PAUSE_S)
        order.reverse()
        rounds += 1
    return times
