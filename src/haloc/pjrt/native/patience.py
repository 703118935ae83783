"""LLVM text: calls of Python on threads whose caller may hold Python's lock while it waits.

jaxlib compiles for topologies on a thread of its own, and its caller keeps the GIL until that is
done: a function that simply called Python would never return. So another thread waits for the lock;
if it does not get it, the caller gets an error instead of a standstill.
"""

from __future__ import annotations

from haloc.pjrt.native.hooks import HOOK_NUMBERS

PATIENT = ("Compile",)
"""The functions that are called so."""

_SLEEP_US = 100
_TRIES = 20_000
_UNAVAILABLE = 14
_HELD = (
    "the caller keeps Python's lock (GIL) while it waits, and haloc compiles in Python: "
    "compile through a client (PJRT_Client_Compile)"
)

_MACHINERY = f"""
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)

; PyGILState_Check, PyGILState_Ensure, PyGILState_Release
@lock_functions = global [3 x ptr] zeroinitializer
@lock_is_held = constant [{len(_HELD)} x i8] c"{_HELD}"

define void @set_lock_functions(ptr %check, ptr %ensure, ptr %release) {{
  store ptr %check, ptr @lock_functions
  %ensure.at = getelementptr ptr, ptr @lock_functions, i64 1
  store ptr %ensure, ptr %ensure.at
  %release.at = getelementptr ptr, ptr @lock_functions, i64 2
  store ptr %release, ptr %release.at
  ret void
}}

; A job is {{i64 state, ptr args, i64 hook, ptr error}}.
; States: 0 waits for the lock, 1 runs, 2 given up by its caller, 3 done.
define ptr @do_job(ptr %job) {{
  %ensure.at = getelementptr ptr, ptr @lock_functions, i64 1
  %ensure = load ptr, ptr %ensure.at
  %held = call i32 %ensure()
  %pair = cmpxchg ptr %job, i64 0, i64 1 acq_rel acquire
  %wanted = extractvalue {{i64, i1}} %pair, 1
  br i1 %wanted, label %run, label %end
run:
  %args.at = getelementptr i64, ptr %job, i64 1
  %args = load ptr, ptr %args.at
  %hook.at = getelementptr i64, ptr %job, i64 2
  %hook = load i64, ptr %hook.at
  %error = call ptr @python(i64 %hook, ptr %args)
  %error.at = getelementptr i64, ptr %job, i64 3
  store ptr %error, ptr %error.at
  br label %end
end:
  %release.at = getelementptr ptr, ptr @lock_functions, i64 2
  %release = load ptr, ptr %release.at
  call void %release(i32 %held)
  br i1 %wanted, label %done, label %forget
done:
  store atomic i64 3, ptr %job release, align 8
  ret ptr null
forget:
  call void @heap_free(ptr %job, i64 64)
  ret ptr null
}}

define ptr @patiently(i64 %hook, ptr %args) {{
entry:
  %thread = alloca i64
  %check = load ptr, ptr @lock_functions
  %mine = call i32 %check()
  %ours = icmp ne i32 %mine, 0
  br i1 %ours, label %direct, label %hire
direct:
  %result = call ptr @python(i64 %hook, ptr %args)
  ret ptr %result
hire:
  %job = call ptr @heap_allocate(i64 64)
  store i64 0, ptr %job
  %args.at = getelementptr i64, ptr %job, i64 1
  store ptr %args, ptr %args.at
  %hook.at = getelementptr i64, ptr %job, i64 2
  store i64 %hook, ptr %hook.at
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @do_job, ptr %job)
  %alone = icmp ne i32 %failed, 0
  br i1 %alone, label %refuse, label %hired
hired:
  %number = load i64, ptr %thread
  %detached = call i32 @pthread_detach(i64 %number)
  br label %look
look:
  %tries = phi i64 [ 0, %hired ], [ %more, %sleep ]
  %state = load atomic i64, ptr %job acquire, align 8
  switch i64 %state, label %sleep [ i64 0, label %count i64 3, label %finish ]
count:
  %enough = icmp ugt i64 %tries, {_TRIES}
  br i1 %enough, label %give.up, label %sleep
sleep:
  %slept = call i32 @usleep(i32 {_SLEEP_US})
  %more = add i64 %tries, 1
  br label %look
finish:
  %error.at = getelementptr i64, ptr %job, i64 3
  %error = load ptr, ptr %error.at
  call void @heap_free(ptr %job, i64 64)
  ret ptr %error
give.up:
  %pair = cmpxchg ptr %job, i64 0, i64 2 acq_rel acquire
  %gone = extractvalue {{i64, i1}} %pair, 1
  br i1 %gone, label %refuse, label %sleep
refuse:
  %no = call ptr @error_create(i64 {_UNAVAILABLE}, ptr @lock_is_held, i64 {len(_HELD)})
  ret ptr %no
}}
"""


def _function(name: str) -> str:
    return f"""
define ptr @{name}(ptr %args) {{
  %error = call ptr @patiently(i64 {HOOK_NUMBERS[name]}, ptr %args)
  ret ptr %error
}}
"""


PATIENCE = "\n".join([_MACHINERY, *map(_function, PATIENT)])
