"""The LLVM text shared by all programs with several participants.

Words. A *gang* is one execution of a program by all its participants, each on a thread of its own.
A *call* is what one of them runs. The gang's memory holds its *meetings*: one for each collective
and group. Participants come to a meeting, put down the addresses of their buffers, and wait; when
the last has come, all do their share of the work. A small collective's work is all done by the one
who comes last, which saves the others from waking up twice.

A *phase* of a meeting ends when each member has come once more: `count` counts the arrivals,
`generation` the phases that have ended. Sleeping follows the pool's pattern: announce (`sleepers`),
then test again under the mutex; the other side changes the state, then looks for the announcement.

The first failure is kept in `status`; whoever waits or comes later returns with it. Buffers stay
valid until all calls have ended, so that one who comes late does no harm.

Threads of gangs are apart from the pool: a participant that waits must never keep another from
running. `haloc_gang_run` takes idle threads and starts what is missing.
"""

from __future__ import annotations

import sys

from haloc.cpu.run_context import RunContext

GANG_FIELDS = (
    "status",
    "failed_participant",
    "running",
    "sleepers",
    "timeout_ns",
    "participants",
)
"""i64 fields at the start of a gang's memory, in order."""

CALL_FIELDS = (
    "program",
    "arguments",
    "results",
    "arena",
    "constants",
    "run",
    "gang",
    "participant",
    "next",
)
"""i64 fields of a call, in order."""

_LOCK_BYTES = 128
"""No system's mutex or condition variable is larger."""

_MUTEX = 64
_WOKEN = _MUTEX + _LOCK_BYTES
_FINISHED = _WOKEN + _LOCK_BYTES
GANG_HEADER_BYTES = _FINISHED + _LOCK_BYTES

MEETING_FIELDS = ("count", "generation")
"""i64 fields at the start of a meeting; then come `arrived`, an i64 a member, and the addresses
of the members' buffers."""

EXPORTS = ("haloc_meet", "haloc_gang_run", "haloc_gang_reset")


def gang_text() -> str:
    """The functions; they use the pool's declarations and @create_thread."""
    words = {
        "MUTEX": _MUTEX,
        "WOKEN": _WOKEN,
        "FINISHED": _FINISHED,
        "CLOCK_MONOTONIC": 6 if sys.platform == "darwin" else 1,
        "CALL_BYTES": 8 * len(CALL_FIELDS),
        "run.gang": RunContext.gang.offset,
        **{f"gang.{name}": 8 * k for k, name in enumerate(GANG_FIELDS)},
        **{f"call.{name}": 8 * k for k, name in enumerate(CALL_FIELDS)},
    }
    text = _TEXT
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(f"${word}", str(words[word]))
    return text


