"""LLVM text: contexts of executions, in which callers leave data for FFI handlers.

A context is {i64 count, then (i64 type id, ptr data) each}. They are made and destroyed at every
call of every executable once the FFI extension is there, so Python has no part in it.
"""

from __future__ import annotations

CAPACITY = 63
CONTEXT_BYTES = 1024

_FULL = f"an execution context holds {CAPACITY} values"

CONTEXT = f"""
@last_type = global i64 0
@context_full = constant [{len(_FULL)} x i8] c"{_FULL}"

define ptr @ExecuteContext_Create(ptr %args) {{
  %context = call ptr @heap_allocate(i64 {CONTEXT_BYTES})
  store i64 0, ptr %context
  %to = getelementptr i8, ptr %args, i64 16
  store ptr %context, ptr %to
  ret ptr null
}}

define ptr @ExecuteContext_Destroy(ptr %args) {{
  %context.at = getelementptr i8, ptr %args, i64 16
  %context = load ptr, ptr %context.at
  %none = icmp eq ptr %context, null
  br i1 %none, label %done, label %some
some:
  call void @heap_free(ptr %context, i64 {CONTEXT_BYTES})
  br label %done
done:
  ret ptr null
}}

; A type without a number (0) gets the next one.
define ptr @FFI_Type_Register(ptr %args) {{
  %id.at = getelementptr i8, ptr %args, i64 32
  %id = load i64, ptr %id.at
  %given = icmp ne i64 %id, 0
  br i1 %given, label %done, label %assign
assign:
  %last = atomicrmw add ptr @last_type, i64 1 monotonic
  %next = add i64 %last, 1
  store i64 %next, ptr %id.at
  br label %done
done:
  ret ptr null
}}

define ptr @FFI_UserData_Add(ptr %args) {{
  %context.at = getelementptr i8, ptr %args, i64 16
  %context = load ptr, ptr %context.at
  %count = load i64, ptr %context
  %full = icmp uge i64 %count, {CAPACITY}
  br i1 %full, label %refuse, label %add
add:
  %id.at = getelementptr i8, ptr %args, i64 24
  %id = load i64, ptr %id.at
  %data.at = getelementptr i8, ptr %args, i64 32
  %data = load ptr, ptr %data.at
  %place = shl i64 %count, 4
  %entry = getelementptr i8, ptr %context, i64 %place
  %id.to = getelementptr i8, ptr %entry, i64 8
  store i64 %id, ptr %id.to
  %data.to = getelementptr i8, ptr %entry, i64 16
  store ptr %data, ptr %data.to
  %more = add i64 %count, 1
  store i64 %more, ptr %context
  ret ptr null
refuse:
  %error = call ptr @error_create(i64 8, ptr @context_full, i64 {len(_FULL)})
  ret ptr %error
}}
"""
