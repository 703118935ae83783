"""The LLVM text of the worker pool.

Words. A *job* is one call of `haloc_parallel_for`. Its caller takes the `busy` flag; whoever finds
it taken (another Python thread, or a job started from inside a job) runs its own work inline, so
nothing ever waits for the flag and nothing can deadlock.

The `gate` is one atomic word: bits 0-15 count the workers that have joined the job, bit 16 says
that it is open, the bits above number the jobs. A worker joins by compare-and-swap, so it can only
join a job that is open, and each job once. The caller opens the gate, deals chunks to itself like
any worker, closes the gate (and learns from that same instruction how many joined), and waits until
so many have left. Job fields therefore never change under a worker.

Sleeping on both sides follows one pattern: announce (`sleepers`, `caller_waits`), then test again
under the mutex; the other side changes the state, then looks for the announcement. All of these are
sequentially consistent, so one of the two always sees the other.
"""

from __future__ import annotations

import platform
import sys

from haloc.cpu.collective.native import gang_text

SPIN_ROUNDS = 600
"""Times a thread looks again before it sleeps: 20-30 us with x86's pause instruction."""

STACK_BYTES = 8 << 20

_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "AMD64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
    "arm64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}

_IS_DARWIN = sys.platform == "darwin"


def pool_text() -> str:
    """The module's text for this machine: the pool, and the threads of gangs."""
    declare_pause, pause = _PAUSE.get(platform.machine(), ("", ""))
    words = {
        "DECLARE_PAUSE": declare_pause,
        "PAUSE": pause,
        "SPIN_ROUNDS": str(SPIN_ROUNDS),
        "STACK_BYTES": str(STACK_BYTES),
        "DETACHED": "2" if _IS_DARWIN else "1",  # PTHREAD_CREATE_DETACHED
        "SIG_SETMASK": "3" if _IS_DARWIN else "2",
        "SIGBUS": "10" if _IS_DARWIN else "7",
    }
    text = _TEXT + gang_text()
    for word, value in words.items():
        text = text.replace(f"${word}", value)
    return text


