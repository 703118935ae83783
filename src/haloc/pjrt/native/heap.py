"""LLVM text: memory for buffers and handles, reused by size class.

Fresh pages cost more than most kernels that fill them, so freed memory waits in a list per size
class for the next request of its class: powers of two with seven steps between.
"""

from __future__ import annotations

SMALL_BYTES = 16 * 1024
"""Memory up to this size is always kept."""
HUGE_BYTES = 4 * 1024 * 1024
"""Memory from this size on is aligned to huge pages, and they are asked for."""
MADV_HUGEPAGE = 14

HEAP = f"""
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.umax.i64(i64, i64)

@heap_lists = global [512 x ptr] zeroinitializer
@heap_lock = global i32 0
@heap_kept = global i64 0
@heap_limit = global i64 4294967296
@heap_in_use = global i64 0
@heap_peak = global i64 0

define internal void @lock() alwaysinline {{
entry:
  br label %try
try:
  %was = atomicrmw xchg ptr @heap_lock, i32 1 acquire
  %free = icmp eq i32 %was, 0
  br i1 %free, label %held, label %try
held:
  ret void
}}

define internal void @unlock() alwaysinline {{
  store atomic i32 0, ptr @heap_lock release, align 4
  ret void
}}

; Bytes that a request takes: at most an eighth more, a multiple of 64.
define i64 @heap_class(i64 %wanted) {{
  %size = call i64 @llvm.umax.i64(i64 %wanted, i64 64)
  %less = sub i64 %size, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %less, i1 false)
  %bits = sub i64 61, %zeros
  %power = shl i64 1, %bits
  %step = call i64 @llvm.umax.i64(i64 %power, i64 64)
  %up = add i64 %step, %less
  %count = udiv i64 %up, %step
  %class = mul i64 %count, %step
  ret i64 %class
}}

define internal ptr @heap_list(i64 %class) alwaysinline {{
  %zeros = call i64 @llvm.ctlz.i64(i64 %class, i1 false)
  %top = sub i64 63, %zeros
  %down = sub i64 %top, 3
  %eighths = lshr i64 %class, %down
  %step = and i64 %eighths, 7
  %row = shl i64 %top, 3
  %index = or i64 %row, %step
  %list = getelementptr ptr, ptr @heap_lists, i64 %index
  ret ptr %list
}}

; Null when the system gives no more.
define ptr @heap_allocate(i64 %class) {{
entry:
  %list = call ptr @heap_list(i64 %class)
  call void @lock()
  %used = load i64, ptr @heap_in_use
  %now = add i64 %used, %class
  store i64 %now, ptr @heap_in_use
  %before = load i64, ptr @heap_peak
  %peak = call i64 @llvm.umax.i64(i64 %now, i64 %before)
  store i64 %peak, ptr @heap_peak
  %head = load ptr, ptr %list
  %none = icmp eq ptr %head, null
  br i1 %none, label %system, label %reuse
reuse:
  %next = load ptr, ptr %head
  store ptr %next, ptr %list
  %kept = load i64, ptr @heap_kept
  %rest = sub i64 %kept, %class
  store i64 %rest, ptr @heap_kept
  call void @unlock()
  ret ptr %head
system:
  call void @unlock()
  %huge = icmp uge i64 %class, {HUGE_BYTES}
  br i1 %huge, label %pages, label %lines
lines:
  %some = call ptr @aligned_alloc(i64 64, i64 %class)
  ret ptr %some
pages:
  %memory = call ptr @aligned_alloc(i64 2097152, i64 %class)
  %advised = call i32 @madvise(ptr %memory, i64 %class, i32 {MADV_HUGEPAGE})
  ret ptr %memory
}}

define void @heap_free(ptr %memory, i64 %class) {{
entry:
  %list = call ptr @heap_list(i64 %class)
  call void @lock()
  %used = load i64, ptr @heap_in_use
  %left = sub i64 %used, %class
  store i64 %left, ptr @heap_in_use
  %kept = load i64, ptr @heap_kept
  %more = add i64 %kept, %class
  %limit = load i64, ptr @heap_limit
  %over = icmp ugt i64 %more, %limit
  %large = icmp ugt i64 %class, {SMALL_BYTES}
  %give = and i1 %over, %large
  br i1 %give, label %system, label %keep
keep:
  %head = load ptr, ptr %list
  store ptr %head, ptr %memory
  store ptr %memory, ptr %list
  store i64 %more, ptr @heap_kept
  call void @unlock()
  ret void
system:
  call void @unlock()
  call void @free(ptr %memory)
  ret void
}}

; The most there ever were in use is counted anew.
define void @heap_clear_peak() {{
  %used = load i64, ptr @heap_in_use
  store i64 %used, ptr @heap_peak
  ret void
}}

; Bytes in use, and the most there ever were in use.
define void @heap_usage(ptr %to) {{
  %used = load i64, ptr @heap_in_use
  store i64 %used, ptr %to
  %peak.at = getelementptr i64, ptr %to, i64 1
  %peak = load i64, ptr @heap_peak
  store i64 %peak, ptr %peak.at
  ret void
}}
"""
