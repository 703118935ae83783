"""`RunContext`: what one run of a native program knows of itself, for native code and for Python.

A program is `i32 program(ptr arguments, ptr results, ptr arena, ptr constants, ptr run)`. `run`
points to the fields below and is null where the program does not use it (`CpuProgram.uses_run`).
The result is 0, or an absl status code: of the first call that failed, after which the program
did nothing more.
"""

from __future__ import annotations

import ctypes
from itertools import count
from typing import Any

from haloc.errors import STATUS_CODES, HloError, error_of_status

_run_ids = count(1)


def next_run_id() -> int:
    """A number for an execution, unlike any other in this process."""
    return next(_run_ids)


class RunContext(ctypes.Structure):
    """One run of a program by one participant. Lives until the run has ended.

    replica_id, partition_id: the participant. run_id: equal for all participants of one execution
    and for no other in this process. gang: address of the state that the participants share
    (`haloc.cpu.collective.gang`); 0 for a participant of its own. self_id: this object, for calls
    back into Python. failed_at: number of the site of the collective that failed, or -1.
    error: the exception behind a failure, if there is one: the first that `fail` was given.
    host: what the executable hands to the host callbacks of the run. participant: the run as ops
    see it that native code leaves to Python; made by the first of them.
    """

    _fields_ = (
        ("replica_id", ctypes.c_uint32),
        ("partition_id", ctypes.c_uint32),
        ("run_id", ctypes.c_int64),
        ("gang", ctypes.c_void_p),
        ("self_id", ctypes.c_void_p),
        ("failed_at", ctypes.c_int64),
    )

    error: BaseException | None
    host: Any
    participant: Any

    def __init__(
        self,
        replica_id: int = 0,
        partition_id: int = 0,
        run_id: int | None = None,
        gang: int = 0,
        host: Any = None,
    ):
        number = next_run_id() if run_id is None else run_id
        super().__init__(replica_id, partition_id, number, gang, id(self), -1)
        self.pointer = ctypes.addressof(self)
        self.error = None
        self.host = host
        self.participant = None

    @staticmethod
    def at(pointer: int) -> RunContext:
        """The context that native code passes as `run`."""
        address = ctypes.c_void_p.from_address(pointer + RunContext.self_id.offset).value
        return ctypes.cast(ctypes.c_void_p(address), ctypes.py_object).value

    def fail(self, error: BaseException) -> int:
        """Keep the exception (if it is the run's first) for `CpuProgram.run` to raise; the status
        code that the native caller must return."""
        if self.error is None:
            self.error = error
        return error.status if isinstance(error, HloError) else STATUS_CODES.index("INTERNAL")

    def exception(self, status: int) -> BaseException:
        """What to raise after the program has returned a status other than 0."""
        return self.error or error_of_status(status, f"run {self.run_id} of a program failed")
