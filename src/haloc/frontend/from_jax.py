"""Functions written with JAX: traced by JAX, read as StableHLO. Needs JAX installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from haloc.errors import UnimplementedError
from haloc.formats.stablehlo import parse_stablehlo
from haloc.frontend.tracer import JaxReached
from haloc.ir.module import HloInstruction, HloModule
from haloc.ir.shape import tuple_shape


def came_from_jax(error: BaseException | None) -> bool:
    """Whether JAX raised this, or a traced array of haloc was handed to it."""
    while error is not None:
        if isinstance(error, JaxReached) or _is_jax(type(error).__module__):
            return True
        # JAX may take its own frames out of a traceback; it says so in a note.
        if any("JAX has removed" in note for note in getattr(error, "__notes__", ())):
            return True
        frame = error.__traceback__
        while frame is not None:
            if _is_jax(frame.tb_frame.f_globals.get("__name__", "")):
                return True
            frame = frame.tb_next
        error = error.__cause__ or error.__context__
    return False


def _is_jax(module: str) -> bool:
    return module.partition(".")[0] in ("jax", "jaxlib")


def lower(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    static: tuple[int, ...] = (),
    donated: tuple[int, ...] = (),
) -> tuple[HloModule, Any]:
    """(the module, whose result is always a tuple; the tree of results' shapes and dtypes)."""
    import jax  # noqa: PLC0415  # optional

    def example(leaf: Any) -> Any:
        is_type = hasattr(leaf, "shape") and hasattr(leaf, "dtype")
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if is_type else leaf

    fixed = {n % len(args) for n in static}
    given = [a if n in fixed else jax.tree.map(example, a) for n, a in enumerate(args)]
    staged = jax.jit(fun, static_argnums=static, donate_argnums=donated, keep_unused=True)
    lowered = staged.lower(*given, **jax.tree.map(example, kwargs))
    module = parse_stablehlo(lowered.as_text(), "<jax>")
    _return_tuple(module, len(jax.tree.leaves(lowered.out_info)))
    return module, lowered.out_info


def _return_tuple(module: HloModule, results: int) -> None:
    """One result becomes a tuple of one."""
    root = module.entry.root
    if results != 1 or root.shape.is_tuple:
        return
    whole = HloInstruction("tuple", tuple_shape(root.shape), (root,))
    module.entry.root = module.entry.add(whole, "tuple")
    aliases = module.header.get("input_output_alias", ())
    if aliases:
        module.header["input_output_alias"] = tuple(((0, *out), *rest) for out, *rest in aliases)
    layout = module.header.get("entry_computation_layout")
    if layout:
        module.header["entry_computation_layout"] = (layout[0], tuple_shape(layout[1]))


def refuse(**parameters: Any) -> None:
    """UnimplementedError for parameters that only haloc's tracing has."""
    for name, value in parameters.items():
        if value:
            raise UnimplementedError(
                f"xla_computation({name}=...) of a function written with JAX: use haloc.lax and "
                "haloc.numpy in it"
            )
