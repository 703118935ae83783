"""Where a function of the native program is: whose it is, and at which site."""

from __future__ import annotations

from haloc.cpu.run_context import RunContext
from haloc.cpu.writer import Function


def participant(f: Function, num_partitions: int) -> str:
    """The flattened logical id, an i64, by the context that the function has as %run."""

    def field(name: str) -> str:
        place = f.element("%run", "i8", getattr(RunContext, name).offset)
        return f.op(f"zext i32 {f.load('i32', place)} to i64")

    return f.add(f.mul(field("replica_id"), num_partitions), field("partition_id"))


def note_failure(f: Function, status: str, site: int) -> None:
    """Put down that the run failed at `site`, if the status is not 0."""
    with f.when(f.op(f"icmp ne i32 {status}, 0")):
        f.store("i64", site, f.element("%run", "i8", RunContext.failed_at.offset))
