"""NumPy's functions by jax.numpy's rules, for tracing and to run on arrays."""

from typing import Any

from haloc.frontend.tracer import TracedArray
from haloc.numpy import arrays, elementwise

_FILES = (arrays, elementwise)
_HELPERS = {"getitem", "emit_iota", "reshape_batch", "full_"}
_FUNCTIONS = {
    name: member
    for file in _FILES
    for name, member in vars(file).items()
    if name[0] != "_" and getattr(member, "__module__", "") == file.__name__ and callable(member)
    if name not in _HELPERS
} | {"full": arrays.full_}

__all__ = sorted(_FUNCTIONS)  # noqa: PLE0605  # the files' public functions

globals().update(_FUNCTIONS)

pi, e, inf, nan, newaxis = 3.141592653589793, 2.718281828459045, float("inf"), float("nan"), None

_OPERATORS = {
    "add": "add",
    "and": "bitwise_and",
    "floordiv": "floor_divide",
    "lshift": "left_shift",
    "matmul": "matmul",
    "mod": "remainder",
    "mul": "multiply",
    "or": "bitwise_or",
    "pow": "power",
    "rshift": "right_shift",
    "sub": "subtract",
    "truediv": "true_divide",
    "xor": "bitwise_xor",
}
_COMPARISONS = {
    "eq": "equal",
    "ge": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "lt": "less",
    "ne": "not_equal",
}
_METHODS = "all any astype clip conj dot max mean min prod ravel squeeze sum transpose var"


def _operator(name: str, swaps: bool) -> Any:
    function = _FUNCTIONS[name]

    def operate(self: TracedArray, other: Any) -> Any:
        try:
            return function(other, self) if swaps else function(self, other)
        except TypeError as error:
            if "is not a valid JAX type" in str(error):
                return NotImplemented
            raise

    return operate


def _reshape(self: TracedArray, *shape: Any) -> TracedArray:
    return _FUNCTIONS["reshape"](self, shape[0] if len(shape) == 1 else shape)


for _name, _function in _OPERATORS.items():
    setattr(TracedArray, f"__{_name}__", _operator(_function, swaps=False))
    setattr(TracedArray, f"__r{_name}__", _operator(_function, swaps=True))
for _name, _function in _COMPARISONS.items():
    setattr(TracedArray, f"__{_name}__", _operator(_function, swaps=False))
for _name, _function in {"neg": "negative", "abs": "abs", "invert": "invert"}.items():
    setattr(TracedArray, f"__{_name}__", _FUNCTIONS[_function])
for _name in _METHODS.split():
    setattr(TracedArray, _name, _FUNCTIONS[_name])
TracedArray.reshape = _reshape  # type: ignore[attr-defined]
TracedArray.__getitem__ = arrays.getitem  # type: ignore[attr-defined]
TracedArray.T = property(_FUNCTIONS["transpose"])  # type: ignore[attr-defined]
