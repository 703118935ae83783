"""Making clients; what jaxlib dies of is last."""

# ruff: noqa: E501  # a question is a line of code

QUESTIONS = {
    "devices": "make_cpu_client(num_devices=3).devices()",
    "devices, by default": "make_cpu_client().device_count()",
    "no devices": "make_cpu_client(num_devices=0)",
    "devices of text": "make_cpu_client(num_devices='a')",
    "synchronous": "make_cpu_client(False).platform",
    "an unknown keyword": "make_cpu_client(foo=1)",
    "another node": "c = make_cpu_client(node_id=1, num_devices=2); (c.devices(), c.process_index(), [d.local_hardware_id for d in c.devices()], [str(d) for d in c.devices()])",
    "clients share nothing": "make_cpu_client().devices()[0] == make_cpu_client().devices()[0]",
    "platform": "c = make_cpu_client(); (c.platform, c._raw_platform)",
    "array of another client": "client.buffer_from_pyval(1.0, make_cpu_client().devices()[0])",
    "array on no device of this process": "c = make_cpu_client(node_id=1); client.buffer_from_pyval(1.0, c.devices()[0])",
    "live arrays": "c = make_cpu_client(); (c.live_arrays(), c.live_buffers(), c.live_executables())",
    "plugin not initialized, made so": "initialize_pjrt_plugin('nothing')",
}
