"""LLVM text: execution of a program on one device, without Python.

A plan says what there is to know, in eight-byte fields; programs without one (those that need a
context of their run, run on several devices or pass tokens) and calls that are wrong in some way
go to Python through hook 0, which also words the errors.
"""

from __future__ import annotations

import ctypes

from haloc.pjrt.abi import STRUCT
from haloc.pjrt.native.buffers import at, has_value, slot
from haloc.pjrt.native.getters import load
from haloc.pjrt.native.handles import offset


class Plan(ctypes.Structure):
    """argument_bytes: i64 of each argument. taken: for each argument, 1 when a result takes its
    memory over. results: a `PlanResult` each."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("constants", ctypes.c_void_p),
        ("arena_class", ctypes.c_int64),
        ("num_args", ctypes.c_int64),
        ("num_outputs", ctypes.c_int64),
        ("argument_bytes", ctypes.c_void_p),
        ("taken", ctypes.c_void_p),
        ("takes", ctypes.c_int64),
        ("results", ctypes.c_void_p),
        ("device", ctypes.c_void_p),
    )


class PlanResult(ctypes.Structure):
    """source: the argument whose memory the result takes over, or -1. memory: where it lies."""

    _fields_ = (
        ("type", ctypes.c_int64),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
        ("nbytes", ctypes.c_int64),
        ("packed", ctypes.c_int64),
        ("source", ctypes.c_int64),
        ("memory", ctypes.c_void_p),
    )


_CALL = "LoadedExecutable_Execute"
_KEPT = STRUCT["ExecuteOptions"].num_non_donatable_input_indices.offset


def _plan(field: str, kind: str = "ptr") -> str:
    return load(field, kind, "%plan", getattr(Plan, field).offset)


EXECUTE = "\n".join(
    [
        f"define ptr @{_CALL}(ptr %args) {{",
        "entry:",
        load("executable", "ptr", "%args", at(_CALL, "executable")),
        load("plan", "ptr", "%executable", offset("LoadedExecutable", "plan")),
        load("deleted", "i64", "%executable", offset("LoadedExecutable", "is_deleted")),
        load("options", "ptr", "%args", at(_CALL, "options")),
        load("lists", "ptr", "%args", at(_CALL, "argument_lists")),
        load("num_devices", "i64", "%args", at(_CALL, "num_devices")),
        load("given", "i64", "%args", at(_CALL, "num_args")),
        load("outputs", "ptr", "%args", at(_CALL, "output_lists")),
        load("events", "ptr", "%args", at(_CALL, "device_complete_events")),
        load("kept", "i64", "%options", _KEPT),
        """  %planless = icmp eq ptr %plan, null
  %several = icmp ne i64 %num_devices, 1
  %keeps = icmp ne i64 %kept, 0
  %dead = icmp ne i64 %deleted, 0
  %odd.1 = or i1 %planless, %several
  %odd.2 = or i1 %odd.1, %keeps
  %odd = or i1 %odd.2, %dead
  br i1 %odd, label %slow, label %counted
counted:""",
        _plan("num_args", "i64"),
        _plan("num_outputs", "i64"),
        _plan("argument_bytes"),
        _plan("taken"),
        _plan("takes", "i64"),
        _plan("results"),
        """  %fits = icmp eq i64 %given, %num_args
  br i1 %fits, label %prepare, label %slow
prepare:
  %arguments = load ptr, ptr %lists
  %in = alloca ptr, i64 %num_args, align 16
  %out = alloca ptr, i64 %num_outputs, align 16
  %storages = alloca ptr, i64 %num_outputs, align 16
  br label %argument
argument:
  %k = phi i64 [ 0, %prepare ], [ %k.next, %good ]
  %k.more = icmp ult i64 %k, %num_args
  br i1 %k.more, label %check, label %donations
check:
  %buffer.at = getelementptr ptr, ptr %arguments, i64 %k
  %buffer = load ptr, ptr %buffer.at""",
        load("gone", "i64", "%buffer", slot("is_deleted")),
        load("nbytes", "i64", "%buffer", slot("nbytes")),
        load("data", "ptr", "%buffer", slot("data")),
        load("where", "ptr", "%buffer", slot("device")),
        has_value("%buffer"),
        _plan("device"),
        """  %wanted.at = getelementptr i64, ptr %argument_bytes, i64 %k
  %wanted = load i64, ptr %wanted.at
  %right = icmp eq i64 %wanted, %nbytes
  %alive = icmp eq i64 %gone, 0
  %here = icmp eq ptr %where, %device
  %ok.1 = and i1 %right, %alive
  %ok.2 = and i1 %ok.1, %here
  %ok = and i1 %ok.2, %has.value
  br i1 %ok, label %good, label %slow
