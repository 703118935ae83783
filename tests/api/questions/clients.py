"""Making clients, options of GPU plugins, plugins and topologies that are not there."""

# ruff: noqa: E501  # a question is a line of code

ENVIRONMENT = """import os
def options(**variables):
    given = {'XLA_' + n: v for n, v in variables.items()}
    os.environ.update(given)
    try:
        return sorted(generate_pjrt_gpu_plugin_options().items())
    finally:
        for n in given: del os.environ[n]
"""

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
    # Options of GPU plugins
    "gpu options": f"{ENVIRONMENT}options()",
    "gpu options, all": f"{ENVIRONMENT}options(PYTHON_CLIENT_ALLOCATOR='BFC', CLIENT_MEM_FRACTION='.5', PYTHON_CLIENT_PREALLOCATE='false', PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB='3')",
    "gpu options, old fraction": f"{ENVIRONMENT}options(PYTHON_CLIENT_MEM_FRACTION='.25')",
    "gpu options, both fractions": f"{ENVIRONMENT}options(PYTHON_CLIENT_MEM_FRACTION='.25', CLIENT_MEM_FRACTION='.5')",
    "gpu options, no fraction": f"{ENVIRONMENT}options(CLIENT_MEM_FRACTION='half')",
    "gpu options, preallocate": f"{ENVIRONMENT}[dict(options(PYTHON_CLIENT_PREALLOCATE=v))['preallocate'] for v in ('0', 'False', 'false', '1', 'no', 'TRUE')]",
    "gpu options, allocators": f"{ENVIRONMENT}[dict(options(PYTHON_CLIENT_ALLOCATOR=v))['allocator'] for v in ('default', 'Platform', 'bfc', 'CUDA_ASYNC')]",
    "gpu options, another allocator": f"{ENVIRONMENT}options(PYTHON_CLIENT_ALLOCATOR='foo')",
    "gpu options, aborts": f"{ENVIRONMENT}options(PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE='1', PYTHON_CLIENT_USE_TFRT_GPU_CLIENT='1')",
    "gpu options, aborts with text": f"{ENVIRONMENT}options(PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE='yes')",
    # Plugins
    "plugin not loaded": "pjrt_plugin_loaded('nothing')",
    "plugin not initialized": "pjrt_plugin_initialized('nothing')",
    "client of no plugin": "make_c_api_client('nothing')",
    "client of no plugin, with options": "make_c_api_client('nothing', {'a': 1, 'b': 'x', 'c': [1, 2], 'd': 1.5, 'e': True})",
    "plugin of no file": "load_pjrt_plugin_dynamically('absent', '/nonexist.so')",
    "plugin of another library": "load_pjrt_plugin_dynamically('libm', 'libm.so.6')",
    "plugin of no capsule": "load_pjrt_plugin_with_c_api('x', 5)",
    # Topologies
    "topology": "t = get_topology_for_devices(devices); (t.platform, type(t).__name__)",
    "topology of nothing": "get_topology_for_devices([])",
    "topology of two clients": "get_topology_for_devices([make_cpu_client().devices()[0], make_cpu_client().devices()[0]])",
    "topology of no capsule": "make_c_api_device_topology(5)",
    "topology of None": "make_c_api_device_topology(None)",
    "topology of no plugin": "make_tfrt_tpu_c_api_device_topology()",
    "topology serialized": "type(get_topology_for_devices(devices).serialize()).__name__",
    "topology, unknown attribute": "get_topology_for_devices(devices).frobnicate",
    "topology constructor": "DeviceTopology()",
    "plugin not initialized, made so": "initialize_pjrt_plugin('nothing')",
}
