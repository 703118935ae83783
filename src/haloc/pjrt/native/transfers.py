"""LLVM text: dense arrays from and to host memory. Other layouts, and errors, go to Python."""

from __future__ import annotations

from haloc.ir.dtype import dtype_from_name
from haloc.pjrt.abi import BUFFER_TYPES
from haloc.pjrt.native.buffers import MAX_RANK, at, has_value, slot
from haloc.pjrt.native.getters import load
from haloc.pjrt.native.handles import offset

_FROM = "Client_BufferFromHostBuffer"
_TO = "Buffer_ToHostBuffer"


def _table(name: str, values: list[int]) -> str:
    members = ", ".join(f"i64 {v}" for v in values)
    return f"@{name} = constant [{len(values)} x i64] [{members}]"


def _element_sizes() -> str:
    """Bytes in memory and bits in a packed array by PJRT_Buffer_Type; 0 where nothing is."""
    dtypes = [None, *(dtype_from_name(name) for name in BUFFER_TYPES[1:])]
    arrays = [d if d is not None and d.numpy is not None else None for d in dtypes]
    return "\n".join(
        [
            _table("element_bytes", [d.numpy.itemsize if d else 0 for d in arrays]),
            _table("element_bits", [max(d.bits, 1) if d else 0 for d in arrays]),
            f"@element_types = constant i32 {len(arrays)}",
        ]
    )


FROM_HOST = "\n".join(
    [
        f"define ptr @{_FROM}(ptr %args) {{",
        "entry:",
        load("data", "ptr", "%args", at(_FROM, "data")),
        load("type", "i32", "%args", at(_FROM, "type")),
        load("dims", "ptr", "%args", at(_FROM, "dims")),
        load("rank", "i64", "%args", at(_FROM, "num_dims")),
        load("strides", "ptr", "%args", at(_FROM, "byte_strides")),
        load("device.given", "ptr", "%args", at(_FROM, "device")),
        load("memory.given", "ptr", "%args", at(_FROM, "memory")),
        load("layout", "ptr", "%args", at(_FROM, "device_layout")),
        f"""  %types = load i32, ptr @element_types
  %foreign = icmp uge i32 %type, %types
  %arranged = icmp ne ptr %layout, null
  %deep = icmp ugt i64 %rank, {MAX_RANK}
  %odd.1 = or i1 %foreign, %arranged
  %odd = or i1 %odd.1, %deep
  br i1 %odd, label %slow, label %known
known:
  %number = zext i32 %type to i64
  %width.at = getelementptr i64, ptr @element_bytes, i64 %number
  %width = load i64, ptr %width.at
  %bits.at = getelementptr i64, ptr @element_bits, i64 %number
  %bits = load i64, ptr %bits.at
  %none = icmp eq i64 %width, 0
  %strideless = icmp eq ptr %strides, null
  br i1 %none, label %slow, label %loop
loop:
  ; From the last dimension on: the bytes of what is inside is the stride there must be.
  %k = phi i64 [ %rank, %known ], [ %next, %dense ]
  %count = phi i64 [ 1, %known ], [ %more, %dense ]
  %end = icmp eq i64 %k, 0
  br i1 %end, label %place, label %dimension
dimension:
  %next = sub i64 %k, 1
  %dim.at = getelementptr i64, ptr %dims, i64 %next
  %dim = load i64, ptr %dim.at
  %more = mul i64 %count, %dim
  br i1 %strideless, label %dense, label %stride
stride:
  %stride.at = getelementptr i64, ptr %strides, i64 %next
  %is = load i64, ptr %stride.at
  %must = mul i64 %count, %width
  %same = icmp eq i64 %is, %must
  %single = icmp eq i64 %dim, 1
  %fine = or i1 %same, %single
  br i1 %fine, label %dense, label %slow
dense:
  br label %loop
place:
  %by.device = icmp ne ptr %device.given, null
  br i1 %by.device, label %device.only, label %memory.first
device.only:""",
        load("own.memory", "ptr", "%device.given", offset("Device", "memory")),
        """  br label %copy
memory.first:
  %nowhere = icmp eq ptr %memory.given, null
  br i1 %nowhere, label %slow, label %memory.device
memory.device:""",
        load("near", "ptr", "%memory.given", offset("Memory", "devices")),
        """  %its.device = load ptr, ptr %near
  br label %copy
copy:
  %device = phi ptr [ %device.given, %device.only ], [ %its.device, %memory.device ]
  %own = phi ptr [ %own.memory, %device.only ], [ %memory.given, %memory.device ]
  %memoryless = icmp eq ptr %memory.given, null
  %memory = select i1 %memoryless, ptr %own, ptr %memory.given
  %nbytes = mul i64 %count, %width
  %storage = call ptr @storage_allocate(i64 %nbytes)
  %failed = icmp eq ptr %storage, null
  br i1 %failed, label %slow, label %fill
fill:
  %to.at = getelementptr i64, ptr %storage, i64 1
  %to = load ptr, ptr %to.at
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %data, i64 %nbytes, i1 false)
  %all.bits = mul i64 %count, %bits
  %up = add i64 %all.bits, 7
  %packed = lshr i64 %up, 3
  %buffer = call ptr @buffer_create(i64 %number, i64 %rank, ptr %dims, i64 %nbytes, i64 %packed,
    ptr %storage, ptr %device, ptr %memory)""",
        f"  %done.at = getelementptr i8, ptr %args, i64 {at(_FROM, 'done_with_host_buffer')}",
        "  store ptr @ready, ptr %done.at",
        f"  %buffer.to = getelementptr i8, ptr %args, i64 {at(_FROM, 'buffer')}",
        """  store ptr %buffer, ptr %buffer.to
  ret ptr null
slow:
  %error = call ptr @python(i64 1, ptr %args)
  ret ptr %error
}
""",
    ]
)

