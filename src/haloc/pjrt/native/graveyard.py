"""LLVM text: handles that C has destroyed and Python has still to forget.

Destroying may happen while a Python exception is on its way, when no Python may run: so the handle
goes on a list, and the next Python function of the table takes the list.
"""

GRAVEYARD = """
@buried = global ptr null

define void @bury(ptr %handle) {
entry:
  %grave = call ptr @heap_allocate(i64 64)
  %handle.at = getelementptr ptr, ptr %grave, i64 1
  store ptr %handle, ptr %handle.at
  br label %try
try:
  %head = load atomic ptr, ptr @buried acquire, align 8
  store ptr %head, ptr %grave
  %pair = cmpxchg ptr @buried, ptr %head, ptr %grave acq_rel acquire
  %done = extractvalue {ptr, i1} %pair, 1
  br i1 %done, label %out, label %try
out:
  ret void
}

; The whole list, which is the caller's from then on: {next, handle} each.
define ptr @exhume() {
  %head = atomicrmw xchg ptr @buried, ptr null acq_rel
  ret ptr %head
}

define ptr @destroy(ptr %args) {
  %handle.at = getelementptr i8, ptr %args, i64 16
  %handle = load ptr, ptr %handle.at
  call void @bury(ptr %handle)
  ret ptr null
}

define ptr @nothing(ptr %args) {
  ret ptr null
}
"""

NOTICE = """
; {pointer, callback, argument}: who is told, and what, when a view of foreign memory is gone.
define ptr @notice_create(ptr %pointer, ptr %callback, ptr %argument) {
  %notice = call ptr @heap_allocate(i64 64)
  store ptr %pointer, ptr %notice
  %callback.at = getelementptr ptr, ptr %notice, i64 1
  store ptr %callback, ptr %callback.at
  %argument.at = getelementptr ptr, ptr %notice, i64 2
  store ptr %argument, ptr %argument.at
  ret ptr %notice
}

define void @notice_deliver(ptr %notice) {
  %pointer = load ptr, ptr %notice
  %callback.at = getelementptr ptr, ptr %notice, i64 1
  %callback = load ptr, ptr %callback.at
  %argument.at = getelementptr ptr, ptr %notice, i64 2
  %argument = load ptr, ptr %argument.at
  call void @heap_free(ptr %notice, i64 64)
  %silent = icmp eq ptr %callback, null
  br i1 %silent, label %done, label %tell
tell:
  call void %callback(ptr %pointer, ptr %argument)
  br label %done
done:
  ret void
}
"""
