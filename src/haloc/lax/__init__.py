"""jax.lax's names: HLO's ops one by one, control flow and collectives, for tracing and to run."""

import haloc.numpy  # noqa: F401  # the operators of traced arrays
from haloc.lax import collectives, control, elementwise

_FILES = (collectives, control, elementwise)
_FUNCTIONS = {
    name: member
    for file in _FILES
    for name, member in vars(file).items()
    if name[0] != "_" and getattr(member, "__module__", "") == file.__name__ and callable(member)
}

__all__ = sorted(_FUNCTIONS)  # noqa: PLE0605  # the files' public functions

globals().update(_FUNCTIONS)
