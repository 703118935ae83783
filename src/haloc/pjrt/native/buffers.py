"""LLVM text: buffers and their counted storage.

A buffer owns a share of a storage:

    {i64 references, ptr data, i64 class_bytes, ptr on_free, ptr on_free_argument}

class_bytes is what the heap gave, or 0 for memory of somebody else; then `on_free(argument)` is
told when nobody refers to it any more.
"""

from __future__ import annotations

from haloc.pjrt.abi import ARGS
from haloc.pjrt.native.events import HAPPENED
from haloc.pjrt.native.getters import load, store
from haloc.pjrt.native.handles import SLOTS, offset

HEADER_BYTES = 8 * len(SLOTS["Buffer"])
"""Of a buffer; its dimensions (i64 each) follow."""
MAX_RANK = 64


def at(function: str, field: str) -> int:
    """Bytes from the start of a function's arguments to a field."""
    return getattr(ARGS[function], field).offset


def slot(name: str) -> int:
    return offset("Buffer", name)


def _set(name: str, value: str, kind: str = "i64") -> str:
    return store(value, kind, "%buffer", slot(name))


STORAGE = """
define ptr @storage_create(ptr %data, i64 %class_bytes, ptr %on_free, ptr %argument) {
  %storage = call ptr @heap_allocate(i64 64)
  store i64 1, ptr %storage
  %data.at = getelementptr i64, ptr %storage, i64 1
  store ptr %data, ptr %data.at
  %class.at = getelementptr i64, ptr %storage, i64 2
  store i64 %class_bytes, ptr %class.at
  %free.at = getelementptr i64, ptr %storage, i64 3
  store ptr %on_free, ptr %free.at
  %argument.at = getelementptr i64, ptr %storage, i64 4
  store ptr %argument, ptr %argument.at
  ret ptr %storage
}

; Fresh memory of so many bytes, or null.
define ptr @storage_allocate(i64 %nbytes) {
  %class = call i64 @heap_class(i64 %nbytes)
  %data = call ptr @heap_allocate(i64 %class)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %none, label %some
none:
  ret ptr null
some:
  %storage = call ptr @storage_create(ptr %data, i64 %class, ptr null, ptr null)
  ret ptr %storage
}

define void @storage_retain(ptr %storage) {
  %was = atomicrmw add ptr %storage, i64 1 monotonic
  ret void
}

define void @storage_release(ptr %storage) {
  %was = atomicrmw sub ptr %storage, i64 1 acq_rel
  %last = icmp eq i64 %was, 1
  br i1 %last, label %free, label %done
free:
  %class.at = getelementptr i64, ptr %storage, i64 2
  %class = load i64, ptr %class.at
  %data.at = getelementptr i64, ptr %storage, i64 1
  %data = load ptr, ptr %data.at
  %foreign = icmp eq i64 %class, 0
  br i1 %foreign, label %tell, label %own
own:
  call void @heap_free(ptr %data, i64 %class)
  br label %gone
tell:
  %free.at = getelementptr i64, ptr %storage, i64 3
  %on_free = load ptr, ptr %free.at
  %silent = icmp eq ptr %on_free, null
  br i1 %silent, label %gone, label %call
call:
  %argument.at = getelementptr i64, ptr %storage, i64 4
  %argument = load ptr, ptr %argument.at
  call void %on_free(ptr %argument)
  br label %gone
gone:
  call void @heap_free(ptr %storage, i64 64)
  br label %done
done:
  ret void
}
"""

