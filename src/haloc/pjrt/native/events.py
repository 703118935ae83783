"""LLVM text: events, and errors as C sees them.

An event is {ptr waiters, ptr error, i64 references}; waiters is 1 once the event has happened, and
until then a list of {next, callback, argument}. An error is {ptr vtable, i64 code, i64 message
size, i64 class_bytes, message}.
"""

from __future__ import annotations

ERROR_HEADER_BYTES = 32
HAPPENED = 1
_HAPPENED = f"inttoptr (i64 {HAPPENED} to ptr)"
_POLL_US = 20
_TWICE = "PJRT_Event_Set: the event has been set before"

EVENTS = f"""
; Of all that is finished when the call that starts it returns. It is never freed.
@ready = global {{ptr, ptr, i64}} {{ ptr {_HAPPENED}, ptr null, i64 1 }}
@set_twice = constant [{len(_TWICE)} x i8] c"{_TWICE}"

define ptr @ready_event() {{
  ret ptr @ready
}}

define ptr @event_create() {{
  %event = call ptr @heap_allocate(i64 64)
  store ptr null, ptr %event
  %error.at = getelementptr ptr, ptr %event, i64 1
  store ptr null, ptr %error.at
  %references.at = getelementptr i64, ptr %event, i64 2
  store i64 1, ptr %references.at
  ret ptr %event
}}

define void @event_retain(ptr %event) {{
  %common = icmp eq ptr %event, @ready
  br i1 %common, label %done, label %count
count:
  %references.at = getelementptr i64, ptr %event, i64 2
  %was = atomicrmw add ptr %references.at, i64 1 monotonic
  br label %done
done:
  ret void
}}

define void @event_release(ptr %event) {{
  %common = icmp eq ptr %event, @ready
  br i1 %common, label %done, label %count
count:
  %references.at = getelementptr i64, ptr %event, i64 2
  %was = atomicrmw sub ptr %references.at, i64 1 acq_rel
  %last = icmp eq i64 %was, 1
  br i1 %last, label %free, label %done
free:
  %error.at = getelementptr ptr, ptr %event, i64 1
  %error = load ptr, ptr %error.at
  call void @error_free(ptr %error)
  call void @heap_free(ptr %event, i64 64)
  br label %done
done:
  ret void
}}

; Let it happen, with an error that the event takes over, or null. False if it had happened before.
define i1 @event_set(ptr %event, ptr %error) {{
entry:
  %now = load atomic ptr, ptr %event acquire, align 8
  %before = icmp eq ptr %now, {_HAPPENED}
  br i1 %before, label %twice, label %set
twice:
  ret i1 false
set:
  ; A callback may give up the last reference.
  call void @event_retain(ptr %event)
  %error.at = getelementptr ptr, ptr %event, i64 1
  store ptr %error, ptr %error.at
  %first = atomicrmw xchg ptr %event, ptr {_HAPPENED} acq_rel
  br label %loop
loop:
  %waiter = phi ptr [ %first, %set ], [ %next, %tell ]
  %none = icmp eq ptr %waiter, null
  br i1 %none, label %end, label %tell
tell:
  %next = load ptr, ptr %waiter
  %callback.at = getelementptr ptr, ptr %waiter, i64 1
  %callback = load ptr, ptr %callback.at
  %argument.at = getelementptr ptr, ptr %waiter, i64 2
  %argument = load ptr, ptr %argument.at
  call void @heap_free(ptr %waiter, i64 64)
  %copy = call ptr @error_copy(ptr %error)
  call void %callback(ptr %copy, ptr %argument)
  br label %loop
end:
  call void @event_release(ptr %event)
  ret i1 true
}}

define ptr @Event_Create(ptr %args) {{
  %event = call ptr @event_create()
  %event.at = getelementptr i8, ptr %args, i64 16
  store ptr %event, ptr %event.at
  ret ptr null
}}

define ptr @Event_Set(ptr %args) {{
entry:
  %event.at = getelementptr i8, ptr %args, i64 16
  %event = load ptr, ptr %event.at
  %code.at = getelementptr i8, ptr %args, i64 24
  %code = load i32, ptr %code.at
  %message.at = getelementptr i8, ptr %args, i64 32
  %message = load ptr, ptr %message.at
  %size.at = getelementptr i8, ptr %args, i64 40
  %size = load i64, ptr %size.at
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %set, label %wrong
wrong:
  %wide = zext i32 %code to i64
  %made = call ptr @error_create(i64 %wide, ptr %message, i64 %size)
  br label %set
set:
  %error = phi ptr [ null, %entry ], [ %made, %wrong ]
  %first = call i1 @event_set(ptr %event, ptr %error)
  br i1 %first, label %done, label %twice
twice:
  call void @error_free(ptr %error)
  %refusal = call ptr @error_create(i64 9, ptr @set_twice, i64 {len(_TWICE)})
  ret ptr %refusal
done:
  ret ptr null
}}

define ptr @Event_Destroy(ptr %args) {{
  %event.at = getelementptr i8, ptr %args, i64 16
  %event = load ptr, ptr %event.at
  %none = icmp eq ptr %event, null
  br i1 %none, label %done, label %some
some:
  call void @event_release(ptr %event)
  br label %done
done:
  ret ptr null
}}

define ptr @Event_Error(ptr %args) {{
  %event.at = getelementptr i8, ptr %args, i64 16
  %event = load ptr, ptr %event.at
  %error.at = getelementptr ptr, ptr %event, i64 1
  %error = load ptr, ptr %error.at
  %copy = call ptr @error_copy(ptr %error)
  ret ptr %copy
}}

define ptr @Event_Await(ptr %args) {{
entry:
  %event.at = getelementptr i8, ptr %args, i64 16
  %event = load ptr, ptr %event.at
  br label %look
look:
  %now = load atomic ptr, ptr %event acquire, align 8
  %happened = icmp eq ptr %now, {_HAPPENED}
  br i1 %happened, label %done, label %wait
wait:
  %slept = call i32 @usleep(i32 {_POLL_US})
  br label %look
done:
  %error = call ptr @Event_Error(ptr %args)
  ret ptr %error
}}

define ptr @Event_IsReady(ptr %args) {{
  %event.at = getelementptr i8, ptr %args, i64 16
  %event = load ptr, ptr %event.at
  %now = load atomic ptr, ptr %event acquire, align 8
  %happened = icmp eq ptr %now, {_HAPPENED}
  %byte = zext i1 %happened to i8
  %ready.at = getelementptr i8, ptr %args, i64 24
  store i8 %byte, ptr %ready.at
  ret ptr null
}}

define ptr @Event_OnReady(ptr %args) {{
entry:
  %event.at = getelementptr i8, ptr %args, i64 16
  %event = load ptr, ptr %event.at
  %callback.at = getelementptr i8, ptr %args, i64 24
  %callback = load ptr, ptr %callback.at
  %argument.at = getelementptr i8, ptr %args, i64 32
  %argument = load ptr, ptr %argument.at
  %now = load atomic ptr, ptr %event acquire, align 8
  %happened = icmp eq ptr %now, {_HAPPENED}
  br i1 %happened, label %call, label %prepare
prepare:
  %waiter = call ptr @heap_allocate(i64 64)
  %callback.to = getelementptr ptr, ptr %waiter, i64 1
  store ptr %callback, ptr %callback.to
  %argument.to = getelementptr ptr, ptr %waiter, i64 2
  store ptr %argument, ptr %argument.to
  br label %try
try:
  %head = load atomic ptr, ptr %event acquire, align 8
  %late = icmp eq ptr %head, {_HAPPENED}
  br i1 %late, label %drop, label %push
push:
  store ptr %head, ptr %waiter
  %pair = cmpxchg ptr %event, ptr %head, ptr %waiter acq_rel acquire
  %done = extractvalue {{ptr, i1}} %pair, 1
  br i1 %done, label %out, label %try
drop:
  call void @heap_free(ptr %waiter, i64 64)
  br label %call
call:
  %error = call ptr @Event_Error(ptr %args)
  call void %callback(ptr %error, ptr %argument)
  br label %out
out:
  ret ptr null
}}
"""

