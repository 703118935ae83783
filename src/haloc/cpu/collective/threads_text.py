"""The LLVM text of gangs' threads: `haloc_gang_run` takes idle ones and starts what is missing."""

THREADS_TEXT = """
@gang_mutex = internal global [128 x i8] zeroinitializer, align 64
@gang_work = internal global [128 x i8] zeroinitializer, align 64
@gang_idle = internal global i64 0
@gang_queue = internal global ptr null

; Forget all threads: at first use, and in a forked child, where they do not exist.
define void @haloc_gang_reset() {
  call i32 @pthread_mutex_init(ptr @gang_mutex, ptr null)
  call i32 @pthread_cond_init(ptr @gang_work, ptr null)
  store i64 0, ptr @gang_idle
  store ptr null, ptr @gang_queue
  ret void
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
  call void @discard(ptr %gang)
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
