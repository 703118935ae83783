"""Devices, memories, lists of devices, device assignments."""

# ruff: noqa: E501  # a question is a line of code

QUESTIONS = {
    "device repr": "devices[1]",
    "device str": "str(devices[1])",
    "device ids": "d = devices[2]; (d.id, d.local_hardware_id, d.process_index, d.host_id, d.task_id)",
    "device platform": "(devices[0].platform, devices[0].device_kind)",
    "device client": "devices[0].client is devices[1].client",
    "device identity": "client.devices()[0] is client.devices()[0]",
    "device unknown attribute": "devices[0].frobnicate",
    "device constructor": "Device()",
    "device pickling": "pickle.dumps(devices[0])",
    "device stream": "devices[0].get_stream_for_external_ready_events()",
    "device memories": "[m.kind for m in devices[0].addressable_memories()]",
    "device default memory": "devices[0].default_memory()",
    "memory repr": "[repr(m) for m in devices[1].addressable_memories()]",
    "memory str": "[str(m) for m in devices[1].addressable_memories()]",
    "memory by kind": "devices[0].memory('pinned_host').kind",
    "memory identity": "devices[0].memory('device') == devices[0].default_memory()",
    "memory of no kind": "devices[0].memory('bogus')",
    "memory attributes": "m = devices[1].memory('device'); (m.kind, m.platform, m.process_index)",
    "memory devices": "devices[1].memory('pinned_host').addressable_by_devices()",
    "client device counts": "(client.device_count(), client.local_device_count())",
    "client devices": "client.devices()",
    "client all devices": "client._get_all_devices()",
    "client processes": "(client.process_index(), client.host_id(), client.task_id())",
    "client platform": "(client.platform, client._raw_platform)",
    "client local hardware id": "client.device_from_local_hardware_id(2)",
    "client no such hardware id": "client.device_from_local_hardware_id(9)",
    "client defragment": "client.defragment()",
    "client default layout": (
        "str(client.get_default_layout(np.dtype('float32'), (2, 3), devices[0]))"
    ),
    "client unknown attribute": "client.frobnicate",
    "client constructor": "Client()",
    "list repr": "DeviceList(tuple(devices))",
    "list str": "str(DeviceList(tuple(devices[:1])))",
    "list length": "len(DeviceList(tuple(devices)))",
    "list index": "DeviceList(tuple(devices))[-1]",
    "list slice": "DeviceList(tuple(devices))[1:3]",
    "list index out of range": "DeviceList(tuple(devices))[4]",
    "list index of another type": "DeviceList(tuple(devices))['a']",
    "list iteration": "[d.id for d in DeviceList(tuple(devices))]",
    "list equality": "DeviceList(tuple(devices)) == DeviceList(tuple(devices))",
    "list inequality": "DeviceList(tuple(devices)) == DeviceList(tuple(devices[::-1]))",
    "list and tuple": "DeviceList(tuple(devices)) == tuple(devices)",
    "list hash": "hash(DeviceList(tuple(devices))) == hash(DeviceList(tuple(devices)))",
    "list of a list": "DeviceList(devices)",
    "list addressable": "DeviceList(tuple(devices)).is_fully_addressable",
    "list addressable list": "DeviceList(tuple(devices)).addressable_device_list",
    "list processes": "DeviceList(tuple(devices)).process_indices",
    "list memory kinds": "DeviceList(tuple(devices)).memory_kinds",
    "list default memory kind": "DeviceList(tuple(devices)).default_memory_kind",
    "list device kind": "DeviceList(tuple(devices)).device_kind",
    "list pickling": "pickle.dumps(DeviceList(tuple(devices)))",
    "list of nothing": "(len(DeviceList(())), repr(DeviceList(())), DeviceList(()).memory_kinds)",
    "list of numbers": "DeviceList((1, 2))",
    "canonical memory kind": "check_and_canonicalize_memory_kind(None, DeviceList(tuple(devices)))",
    "canonical memory kind, given": (
        "check_and_canonicalize_memory_kind('pinned_host', DeviceList(tuple(devices)))"
    ),
    "canonical memory kind, unknown": (
        "check_and_canonicalize_memory_kind('bogus', DeviceList(tuple(devices)))"
    ),
    "canonical memory kind of no devices": "check_and_canonicalize_memory_kind(None, DeviceList(()))",
    "canonical memory kind of a list": "check_and_canonicalize_memory_kind(None, devices)",
    "assignment": "DeviceAssignment.create(np.array([[0, 1], [2, 3]]))",
    "assignment of one": "DeviceAssignment.create(np.array([[3]]))",
    "assignment counts": (
        "a = DeviceAssignment.create(np.arange(6).reshape(3, 2)); "
        "(a.replica_count(), a.computation_count())"
    ),
    "assignment of floats": "DeviceAssignment.create(np.array([[0.5, 1.7]]))",
    "assignment of int32": "DeviceAssignment.create(np.array([[0, 1]], np.int32))",
    "assignment of a list": "DeviceAssignment.create([[0, 1]])",
    "assignment of one dimension": "DeviceAssignment.create(np.array([0, 1]))",
    "assignment of three dimensions": "DeviceAssignment.create(np.zeros((1, 1, 1), int))",
    "assignment of nothing": "DeviceAssignment.create(np.zeros((0, 2), int))",
    "assignment bytes": "DeviceAssignment.create(np.array([[0, 1], [2, 3]])).serialize().hex()",
    "assignment constructor": "DeviceAssignment()",
    "assignment equality": (
        "DeviceAssignment.create(np.array([[0]])) == DeviceAssignment.create(np.array([[0]]))"
    ),
    "assignment pickling": "pickle.loads(pickle.dumps(DeviceAssignment.create(np.array([[0]]))))",
}