_TEXT = """
@gang_mutex = internal global [128 x i8] zeroinitializer, align 64
@gang_work = internal global [128 x i8] zeroinitializer, align 64
@gang_idle = internal global i64 0
@gang_queue = internal global ptr null

declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_cond_timedwait(ptr, ptr, ptr)
declare i32 @clock_gettime(i32, ptr)

; Forget all threads: at first use, and in a forked child, where they do not exist.
define void @haloc_gang_reset() {
  call i32 @pthread_mutex_init(ptr @gang_mutex, ptr null)
  call i32 @pthread_cond_init(ptr @gang_work, ptr null)
  store i64 0, ptr @gang_idle
  store ptr null, ptr @gang_queue
  ret void
}

define internal i64 @now_ns(i32 %clock) {
  %time = alloca [2 x i64]
  call i32 @clock_gettime(i32 %clock, ptr %time)
  %s = load i64, ptr %time
  %place = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %place
  %billions = mul i64 %s, 1000000000
  %sum = add i64 %billions, %ns
  ret i64 %sum
}

; Sleep on %woken, at most %ns (and a second): the clock of the sleep may be set meanwhile.
define internal void @doze(ptr %woken, ptr %mutex, i64 %ns) {
  %until = alloca [2 x i64]
  %least = call i64 @llvm.smax.i64(i64 %ns, i64 1000)
  %slice = call i64 @llvm.smin.i64(i64 %least, i64 1000000000)
  %now = call i64 @now_ns(i32 0)
  %at = add i64 %now, %slice
  %s = udiv i64 %at, 1000000000
  %rest = urem i64 %at, 1000000000
  store i64 %s, ptr %until
  %place = getelementptr i64, ptr %until, i64 1
  store i64 %rest, ptr %place
  call i32 @pthread_cond_timedwait(ptr %woken, ptr %mutex, ptr %until)
  ret void
}

; Keep the gang's first failure, and tell all who wait. The mutex is held.
define internal void @poison(ptr %gang, i64 %status, i64 %participant) {
entry:
  %status.p = getelementptr i8, ptr %gang, i64 $gang.status
  %x = cmpxchg ptr %status.p, i64 0, i64 %status seq_cst seq_cst
  %first = extractvalue { i64, i1 } %x, 1
  br i1 %first, label %keep, label %done
keep:
  %participant.p = getelementptr i8, ptr %gang, i64 $gang.failed_participant
  store i64 %participant, ptr %participant.p
  %woken = getelementptr i8, ptr %gang, i64 $WOKEN
  call i32 @pthread_cond_broadcast(ptr %woken)
  %finished = getelementptr i8, ptr %gang, i64 $FINISHED
  call i32 @pthread_cond_broadcast(ptr %finished)
  br label %done
done:
  ret void
}

; Come to a meeting. True for the last; the number of the phase comes with it.
define internal { i1, i64 } @arrive(ptr %meeting, i64 %rank, i64 %size) {
  %arrived.p = getelementptr i64, ptr %meeting, i64 2
  %mine.p = getelementptr i64, ptr %arrived.p, i64 %rank
  %mine = atomicrmw add ptr %mine.p, i64 1 seq_cst
  %n = atomicrmw add ptr %meeting, i64 1 seq_cst
  %phase = udiv i64 %n, %size
  %place = urem i64 %n, %size
  %after = add i64 %place, 1
  %last = icmp eq i64 %after, %size
  %r0 = insertvalue { i1, i64 } poison, i1 %last, 0
  %r1 = insertvalue { i1, i64 } %r0, i64 %phase, 1
  ret { i1, i64 } %r1
}

; End the phase.
define internal void @release(ptr %gang, ptr %meeting) {
entry:
  %generation.p = getelementptr i64, ptr %meeting, i64 1
  %g = atomicrmw add ptr %generation.p, i64 1 seq_cst
  %sleepers.p = getelementptr i8, ptr %gang, i64 $gang.sleepers
  %sleepers = load atomic i64, ptr %sleepers.p seq_cst, align 8
  %none = icmp eq i64 %sleepers, 0
  br i1 %none, label %done, label %wake
wake:
  %mutex = getelementptr i8, ptr %gang, i64 $MUTEX
  %woken = getelementptr i8, ptr %gang, i64 $WOKEN
  call i32 @pthread_mutex_lock(ptr %mutex)
  call i32 @pthread_cond_broadcast(ptr %woken)
  call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %done
done:
  ret void
}

; Wait for the end of a phase: 0, or the gang's status.
define internal i64 @attend(ptr %gang, ptr %meeting, i64 %phase, i64 %participant) {
entry:
  %generation.p = getelementptr i64, ptr %meeting, i64 1
  %status.p = getelementptr i8, ptr %gang, i64 $gang.status
  %sleepers.p = getelementptr i8, ptr %gang, i64 $gang.sleepers
  %timeout.p = getelementptr i8, ptr %gang, i64 $gang.timeout_ns
  %mutex = getelementptr i8, ptr %gang, i64 $MUTEX
  %woken = getelementptr i8, ptr %gang, i64 $WOKEN
  %participants.p = getelementptr i8, ptr %gang, i64 $gang.participants
  %participants = load i64, ptr %participants.p
  %limit = load atomic i64, ptr @limit seq_cst, align 8
  %crowded = icmp sgt i64 %participants, %limit
  %rounds = select i1 %crowded, i64 0, i64 $SPIN_ROUNDS
  br label %spin
spin:
  %round = phi i64 [ 0, %entry ], [ %round.next, %wait ]
  %g = load atomic i64, ptr %generation.p seq_cst, align 8
  %ended = icmp sgt i64 %g, %phase
  br i1 %ended, label %ok, label %wait
wait:
  $PAUSE
  %round.next = add i64 %round, 1
  %tired = icmp sge i64 %round.next, %rounds
  br i1 %tired, label %sleep, label %spin
sleep:
  %start = call i64 @now_ns(i32 $CLOCK_MONOTONIC)
  %timeout = load i64, ptr %timeout.p
  call i32 @pthread_mutex_lock(ptr %mutex)
  %s0 = atomicrmw add ptr %sleepers.p, i64 1 seq_cst
  br label %test
test:
  %g2 = load atomic i64, ptr %generation.p seq_cst, align 8
  %ended2 = icmp sgt i64 %g2, %phase
  br i1 %ended2, label %leave, label %check
check:
  %status = load atomic i64, ptr %status.p seq_cst, align 8
  %failed = icmp ne i64 %status, 0
  br i1 %failed, label %leave, label %look
look:
  %now = call i64 @now_ns(i32 $CLOCK_MONOTONIC)
  %waited = sub i64 %now, %start
  %left = sub i64 %timeout, %waited
  %late = icmp sle i64 %left, 0
  br i1 %late, label %give.up, label %nap
nap:
  call void @doze(ptr %woken, ptr %mutex, i64 %left)
  br label %test
give.up:
  call void @poison(ptr %gang, i64 4, i64 %participant)
  br label %check
leave:
  %result = phi i64 [ 0, %test ], [ %status, %check ]
  %s1 = atomicrmw sub ptr %sleepers.p, i64 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr %mutex)
  ret i64 %result
ok:
  ret i64 0
}

; One participant's part in a collective. %buffers: the addresses of its %buffer.count buffers.
; %share does a part of the work: i32 (ptr addresses of all buffers by member, i64 part), one part a
; member; a status other than 0 ends the gang. %offset: of the meeting in the gang.
define i32 @haloc_meet(ptr %run, i64 %offset, i64 %participant, i64 %rank, i64 %size,
                       ptr %buffers, i64 %buffer.count, ptr %share, i64 %is.small) {
entry:
  %gang.p = getelementptr i8, ptr %run, i64 $run.gang
  %gang = load ptr, ptr %gang.p
  %meeting = getelementptr i8, ptr %gang, i64 %offset
  %status.p = getelementptr i8, ptr %gang, i64 $gang.status
  %before = load atomic i64, ptr %status.p seq_cst, align 8
  %poisoned = icmp ne i64 %before, 0
  br i1 %poisoned, label %refuse, label %put
refuse:
  %before32 = trunc i64 %before to i32
  ret i32 %before32
put:
  %first.post = add i64 %size, 2
  %posts = getelementptr i64, ptr %meeting, i64 %first.post
  %first.mine = mul i64 %rank, %buffer.count
  %mine = getelementptr ptr, ptr %posts, i64 %first.mine
  %bytes = mul i64 %buffer.count, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %mine, ptr %buffers, i64 %bytes, i1 false)
  %a = call { i1, i64 } @arrive(ptr %meeting, i64 %rank, i64 %size)
  %last = extractvalue { i1, i64 } %a, 0
  %phase = extractvalue { i1, i64 } %a, 1
  %small = icmp ne i64 %is.small, 0
  br i1 %last, label %complete, label %attend.first
complete:
  br i1 %small, label %all.shares, label %go
all.shares:
  %k = phi i64 [ 0, %complete ], [ %k.next, %next.share ]
  %fault = call i32 %share(ptr %posts, i64 %k)
  %wrong = icmp ne i32 %fault, 0
  br i1 %wrong, label %end.wrong, label %next.share
next.share:
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, %size
  br i1 %more, label %all.shares, label %end.small
end.wrong:
  ret i32 %fault
end.small:
  call void @release(ptr %gang, ptr %meeting)
  ret i32 0
go:
  call void @release(ptr %gang, ptr %meeting)
  br label %do
attend.first:
  %s = call i64 @attend(ptr %gang, ptr %meeting, i64 %phase, i64 %participant)
  %s32 = trunc i64 %s to i32
  %failed = icmp ne i64 %s, 0
  %stop = or i1 %failed, %small
  br i1 %stop, label %return.first, label %do
return.first:
  ret i32 %s32
do:
  %fault2 = call i32 %share(ptr %posts, i64 %rank)
  %wrong2 = icmp ne i32 %fault2, 0
  br i1 %wrong2, label %end.wrong2, label %done.share
end.wrong2:
  ret i32 %fault2
done.share:
  %b = call { i1, i64 } @arrive(ptr %meeting, i64 %rank, i64 %size)
  %last2 = extractvalue { i1, i64 } %b, 0
  %phase2 = extractvalue { i1, i64 } %b, 1
  br i1 %last2, label %end.large, label %attend.second
end.large:
  call void @release(ptr %gang, ptr %meeting)
  ret i32 0
attend.second:
  %t = call i64 @attend(ptr %gang, ptr %meeting, i64 %phase2, i64 %participant)
  %t32 = trunc i64 %t to i32
  ret i32 %t32
}

; Run one call to its end.
define internal void @perform(ptr %call) {
entry:
  %program.p = getelementptr i8, ptr %call, i64 $call.program
  %program = load ptr, ptr %program.p
  %arguments.p = getelementptr i8, ptr %call, i64 $call.arguments
  %arguments = load ptr, ptr %arguments.p
  %results.p = getelementptr i8, ptr %call, i64 $call.results
  %results = load ptr, ptr %results.p
  %arena.p = getelementptr i8, ptr %call, i64 $call.arena
  %arena = load ptr, ptr %arena.p
  %constants.p = getelementptr i8, ptr %call, i64 $call.constants
  %constants = load ptr, ptr %constants.p
  %run.p = getelementptr i8, ptr %call, i64 $call.run
  %run = load ptr, ptr %run.p
  %status = call i32 %program(ptr %arguments, ptr %results, ptr %arena, ptr %constants, ptr %run)
  call void @finish(ptr %call, i32 %status)
  ret void
}

; The call has ended. Its memory and the gang's may be gone when the mutex is free.
define internal void @finish(ptr %call, i32 %status) {
entry:
  %gang.p = getelementptr i8, ptr %call, i64 $call.gang
  %gang = load ptr, ptr %gang.p
  %participant.p = getelementptr i8, ptr %call, i64 $call.participant
  %participant = load i64, ptr %participant.p
  %mutex = getelementptr i8, ptr %gang, i64 $MUTEX
  %running.p = getelementptr i8, ptr %gang, i64 $gang.running
  %finished = getelementptr i8, ptr %gang, i64 $FINISHED
  %ok = icmp eq i32 %status, 0
  call i32 @pthread_mutex_lock(ptr %mutex)
  br i1 %ok, label %count, label %fail
fail:
  %status64 = zext i32 %status to i64
  call void @poison(ptr %gang, i64 %status64, i64 %participant)
  br label %count
count:
  %running = load i64, ptr %running.p
  %left = sub i64 %running, 1
  store atomic i64 %left, ptr %running.p seq_cst, align 8
  %all = icmp eq i64 %left, 0
  br i1 %all, label %tell, label %done
tell:
  call i32 @pthread_cond_broadcast(ptr %finished)
  br label %done
done:
  call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}

; A thread of gangs: the call it was started for, then whatever is queued.
define internal ptr @member(ptr %first) {
entry:
  br label %run
run:
  %call = phi ptr [ %first, %entry ], [ %head, %take ]
  call void @perform(ptr %call)
  call i32 @pthread_mutex_lock(ptr @gang_mutex)
  %idle = load i64, ptr @gang_idle
  %idle.more = add i64 %idle, 1
  store i64 %idle.more, ptr @gang_idle
  br label %look
look:
  %head = load ptr, ptr @gang_queue
  %empty = icmp eq ptr %head, null
  br i1 %empty, label %nap, label %take
nap:
  call i32 @pthread_cond_wait(ptr @gang_work, ptr @gang_mutex)
  br label %look
take:
  %next.p = getelementptr i8, ptr %head, i64 $call.next
  %next = load ptr, ptr %next.p
  store ptr %next, ptr @gang_queue
  call i32 @pthread_mutex_unlock(ptr @gang_mutex)
  br label %run
}

; Give a call to an idle thread, else to a new one. gang_idle counts the threads that wait and have
; no call of the queue meant for them.
define internal void @assign(ptr %call) {
entry:
  call i32 @pthread_mutex_lock(ptr @gang_mutex)
  %idle = load i64, ptr @gang_idle
  %none = icmp eq i64 %idle, 0
  br i1 %none, label %create, label %queue
queue:
  %idle.less = sub i64 %idle, 1
  store i64 %idle.less, ptr @gang_idle
  %head = load ptr, ptr @gang_queue
  %next.p = getelementptr i8, ptr %call, i64 $call.next
  store ptr %head, ptr %next.p
  store ptr %call, ptr @gang_queue
  call i32 @pthread_cond_signal(ptr @gang_work)
  call i32 @pthread_mutex_unlock(ptr @gang_mutex)
  ret void
create:
  call i32 @pthread_mutex_unlock(ptr @gang_mutex)
  %rc = call i32 @create_thread(ptr @member, ptr %call)
  %ok = icmp eq i32 %rc, 0
  br i1 %ok, label %done, label %give.up
give.up:
  call void @finish(ptr %call, i32 8)
  br label %done
done:
  ret void
}

; Run %n calls that stand one after another, each on a thread of its own; the first one on this
; thread if %joins. Returns when all have ended, or a second after the gang has failed: then
; `running` says how many are still at it. The gang's memory is zero but for its fields.
define void @haloc_gang_run(ptr %calls, i64 %n, ptr %gang, i64 %joins) {
entry:
  %mutex = getelementptr i8, ptr %gang, i64 $MUTEX
  %woken = getelementptr i8, ptr %gang, i64 $WOKEN
  %finished = getelementptr i8, ptr %gang, i64 $FINISHED
  %running.p = getelementptr i8, ptr %gang, i64 $gang.running
  %status.p = getelementptr i8, ptr %gang, i64 $gang.status
  call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  call i32 @pthread_cond_init(ptr %woken, ptr null)
  call i32 @pthread_cond_init(ptr %finished, ptr null)
  store i64 %n, ptr %running.p
  br label %next
next:
  %k = phi i64 [ %joins, %entry ], [ %k.next, %hand ]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %hand, label %handed
hand:
  %at = mul i64 %k, $CALL_BYTES
  %call = getelementptr i8, ptr %calls, i64 %at
  call void @assign(ptr %call)
  %k.next = add i64 %k, 1
  br label %next
handed:
  %has.own = icmp ne i64 %joins, 0
  br i1 %has.own, label %own, label %await
own:
  call void @perform(ptr %calls)
  br label %await
await:
  call i32 @pthread_mutex_lock(ptr %mutex)
  br label %test
test:
  %failed.at = phi i64 [ 0, %await ], [ %failed.at, %wait ], [ %failed.then, %linger ]
  %running = load i64, ptr %running.p
  %all = icmp eq i64 %running, 0
  br i1 %all, label %done, label %check
check:
  %status = load i64, ptr %status.p
  %failed = icmp ne i64 %status, 0
  br i1 %failed, label %failing, label %wait
wait:
  call i32 @pthread_cond_wait(ptr %finished, ptr %mutex)
  br label %test
failing:
  %now = call i64 @now_ns(i32 $CLOCK_MONOTONIC)
  %is.news = icmp eq i64 %failed.at, 0
  %failed.then = select i1 %is.news, i64 %now, i64 %failed.at
  %waited = sub i64 %now, %failed.then
  %left = sub i64 1000000000, %waited
  %late = icmp sle i64 %left, 0
  br i1 %late, label %done, label %linger
linger:
  call void @doze(ptr %finished, ptr %mutex, i64 %left)
  br label %test
done:
  call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}
"""
