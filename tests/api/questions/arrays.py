"""Arrays of one device and of several: what they say, how they are read, deletion, copies."""

# ruff: noqa: E501  # a question is a line of code

FOUR = "s = NamedSharding(mesh(x=4), PartitionSpec('x')); xs = [put(np.arange(2, dtype='f4') + i, i) for i in range(4)]\n"
SPLIT = FOUR + "a = ArrayImpl(aval(8), s, xs, True)\n"
COPIES = """s = NamedSharding(mesh(x=4), PartitionSpec())
a = ArrayImpl(aval(2), s, [put(np.arange(2, dtype='f4'), i) for i in range(4)], True)
"""
GRID = """s = NamedSharding(mesh(x=2, y=2), PartitionSpec(None, 'y'))
a = batched_device_put(aval(2, 4), s, [np.full((2, 2), i % 2, 'f4') for i in range(4)], devices)
"""
ONE = "a = put(np.arange(6, dtype='f4').reshape(2, 3), 1)\n"
DELETED = ONE + "a.delete()\n"

READS = {
    "shape": "a.shape",
    "dtype": "a.dtype",
    "counts": "(a.ndim, a.size, a.nbytes, a.itemsize)",
    "weak type": "a.weak_type",
    "sharding": "a.sharding",
    "device": "a.device",
    "devices": "sorted(d.id for d in a.devices())",
    "committed": "(a.committed, a._committed)",
    "addressable": "a.is_fully_addressable",
    "replicated": "a.is_fully_replicated",
    "deleted": "a.is_deleted()",
    "ready": "a.block_until_ready() is a, a.is_ready()",
    "size": "a.on_device_size_in_bytes()",
    "platform": "a.platform()",
    "value": "np.asarray(a).tolist()",
    "view": "np.asarray(a).flags.writeable",
    "cached": "np.asarray(a) is np.asarray(a)",
    "other dtype": "np.asarray(a, np.int32).tolist()",
    "copy": "np.array(a, copy=True).flags.writeable",
    "repr": "a",
    "str": "str(a)",
    "tolist": "a.tolist()",
    "item": "a.item()",
    "length": "len(a)",
    "bool": "bool(a)",
    "float": "float(a)",
    "index": "[1][a]",
    "hash": "hash(a)",
    "shards": "a.addressable_shards",
    "shard indices": "[s.index for s in a.addressable_shards]",
    "shard replicas": "[s.replica_id for s in a.global_shards]",
    "shard data": "[np.asarray(s.data).tolist() for s in a.addressable_shards]",
    "addressable data": "a.addressable_data(0)",
    "arrays": "a._arrays",
    "arrays' devices": "[x.device.id for x in a._arrays]",
    "fully replicated shard": "a._fully_replicated_shard()",
    "to numpy": "a._single_device_array_to_np_array_did_copy()",
    "single to host": "a._copy_single_device_array_to_host_async()",
    "to host": "a.copy_to_host_async()",
    "cuda interface": "a.__cuda_array_interface__",
    "layout": "str(a._pjrt_layout)",
    "dlpack device": "a.__dlpack_device__()",
    "dlpack": "np.from_dlpack(a).tolist()",
    "pickle": "pickle.loads(pickle.dumps(a))",
    "clone": "a.clone()",
    "traceback": "type(a.traceback).__name__",
    "delete": "a.delete(); a.delete(); a.is_deleted()",
}

CRASH_WHEN_DELETED = ("ready", "platform", "clone")
"""jaxlib dies of these, so they are asked last."""

