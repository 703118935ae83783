"""Calls of sites from Python: as the interpreter makes them, and what native calls hand back."""

from __future__ import annotations

import ctypes
import traceback
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from haloc.cpu.run_context import RunContext
from haloc.errors import HloError
from haloc.ffi import c_api, errors, targets
from haloc.ffi.api import api_pointer
from haloc.ffi.c_api import Stage
from haloc.ffi.functions import wait_for
from haloc.ffi.reentry import inside_a_program
from haloc.ffi.sites import (
    Site,
    Sites,
    check_native_shapes,
    end_execution,
    registered_target,
    site_at,
)
from haloc.ffi.status import CustomCallStatus
from haloc.ffi.targets import Abi, Target
from haloc.interpreter.leaves import flat, memory_as_array, nested
from haloc.ir.dtype import TOKEN
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction, HloModule
from haloc.ir.shape import Shape
from haloc.ops.custom_call import REGISTERED, not_found
from haloc.ops.table import Evaluator

# --- From native code -----------------------------------------------------------------------------

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@_CALLBACK
def _from_native(context: int, first: int | None, second: int | None) -> int:
    """What a site's stub calls. FFI: (error or null, future or null) after the last stage.
    UNTYPED: (status, null) when it says that the call failed. PYTHON: (buffers, null)."""
    execution = c_api.ExecutionContext.from_address(context)
    run = RunContext.at(execution.run)
    try:
        site = site_at(execution.site)
        if site.target.abi is Abi.PYTHON:
            assert first is not None
            with inside_a_program():
                _call_python(site, *_views(site, first), run)
            return 0
        error = _native_error(site, context, first, second)
    except BaseException as raised:  # nothing may be raised into native code
        return run.fail(raised)
    return 0 if error is None else run.fail(error)


def _native_error(
    site: Site, context: int, first: int | None, second: int | None
) -> HloError | None:
    if site.target.abi is Abi.UNTYPED:
        assert first is not None
        error = CustomCallStatus.from_address(first).error()
    else:
        error = errors.take(first) if first else wait_for(second) if second else None
        end_execution(context)
    if error is not None:
        error.add_note(f"in {site.where}")
    return error


