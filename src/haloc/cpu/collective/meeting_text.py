"""The LLVM text of meetings: how participants wait for each other, and `haloc_meet`.

A *phase* of a meeting ends when each member has come once more: `count` counts the arrivals,
`generation` the phases that have ended. Sleeping follows the pool's pattern: announce (`sleepers`),
then test again under the mutex; the other side changes the state, then looks for the announcement.
"""

MEETING_TEXT = """
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_cond_timedwait(ptr, ptr, ptr)
declare i32 @clock_gettime(i32, ptr)

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
"""