BUFFER = "\n".join(
    [
        """
; A buffer that takes over one reference to `storage`. dims: i64s, copied.
define ptr @buffer_create(i64 %type, i64 %rank, ptr %dims, i64 %nbytes, i64 %packed, \
ptr %storage, ptr %device, ptr %memory) {
entry:""",
        f"  %length = mul i64 %rank, 8\n  %wanted = add i64 %length, {HEADER_BYTES}",
        """  %class = call i64 @heap_class(i64 %wanted)
  %buffer = call ptr @heap_allocate(i64 %class)
  %data.at = getelementptr i64, ptr %storage, i64 1
  %data = load ptr, ptr %data.at""",
        f"  %own = getelementptr i8, ptr %buffer, i64 {HEADER_BYTES}",
        """  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %after, %more ]
  %go = icmp ult i64 %k, %rank
  br i1 %go, label %more, label %rest
more:
  %from = getelementptr i64, ptr %dims, i64 %k
  %dim = load i64, ptr %from
  %to = getelementptr i64, ptr %own, i64 %k
  store i64 %dim, ptr %to
  %after = add i64 %k, 1
  br label %loop
rest:""",
        _set("type", "%type"),
        _set("dims", "%own", "ptr"),
        _set("num_dims", "%rank"),
        _set("dynamic_dim_indices", "null", "ptr"),
        _set("num_dynamic_dims", "0"),
        _set("on_device_size_in_bytes", "%packed"),
        _set("device", "%device", "ptr"),
        _set("memory", "%memory", "ptr"),
        _set("is_deleted", "0"),
        _set("is_on_cpu", "1"),
        _set("buffer_pointer", "%data", "ptr"),
        _set("data", "%data", "ptr"),
        _set("nbytes", "%nbytes"),
        _set("storage", "%storage", "ptr"),
        _set("class_bytes", "%class"),
        f"  %event = getelementptr i8, ptr %buffer, i64 {slot('event')}",
        "  store ptr @ready, ptr %event",
        "  ret ptr %buffer\n}\n",
        """
; Give the memory up; the handle stays. Returns whether it had not been given up before.
define i1 @buffer_delete(ptr %buffer) {""",
        f"  %flag = getelementptr i8, ptr %buffer, i64 {slot('is_deleted')}",
        """  %was = atomicrmw xchg ptr %flag, i64 1 acq_rel
  %first = icmp eq i64 %was, 0
  br i1 %first, label %release, label %done
release:""",
        load("storage", "ptr", "%buffer", slot("storage")),
        """  call void @storage_release(ptr %storage)
  br label %done
done:
  ret i1 %first
}

define ptr @Buffer_Delete(ptr %args) {
  %buffer.at = getelementptr i8, ptr %args, i64 16
  %buffer = load ptr, ptr %buffer.at
  %was = call i1 @buffer_delete(ptr %buffer)
  ret ptr null
}

define ptr @Buffer_Destroy(ptr %args) {
  %buffer.at = getelementptr i8, ptr %args, i64 16
  %buffer = load ptr, ptr %buffer.at
  %none = icmp eq ptr %buffer, null
  br i1 %none, label %done, label %some
some:
  %was = call i1 @buffer_delete(ptr %buffer)""",
        load("event", "ptr", "%buffer", slot("event")),
        load("class", "i64", "%buffer", slot("class_bytes")),
        """  call void @event_release(ptr %event)
  call void @heap_free(ptr %buffer, i64 %class)
  br label %done
done:
  ret ptr null
}

; Let the buffer have its value when `event` happens; it takes over one reference.
define void @buffer_await(ptr %buffer, ptr %event) {""",
        f"  %event.at = getelementptr i8, ptr %buffer, i64 {slot('event')}",
        """  store ptr %event, ptr %event.at
  ret void
}

define ptr @Buffer_ReadyEvent(ptr %args) {
  %buffer.at = getelementptr i8, ptr %args, i64 16
  %buffer = load ptr, ptr %buffer.at""",
        load("event", "ptr", "%buffer", slot("event")),
        """  call void @event_retain(ptr %event)
  %to = getelementptr i8, ptr %args, i64 24
  store ptr %event, ptr %to
  ret ptr null
}

define ptr @Buffer_UnpaddedDimensions(ptr %args) {
  %error = call ptr @Buffer_Dimensions(ptr %args)
  ret ptr %error
}

define ptr @Buffer_OpaqueDeviceMemoryDataPointer(ptr %args) {
  %error = call ptr @Buffer_UnsafePointer(ptr %args)
  ret ptr %error
}

define ptr @Buffer_IncreaseExternalReferenceCount(ptr %args) {
  %buffer.at = getelementptr i8, ptr %args, i64 16
  %buffer = load ptr, ptr %buffer.at""",
        load("storage", "ptr", "%buffer", slot("storage")),
        """  call void @storage_retain(ptr %storage)
  ret ptr null
}

define ptr @Buffer_DecreaseExternalReferenceCount(ptr %args) {
  %buffer.at = getelementptr i8, ptr %args, i64 16
  %buffer = load ptr, ptr %buffer.at""",
        load("storage", "ptr", "%buffer", slot("storage")),
        """  call void @storage_release(ptr %storage)
  ret ptr null
}
""",
    ]
)

_ORDER = ", ".join(f"i64 {k}" for k in reversed(range(MAX_RANK)))

LAYOUT = "\n".join(
    [
        f"@row_major = constant [{MAX_RANK} x i64] [{_ORDER}]",
        "define ptr @Buffer_GetMemoryLayout(ptr %args) {",
        load("buffer", "ptr", "%args", 16),
        load("rank", "i64", "%buffer", slot("num_dims")),
        f"  %skip = sub i64 {MAX_RANK}, %rank",
        "  %order = getelementptr i64, ptr @row_major, i64 %skip",
        *(
            store(value, kind, "%args", at("Buffer_GetMemoryLayout", "layout") + offset_bytes)
            for value, kind, offset_bytes in (
                # The tiled form of PJRT_Buffer_MemoryLayout, without tiles.
                ("%order", "ptr", 32),
                ("%rank", "i64", 40),
                ("0", "i64", 64),
                ("0", "i32", 72),
            )
        ),
        "  ret ptr null\n}\n",
    ]
)

BUFFERS = "\n".join([STORAGE, BUFFER, LAYOUT])


def has_value(buffer: str) -> str:
    """`%has.value` is whether the buffer has its value, and no error instead of it."""
    return f"""{load("its.event", "ptr", buffer, slot("event"))}
  %happened.at = load atomic ptr, ptr %its.event acquire, align 8
  %happened = icmp eq ptr %happened.at, inttoptr (i64 {HAPPENED} to ptr)
  %failure.at = getelementptr ptr, ptr %its.event, i64 1
  %failure = load ptr, ptr %failure.at
  %fine = icmp eq ptr %failure, null
  %has.value = and i1 %happened, %fine"""
