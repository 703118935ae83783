"""Traces of executables: every intermediate value, from the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.interpreter import NanGuard, trace
from haloc.interpreter.leaves import nested
from haloc.ir.module import HloModule


def trace_leaves(
    module: HloModule, leaves: Sequence[Any], every: bool = False, guard: NanGuard | None = None
) -> dict[str, Any]:
    """`interpreter.trace` given the array leaves of the entry's parameters, as `execute` is.

    leaves: arrays of haloc, or anything NumPy takes. InvalidArgumentError for a wrong number of
    them; what does not fit its parameter is named by the interpreter.
    """
    shapes = [p.shape for p in module.entry.parameters]
    wanted = sum(s.is_array for shape in shapes for s in shape.leaves())
    if len(leaves) != wanted:
        raise InvalidArgumentError(
            f"{module.name} takes {wanted} array(s), given {len(leaves)} to trace"
        )
    arrays = iter([np.asarray(leaf) for leaf in leaves])
    arguments = [nested(shape, arrays) for shape in shapes]
    return trace(module, arguments, every=every, guard=guard)