def _views(site: Site, buffers: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """NumPy views of an array of pointers to the operands' and then the results' leaves."""
    shapes = [*site.operands, *site.results]
    pointers = (ctypes.c_void_p * len(shapes)).from_address(buffers)
    views = [memory_as_array(p, s) for p, s in zip(pointers, shapes, strict=True)]
    operands, results = views[: len(site.operands)], views[len(site.operands) :]
    for view in operands:
        if view is not None:
            view.flags.writeable = False
    return [v for v in operands if v is not None], [v for v in results if v is not None]


# --- Sites ----------------------------------------------------------------------------------------


def make_site(instruction: HloInstruction, target: Target) -> Site:
    """The site of a custom-call; runs the handler's instantiate stage."""
    check_native_shapes(instruction, target)
    callback = ctypes.cast(_from_native, ctypes.c_void_p).value
    assert callback is not None
    site = Site(instruction, target, callback)
    if target.abi is Abi.FFI:
        site.native.api = api_pointer()
        if Stage.INSTANTIATE in target.stages:
            _run_stages(site, [Stage.INSTANTIATE], [], [], None)
    return site


def sites_of(module: HloModule) -> Sites:
    """The sites of a program's custom-calls; keep them while it may run."""
    return Sites(module, make_site)


def add(target: Target) -> None:
    """Register a target for both ways to execute; see `targets.add`."""
    targets.add(target)
    REGISTERED[target.name] = evaluate


_of_modules: weakref.WeakKeyDictionary[HloModule, dict[str, Site]] = weakref.WeakKeyDictionary()
"""By the instruction's name: what refers to the module would keep it alive."""


def _site_of(instruction: HloInstruction) -> Site:
    """The interpreter's site of an instruction: made at its first call, kept with the module.
    NotFoundError where the name is registered, but not for this kind of call."""
    target = registered_target(instruction)
    if target is None:
        raise not_found(instruction, ())
    module = instruction.parent.module if instruction.parent is not None else None
    if module is None:
        return make_site(instruction, target)
    sites = _of_modules.setdefault(module, {})
    if instruction.name not in sites:
        sites[instruction.name] = make_site(instruction, target)
    return sites[instruction.name]


def evaluate(instruction: HloInstruction, operands: Sequence[Value], context: Evaluator) -> Value:
    """A custom-call to a registered target, on values."""
    site = _site_of(instruction)
    leaves = [_laid_out(v, s) for v, s in zip(flat(tuple(operands)), site.operands, strict=True)]
    results: list[np.ndarray | None] = []
    for number, shape in enumerate(site.results):
        if not shape.is_array:
            results.append(None)
            continue
        result = _laid_out(np.zeros(shape.dims, shape.dtype.numpy), shape)
        if number in site.aliases:
            np.copyto(result, leaves[site.aliases[number]])  # type: ignore[arg-type]
            leaves[site.aliases[number]] = result
        results.append(result)
    with inside_a_program():
        _call(site, leaves, results, _run_of(context))
    return nested(instruction.shape, iter(results))


def _call(
    site: Site,
    leaves: list[np.ndarray | None],
    results: list[np.ndarray | None],
    run: RunContext,
) -> None:
    if site.target.abi is Abi.PYTHON:
        _call_python(site, _read_only(leaves), [r for r in results if r is not None], run)
    elif site.target.abi is Abi.FFI:
        stages = [s for s in site.target.stages if s is not Stage.INSTANTIATE]
        _run_stages(site, stages, leaves, results, run)
    else:
        _call_untyped(site, leaves, results)


_runs: weakref.WeakKeyDictionary[Evaluator, RunContext] = weakref.WeakKeyDictionary()


def _run_of(context: Evaluator) -> RunContext:
    """The context of what the interpreter runs: one for all calls of a participant."""
    if context not in _runs:
        _runs[context] = RunContext(*context.device_id, host=context.host)
    return _runs[context]


def _laid_out(value: np.ndarray | None, shape: Shape) -> np.ndarray | None:
    """An array that is dense in the shape's layout."""
    if value is None:
        return None
    order = shape.layout.minor_to_major[::-1] if shape.layout else tuple(range(shape.rank))
    return np.asarray(value.transpose(order), order="C").transpose(np.argsort(order))


def _read_only(arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    views = [a.view() for a in arrays if a is not None]
    for view in views:
        view.flags.writeable = False
    return views


# --- Calls ----------------------------------------------------------------------------------------


def _call_python(
    site: Site, operands: list[np.ndarray], results: list[np.ndarray], run: RunContext | None
) -> None:
    assert site.target.python is not None
    try:
        site.target.python(site, operands, results, run)
    except HloError:
        raise
    except Exception as error:
        text = "".join(traceback.format_exception(type(error), error, _user_frames(error)))
        failure = HloError(f"CpuCallback error calling callback: {text.rstrip()}", "INTERNAL")
        failure.add_note(f"in {site.where}")
        raise failure from error


def _user_frames(error: BaseException) -> TracebackType | None:
    """The error's traceback without the frames of this folder."""
    here = str(Path(__file__).parent)
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(here):
        frames = frames.tb_next
    return frames


def _call_untyped(
    site: Site, operands: list[np.ndarray | None], results: list[np.ndarray | None]
) -> None:
    given = (ctypes.c_void_p * max(1, len(operands)))(*map(_address, operands))
    places = (ctypes.c_void_p * max(1, len(results)))(*map(_address, results))
    out = places[0] if len(results) == 1 else ctypes.addressof(places)
    arguments: list[Any] = [out, ctypes.addressof(given)]
    status = CustomCallStatus()
    if site.api_version == "API_VERSION_STATUS_RETURNING_UNIFIED":
        arguments += [site.opaque, len(site.opaque)]
    if site.api_version.startswith("API_VERSION_STATUS_RETURNING"):
        arguments.append(ctypes.addressof(status))
    kinds = [
        ctypes.c_size_t if type(a) is int and k == 3 else ctypes.c_void_p
        for k, a in enumerate(arguments)
    ]
    ctypes.CFUNCTYPE(None, *kinds)(site.target.stages[Stage.EXECUTE])(*arguments)
    if (error := status.error()) is not None:
        error.add_note(f"in {site.where}")
        raise error


def _address(array: np.ndarray | None) -> int | None:
    return None if array is None else array.ctypes.data


def _run_stages(
    site: Site,
    stages: Sequence[Stage],
    operands: Sequence[np.ndarray | None],
    results: Sequence[np.ndarray | None],
    run: RunContext | None,
) -> None:
    """Call a handler's stages in order, on one execution context; raises its error."""
    run = run or RunContext()
    context = c_api.ExecutionContext(
        site.pointer, None if Stage.INSTANTIATE in stages else run.pointer
    )
    given = _Buffers(operands, site.operands)
    made = _Buffers(results, site.results)
    frame = c_api.CallFrame(
        api=api_pointer(),
        ctx=ctypes.addressof(context),
        args=c_api.Args(size=len(operands), types=given.types, args=given.pointers),
        rets=c_api.Rets(size=len(results), types=made.types, rets=made.pointers),
        attrs=site.native.attrs,
    )
    try:
        for stage in sorted(stages):
            frame.stage, frame.future = stage, None
            raised = c_api.HANDLER(site.target.stages[stage])(ctypes.pointer(frame))
            error = errors.take(raised) if raised else None
            if error is None and frame.future:
                error = wait_for(frame.future)
            if error is not None:
                error.add_note(f"in {site.where}")
                raise error
    finally:
        end_execution(ctypes.addressof(context))


class _Buffers:
    """Arrays as `XLA_FFI_Buffer`s; addresses of their kinds and of the pointers to them."""

    def __init__(self, arrays: Sequence[np.ndarray | None], shapes: Sequence[Shape]):
        count = max(1, len(arrays))
        self._dims = [
            (ctypes.c_int64 * max(1, s.rank if s.is_array else 0))(*(s.dims if s.is_array else ()))
            for s in shapes[: len(arrays)]
        ]
        self._buffers = [
            c_api.Buffer(
                dtype=shape.dtype.number if shape.is_array else TOKEN.number,
                data=_address(array),
                rank=shape.rank if shape.is_array else 0,
                dims=ctypes.addressof(dims),
            )
            for array, shape, dims in zip(arrays, shapes, self._dims)
        ]
        self._types = (ctypes.c_int * count)(*[c_api.ARG_BUFFER] * count)
        self._pointers = (ctypes.c_void_p * count)(*map(ctypes.addressof, self._buffers))
        self.types, self.pointers = ctypes.addressof(self._types), ctypes.addressof(self._pointers)
