"""Functions of arrays: under tracing they add instructions, else they are compiled and run."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from haloc.frontend.builder import XlaOp
from haloc.frontend.pytree import TreeDef, flatten, tree_map
from haloc.frontend.tracer import Trace, concrete, current_trace, tracing
from haloc.ir.dtype import dtype_from_numpy
from haloc.ir.shape import Shape
from haloc.runtime.default_client import default_client

_F = TypeVar("_F", bound=Callable[..., Any])
_LIMIT = 1024
_programs: OrderedDict[Any, tuple[Any, TreeDef]] = OrderedDict()
_lock = threading.Lock()


def staged(count: int) -> Callable[[_F], _F]:
    """A decorator: the first `count` positional arguments (-1: all) are trees of arrays, which the
    function gets traced; the others are as they are, and hashable."""

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            split = len(args) if count < 0 else count
            arrays, rest = args[:split], args[split:]
            trace = current_trace()
            if trace is None:
                return _run(function, arrays, rest, keywords)
            return function(*tree_map(trace.lift, arrays), *rest, **keywords)

        return call  # type: ignore[return-value]

    return decorate


def _run(function: Any, arrays: Any, rest: Any, keywords: dict[str, Any]) -> Any:
    leaves, tree = flatten(arrays)
    given = [concrete(leaf) for leaf in leaves]
    types = tuple((array.dtype.str, array.dtype.name, array.shape, weak) for array, weak in given)
    key = (function, tree, types, rest, tuple(sorted(keywords.items())))
    with _lock:
        found = _programs.get(key)
    if found is None:
        found = _compiled(function, given, tree, rest, keywords)
        with _lock:
            _programs[key] = found
            while len(_programs) > _LIMIT:
                _programs.popitem(last=False)
    program, out_tree = found
    client = default_client()
    return out_tree.unflatten(program.execute([client.buffer_from_pyval(a) for a, _ in given]))


def _compiled(
    function: Any, given: list[tuple[np.ndarray, bool]], tree: TreeDef, rest: Any, keywords: Any
) -> tuple[Any, TreeDef]:
    with tracing(Trace(f"haloc_{function.__name__}")) as trace:
        parameters = [
            trace.parameter(Shape(dtype_from_numpy(array.dtype), array.shape), weak)
            for array, weak in given
        ]
        leaves, out_tree = flatten(function(*tree.unflatten(parameters), *rest, **keywords))
        results = [trace.lift(leaf).op.instruction for leaf in leaves]
        root = trace.builder.add("tuple", None, results)
    client = default_client()
    computation = trace.builder.build(XlaOp(trace.builder, root))
    return client.compile_and_load(computation, client.devices()[:1]), out_tree
