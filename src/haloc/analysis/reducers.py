"""What can be known of a reduction's region and initial values."""

from __future__ import annotations

import numpy as np

from haloc.interpreter import Interpreter
from haloc.ir.module import HloInstruction
from haloc.ops.table import Elementwise, op


def is_repeatable(reduce: HloInstruction) -> bool:
    """Whether the initial value may be combined in more than once: region(init, init) == init.

    True for every identity (0 of add, -inf of maximum, ...) and for argmax-like reducers. False
    unless the initial values are constants and the region is made of elementwise ops.
    """
    inits = reduce.operands[len(reduce.operands) // 2 :]
    if any(i.opcode != "constant" for i in inits):
        return False
    values = [i.attrs["literal"].array.reshape(()) for i in inits]
    region = reduce.attrs["to_apply"]
    if not all(
        isinstance(op(i).lower, Elementwise) or i.opcode in ("parameter", "constant", "tuple")
        for i in region.instructions
    ):
        return False
    result = Interpreter().call(region, [*values, *values])
    results = result if isinstance(result, tuple) else (result,)
    return all(np.asarray(r).tobytes() == v.tobytes() for r, v in zip(results, values, strict=True))
