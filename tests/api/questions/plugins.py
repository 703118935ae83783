"""Plugins that are not there, topologies, and the GPU plugin's options."""

# ruff: noqa: E501  # a question is a line of code

OPTIONS = """
import os
def options(variables):
    before = dict(os.environ)
    try:
        for name in before:
            if name.startswith(('XLA_PYTHON_CLIENT_', 'XLA_CLIENT_')):
                del os.environ[name]
        os.environ.update(variables)
        return sorted(generate_pjrt_gpu_plugin_options().items())
    finally:
        os.environ.clear()
        os.environ.update(before)
"""
ENVIRONMENTS = {
    "default": {},
    "allocator": {"XLA_PYTHON_CLIENT_ALLOCATOR": "BFC"},
    "allocator, unknown": {"XLA_PYTHON_CLIENT_ALLOCATOR": "foo"},
    "fraction": {"XLA_CLIENT_MEM_FRACTION": ".5"},
    "fraction, deprecated": {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".25"},
    "fraction, both": {"XLA_CLIENT_MEM_FRACTION": ".5", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".25"},
    "fraction, no number": {"XLA_CLIENT_MEM_FRACTION": "half"},
    "preallocate": {"XLA_PYTHON_CLIENT_PREALLOCATE": "true"},
    "preallocate, False": {"XLA_PYTHON_CLIENT_PREALLOCATE": "False"},
    "preallocate, 0": {"XLA_PYTHON_CLIENT_PREALLOCATE": "0"},
    "preallocate, no": {"XLA_PYTHON_CLIENT_PREALLOCATE": "no"},
    "collective memory": {"XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB": "3"},
    "abort collectives": {"XLA_PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE": "1"},
    "tfrt": {"XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT": "1"},
    "tfrt, a word": {"XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT": "true"},
}

QUESTIONS = {
    "loaded": "pjrt_plugin_loaded('x')",
    "loaded: a number": "pjrt_plugin_loaded(3)",
    "initialized": "pjrt_plugin_initialized('x')",
    "load a file that is not there": "load_pjrt_plugin_dynamically('x', '/nonexist.so')",
    "load a library that is no plugin": "load_pjrt_plugin_dynamically('x', 'libm.so.6')",
    "loaded after failing": """
try: load_pjrt_plugin_dynamically('x', 'libm.so.6')
except Exception: pass
pjrt_plugin_loaded('x')""",
    "load None as a capsule": "load_pjrt_plugin_with_c_api('x', None)",
    "load a number as a capsule": "load_pjrt_plugin_with_c_api('x', 3)",
    "client of an unknown plugin": "make_c_api_client('x')",
    "client with an option of None": "make_c_api_client('x', {'a': None})",
    "topology of None": "make_c_api_device_topology(None)",
    "topology of TPUs": "make_tfrt_tpu_c_api_device_topology()",
    "topology of no devices": "get_topology_for_devices([])",
    "topology: type": "type(get_topology_for_devices(devices)).__name__",
    "topology: platform": "get_topology_for_devices(devices).platform",
    "topology: unknown attribute": "get_topology_for_devices(devices).foo",
    "topology: serialize": "type(get_topology_for_devices(devices).serialize()).__name__",
    "topology of one device": "get_topology_for_devices(devices[:1]).platform",
    "topology of clients": "get_topology_for_devices([devices[0], make_cpu_client().devices()[0]])",
    "compile-only devices": "[d.id for d in get_topology_for_devices(devices)._make_compile_only_devices()]",
    "compile-only kind": "get_topology_for_devices(devices)._make_compile_only_devices()[0].device_kind",
    **{
        f"options: {name}": f"{OPTIONS}\noptions({variables})"
        for name, variables in ENVIRONMENTS.items()
    },
}
