"""Symbolic sizes as JAX writes them: "b", "2*b + 1", "floordiv(b, 2)", "max(0, b - 3)"."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from haloc.errors import InvalidArgumentError

_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
    ast.Pow: lambda x, y: x ** min(max(y, 0), 64),
}
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": max,
    "min": min,
}


def variables(expression: str) -> list[str]:
    """The dimension variables of an expression, in order of appearance."""
    found: dict[str, None] = {}
    for node in ast.walk(_parse(expression)):
        if isinstance(node, ast.Name) and node.id not in _FUNCTIONS:
            found[node.id] = None
    return list(found)


def value(expression: str, sizes: Mapping[str, int]) -> int:
    """An expression's value; InvalidArgumentError for an unknown variable or a negative size."""
    try:
        result = _value(_parse(expression).body, expression, sizes)
    except ZeroDivisionError:
        raise InvalidArgumentError(f"size {expression!r} divides by zero") from None
    if result < 0:
        raise InvalidArgumentError(f"size {expression!r} is {result}, below zero")
    return result


def _parse(expression: str) -> ast.Expression:
    try:
        return ast.parse(expression.replace("^", "**"), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _unreadable(expression) from None


def _unreadable(expression: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"size {expression!r} is no expression of dimension variables")


def _value(node: ast.expr, expression: str, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id=name):
            if name not in sizes:
                raise InvalidArgumentError(
                    f"size {expression!r}: no value given for dimension variable {name!r}"
                )
            return sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, expression, sizes)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            x, y = _value(left, expression, sizes), _value(right, expression, sizes)
            return _OPERATORS[type(op)](x, y)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            if len(arguments) == 2:
                return _FUNCTIONS[name](*[_value(a, expression, sizes) for a in arguments])
    raise _unreadable(expression)
