"""`xla_computation`: a Python function to the HLO it stands for."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

import haloc.numpy  # noqa: F401  # the operators of traced arrays
from haloc.frontend.builder import XlaOp
from haloc.frontend.dtypes import canonical
from haloc.frontend.from_jax import came_from_jax, lower, refuse
from haloc.frontend.pytree import LEAF, TreeDef, flatten
from haloc.frontend.tracer import Trace, concrete, tracing
from haloc.ir.dtype import dtype_from_numpy
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape, tuple_shape
from haloc.ir.sharding import REPLICATED, HloSharding, parse_sharding, tuple_sharding
from haloc.runtime.xla_computation import XlaComputation

_TUPLE_LIMIT = 100
_PLATFORMS = (None, "cpu", "gpu", "cuda", "rocm", "tpu", "haloc", "interpreter")


@dataclass(frozen=True)
class ShapeDtypeStruct:
    """Shape and dtype of an array, without one. named_shape: sizes of mapped axes it varies in."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    named_shape: dict[Any, int] = field(default_factory=dict)
    weak_type: bool = False


def xla_computation(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    in_parts: Any = None,
    out_parts: Any = None,
    backend: str | None = None,
    tuple_args: bool | None = False,
    instantiate_const_outputs: bool | None = None,
    return_shape: bool = False,
    donate_argnums: int | Iterable[int] = (),
) -> Callable[..., Any]:
    """A function that, given example arguments, returns the XlaComputation of `fun`.

    Arguments are trees of anything with shape and dtype, or Python's numbers. Each leaf is a
    parameter, whether used or not; the result is always a tuple of the result's leaves.

    static_argnums: arguments that `fun` gets as they are. axis_env: names and sizes of axes that
    collectives may name; replicas are numbered with the last axis fastest. in_parts, out_parts: a
    tree of None (replicated) or numbers of parts a dimension, for a prefix of the arguments' or
    results' tree: they become shardings. backend: the platform, one of cpu, gpu, cuda, rocm, tpu;
    haloc's unoptimised HLO is the same for all. tuple_args: one tuple for a parameter; None: where
    there are more than 100. instantiate_const_outputs: does nothing, as documented. return_shape:
    returns (computation, tree of ShapeDtypeStruct). donate_argnums: results of their leaves' types
    may take their memory.

    Functions written with jax.numpy are traced by JAX: `fun` first runs on haloc's traced arrays;
    when JAX gets one of them, or raises, `fun` runs again under `jax.jit`. Such functions take no
    axis_env, in_parts or out_parts (UnimplementedError).
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    if backend not in _PLATFORMS:
        raise ValueError(f"Unknown backend {backend!r}; one of {', '.join(_PLATFORMS[1:])}")  # type: ignore[arg-type]
    static = _numbers(static_argnums)
    donated = _numbers(donate_argnums)

    @functools.wraps(fun)
    def computation_maker(*args: Any, **kwargs: Any) -> Any:
        _check_numbers(static, donated, len(args))
        try:
            traced = _Traced(fun, args, kwargs, static, axis_env or ())
        except Exception as error:
            if not came_from_jax(error):
                raise
            refuse(axis_env=axis_env, in_parts=in_parts, out_parts=out_parts)
            module, shapes = lower(fun, args, kwargs, static, donated)
            made = _finished(module, f"xla_computation_{_name_of(fun)}", tuple_args)
            return (made, shapes) if return_shape else made
        traced.finish(tuple_args, donated, in_parts, out_parts)
        if return_shape:
            return traced.computation, traced.shapes()
        return traced.computation

    return computation_maker


def _numbers(given: int | Iterable[int]) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple(given)


def _check_numbers(static: tuple[int, ...], donated: tuple[int, ...], count: int) -> None:
    if any(not -count <= n < count for n in (*static, *donated)):
        raise ValueError(
            f"jitted function has static_argnums={static}, donate_argnums={donated} but was "
            f"called with only {count} positional arguments."
        )


def _name_of(fun: Callable[..., Any]) -> str:
    while isinstance(fun, functools.partial):
        fun = fun.func
    return re.sub(r"[^\w.-]", "_", getattr(fun, "__name__", type(fun).__name__))


def example_type(value: Any, name: str) -> tuple[Shape, bool]:
    """(shape, whether weak) of an example argument; TypeError naming it for what has none."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = canonical(dtype_from_numpy(np.dtype(value.dtype)))
        return Shape(dtype, tuple(map(int, value.shape))), bool(getattr(value, "weak_type", False))
    try:
        array, weak = concrete(value)
    except TypeError:
        raise TypeError(
            f"Argument '{value}' of type {type(value)} is not a valid JAX type{name}"
        ) from None
    return Shape(dtype_from_numpy(array.dtype), array.shape), weak


