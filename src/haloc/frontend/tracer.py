"""Tracing: a Python function runs once on arrays that stand for values, and leaves HLO behind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from haloc.frontend.builder import XlaBuilder, XlaOp
from haloc.frontend.dtypes import canonical, scalar_type
from haloc.frontend.pytree import TreeDef, flatten
from haloc.ir.dtype import DType, dtype_from_numpy
from haloc.ir.shape import Shape
from haloc.runtime.xla_computation import XlaComputation

_HERE = str(Path(__file__).parents[1])


class ConcretizationTypeError(TypeError):
    """A traced array was asked for its value."""


class TracerBoolConversionError(ConcretizationTypeError):
    pass


class TracerArrayConversionError(ConcretizationTypeError):
    pass


class TracerIntegerConversionError(ConcretizationTypeError):
    pass


class JaxReached(TypeError):
    """A traced array was handed to JAX."""


class Trace:
    """One computation while its function runs. axis_env: names and sizes of mapped axes, major
    first."""

    def __init__(
        self,
        name: str,
        axis_env: Sequence[tuple[Any, int]] = (),
        outer: Trace | None = None,
    ):
        self.builder = XlaBuilder(name)
        self.axis_env = tuple(axis_env) if outer is None else outer.axis_env
        self.outer = outer
        self.captures: dict[int, tuple[TracedArray, TracedArray]] = {}

    def parameter(self, shape: Shape, weak: bool) -> TracedArray:
        number = len(self.builder.parameters)
        instruction = self.builder.add(
            "parameter", shape, (), f"Arg_{number}", parameter_number=number
        )
        return TracedArray(self, XlaOp(self.builder, instruction), weak)

    def lift(self, value: Any) -> TracedArray:
        """A value as an array of this trace: of an outer trace a new parameter, else a constant.

        TypeError for what is no array.
        """
        if not isinstance(value, TracedArray):
            array, weak = concrete(value)
            return TracedArray(self, XlaOp(self.builder, self.builder.constant(array)), weak)
        if value.trace is self:
            return value
        if not self.is_inside(value.trace):
            raise ConcretizationTypeError(
                f"{value!r} was kept beyond the function whose tracing made it; return it instead"
            )
        if id(value) not in self.captures:
            inner = self.parameter(value.op.shape, value.weak_type)
            self.captures[id(value)] = (value, inner)
        return self.captures[id(value)][1]

    def is_inside(self, other: Trace) -> bool:
        trace = self.outer
        while trace is not None and trace is not other:
            trace = trace.outer
        return trace is not None


_current: ContextVar[Trace | None] = ContextVar("haloc_trace", default=None)


def current_trace() -> Trace | None:
    return _current.get()


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    token = _current.set(trace)
    try:
        yield trace
    finally:
        _current.reset(token)


def concrete(value: Any) -> tuple[np.ndarray, bool]:
    """A value that is no traced array as a NumPy array, and whether its type is weak."""
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        dtype, weak = scalar_type(value)
        if dtype.is_integer and not -(1 << dtype.bits - 1) <= value < 1 << dtype.bits - 1:
            raise OverflowError(f"Python int {value} is too large for {dtype.name}")
        return np.asarray(value, dtype.numpy), weak
    if not hasattr(value, "dtype") or not hasattr(value, "__array__"):
        raise TypeError(f"{value!r} of type {type(value)} is not a valid JAX type")
    array = np.asarray(value)
    dtype = dtype_from_numpy(array.dtype)
    return array.astype(canonical(dtype).numpy), bool(getattr(value, "weak_type", False))


def user_line() -> str:
    """file:line (function) of the innermost frame outside of haloc."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"


class TracedArray:
    """An array whose value is known when the program runs. Operators add instructions.

    shape, dtype and weak_type are known while tracing.
    """

    __slots__ = ("op", "trace", "weak_type")

    def __init__(self, trace: Trace, op: XlaOp, weak_type: bool = False):
        self.trace = trace
        self.op = op
        self.weak_type = weak_type

    @property
    def element_type(self) -> DType:
        return self.op.shape.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.op.shape.dims

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.op.shape.dtype.numpy

    @property
    def ndim(self) -> int:
        return self.op.shape.rank

    @property
    def size(self) -> int:
        return self.op.shape.element_count

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"TracedArray({self.op.shape.to_string(False)}{weak})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def _value_wanted(self, error: type[TypeError], what: str, instead: str) -> NoReturn:
        raise error(
            f"{what} of {self!r} at {user_line()}: a traced array has no value yet; {instead}"
        )

    def __bool__(self) -> bool:  # noqa: PLE0304  # it raises
        self._value_wanted(
            TracerBoolConversionError,
            "the truth value",
            "use haloc.lax.cond, haloc.lax.while_loop or haloc.numpy.where instead of if, while, "
            "and, or, not; or make the argument static",
        )

    def __int__(self) -> int:
        self._value_wanted(
            TracerIntegerConversionError, "int()", "use astype, or make the argument static"
        )

    __index__ = __int__

    def __float__(self) -> float:
        self._value_wanted(ConcretizationTypeError, "float()", "use astype")

    def __complex__(self) -> complex:
        self._value_wanted(ConcretizationTypeError, "complex()", "use astype")

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        self._value_wanted(
            TracerArrayConversionError, "the NumPy array", "use haloc.numpy's function"
        )

    @property
    def __jax_array__(self) -> NoReturn:
        # JAX looks for this first of all: it ends there what it would refuse later on.
        raise JaxReached(f"{self!r} was handed to JAX at {user_line()}")

    def __hash__(self) -> int:
        raise TypeError(f"{self!r} is not hashable")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__":
            raise TypeError(f"numpy.{ufunc.__name__}.{method} of a traced array is not supported")
        return _namespace_function(ufunc.__name__)(*inputs, **options)

    def __array_function__(self, function: Any, _: Any, args: Any, kwargs: Any) -> Any:
        return _namespace_function(function.__name__)(*args, **kwargs)


def _namespace_function(name: str) -> Callable[..., Any]:
    # The namespace is built on traced arrays; only NumPy's dispatch goes the other way.
    from haloc import numpy as namespace  # noqa: PLC0415

    function = getattr(namespace, name, None)
    if function is None:
        raise TypeError(f"numpy.{name} of a traced array: haloc.numpy has no {name}")
    return function


class Region:
    """A function traced to a computation: parameters are the arguments' leaves, then what it
    captured of the outer trace; the root is a tuple of the results' leaves."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[TracedArray],
        tree: TreeDef,
    ):
        outer = current_trace()
        assert outer is not None
        with tracing(Trace(name, outer=outer)) as trace:
            parameters = [trace.parameter(a.op.shape, a.weak_type) for a in arguments]
            leaves, self.tree = flatten(function(*tree.unflatten(parameters)))
            self.results = [trace.lift(leaf) for leaf in leaves]
            operands = [r.op.instruction for r in self.results]
            root = trace.builder.add("tuple", None, operands)
        self.trace = trace
        self.name = name
        self._root = XlaOp(trace.builder, root)
        self.captured = [outer.lift(value) for value, _ in trace.captures.values()]

    @property
    def computation(self) -> XlaComputation:
        return self.trace.builder.build(self._root)