good:
  %in.at = getelementptr ptr, ptr %in, i64 %k
  store ptr %data, ptr %in.at
  %k.next = add i64 %k, 1
  br label %argument
donations:
  ; An argument whose memory is taken may appear once only, and nobody else may hold the memory:
  ; otherwise Python copies, or refuses.
  %donates = icmp ne i64 %takes, 0
  br i1 %donates, label %taken.loop, label %allocate
taken.loop:
  %t = phi i64 [ 0, %donations ], [ %t.next, %taken.next ]
  %t.more = icmp ult i64 %t, %num_args
  br i1 %t.more, label %taken.one, label %allocate
taken.one:
  %t.flag.at = getelementptr i64, ptr %taken, i64 %t
  %t.flag = load i64, ptr %t.flag.at
  %t.is = icmp ne i64 %t.flag, 0
  %t.next = add i64 %t, 1
  br i1 %t.is, label %taken.check, label %taken.next
taken.check:
  %t.at = getelementptr ptr, ptr %arguments, i64 %t
  %t.buffer = load ptr, ptr %t.at""",
        load("t.storage", "ptr", "%t.buffer", slot("storage")),
        """  %t.refs = load atomic i64, ptr %t.storage acquire, align 8
  %t.class.at = getelementptr i64, ptr %t.storage, i64 2
  %t.class = load i64, ptr %t.class.at
  %t.sole = icmp eq i64 %t.refs, 1
  %t.own = icmp ne i64 %t.class, 0
  %t.free = and i1 %t.sole, %t.own
  br i1 %t.free, label %twice, label %slow
twice:
  %u = phi i64 [ 0, %taken.check ], [ %u.next, %twice.next ]
  %u.more = icmp ult i64 %u, %num_args
  br i1 %u.more, label %twice.check, label %taken.next
twice.check:
  %u.at = getelementptr ptr, ptr %arguments, i64 %u
  %u.buffer = load ptr, ptr %u.at
  %u.same = icmp eq ptr %u.buffer, %t.buffer
  %u.other = icmp ne i64 %u, %t
  %u.again = and i1 %u.same, %u.other
  br i1 %u.again, label %slow, label %twice.next
twice.next:
  %u.next = add i64 %u, 1
  br label %twice
taken.next:
  br label %taken.loop
allocate:
  br label %allocate.loop
allocate.loop:
  %a = phi i64 [ 0, %allocate ], [ %a.next, %allocated ]
  %a.more = icmp ult i64 %a, %num_outputs
  br i1 %a.more, label %allocate.one, label %run
allocate.one:""",
        f"  %result = getelementptr i8, ptr %results, i64 0\n"
        f"  %a.offset = mul i64 %a, {ctypes.sizeof(PlanResult)}\n"
        "  %a.result = getelementptr i8, ptr %results, i64 %a.offset",
        load("a.nbytes", "i64", "%a.result", PlanResult.nbytes.offset),
        load("a.source", "i64", "%a.result", PlanResult.source.offset),
        """  %a.fresh = icmp slt i64 %a.source, 0
  br i1 %a.fresh, label %fresh, label %take
fresh:
  %f.storage = call ptr @storage_allocate(i64 %a.nbytes)
  %f.failed = icmp eq ptr %f.storage, null
  br i1 %f.failed, label %undo, label %allocated
take:
  %s.at = getelementptr ptr, ptr %arguments, i64 %a.source
  %s.buffer = load ptr, ptr %s.at""",
        load("s.storage", "ptr", "%s.buffer", slot("storage")),
        """  ; One reference for the result; deleting the argument gives its own up.
  call void @storage_retain(ptr %s.storage)
  br label %allocated