TO_HOST = "\n".join(
    [
        f"define ptr @{_TO}(ptr %args) {{",
        "entry:",
        load("buffer", "ptr", "%args", at(_TO, "src")),
        load("layout", "ptr", "%args", at(_TO, "host_layout")),
        load("to", "ptr", "%args", at(_TO, "dst")),
        load("nbytes", "i64", "%buffer", slot("nbytes")),
        load("rank", "i64", "%buffer", slot("num_dims")),
        load("gone", "i64", "%buffer", slot("is_deleted")),
        load("data", "ptr", "%buffer", slot("data")),
        has_value("%buffer"),
        f"  %size.at = getelementptr i8, ptr %args, i64 {at(_TO, 'dst_size')}",
        f"  %event.at = getelementptr i8, ptr %args, i64 {at(_TO, 'event')}",
        """  %alive = icmp eq i64 %gone, 0
  br i1 %alive, label %there, label %slow
there:
  %asks = icmp eq ptr %to, null
  br i1 %asks, label %tell, label %order
tell:
  store i64 %nbytes, ptr %size.at
  store ptr null, ptr %event.at
  ret ptr null
order:
  %default = icmp eq ptr %layout, null
  br i1 %default, label %fits, label %tiled
tiled:""",
        load("kind", "i32", "%layout", 72),
        load("minor", "ptr", "%layout", 32),
        load("tiles", "i64", "%layout", 64),
        """  %strides = icmp ne i32 %kind, 0
  %tiling = icmp ne i64 %tiles, 0
  %odd = or i1 %strides, %tiling
  br i1 %odd, label %slow, label %loop
loop:
  %k = phi i64 [ 0, %tiled ], [ %next, %dimension ]
  %more = icmp ult i64 %k, %rank
  br i1 %more, label %dimension, label %fits
dimension:
  %next = add i64 %k, 1
  %is.at = getelementptr i64, ptr %minor, i64 %k
  %is = load i64, ptr %is.at
  %must = sub i64 %rank, %next
  %same = icmp eq i64 %is, %must
  br i1 %same, label %loop, label %slow
fits:
  %room = load i64, ptr %size.at
  %large.enough = icmp uge i64 %room, %nbytes
  %enough = and i1 %large.enough, %has.value
  br i1 %enough, label %copy, label %slow
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %data, i64 %nbytes, i1 false)
  store ptr @ready, ptr %event.at
  ret ptr null
slow:
  %error = call ptr @python(i64 2, ptr %args)
  ret ptr %error
}
""",
    ]
)

TRANSFERS = "\n".join([_element_sizes(), FROM_HOST, TO_HOST])
