"""What a handler may ask for while it runs: the functions of `XLA_FFI_Api` but for registration."""

from __future__ import annotations

import ctypes
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from haloc.cpu.run_context import RunContext
from haloc.errors import (
    HloError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnimplementedError,
)
from haloc.ffi import c_api, errors, types
from haloc.ffi.api import implements
from haloc.ffi.c_api import Stage
from haloc.ffi.sites import Site, State, execution_states, site_at
from haloc.flags import Flags

# --- Errors ---------------------------------------------------------------------------------------


@implements("Error_Create")
def _create(arguments: c_api.ErrorCreateArgs) -> int:
    return errors.create(arguments.errc, (arguments.message or b"").decode(errors="replace"))


@implements("Error_GetMessage")
def _message(arguments: c_api.ErrorGetMessageArgs) -> None:
    arguments.message = errors.message_pointer(arguments.error)


@implements("Error_Destroy")
def _destroy(arguments: c_api.ErrorDestroyArgs) -> None:
    errors.destroy(arguments.error)


# --- The execution --------------------------------------------------------------------------------


def _site(ctx: int) -> Site:
    return site_at(c_api.ExecutionContext.from_address(ctx).site)


def _run(ctx: int) -> RunContext:
    run = c_api.ExecutionContext.from_address(ctx).run
    if not run:
        raise UnimplementedError("this stage of an FFI handler has no execution to ask about")
    return RunContext.at(run)


@implements("RunId_Get")
def _run_id(arguments: c_api.RunIdGetArgs) -> None:
    arguments.run_id = _run(arguments.ctx).run_id


@implements("DeviceOrdinal_Get")
def _device_ordinal(arguments: c_api.DeviceOrdinalGetArgs) -> None:
    run = _run(arguments.ctx)
    arguments.device_ordinal = 0 if run.host is None else run.host.device_ordinal(run)


@implements("ExecutionContext_Get")
def _user_data(arguments: c_api.ContextGetArgs) -> None:
    type_id = arguments.type_id.contents.type_id
    host = _run(arguments.ctx).host
    data = None if host is None else host.user_data.get(type_id)
    if data is None:
        raise NotFoundError(f"the execution context has no user data of type id {type_id}")
    arguments.data = data


@implements("Stream_Get")
def _stream(arguments: c_api.StreamGetArgs) -> None:
    raise UnimplementedError("XLA_FFI_Stream_Get: a CPU has no streams")


# --- State ----------------------------------------------------------------------------------------


def _state_arguments(arguments: c_api.StateArgs) -> c_api.StateArgs | c_api.OldStateArgs:
    """As the handler's version has them. Where 0.3 has a stage, 0.1 has an address, whose low half
    is no stage: the object it is of does not fit on the first page of any 4 GiB."""
    if arguments.stage in range(len(Stage)):
        return arguments
    return c_api.OldStateArgs.from_address(ctypes.addressof(arguments))


def _states(arguments: c_api.StateArgs | c_api.OldStateArgs) -> tuple[Stage, dict[Stage, State]]:
    """The stage meant, and where its state is kept: with the site, or with the execution."""
    stage = Stage(getattr(arguments, "stage", Stage.INSTANTIATE))
    if stage is Stage.INSTANTIATE:
        return stage, _site(arguments.ctx).states
    return stage, execution_states(arguments.ctx)


@implements("State_Set")
def _set_state(arguments: c_api.StateArgs) -> None:
    given = _state_arguments(arguments)
    stage, states = _states(given)
    if stage in states:
        raise InvalidArgumentError(f"the state of stage {stage.name.lower()} is set already")
    type_id = given.type_id.contents.type_id
    old = isinstance(given, c_api.OldStateArgs)
    states[stage] = State(type_id, given.state, given.deleter if old else types.deleter(type_id))


@implements("State_Get")
def _get_state(arguments: c_api.StateArgs) -> None:
    given = _state_arguments(arguments)
    stage, states = _states(given)
    type_id = given.type_id.contents.type_id
    state = states.get(stage)
    if state is None:
        raise NotFoundError(f"no state of stage {stage.name.lower()} is set")
    if state.type_id != type_id:
        raise InvalidArgumentError(
            f"the state of stage {stage.name.lower()} has type id {state.type_id}, not {type_id}"
        )
    given.state = state.address


@implements("Type_Register")
def _register_type(arguments: c_api.TypeRegisterArgs) -> None:
    deleter = arguments.type_info.contents.deleter if arguments.type_info else None
    type_id = arguments.type_id.contents
    type_id.type_id = types.register(arguments.name.text(), type_id.type_id, deleter)


# --- Memory and threads ---------------------------------------------------------------------------


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None)
    libc.aligned_alloc.restype = ctypes.c_void_p
    libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    return libc


@implements("DeviceMemory_Allocate")
def _allocate(arguments: c_api.MemoryAllocateArgs) -> None:
    alignment = max(64, arguments.alignment)
    if alignment & (alignment - 1):
        raise InvalidArgumentError(f"alignment {alignment} is not a power of 2")
    size = -(-max(1, arguments.size) // alignment) * alignment
    arguments.data = _libc().aligned_alloc(alignment, size)
    if not arguments.data:
        raise ResourceExhaustedError(f"out of memory allocating {arguments.size} bytes")


@implements("DeviceMemory_Free")
def _free(arguments: c_api.MemoryFreeArgs) -> None:
    _libc().free(arguments.data)


def _thread_count() -> int:
    return Flags.from_environment().num_threads or len(os.sched_getaffinity(0))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_thread_count(), "haloc-ffi")


_TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@implements("ThreadPool_Schedule")
def _schedule(arguments: c_api.ScheduleArgs) -> None:
    _threads().submit(_TASK(arguments.task), arguments.data)


@implements("ThreadPool_NumThreads")
def _num_threads(arguments: c_api.NumThreadsArgs) -> None:
    arguments.num_threads[0] = _thread_count()


# --- Futures --------------------------------------------------------------------------------------


class _Future:
    def __init__(self) -> None:
        self.cell = ctypes.c_int64()
        self.done = threading.Event()
        self.error: HloError | None = None


_futures: dict[int, _Future] = {}


@implements("Future_Create")
def _create_future(arguments: c_api.FutureCreateArgs) -> None:
    future = _Future()
    arguments.future = ctypes.addressof(future.cell)
    _futures[arguments.future] = future


@implements("Future_SetAvailable")
def _set_available(arguments: c_api.FutureSetAvailableArgs) -> None:
    _futures[arguments.future].done.set()


@implements("Future_SetError")
def _set_error(arguments: c_api.FutureSetErrorArgs) -> None:
    future = _futures[arguments.future]
    future.error = errors.take(arguments.error)
    future.done.set()


def wait_for(future_address: int) -> HloError | None:
    """Wait for what a handler does asynchronously; its error, if it failed."""
    future = _futures[future_address]
    future.done.wait()
    del _futures[future_address]
    return future.error