allocated:
  %o.storage = phi ptr [ %f.storage, %fresh ], [ %s.storage, %take ]
  %o.at = getelementptr ptr, ptr %storages, i64 %a
  store ptr %o.storage, ptr %o.at
  %o.data.at = getelementptr i64, ptr %o.storage, i64 1
  %o.data = load ptr, ptr %o.data.at
  %out.at = getelementptr ptr, ptr %out, i64 %a
  store ptr %o.data, ptr %out.at
  %a.next = add i64 %a, 1
  br label %allocate.loop
run:""",
        _plan("function"),
        _plan("constants"),
        _plan("arena_class", "i64"),
        """  %arenaless = icmp eq i64 %arena_class, 0
  br i1 %arenaless, label %call, label %arena
arena:
  %scratch = call ptr @heap_allocate(i64 %arena_class)
  %scratch.none = icmp eq ptr %scratch, null
  br i1 %scratch.none, label %undo, label %call
call:
  %block = phi ptr [ null, %run ], [ %scratch, %arena ]
  %status = call i32 %function(ptr %in, ptr %out, ptr %block, ptr %constants, ptr null)
  br i1 %arenaless, label %finish, label %arena.free
arena.free:
  call void @heap_free(ptr %block, i64 %arena_class)
  br label %finish
finish:
  br label %delete.loop
delete.loop:
  %d = phi i64 [ 0, %finish ], [ %d.next, %delete.next ]
  %d.some = icmp ult i64 %d, %num_args
  %d.more = and i1 %d.some, %donates
  br i1 %d.more, label %delete.check, label %wrap
delete.check:
  %d.flag.at = getelementptr i64, ptr %taken, i64 %d
  %d.flag = load i64, ptr %d.flag.at
  %d.is = icmp ne i64 %d.flag, 0
  %d.next = add i64 %d, 1
  br i1 %d.is, label %delete.one, label %delete.next
delete.one:
  %d.at = getelementptr ptr, ptr %arguments, i64 %d
  %d.buffer = load ptr, ptr %d.at
  %d.was = call i1 @buffer_delete(ptr %d.buffer)
  br label %delete.next
delete.next:
  br label %delete.loop
wrap:
  %list = load ptr, ptr %outputs""",
        load("home", "ptr", "%plan", Plan.device.offset),
        """  br label %wrap.loop
wrap.loop:
  %w = phi i64 [ 0, %wrap ], [ %w.next, %wrap.one ]
  %w.more = icmp ult i64 %w, %num_outputs
  br i1 %w.more, label %wrap.one, label %wrapped
wrap.one:""",
        f"  %w.offset = mul i64 %w, {ctypes.sizeof(PlanResult)}\n"
        "  %w.result = getelementptr i8, ptr %results, i64 %w.offset",
        *(
            load(f"w.{field}", kind, "%w.result", getattr(PlanResult, field).offset)
            for field, kind in (
                ("type", "i64"),
                ("rank", "i64"),
                ("dims", "ptr"),
                ("nbytes", "i64"),
                ("packed", "i64"),
                ("memory", "ptr"),
            )
        ),
        """  %w.storage.at = getelementptr ptr, ptr %storages, i64 %w
  %w.storage = load ptr, ptr %w.storage.at
  %w.buffer = call ptr @buffer_create(i64 %w.type, i64 %w.rank, ptr %w.dims, i64 %w.nbytes,
    i64 %w.packed, ptr %w.storage, ptr %home, ptr %w.memory)
  %w.at = getelementptr ptr, ptr %list, i64 %w
  store ptr %w.buffer, ptr %w.at
  %w.next = add i64 %w, 1
  br label %wrap.loop
wrapped:
  %eventless = icmp eq ptr %events, null
  br i1 %eventless, label %done, label %event
event:
  store ptr @ready, ptr %events
  br label %done
done:
  ret ptr null
undo:
  %x.count = phi i64 [ %a, %fresh ], [ %a, %arena ]
  br label %undo.loop
undo.loop:
  %x = phi i64 [ 0, %undo ], [ %x.next, %undo.one ]
  %x.more = icmp ult i64 %x, %x.count
  br i1 %x.more, label %undo.one, label %slow
undo.one:
  %x.at = getelementptr ptr, ptr %storages, i64 %x
  %x.storage = load ptr, ptr %x.at
  call void @storage_release(ptr %x.storage)
  %x.next = add i64 %x, 1
  br label %undo.loop
slow:
  %error = call ptr @python(i64 0, ptr %args)
  ret ptr %error
}
""",
    ]
)
