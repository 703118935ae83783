"""Parameters that have a second name: where jaxlib and its documents differ."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def also_named(**names: str) -> Callable[[Function], Function]:
    """A decorator: {second name: parameter} may be given by keyword, instead of the parameter."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*positional: Any, **keywords: Any) -> Any:
            for second, name in names.items():
                if second in keywords:
                    if name in keywords:
                        raise TypeError(f"{function.__name__}() got both {name} and {second}")
                    keywords[name] = keywords.pop(second)
            return function(*positional, **keywords)

        shown = inspect.signature(function)
        seconds = [
            inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None) for n in names
        ]
        parameters = [*shown.parameters.values(), *seconds]
        call.__signature__ = shown.replace(parameters=parameters)  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate
