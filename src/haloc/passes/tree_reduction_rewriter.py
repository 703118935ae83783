"""Big reductions with few results, in two steps, so that threads can share them."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from haloc.analysis.reducers import is_repeatable
from haloc.ir.module import HloInstruction, HloModule
from haloc.ir.shape import tuple_shape
from haloc.ops.expand import Beside
from haloc.ops.table import attr
from haloc.passes.driver import hlo_pass


@hlo_pass("tree-reduction-rewriter")
def tree_reduction_rewriter(
    module: HloModule, *, min_elements: int = 1 << 18, max_results: int = 16, parts: int = 64
) -> bool:
    """reduce(x) => reduce(reduce(reshape(x, [..., p, n / p, ...]), n / p), p)

    For reductions of at least `min_elements` to at most `max_results`, whose initial value may be
    combined in more than once. p is the largest divisor of a reduced dimension up to `parts`: it
    depends on shapes alone, and so the result does not depend on the number of threads.
    """
    changed = False
    for reduce in list(module.instructions("reduce")):
        dims = reduce.operands[0].shape.dims
        results = prod(n for d, n in enumerate(dims) if d not in attr(reduce, "dimensions"))
        if prod(dims) >= min_elements and results <= max_results and is_repeatable(reduce):
            changed |= _split(reduce, parts)
    return changed


def _split(reduce: HloInstruction, parts: int) -> bool:
    """Split the first reduced dimension that divides well; False if none does."""
    dims = reduce.operands[0].shape.dims
    reduced = sorted(attr(reduce, "dimensions"))
    choices = [(_divisor(dims[d], parts), -d) for d in reduced]
    count, at = max(choices)
    if count < 2:
        return False
    at = -at
    inputs = reduce.operands[: len(reduce.operands) // 2]
    inits = reduce.operands[len(inputs) :]
    split = (*dims[:at], count, dims[at] // count, *dims[at + 1 :])
    inner = [d + (d >= at) for d in reduced]
    beside = Beside(reduce)
    reshaped = [beside.add("reshape", x.shape.with_dims(split), [x]) for x in inputs]
    kept = tuple(n for d, n in enumerate(split) if d not in inner)
    partial = _reduce_like(reduce, reshaped, inits, inner, kept)
    values: list[HloInstruction] = [partial]
    if reduce.shape.is_tuple:
        values = [
            beside.add("get-tuple-element", shape, [partial], index=k)
            for k, shape in enumerate(partial.shape.elements)
        ]
    position = sum(d not in inner for d in range(at))
    final_dims = tuple(n for d, n in enumerate(dims) if d not in reduced)
    final = _reduce_like(reduce, values, inits, [position], final_dims)
    reduce.replace_uses_with(final)
    reduce.computation.remove(reduce)
    return True


def _divisor(n: int, most: int) -> int:
    """The largest divisor of n up to `most` (0 when n is 0)."""
    return max((d for d in range(1, min(n, most) + 1) if n % d == 0), default=0)


def _reduce_like(
    reduce: HloInstruction,
    inputs: Iterable[HloInstruction],
    inits: Iterable[HloInstruction],
    dimensions: list[int],
    dims: tuple[int, ...],
) -> HloInstruction:
    shapes = [i.shape.with_dims(dims) for i in inits]
    shape = tuple_shape(*shapes) if reduce.shape.is_tuple else shapes[0]
    return Beside(reduce).add(
        "reduce",
        shape,
        [*inputs, *inits],
        dimensions=tuple(dimensions),
        to_apply=reduce.attrs["to_apply"],
    )
