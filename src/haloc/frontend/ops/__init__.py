"""The ops of an `XlaBuilder`, by the names and signatures of jaxlib 0.6.0's `xla_client.ops`."""

from haloc.frontend.ops import (
    calls,
    collectives,
    contraction,
    elementwise,
    linalg,
    shaping,
    special,
    structured,
)

_FILES = (calls, collectives, contraction, elementwise, linalg, shaping, special, structured)
_OPS = {
    name: member
    for file in _FILES
    for name, member in vars(file).items()
    if name[0].isupper() and getattr(member, "__module__", "") == file.__name__
    if callable(member)
}

__all__ = sorted(_OPS)  # noqa: PLE0605  # the files' public functions

globals().update(_OPS)
