"""`run_gang`: all participants of a program, together."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from haloc.cpu.collective.call import ParticipantCall
from haloc.cpu.collective.layout import CALL_FIELDS, GANG_FIELDS, MEETING_FIELDS
from haloc.cpu.collective.site import Site
from haloc.cpu.run_context import RunContext
from haloc.cpu.symbols import resolve
from haloc.errors import STATUS_CODES, DeadlineExceededError, InvalidArgumentError

_STATUS, _FAILED, _RUNNING = (
    GANG_FIELDS.index(name) for name in ("status", "failed_participant", "running")
)


SEQUENTIAL_NS = 20_000.0
"""Programs that do not meet and take less run one after another: waking threads takes longer."""


class GangFacts(Protocol):
    """Of a program: estimated time, where its participants meet, whether it calls the host."""

    cost_ns: float
    num_partitions: int
    sites: tuple[Site, ...]
    gang_bytes: int
    calls_host: bool


class GangProgram(Protocol):
    """What a gang needs of a program; the pointers are its function's and its constants'."""

    function_pointer: int
    constants_pointer: int
    facts: GangFacts

    def run(
        self,
        argument_pointers: Sequence[int],
        result_pointers: Sequence[int],
        arena_pointer: int,
        run: RunContext | None = None,
    ) -> None: ...


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

    Raises the first failure of any: DeadlineExceededError, naming the collective or recv-done and
    who is missing, when participants wait for others for more than timeout_s. After a failure, a
    participant that does not come to an end within a second is left behind: `keep`, which should
    hold all memory of the calls, is then kept until it does.
    """
    facts = program.facts
    is_short = not facts.sites and not facts.calls_host and facts.cost_ns < SEQUENTIAL_NS
    has_mail = any(site.is_mail for site in facts.sites)
    if is_short or (len(calls) == 1 and not has_mail):
        for call in calls:
            program.run(call.arguments, call.results, call.arena, call.run)
        return
    gang = _zeros(facts.gang_bytes)
    gang[GANG_FIELDS.index("timeout_ns")] = int(timeout_s * 1e9)
    gang[GANG_FIELDS.index("participants")] = len(calls)
    address = ctypes.addressof(gang)
    for call in calls:
        call.run.gang = address
    memory = _calls(program, calls, address)
    # Where a participant may be stuck in a callback, this thread only waits.
    joins = 0 if facts.calls_host else 1
    _native()(ctypes.addressof(memory), len(calls), address, joins)
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
        heads += (program.function_pointer, arguments, results, call.arena)
        heads += (program.constants_pointer, call.run.pointer, gang, number, 0)
    memory[:] = heads + pointers
    return memory


def _native() -> Callable[[int, int, int, int], None]:
    global _run  # noqa: PLW0603  # one address a process
    if _run is None:
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)
        _run = prototype(resolve("haloc_gang_run"))
    return _run


_run: Any = None


def _failure(program: GangProgram, calls: Sequence[ParticipantCall], gang: Any) -> BaseException:
    """The first failure, as an exception."""
    status, number = gang[_STATUS], gang[_FAILED]
    context = calls[number].run
    if context.error is not None or context.failed_at < 0:
        return context.exception(status)
    site = program.facts.sites[context.failed_at]
    if status == STATUS_CODES.index("DEADLINE_EXCEEDED"):
        what = (
            _not_sent(program, site, number) if site.is_mail else _away(program, site, number, gang)
        )
        return _late(site, what, gang)
    if status == STATUS_CODES.index("INVALID_ARGUMENT"):
        return InvalidArgumentError(f"{site.name}: {site.fault}")
    return context.exception(status)


def _late(site: Site, what: str, gang: Any) -> DeadlineExceededError:
    timeout_s = gang[GANG_FIELDS.index("timeout_ns")] / 1e9
    return DeadlineExceededError(
        f"{site.name}: waited {timeout_s:g} s for {what} "
        "(xla_cpu_collective_call_terminate_timeout_seconds sets the time)"
    )


def _away(program: GangProgram, site: Site, number: int, gang: Any) -> str:
    """Who did not come to the meeting that `number` waited at."""
    at = next(k for k, g in enumerate(site.groups) if number in g)
    group, offset = site.groups[at], site.offsets[at]
    first = offset // 8 + len(MEETING_FIELDS)
    arrived = gang[first : first + len(group)]
    here = [p for p, n in zip(group, arrived, strict=True) if n == max(arrived)]
    away = [p for p, n in zip(group, arrived, strict=True) if n < max(arrived)]
    return f"{_named(program, away)}, which did not come; {_named(program, here)} did"


def _not_sent(program: GangProgram, site: Site, number: int) -> str:
    """What `number` waited for at a recv-done."""
    source = site.sources[number] if site.sources else -1
    sender = "a participant" if source < 0 else _named(program, [source])
    return f"{sender}, which did not send to {_named(program, [number])}"


def _named(program: GangProgram, participants: Sequence[int]) -> str:
    many = program.facts.num_partitions
    shown = ", ".join(f"{p} (replica {p // many}, partition {p % many})" for p in participants)
    return f"participant{'s' if len(participants) > 1 else ''} {shown}"