class _Traced:
    """One call of a function on traced arrays, and the computation made of it."""

    def __init__(
        self,
        fun: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        static: tuple[int, ...],
        axis_env: Sequence[tuple[Any, int]],
    ):
        self.name = f"xla_computation_{_name_of(fun)}"
        fixed = {n % len(args) for n in static} if args else set()
        self.numbers = [n for n in range(len(args)) if n not in fixed]
        dynamic = ([args[n] for n in self.numbers], kwargs)
        leaves, self.in_tree = flatten(dynamic)
        with tracing(Trace(self.name, axis_env)) as trace:
            self.trace = trace
            self.parameters = [trace.parameter(*example_type(leaf, "")) for leaf in leaves]
            given, keywords = self.in_tree.unflatten(self.parameters)
            full = list(args)
            for number, value in zip(self.numbers, given):
                full[number] = value
            found, self.out_tree = flatten(fun(*full, **keywords))
            self.results = [trace.lift(leaf) for leaf in found]
            self.root = trace.builder.add("tuple", None, [r.op.instruction for r in self.results])

    def shapes(self) -> Any:
        return self.out_tree.unflatten(
            ShapeDtypeStruct(r.shape, r.dtype, {}, r.weak_type) for r in self.results
        )

    def finish(
        self, tuple_args: bool | None, donated: tuple[int, ...], in_parts: Any, out_parts: Any
    ) -> None:
        builder = self.trace.builder
        if tuple_args is None:
            tuple_args = len(self.parameters) > _TUPLE_LIMIT
        if in_parts is not None:
            arguments = self.in_tree.members[0]
            arguments = TreeDef(tuple, None, arguments.members)
            for parameter, sharding in zip(self.parameters, _shardings(in_parts, arguments)):
                parameter.op.instruction.sharding = sharding
        if out_parts is not None:
            self.root.sharding = tuple_sharding(*_shardings(out_parts, self.out_tree))
        for output, number in self._aliases(donated):
            source = (0, (number,)) if tuple_args else (number, ())
            builder.setup_alias((output,), *source)
        module = builder.module(XlaOp(builder, self.root), self.name, f"main.{builder.count + 1}")
        if tuple_args:
            _tuple_parameters(module.entry)
        self.computation = XlaComputation.of_module(module)

    def _aliases(self, donated: tuple[int, ...]) -> list[tuple[int, int]]:
        """(result, parameter) pairs of one type, each used once."""
        members = self.in_tree.members[0].members
        wanted = {n % (max(self.numbers, default=0) + 1) if n < 0 else n for n in donated}
        offset, free = 0, []
        for number, member in zip(self.numbers, members):
            if number in wanted:
                free += range(offset, offset + member.num_leaves)
            offset += member.num_leaves
        found = []
        for output, result in enumerate(self.results):
            for number in free:
                if self.parameters[number].op.shape == result.op.shape:
                    found.append((output, number))
                    free.remove(number)
                    break
        if free:
            left = ", ".join(self.parameters[n].op.shape.to_string(False) for n in free)
            warnings.warn(f"Some donated buffers were not usable: {left}", stacklevel=3)
        return found


def _shardings(parts: Any, tree: TreeDef) -> list[HloSharding]:
    """One sharding a leaf of `tree`, from a prefix of it."""
    if parts is None:
        return [REPLICATED] * tree.num_leaves
    counts = isinstance(parts, tuple) and bool(parts) and all(isinstance(n, int) for n in parts)
    if counts:
        tiles = ",".join(map(str, parts))
        devices = prod(parts)
        if devices == 1:
            return [REPLICATED] * tree.num_leaves
        return [parse_sharding(f"{{devices=[{tiles}]<=[{devices}]}}")] * tree.num_leaves
    leaves = list(parts.values()) if isinstance(parts, dict) else list(parts)
    if tree is LEAF or len(leaves) != len(tree.members):
        raise ValueError(f"in_parts or out_parts {parts!r} is no prefix of the tree {tree}")
    return [s for part, member in zip(leaves, tree.members) for s in _shardings(part, member)]


def _finished(module: HloModule, name: str, tuple_args: bool | None) -> XlaComputation:
    """What JAX traced, as xla_computation gives it."""
    module.name = name
    count = len(module.entry.parameters)
    if tuple_args or (tuple_args is None and count > _TUPLE_LIMIT):
        _tuple_parameters(module.entry)
        layout = module.header.get("entry_computation_layout")
        if layout:
            parameters = (tuple_shape(*layout[0]),)
            module.header["entry_computation_layout"] = (parameters, layout[1])
        module.header["input_output_alias"] = tuple(
            (out, 0, (number, *index), kind)
            for out, number, index, kind in module.header.get("input_output_alias", ())
        )
    return XlaComputation.of_module(module)


def _tuple_parameters(entry: HloComputation) -> None:
    """One parameter, a tuple, in place of all."""
    parameters = entry.parameters
    shape = tuple_shape(*(p.shape for p in parameters))
    whole = HloInstruction("parameter", shape, (), {"parameter_number": 0})
    entry.add(whole, "arg_tuple")
    for number, parameter in enumerate(parameters):
        element = HloInstruction("get-tuple-element", parameter.shape, (whole,), {"index": number})
        entry.add(element, f"get-tuple-element.{number + 1}")
        element.sharding = parameter.sharding
        parameter.replace_uses_with(element)
        entry.remove(parameter)
    entry.sort()
