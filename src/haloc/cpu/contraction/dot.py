"""`dot`: any batch and contracting dimensions, as a product of batched matrices."""

from __future__ import annotations

from math import prod

from haloc.codegen.kernel import PREFIX, Kernel, Phase, kernel_for
from haloc.codegen.target import Target
from haloc.cpu.contraction import elements
from haloc.cpu.contraction.gemm import product_kernel
from haloc.cpu.contraction.plan import Product
from haloc.cpu.contraction.view import dense_view
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.table import attr


@kernel_for("dot")
def dot_kernel(instruction: HloInstruction, target: Target) -> Kernel:
    """result[batch, lhs free, rhs free] = sum over contracted of lhs * rhs, rounded once."""
    out = instruction.shape
    if 0 in out.dims or 0 in instruction.operands[0].shape.dims:
        return zeros_kernel(out, len(instruction.operands))
    return product_kernel(dot_product(instruction), target)


def dot_product(instruction: HloInstruction) -> Product:
    """The product a `dot` with no dimension of size 0 stands for."""
    lhs, rhs = (o.shape for o in instruction.operands)
    out = instruction.shape
    type = elements.compute_type(lhs.dtype, rhs.dtype, out.dtype, "dot")
    lhs_batch, lhs_k = (attr(instruction, f"lhs_{n}_dims") for n in ("batch", "contracting"))
    rhs_batch, rhs_k = (attr(instruction, f"rhs_{n}_dims") for n in ("batch", "contracting"))
    lhs_free = [d for d in range(lhs.rank) if d not in (*lhs_batch, *lhs_k)]
    rhs_free = [d for d in range(rhs.rank) if d not in (*rhs_batch, *rhs_k)]
    lhs_view = dense_view(lhs.dtype, lhs.dims, {"g": lhs_batch, "x": lhs_free, "k": lhs_k})
    rhs_view = dense_view(rhs.dtype, rhs.dims, {"g": rhs_batch, "x": rhs_free, "k": rhs_k})
    batch = prod(lhs.dims[d] for d in lhs_batch)
    m, n = prod(lhs.dims[d] for d in lhs_free), prod(rhs.dims[d] for d in rhs_free)
    out_view = dense_view(out.dtype, (batch, m, n), {"g": (0,), "x": (1,), "k": (2,)})
    buffers = (0, 1, 2)
    if n == 1 and lhs_view.stride("x") == 1 and lhs_view.stride("k") != 1:
        # A transposed matrix times a vector: its rows are read as they lie, as columns.
        lhs_view, rhs_view, buffers = rhs_view, lhs_view, (1, 0, 2)
        out_view = dense_view(out.dtype, (batch, m, n), {"g": (0,), "x": (2,), "k": (1,)})
    if out.dtype.is_complex:
        lhs_view, out_view = lhs_view.with_components(), out_view.with_components()
    is_strict = "highest" in attr(instruction, "operand_precision")
    return Product(lhs_view, rhs_view, out_view, type, buffers, out.dtype.is_complex, is_strict)


def zeros_kernel(out: Shape, operands: int) -> Kernel:
    """Fill the result with zeros: sums of nothing. All types' zero has all bits clear."""
    pointers = ", ".join(f"ptr %b{i}" for i in range(operands + 1))
    symbol = f"{PREFIX}_zeros"
    memset = "@llvm.memset.p0.i64"
    text = (
        f"define void @{symbol}({pointers}, ptr %scratch, i64 %begin, i64 %end) nounwind {{\n"
        f"  call void {memset}(ptr %b{operands}, i8 0, i64 {out.byte_size}, i1 false)\n"
        "  ret void\n}\n"
    )
    declares = (f"declare void {memset}(ptr, i8, i64, i1)",)
    return Kernel(text, (Phase(symbol, 1, out.byte_size * 0.05),), declares)
