"""In which layouts a program takes its arguments and gives its results."""

from __future__ import annotations

from collections.abc import Sequence

from haloc.errors import HloError, InvalidArgumentError
from haloc.formats.hlo_text import parse_shape
from haloc.formats.hlo_text.header import entry_layout
from haloc.ir.module import HloModule
from haloc.ir.shape import Shape, tuple_shape
from haloc.runtime.compile_options import CompileOptions
from haloc.runtime.format import dense_layout


def assign_entry_layouts(module: HloModule, options: CompileOptions) -> None:
    """Write the layouts of the entry into the header, as entry_computation_layout.

    They are those of argument_layouts and result_layout of the options; else the layout modes that
    StableHLO arguments and results have (mhlo.layout_mode: "default", "auto" or a layout); else
    what the module states; else row-major. haloc chooses row-major for "auto".

    InvalidArgumentError for layouts of another program, UnimplementedError for tiled ones.
    """
    parameters, result = entry_layout(module)
    parameters = tuple(_with_modes(module, "arg_layout_modes", parameters))
    results = result.elements if result.is_tuple else (result,)
    moded = _with_modes(module, "out_layout_modes", results)
    result = tuple_shape(*moded) if result.is_tuple else moded[0]
    layouts = options.argument_layouts
    if layouts is not None:
        if len(layouts) != len(parameters):
            raise InvalidArgumentError(
                f"CompileOptions specify {len(layouts)} argument layouts, "
                f"but computation has {len(parameters)} arguments"
            )
        for number, (given, parameter) in enumerate(zip(layouts, parameters)):
            _check_same_type(f"argument_layouts[{number}]", given.ir, parameter)
        parameters = tuple(given.ir for given in layouts)
    result_layout = options.executable_build_options.result_layout
    if result_layout is not None:
        _check_same_type("result_layout", result_layout.ir, result)
        result = result_layout.ir
    module.header["entry_computation_layout"] = (
        tuple(_dense(p, f"layout of parameter {n}") for n, p in enumerate(parameters)),
        _dense(result, "layout of the result"),
    )


def _with_modes(module: HloModule, name: str, shapes: Sequence[Shape]) -> list[Shape]:
    """The shapes in the layouts that a frontend attribute lists."""
    modes = module.header.get("frontend_attributes", {}).get(name)
    if not modes:
        return list(shapes)
    words = modes.split(";")
    if len(words) != len(shapes):
        raise InvalidArgumentError(
            f"{name} has {len(words)} entries ({modes!r}), wanted {len(shapes)}"
        )
    return [
        s if mode in ("", "default", "auto") or not s.is_array else _in_mode(s, mode, name)
        for s, mode in zip(shapes, words)
    ]


def _in_mode(shape: Shape, mode: str, name: str) -> Shape:
    try:
        return parse_shape(shape.to_string(include_layout=False) + mode)
    except HloError as error:
        error.add_note(f"in the layout mode {mode!r} of {name}")
        raise


def _check_same_type(what: str, given: Shape, shape: Shape) -> None:
    if not given.compatible(shape):
        raise InvalidArgumentError(f"{what} is {given}, but the computation has {shape}")


def _dense(shape: Shape, what: str) -> Shape:
    if shape.is_tuple:
        return tuple_shape(*(_dense(e, what) for e in shape.elements))
    if shape.layout is None:
        return shape
    layout = dense_layout(shape.layout, shape.dtype, what)
    return Shape(shape.dtype, shape.dims, layout, shape.dynamic)