QUESTIONS = {
    **{f"one: {name}": ONE + code for name, code in READS.items()},
    "one: pointer": ONE + "a.unsafe_buffer_pointer() == a.clone().unsafe_buffer_pointer()",
    **{f"split: {name}": SPLIT + code for name, code in READS.items()},
    "split: pointer": SPLIT + "a.unsafe_buffer_pointer()",
    **{f"copies: {name}": COPIES + code for name, code in READS.items()},
    **{f"grid: {name}": GRID + code for name, code in READS.items()},
    **{
        f"deleted: {name}": DELETED + code
        for name, code in READS.items()
        if name not in CRASH_WHEN_DELETED
    },
    "deleted: pointer": DELETED + "a.unsafe_buffer_pointer()",
    "deleted: wait": DELETED + "a.block_until_ready()",
    "deleted: is_ready": DELETED + "a.is_ready()",
    "deleted: platform": DELETED + "a.platform()",
    "deleted: clone": DELETED + "a.clone()",
    "deleted split: value": SPLIT + "a.delete(); np.asarray(a)",
    "deleted split: arrays": SPLIT + "a.delete(); a._arrays",
    "deleted split: shards": SPLIT + "a.delete(); a.addressable_shards",
    "deleted split: wait": SPLIT + "a.delete(); a.block_until_ready()",
    # Numbers and text
    **{
        f"text of {value}": f"x = put({value}); (repr(x), str(x))"
        for value in (
            "np.float32(1.5)",
            "np.zeros((0, 2), np.int8)",
            "np.eye(2, dtype=bool)",
            "np.arange(3) * 1j",
            "np.array([1.5], ml_dtypes.bfloat16)",
            "np.zeros((2000,), np.float32)",
            "np.array([np.nan, np.inf])",
        )
    },
    "float of a complex": "float(put(np.complex64(1)))",
    "int of a float": "int(put(np.float32(2.7)))",
    "index of a float": "[1, 2][put(np.float32(1))]",
    "index of an int": "[1, 2][put(np.int32(1))]",
    "format": "f'{put(np.float32(1.5)):.2f}'",
    "length of a scalar": "len(put(1.0))",
    "constructor without arguments": "ArrayImpl()",
    # From shards
    "made of shards": SPLIT + "np.asarray(a).tolist()",
    "made of one shard": (
        "x = put(np.arange(2.), 0); a = ArrayImpl(aval(2, dtype='float64'), "
        "SingleDeviceSharding(devices[0]), [x], False); (a, a.sharding, a.committed)"
    ),
    "made of too few": FOUR + "ArrayImpl(aval(8), s, xs[:2], True)",
    "made of a tuple": FOUR + "ArrayImpl(aval(8), s, tuple(xs), True)",
    "made in another order": FOUR + "np.asarray(ArrayImpl(aval(8), s, xs[::-1], True)).tolist()",
    "made of one device twice": FOUR + "ArrayImpl(aval(8), s, [xs[0]] * 4, True)",
    "made of other devices": (
        "s = NamedSharding(Mesh(np.array(devices[:2]), ('x',)), PartitionSpec('x'))\n"
        "ArrayImpl(aval(4), s, [put(np.zeros(2, 'f4'), i) for i in (0, 2)], True)"
    ),
    "made of another dtype": FOUR + "ArrayImpl(aval(8, dtype='int32'), s, xs, True)",
    "made of another shape": FOUR + "ArrayImpl(aval(12), s, xs, True)",
    "made without checks": FOUR + "ArrayImpl(aval(8), s, xs, True, _skip_checks=True)",
    "made of numpy": FOUR + "ArrayImpl(aval(2), s, [np.zeros(2)] * 4, True)",
    "shard printing": SPLIT + "repr(a.addressable_shards[2])",
    "replaced": SPLIT
    + "b = ArrayImpl(aval(8), s, [put(np.zeros(2, 'f4'), i) for i in range(4)], True)\n"
    "a._replace_with(b); a",
    "replaced by another shape": SPLIT + "a._replace_with(put(np.zeros(3)))",
    # batched_block_until_ready
    "wait for none": "batched_block_until_ready([])",
    "wait for some": ONE + SPLIT + "batched_block_until_ready([a, put(1.0)])",
    "wait for numpy": "batched_block_until_ready([np.zeros(2)])",
    "wait for deleted": DELETED + "batched_block_until_ready([a])",
    # buffer_from_pyval
    **{
        f"pyval {value}": f"x = client.buffer_from_pyval({value}); (x, x.dtype, x.shape)"
        for value in (
            "True",
            "7",
            "-1.5",
            "1j",
            "np.float32(2)",
            "np.int8(-3)",
            "2 ** 70",
            "-2 ** 63",
            "None",
            "[1, 2]",
            "(1,)",
            "'text'",
            "b'bytes'",
            "np.array(['a'])",
            "np.array([object()])",
            "np.array(['2020'], 'M8[D]')",
            "np.zeros((3, 0))",
            "np.arange(6).reshape(2, 3).T",
            "np.asfortranarray(np.arange(6).reshape(2, 3))",
            "np.arange(6)[::2]",
            "np.arange(3, dtype='>i4')",
            "np.float16(1)",
            "np.array([1, 2], ml_dtypes.int4)",
            "np.array([1.5], ml_dtypes.float8_e4m3fn)",
        )
    },
    **{
        f"packed size of {dtype}": (
            f"put(np.zeros(3, ml_dtypes.{dtype})).on_device_size_in_bytes()"
        )
        for dtype in ("int4", "uint4", "int2", "float4_e2m1fn", "float8_e5m2", "bfloat16")
    },
    "pyval of an array here": ONE
    + "client.buffer_from_pyval(a, devices[1]).unsafe_buffer_pointer() == a.unsafe_buffer_pointer()",
    "pyval of an array elsewhere": ONE
    + "b = client.buffer_from_pyval(a, devices[0]); (b, b.device)",
    "pyval committed": (
        "(client.buffer_from_pyval(1.0)._committed, "
        "client.buffer_from_pyval(1.0, devices[1])._committed)"
    ),
    "pyval default device": "client.buffer_from_pyval(1.0).device",
    "pyval on no device": "client.buffer_from_pyval(1.0, 'cpu')",
    "semantics": "list(HostBufferSemantics)",
    **{
        f"shares memory at {offset} with {options or 'defaults'}": f"""
raw = np.zeros(256, np.uint8); start = -raw.ctypes.data % 64 + {offset}
x = raw[start:start + 64].view('f4'); b = client.buffer_from_pyval(x{options})
b.unsafe_buffer_pointer() == x.ctypes.data"""
        for offset in (0, 4, 16, 32)
        for options in (
            "",
            ", force_copy=True",
            ", host_buffer_semantics=HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL",
            ", host_buffer_semantics=HostBufferSemantics.IMMUTABLE_UNTIL_TRANSFER_COMPLETES",
        )
    },
    # DLPack
    "dlpack capsule": "type(buffer_to_dlpack_managed_tensor(put(np.arange(3)))).__name__",
    "dlpack round trip": (
        "x = put(np.arange(3)); "
        "b = dlpack_managed_tensor_to_buffer(buffer_to_dlpack_managed_tensor(x), devices[0], None); "
        "(b, b.unsafe_buffer_pointer() == x.unsafe_buffer_pointer())"
    ),
    "dlpack used twice": (
        "c = buffer_to_dlpack_managed_tensor(put(np.arange(3)))\n"
        "dlpack_managed_tensor_to_buffer(c, devices[0], None)\n"
        "dlpack_managed_tensor_to_buffer(c, devices[0], None)"
    ),
    "dlpack of numpy": (
        "dlpack_managed_tensor_to_buffer(np.arange(4.0).__dlpack__(), devices[0], None)"
    ),
    "dlpack of strides": (
        "dlpack_managed_tensor_to_buffer(np.arange(6.0)[::2].__dlpack__(), devices[0], None)"
    ),
    "dlpack of a transposed array": (
        "dlpack_managed_tensor_to_buffer(np.arange(6.0).reshape(2, 3).T.__dlpack__(), "
        "devices[0], None)"
    ),
    "dlpack of bool": (
        "dlpack_managed_tensor_to_buffer(buffer_to_dlpack_managed_tensor("
        "put(np.array([True, False]))), devices[0], None)"
    ),
    "dlpack of bfloat16": (
        "dlpack_managed_tensor_to_buffer(buffer_to_dlpack_managed_tensor("
        "put(np.array([1.5], ml_dtypes.bfloat16))), devices[0], None)"
    ),
    "dlpack of float8": (
        "dlpack_managed_tensor_to_buffer(buffer_to_dlpack_managed_tensor("
        "put(np.array([1.5], ml_dtypes.float8_e4m3fn))), devices[0], None)"
    ),
    "dlpack of int4": "buffer_to_dlpack_managed_tensor(put(np.array([1], ml_dtypes.int4)))",
    "dlpack of no capsule": "dlpack_managed_tensor_to_buffer(3, devices[0], None)",
    "dlpack of numpy to array": "buffer_to_dlpack_managed_tensor(np.zeros(3))",
}
