"""Functions that place arrays on devices: put, copy, reorder, handlers of results."""

# ruff: noqa: E501  # a question is a line of code

P = "PartitionSpec"
X4 = f"s = NamedSharding(mesh(x=4), {P}('x'))\n"
HALVES = "parts = [np.arange(2, dtype='f4') + 10 * i for i in range(4)]\n"
SPLIT = X4 + HALVES + "a = batched_device_put(aval(8), s, parts, devices)\n"

QUESTIONS = {
    # batched_device_put
    "put": SPLIT + "(a, a.sharding, a._committed)",
    "put one": "batched_device_put(aval(2), SingleDeviceSharding(devices[1]), [np.ones(2, 'f4')], [devices[1]]).device",
    "put uncommitted": SPLIT.replace("devices)", "devices, False)") + "a._committed",
    "put copies": X4
    + HALVES
    + """
a = batched_device_put(aval(8), s, parts, devices, force_copy=True)
parts[0][:] = 7; np.asarray(a).tolist()""",
    "put in another order of devices": X4
    + HALVES
    + "np.asarray(batched_device_put(aval(8), s, parts, devices[::-1])).tolist()",
    "put too few devices": X4 + HALVES + "batched_device_put(aval(8), s, parts, devices[:2])",
    "put no shards": X4 + "batched_device_put(aval(8), s, [], [])",
    "put too few shards": X4 + HALVES + "batched_device_put(aval(8), s, parts[:2], devices[:2])",
    "put wrong shape": X4 + "batched_device_put(aval(8), s, [np.zeros(3, 'f4')] * 4, devices)",
    "put mixed dtypes": X4
    + "batched_device_put(aval(8), s, [np.zeros(2, t) for t in ('f4', 'i4', 'f4', 'f4')], devices)",
    "put another dtype": X4
    + "batched_device_put(aval(8), s, [np.zeros(2, 'i4')] * 4, devices).dtype",
    "put numbers": f"batched_device_put(aval(dtype='int64'), NamedSharding(mesh(x=4), {P}()), [3] * 4, devices)",
    "put lists": X4 + "batched_device_put(aval(8), s, [[1.0, 2.0]] * 4, devices)",
    "put arrays": X4
    + "batched_device_put(aval(8), s, [put(np.arange(2, dtype='f4'), i) for i in range(4)], devices)",
    "put arrays of another device": X4
    + "a = batched_device_put(aval(8), s, [put(np.arange(2, dtype='f4'), 0) for i in range(4)], devices); (a, [x.device.id for x in a._arrays])",
    "put without aval": X4 + HALVES + "batched_device_put(None, s, parts, devices)",
    "put without sharding": HALVES + "batched_device_put(aval(8), None, parts, devices)",
    "put to another memory": HALVES
    + f"a = batched_device_put(aval(8), NamedSharding(mesh(x=4), {P}('x'), memory_kind='pinned_host'), parts, devices); (a, a.sharding.memory_kind, a._arrays[0].sharding.memory_kind)",
    "put by GSPMD": HALVES
    + "batched_device_put(aval(8), GSPMDSharding(devices, HloSharding.iota_tile((4,))), parts, devices)",
    "put by pmap": "a = batched_device_put(aval(4, 2), PmapSharding.default((4, 2), 0, devices), [np.full((1, 2), i, 'f4') for i in range(4)], devices); a",
    # array_result_handler
    "handler type": X4 + "type(array_result_handler(aval(8), s, True)).__name__",
    "handler": X4
    + HALVES
    + "array_result_handler(aval(8), s, True)([put(p, i) for i, p in enumerate(parts)])",
    "handler in another order": X4
    + HALVES
    + "np.asarray(array_result_handler(aval(8), s, True)([put(parts[i], i) for i in (3, 2, 1, 0)])).tolist()",
    "handler without checks": X4
    + HALVES
    + "array_result_handler(aval(8), s, False, _skip_checks=True)([put(p, i) for i, p in enumerate(parts)])._committed",
    "handler of too few": X4
    + HALVES
    + "array_result_handler(aval(8), s, True)([put(p, i) for i, p in enumerate(parts[:3])])",
    "handler of too few without checks": X4
    + HALVES
    + "array_result_handler(aval(8), s, True, True)([put(p, i) for i, p in enumerate(parts[:3])])",
    "handler of wrong dtype": X4
    + "array_result_handler(aval(8), s, True)([put(np.zeros(2, 'i4'), i) for i in range(4)])",
    "handler of wrong shape": X4
    + "array_result_handler(aval(8), s, True)([put(np.zeros(3, 'f4'), i) for i in range(4)])",
    "handler of one device": X4
    + "array_result_handler(aval(8), s, True)([put(np.zeros(2, 'f4'), 0) for i in range(4)])",
    "handler of one array": "array_result_handler(aval(2), SingleDeviceSharding(devices[0]), True)(put(np.zeros(2, 'f4'), 0))",
    "handler of numpy": X4 + HALVES + "array_result_handler(aval(8), s, True)(parts)",
    # batched_copy_array_to_devices_with_sharding
    "copy": SPLIT
    + f"""
t = NamedSharding(Mesh(np.array(devices[::-1]), ('x',)), {P}('x'))
b, = batched_copy_array_to_devices_with_sharding(
    [a], [DeviceList(tuple(devices[::-1]))], [t], [ArrayCopySemantics.ALWAYS_COPY])
(b, b.sharding._device_assignment, [x.device.id for x in b._arrays], np.asarray(b._arrays[0]).tolist())""",
    "copy nothing": "batched_copy_array_to_devices_with_sharding([], [], [], [])",
    "copy to one": """
a = put(np.arange(3.), 0)
b, = batched_copy_array_to_devices_with_sharding(
    [a], [DeviceList((devices[2],))], [SingleDeviceSharding(devices[2])], [ArrayCopySemantics.ALWAYS_COPY])
(b, b.device)""",
    "copy reusing": """
a = put(np.arange(3.), 0)
b, = batched_copy_array_to_devices_with_sharding(
    [a], [DeviceList((devices[0],))], [SingleDeviceSharding(devices[0])], [ArrayCopySemantics.REUSE_INPUT])
b.unsafe_buffer_pointer() == a.unsafe_buffer_pointer()""",
    "copy always": """
a = put(np.arange(3.), 0)
b, = batched_copy_array_to_devices_with_sharding(
    [a], [DeviceList((devices[0],))], [SingleDeviceSharding(devices[0])], [ArrayCopySemantics.ALWAYS_COPY])
b.unsafe_buffer_pointer() == a.unsafe_buffer_pointer()""",
    "copy to a plain list": "batched_copy_array_to_devices_with_sharding([put(1.0)], [devices[:1]], [SingleDeviceSharding(devices[0])], [ArrayCopySemantics.ALWAYS_COPY])",
    "copy to no list": "batched_copy_array_to_devices_with_sharding([put(1.0)], [], [SingleDeviceSharding(devices[0])], [ArrayCopySemantics.ALWAYS_COPY])",
    "copy without semantics": "batched_copy_array_to_devices_with_sharding([put(1.0)], [DeviceList((devices[0],))], [SingleDeviceSharding(devices[0])], [])",
    "copy to other count": SPLIT
    + "batched_copy_array_to_devices_with_sharding([a], [DeviceList(tuple(devices[:2]))], [s], [ArrayCopySemantics.ALWAYS_COPY])",
    "copy by name": "batched_copy_array_to_devices_with_sharding(arrays=[], devices=[], shardings=[], semantics=[])",
    "copy donating": """
a = put(np.arange(3.), 0)
b, = batched_copy_array_to_devices_with_sharding(
    [a], [DeviceList((devices[1],))], [SingleDeviceSharding(devices[1])], [ArrayCopySemantics.DONATE_INPUT])
np.asarray(b).tolist()""",
    "copy donating deletes": """
a = put(np.arange(3.), 0)
b, = batched_copy_array_to_devices_with_sharding(
    [a], [DeviceList((devices[1],))], [SingleDeviceSharding(devices[1])], [ArrayCopySemantics.DONATE_INPUT])
a.is_deleted()""",
    "copy to another memory": """
a = put(np.arange(3.), 0); t = SingleDeviceSharding(devices[0], memory_kind='pinned_host')
b, = batched_copy_array_to_devices_with_sharding(
    [a], [DeviceList((devices[0],))], [t], [ArrayCopySemantics.ALWAYS_COPY])
(b, b.sharding)""",
    "copy semantics": "[(s.name, s.value) for s in (ArrayCopySemantics.ALWAYS_COPY, ArrayCopySemantics.REUSE_INPUT, ArrayCopySemantics.DONATE_INPUT)]",
    # reorder_shards
    "reorder": SPLIT
    + f"""
t = NamedSharding(Mesh(np.array([devices[i] for i in (1, 0, 3, 2)]), ('x',)), {P}('x'))
b = reorder_shards(a, t, ArrayCopySemantics.REUSE_INPUT)
(b, b.sharding, [x.unsafe_buffer_pointer() for x in b._arrays] == [a._arrays[i].unsafe_buffer_pointer() for i in (1, 0, 3, 2)])""",
    "reorder always copying": SPLIT + "reorder_shards(a, s, ArrayCopySemantics.ALWAYS_COPY)",
    "reorder by number": SPLIT + "reorder_shards(a, s, 1)",
    "reorder to fewer": SPLIT
    + f"reorder_shards(a, NamedSharding(mesh(x=2), {P}('x')), ArrayCopySemantics.REUSE_INPUT)",
    "reorder to others": f"""
a = batched_device_put(aval(4), NamedSharding(mesh(x=2), {P}('x')), [np.zeros(2, 'f4')] * 2, devices[:2])
reorder_shards(a, NamedSharding(Mesh(np.array(devices[2:]), ('x',)), {P}('x')), ArrayCopySemantics.REUSE_INPUT)""",
    "reorder donating": SPLIT
    + "b = reorder_shards(a, s, ArrayCopySemantics.DONATE_INPUT); (b, a.is_deleted())",
    # Live arrays
    "live": """
before = len(client.live_arrays()); a, b = put(1.0), put(2.0)
found = client.live_arrays(); (len(found) - before, found[0] is b, found[1] is a)""",
    "live sharded once": "before = len(client.live_arrays())\n"
    + SPLIT
    + "(len(client.live_arrays()) - before, client.live_arrays()[0] is a)",
    "live without deleted": "a = put(1.0); before = len(client.live_arrays()); a.delete(); len(client.live_arrays()) - before",
    "live buffers": "a = put(1.0); client.live_buffers()[0] is a",
}