ERRORS = f"""
@error_functions = constant {{i64, i64, ptr, ptr, ptr, ptr, ptr}} {{ i64 56, i64 8, ptr null, \
ptr @Error_Destroy, ptr @Error_Message, ptr @Error_GetCode, ptr @Error_ForEachPayload }}

define ptr @error_create(i64 %code, ptr %message, i64 %size) {{
  %wanted = add i64 %size, {ERROR_HEADER_BYTES + 1}
  %class = call i64 @heap_class(i64 %wanted)
  %error = call ptr @heap_allocate(i64 %class)
  store ptr @error_functions, ptr %error
  %code.at = getelementptr i64, ptr %error, i64 1
  store i64 %code, ptr %code.at
  %size.at = getelementptr i64, ptr %error, i64 2
  store i64 %size, ptr %size.at
  %class.at = getelementptr i64, ptr %error, i64 3
  store i64 %class, ptr %class.at
  %text = getelementptr i8, ptr %error, i64 {ERROR_HEADER_BYTES}
  call void @llvm.memcpy.p0.p0.i64(ptr %text, ptr %message, i64 %size, i1 false)
  %end = getelementptr i8, ptr %text, i64 %size
  store i8 0, ptr %end
  ret ptr %error
}}

; Another one that says the same; null of null.
define ptr @error_copy(ptr %error) {{
  %none = icmp eq ptr %error, null
  br i1 %none, label %nothing, label %copy
nothing:
  ret ptr null
copy:
  %code.at = getelementptr i64, ptr %error, i64 1
  %code = load i64, ptr %code.at
  %size.at = getelementptr i64, ptr %error, i64 2
  %size = load i64, ptr %size.at
  %text = getelementptr i8, ptr %error, i64 {ERROR_HEADER_BYTES}
  %made = call ptr @error_create(i64 %code, ptr %text, i64 %size)
  ret ptr %made
}}

define void @error_free(ptr %error) {{
  %none = icmp eq ptr %error, null
  br i1 %none, label %done, label %some
some:
  %class.at = getelementptr i64, ptr %error, i64 3
  %class = load i64, ptr %class.at
  call void @heap_free(ptr %error, i64 %class)
  br label %done
done:
  ret void
}}

define ptr @Error_Destroy(ptr %args) {{
  %error.at = getelementptr i8, ptr %args, i64 16
  %error = load ptr, ptr %error.at
  call void @error_free(ptr %error)
  ret ptr null
}}

define ptr @Error_Message(ptr %args) {{
  %error.at = getelementptr i8, ptr %args, i64 16
  %error = load ptr, ptr %error.at
  %text = getelementptr i8, ptr %error, i64 {ERROR_HEADER_BYTES}
  %message.at = getelementptr i8, ptr %args, i64 24
  store ptr %text, ptr %message.at
  %size.at = getelementptr i64, ptr %error, i64 2
  %size = load i64, ptr %size.at
  %to = getelementptr i8, ptr %args, i64 32
  store i64 %size, ptr %to
  ret ptr null
}}

define ptr @Error_GetCode(ptr %args) {{
  %error.at = getelementptr i8, ptr %args, i64 16
  %error = load ptr, ptr %error.at
  %code.at = getelementptr i64, ptr %error, i64 1
  %code = load i64, ptr %code.at
  %narrow = trunc i64 %code to i32
  %to = getelementptr i8, ptr %args, i64 24
  store i32 %narrow, ptr %to
  ret ptr null
}}

; haloc's errors are a code and a message.
define ptr @Error_ForEachPayload(ptr %args) {{
  ret ptr null
}}
"""
