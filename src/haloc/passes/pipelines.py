"""The pipelines: lists of passes by name, and the order constraints that they must meet."""

from __future__ import annotations

from haloc.errors import NotFoundError
from haloc.ir.module import HloModule
from haloc.passes import (  # noqa: F401  (each file registers its passes)
    algebraic_simplifier,
    call_inliner,
    constant_folding,
    cse,
    dce,
    defuser,
    dynamic_padder,
    expand,
    float_normalization,
    fusion,
    layout_assignment,
    layout_normalization,
    operand_upcaster,
    optimization_barrier_expander,
    row_fusion,
    topk_rewriter,
    transfer_order,
    tree_reduction_rewriter,
    while_loop_invariant_code_motion,
    while_loop_simplifier,
    zero_sized_elimination,
)
from haloc.passes.driver import (
    Before,
    Fixpoint,
    PassOptions,
    PassReport,
    Pipeline,
    check_order,
    run_passes,
)

SIMPLIFY = Fixpoint(
    "zero-sized-elimination",
    "algebraic-simplifier",
    "constant-folding",
    "reshape-mover",
    "transpose-folding",
    "cse",
    "control-flow-simplifier",
    "while-loop-simplifier",
    "while-loop-invariant-code-motion",
    "call-inliner",
    "dce",
)

CANONICAL: Pipeline = [
    "transfer-order",
    "layout-normalization",
    "layout-assignment",
    "defuser",
    "topk-rewriter",
    "dynamic-padder",
    "expand",
    "operand-upcaster",
    "call-inliner",
    "cse",
    "dce",
    SIMPLIFY,
]

CPU: Pipeline = [
    "transfer-order",
    "float-normalization",
    *CANONICAL,
    "optimization-barrier-expander",
    "tuple-simplifier",
    "tree-reduction-rewriter",
    "dce",
    "fusion",
    "row-fusion",
    "dce",
]

PIPELINES: dict[str, Pipeline] = {"canonical": CANONICAL, "cpu": CPU}

ORDER = [
    Before("topk-rewriter", "expand", why="topk is expanded"),
    Before(
        "layout-normalization",
        "algebraic-simplifier",
        why="rules compare dimensions and take every array to be row-major",
    ),
    Before(
        "layout-normalization",
        "layout-assignment",
        why="the bitcasts at the entry's ends are between layouts and must stay",
    ),
    Before("layout-assignment", "fusion", why="transposes at the entry's ends are fused"),
    Before(
        "layout-normalization", "fusion", why="generated loops take every array to be row-major"
    ),
    Before("defuser", "expand", why="what was fused may have to be expanded"),
    Before("defuser", "dynamic-padder", why="what was fused may have dynamic dimensions"),
    Before("dynamic-padder", "expand", why="expansions are written for static shapes"),
    Before("dynamic-padder", "algebraic-simplifier", why="rules take every array to be static"),
    Before("defuser", "fusion", why="fusions made here must stay"),
    Before("expand", "fusion", why="fusion and code generation know no ops that are expanded"),
    Before(
        "algebraic-simplifier",
        "tree-reduction-rewriter",
        why="a simplifier may join two reductions into one",
    ),
    Before(
        "tree-reduction-rewriter", "fusion", why="fusion takes the reshapes into the reductions"
    ),
    Before("expand", "operand-upcaster", why="an expansion may contract"),
    Before("operand-upcaster", "fusion", why="generated contractions take operands of one kind"),
    Before("float-normalization", "fusion", why="fusion takes in the conversions"),
    Before("zero-sized-elimination", "fusion", why="a loop has at least one element to compute"),
    Before("call-inliner", "fusion", why="a kernel cannot reach across a call"),
    Before("transfer-order", "expand", why="replacing sorts by dependencies alone"),
    Before("optimization-barrier-expander", "fusion", why="a barrier ends every fusion"),
    Before("cse", "optimization-barrier-expander", why="barriers keep rematerialised work apart"),
]

check_order(PIPELINES, ORDER)


def run_pipeline(
    module: HloModule,
    name: str = "cpu",
    options: PassOptions | None = None,
    report: PassReport | None = None,
) -> PassReport:
    """Run the pipeline of this name on `module`, in place; returns the (given) report, filled.

    Raises NotFoundError for an unknown name, and what `run_passes` raises.
    """
    if name not in PIPELINES:
        raise NotFoundError(f"no pipeline named {name!r}; there are: {', '.join(PIPELINES)}")
    return run_passes(module, PIPELINES[name], options, report)
