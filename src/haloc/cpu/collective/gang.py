"""`run_gang`: all participants of a program, together."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from haloc.cpu import pool
from haloc.cpu.collective.native import CALL_FIELDS, GANG_FIELDS, MEETING_FIELDS
from haloc.cpu.collective.ragged import FAULT
from haloc.cpu.collective.sites import Site
from haloc.cpu.run_context import RunContext
from haloc.errors import STATUS_CODES, DeadlineExceededError, InvalidArgumentError

_STATUS, _FAILED, _RUNNING = (
    GANG_FIELDS.index(name) for name in ("status", "failed_participant", "running")
)


@dataclass(frozen=True, slots=True)
class ParticipantCall:
    """What one participant runs: addresses of its leaves and its arena, as `CpuProgram.run` takes
    them, and its context."""

    arguments: Sequence[int]
    results: Sequence[int]
    arena: int
    run: RunContext


@dataclass(frozen=True, slots=True)
class GangProgram:
    """What a gang needs of a program. function, constants: addresses. num_partitions: to name
    participants. joins: whether the caller's thread runs a participant too: not where one might be
    stuck in a callback."""

    function: int
    constants: int
    sites: Sequence[Site]
    gang_bytes: int
    num_partitions: int
    joins: bool


class _Straggler:
    """A gang that failed while some of its calls still ran, and what they may still touch."""

    def __init__(self, gang: Any, kept: tuple[Any, ...]):
        self.gang = gang
        self.kept = kept

    @property
    def is_over(self) -> bool:
        return self.gang[_RUNNING] == 0


_stragglers: list[_Straggler] = []


def run_gang(
    program: GangProgram,
    calls: Sequence[ParticipantCall],
    timeout_s: float,
    keep: Any = None,
) -> None:
    """Run all participants at once, by flattened logical id; returns when all have ended.

    Raises the first failure of any: DeadlineExceededError, naming the collective and who is
    missing, when participants wait for others for more than timeout_s. After a failure, a
    participant that does not come to an end within a second is left behind: `keep`, which should
    hold all memory of the calls, is then kept until it does.
    """
    gang = _zeros(program.gang_bytes)
    gang[GANG_FIELDS.index("timeout_ns")] = int(timeout_s * 1e9)
    gang[GANG_FIELDS.index("participants")] = len(calls)
    address = ctypes.addressof(gang)
    for call in calls:
        call.run.gang = address
    memory = _calls(program, calls, address)
    _native()(ctypes.addressof(memory), len(calls), address, int(program.joins))
    if gang[_STATUS]:
        if gang[_RUNNING]:
            _stragglers[:] = [s for s in _stragglers if not s.is_over]
            _stragglers.append(_Straggler(gang, (memory, calls, keep)))
        raise _failure(program, calls, gang)


def _zeros(size_bytes: int) -> Any:
    """Zeroed words, 64-byte aligned."""
    raw = (ctypes.c_char * (size_bytes + 64))()
    words = (ctypes.c_int64 * (size_bytes // 8)).from_buffer(raw, -ctypes.addressof(raw) % 64)
    return words


def _calls(program: GangProgram, calls: Sequence[ParticipantCall], gang: int) -> Any:
    """The calls as native code reads them, then the pointer arrays they refer to."""
    words = len(CALL_FIELDS) * len(calls)
    size = words + sum(len(c.arguments) + len(c.results) for c in calls)
    memory = (ctypes.c_int64 * size)()
    base = ctypes.addressof(memory)
    heads: list[int] = []
    pointers: list[int] = []
    for number, call in enumerate(calls):
        arguments = base + 8 * (words + len(pointers))
        results = arguments + 8 * len(call.arguments)
        pointers += call.arguments
        pointers += call.results
        heads += (program.function, arguments, results, call.arena, program.constants)
        heads += (call.run.pointer, gang, number, 0)
    memory[:] = heads + pointers
    return memory


def _native() -> Callable[[int, int, int, int], None]:
    global _run  # noqa: PLW0603  # one address a process
    if _run is None:
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)
        _run = prototype(pool.install()["haloc_gang_run"])
    return _run


_run: Any = None


def _failure(program: GangProgram, calls: Sequence[ParticipantCall], gang: Any) -> BaseException:
    """The first failure, as an exception."""
    status, number = gang[_STATUS], gang[_FAILED]
    context = calls[number].run
    if context.error is not None or context.failed_at < 0:
        return context.exception(status)
    site = program.sites[context.failed_at]
    if status == STATUS_CODES.index("DEADLINE_EXCEEDED"):
        return _missing(program, site, number, gang)
    if status == STATUS_CODES.index("INVALID_ARGUMENT"):
        return InvalidArgumentError(f"{site.name}: {FAULT}")
    return context.exception(status)


def _missing(program: GangProgram, site: Site, number: int, gang: Any) -> DeadlineExceededError:
    """Who did not come to the meeting that `number` waited at."""
    at = next(k for k, g in enumerate(site.groups) if number in g)
    group, offset = site.groups[at], site.offsets[at]
    first = offset // 8 + len(MEETING_FIELDS)
    arrived = gang[first : first + len(group)]
    here = [p for p, n in zip(group, arrived, strict=True) if n == max(arrived)]
    away = [p for p, n in zip(group, arrived, strict=True) if n < max(arrived)]
    timeout_s = gang[GANG_FIELDS.index("timeout_ns")] / 1e9

    def named(participants: list[int]) -> str:
        many = program.num_partitions
        shown = ", ".join(f"{p} (replica {p // many}, partition {p % many})" for p in participants)
        return f"participant{'s' if len(participants) > 1 else ''} {shown}"

    return DeadlineExceededError(
        f"{site.name}: waited {timeout_s:g} s for {named(away)}, which did not come; "
        f"{named(here)} did (xla_cpu_collective_call_terminate_timeout_seconds sets the time)"
    )