_TEXT = """
@mutex = internal global [128 x i8] zeroinitializer, align 64
@wake = internal global [128 x i8] zeroinitializer, align 64
@finished = internal global [128 x i8] zeroinitializer, align 64
@limit = internal global i64 1, align 64
@started = internal global i64 0
@busy = internal global i32 0, align 64
@gate = internal global i64 0, align 64
@next = internal global i64 0, align 64
@left = internal global i64 0, align 64
@sleepers = internal global i64 0, align 64
@caller_waits = internal global i64 0, align 64
@job_fn = internal global ptr null, align 64
@job_context = internal global ptr null
@job_extent = internal global i64 0
@job_grain = internal global i64 0
@job_workers = internal global i64 0, align 8

declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sigdelset(ptr, i32)
$DECLARE_PAUSE

; Forget all threads: at first use, and in a forked child, where they do not exist.
define void @haloc_pool_reset() {
  call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  call i32 @pthread_cond_init(ptr @wake, ptr null)
  call i32 @pthread_cond_init(ptr @finished, ptr null)
  store atomic i64 0, ptr @started seq_cst, align 8
  store atomic i64 0, ptr @gate seq_cst, align 8
  store atomic i64 0, ptr @left seq_cst, align 8
  store atomic i64 0, ptr @sleepers seq_cst, align 8
  store atomic i64 0, ptr @caller_waits seq_cst, align 8
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}

define void @haloc_pool_set_limit(i64 %limit) {
  store atomic i64 %limit, ptr @limit seq_cst, align 8
  ret void
}

define i64 @haloc_pool_started() {
  %n = load atomic i64, ptr @started seq_cst, align 8
  ret i64 %n
}

; Do chunks of the current job until none is left.
define internal void @work() {
entry:
  %fn = load ptr, ptr @job_fn
  %context = load ptr, ptr @job_context
  %extent = load i64, ptr @job_extent
  %grain = load i64, ptr @job_grain
  br label %take
take:
  %begin = atomicrmw add ptr @next, i64 %grain seq_cst
  %some = icmp slt i64 %begin, %extent
  br i1 %some, label %do, label %done
do:
  %end.full = add i64 %begin, %grain
  %partial = icmp sgt i64 %end.full, %extent
  %end = select i1 %partial, i64 %extent, i64 %end.full
  call void %fn(ptr %context, i64 %begin, i64 %end)
  br label %take
done:
  ret void
}

; Whether a worker whose last job was %last may join now; the gate's word comes with the answer.
define internal { i1, i64 } @joinable(i64 %last) alwaysinline {
  %gate = load atomic i64, ptr @gate seq_cst, align 8
  %job = lshr i64 %gate, 17
  %is.new = icmp ne i64 %job, %last
  %open.bit = and i64 %gate, 65536
  %is.open = icmp ne i64 %open.bit, 0
  %joined = and i64 %gate, 65535
  %workers = load atomic i64, ptr @job_workers monotonic, align 8
  %has.room = icmp slt i64 %joined, %workers
  %a = and i1 %is.new, %is.open
  %b = and i1 %a, %has.room
  %r0 = insertvalue { i1, i64 } poison, i1 %b, 0
  %r1 = insertvalue { i1, i64 } %r0, i64 %gate, 1
  ret { i1, i64 } %r1
}

define internal ptr @worker(ptr %unused) {
entry:
  br label %idle
idle:
  %last = phi i64 [ 0, %entry ], [ %job, %after ]
  br label %spin
spin:
  %round = phi i64 [ 0, %idle ], [ %round.next, %again ], [ 0, %try ], [ 0, %woken ]
  %j = call { i1, i64 } @joinable(i64 %last)
  %can = extractvalue { i1, i64 } %j, 0
  %gate = extractvalue { i1, i64 } %j, 1
  br i1 %can, label %try, label %wait
try:
  %gate.joined = add i64 %gate, 1
  %x = cmpxchg ptr @gate, i64 %gate, i64 %gate.joined seq_cst seq_cst
  %won = extractvalue { i64, i1 } %x, 1
  %job = lshr i64 %gate, 17
  br i1 %won, label %run, label %spin
wait:
  $PAUSE
  %round.next = add i64 %round, 1
  %tired = icmp sge i64 %round.next, $SPIN_ROUNDS
  br i1 %tired, label %sleep, label %again
again:
  br label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr @mutex)
  %s0 = atomicrmw add ptr @sleepers, i64 1 seq_cst
  br label %test
test:
  %j2 = call { i1, i64 } @joinable(i64 %last)
  %can2 = extractvalue { i1, i64 } %j2, 0
  br i1 %can2, label %woken, label %nap
nap:
  call i32 @pthread_cond_wait(ptr @wake, ptr @mutex)
  br label %test
woken:
  %s1 = atomicrmw sub ptr @sleepers, i64 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %spin
run:
  call void @work()
  %l = atomicrmw add ptr @left, i64 1 seq_cst
  %waits = load atomic i64, ptr @caller_waits seq_cst, align 8
  %must.signal = icmp ne i64 %waits, 0
  br i1 %must.signal, label %signal, label %after
signal:
  call i32 @pthread_mutex_lock(ptr @mutex)
  call i32 @pthread_cond_signal(ptr @finished)
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %after
after:
  br label %idle
}

; Start a thread; 0, or the system's error. It handles no signals but its own faults.
define internal i32 @create_thread(ptr %function, ptr %argument) {
  %attributes = alloca [256 x i8], align 16
  %blocked = alloca [128 x i8], align 16
  %before = alloca [128 x i8], align 16
  %thread = alloca i64
  call i32 @sigfillset(ptr %blocked)
  call i32 @sigdelset(ptr %blocked, i32 4)
  call i32 @sigdelset(ptr %blocked, i32 $SIGBUS)
  call i32 @sigdelset(ptr %blocked, i32 8)
  call i32 @sigdelset(ptr %blocked, i32 11)
  call i32 @pthread_sigmask(i32 $SIG_SETMASK, ptr %blocked, ptr %before)
  call i32 @pthread_attr_init(ptr %attributes)
  call i32 @pthread_attr_setdetachstate(ptr %attributes, i32 $DETACHED)
  call i32 @pthread_attr_setstacksize(ptr %attributes, i64 $STACK_BYTES)
  %rc = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr %function, ptr %argument)
  call i32 @pthread_attr_destroy(ptr %attributes)
  call i32 @pthread_sigmask(i32 $SIG_SETMASK, ptr %before, ptr null)
  ret i32 %rc
}

; Start workers until there are %wanted. Where the system gives no more threads, the job runs with
; those there are.
define internal void @start(i64 %wanted) {
entry:
  %n0 = load atomic i64, ptr @started seq_cst, align 8
  br label %more
more:
  %n = phi i64 [ %n0, %entry ], [ %n.next, %started ]
  %full = icmp sge i64 %n, %wanted
  br i1 %full, label %done, label %create
create:
  %rc = call i32 @create_thread(ptr @worker, ptr null)
  %ok = icmp eq i32 %rc, 0
  br i1 %ok, label %started, label %done
started:
  %n.next = add i64 %n, 1
  store atomic i64 %n.next, ptr @started seq_cst, align 8
  br label %more
done:
  ret void
}

; Wake up to %workers sleepers, if there are any.
define internal void @rouse(i64 %workers) {
entry:
  %sleepers = load atomic i64, ptr @sleepers seq_cst, align 8
  %none = icmp eq i64 %sleepers, 0
  br i1 %none, label %done, label %lock
lock:
  call i32 @pthread_mutex_lock(ptr @mutex)
  br label %next
next:
  %i = phi i64 [ 0, %lock ], [ %i.next, %next ]
  call i32 @pthread_cond_signal(ptr @wake)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %workers
  br i1 %more, label %next, label %unlock
unlock:
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %done
done:
  ret void
}

; Wait until %joined workers have left the job.
define internal void @await(i64 %joined) {
entry:
  br label %spin
spin:
  %round = phi i64 [ 0, %entry ], [ %round.next, %wait ]
  %left = load atomic i64, ptr @left seq_cst, align 8
  %all = icmp eq i64 %left, %joined
  br i1 %all, label %done, label %wait
wait:
  $PAUSE
  %round.next = add i64 %round, 1
  %tired = icmp sge i64 %round.next, $SPIN_ROUNDS
  br i1 %tired, label %sleep, label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr @mutex)
  store atomic i64 1, ptr @caller_waits seq_cst, align 8
  br label %test
test:
  %left2 = load atomic i64, ptr @left seq_cst, align 8
  %all2 = icmp eq i64 %left2, %joined
  br i1 %all2, label %woken, label %nap
nap:
  call i32 @pthread_cond_wait(ptr @finished, ptr @mutex)
  br label %test
woken:
  store atomic i64 0, ptr @caller_waits seq_cst, align 8
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %done
done:
  ret void
}

define void @haloc_parallel_for(ptr %fn, ptr %context, i64 %extent, i64 %grain.given) {
entry:
  %grain = call i64 @llvm.smax.i64(i64 %grain.given, i64 1)
  %empty = icmp sle i64 %extent, 0
  br i1 %empty, label %done, label %size
size:
  %limit = load atomic i64, ptr @limit seq_cst, align 8
  %is.serial = icmp sle i64 %limit, 1
  %is.small = icmp sle i64 %extent, %grain
  %is.inline = or i1 %is.serial, %is.small
  br i1 %is.inline, label %inline, label %claim
claim:
  %x = cmpxchg ptr @busy, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %x, 1
  br i1 %mine, label %publish, label %inline
inline:
  call void %fn(ptr %context, i64 0, i64 %extent)
  br label %done
publish:
  %extent.less = sub i64 %extent, 1
  %chunks.less = sdiv i64 %extent.less, %grain
  %limit.less = sub i64 %limit, 1
  %wanted = call i64 @llvm.smin.i64(i64 %chunks.less, i64 %limit.less)
  call void @start(i64 %wanted)
  store ptr %fn, ptr @job_fn
  store ptr %context, ptr @job_context
  store i64 %extent, ptr @job_extent
  store i64 %grain, ptr @job_grain
  store atomic i64 0, ptr @next seq_cst, align 8
  store atomic i64 0, ptr @left seq_cst, align 8
  store atomic i64 %wanted, ptr @job_workers monotonic, align 8
  %gate.old = load atomic i64, ptr @gate seq_cst, align 8
  %job.old = lshr i64 %gate.old, 17
  %job = add i64 %job.old, 1
  %job.bits = shl i64 %job, 17
  %gate.open = or i64 %job.bits, 65536
  store atomic i64 %gate.open, ptr @gate seq_cst, align 8
  call void @rouse(i64 %wanted)
  call void @work()
  %gate.closing = atomicrmw and ptr @gate, i64 -65537 seq_cst
  %joined = and i64 %gate.closing, 65535
  call void @await(i64 %joined)
  store atomic i32 0, ptr @busy seq_cst, align 4
  br label %done
done:
  ret void
}

declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
