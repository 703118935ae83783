"""Plugins by name: what is loaded, what is refused, and in jaxlib's words."""

import ctypes

import pytest

import haloc
from haloc import xla_client
from haloc.errors import (
    FailedPreconditionError,
    HloError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from haloc.jax.plugin import api_capsule
from haloc.pjrt.abi import STRUCT, Api
from haloc.pjrt.abi.capsule import address_in
from haloc.pjrt.client import CApiClient, Plugin, registry

UNKNOWN = "FAILED_PRECONDITION: PJRT_Api is not initialized."
OTHER = ctypes.create_string_buffer(b"something_else")


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch):
    monkeypatch.setattr(registry, "_PLUGINS", {})


def other_capsule():
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p] * 3
    return new(1, ctypes.addressof(OTHER), None)


def test_a_plugin_file():
    path = haloc.pjrt_plugin_path()
    assert not xla_client.pjrt_plugin_loaded("Own")
    capsule = xla_client.load_pjrt_plugin_dynamically("Own", path)
    assert xla_client.pjrt_plugin_loaded("own")
    assert not xla_client.pjrt_plugin_initialized("Own")
    xla_client.initialize_pjrt_plugin("Own")
    assert xla_client.pjrt_plugin_initialized("own")
    with pytest.raises(InvalidArgumentError, match="already initialized plugin own"):
        xla_client.initialize_pjrt_plugin("own")
    with pytest.raises(
        HloError, match="ALREADY_EXISTS: PJRT_Api already exists for device type own"
    ):
        xla_client.load_pjrt_plugin_dynamically("own", path)
    client = xla_client.make_c_api_client("own", {"num_devices": 3})
    assert isinstance(client, CApiClient)
    assert client.device_count() == 3
    xla_client.load_pjrt_plugin_with_c_api("second", capsule)
    assert xla_client.make_c_api_client("second").device_count() == 1
    assert xla_client.get_topology_for_devices(client.devices()).platform == "haloc"


def test_files_that_are_no_plugins():
    missing = "INTERNAL: Failed to open /none.so: /none.so: cannot open shared object file"
    with pytest.raises(HloError, match=missing):
        xla_client.load_pjrt_plugin_dynamically("x", "/none.so")
    with pytest.raises(NotFoundError, match=r"GetPjrtApi not found in libm\.so\.6"):
        xla_client.load_pjrt_plugin_dynamically("x", "libm.so.6")
    assert not xla_client.pjrt_plugin_loaded("x")


@pytest.mark.parametrize(
    "ask",
    [
        xla_client.pjrt_plugin_initialized,
        xla_client.initialize_pjrt_plugin,
        xla_client.make_c_api_client,
        lambda name: xla_client.make_tfrt_tpu_c_api_device_topology("v5e:2x2"),
    ],
)
def test_names_that_are_not_loaded(ask):
    with pytest.raises(FailedPreconditionError) as caught:
        ask("nobody")
    assert str(caught.value) == UNKNOWN


def test_capsules():
    bad = "c_api argument to load_pjrt_plugin is not a pjrt_c_api capsule."
    for wrong in (None, other_capsule()):
        with pytest.raises(ValueError, match=bad):
            xla_client.load_pjrt_plugin_with_c_api("x", wrong)
    with pytest.raises(TypeError, match="c_api is a int, not a PyCapsule"):
        xla_client.load_pjrt_plugin_with_c_api("x", 3)
    with pytest.raises(TypeError, match="NoneType, not a PyCapsule"):
        xla_client.make_c_api_device_topology(None)
    with pytest.raises(ValueError, match="Argument to get_c_api_topology was not a pjrt_c_api"):
        xla_client.make_c_api_device_topology(other_capsule())
    with pytest.raises(TypeError, match="plugin_name is a int"):
        xla_client.pjrt_plugin_loaded(3)


def test_options():
    xla_client.load_pjrt_plugin_with_c_api("own", api_capsule())
    with pytest.raises(InvalidArgumentError, match="option 'frob' is not known"):
        xla_client.make_c_api_client("own", {"frob": 1})
    with pytest.raises(TypeError, match="option a is None"):
        xla_client.make_c_api_client("own", {"a": None})
    with pytest.raises(UnimplementedError, match="transfer_server_factory"):
        xla_client.make_c_api_client("own", transfer_server_factory=object())
    with pytest.raises(UnimplementedError, match="force_dcn_cross_host_transfers"):
        xla_client.make_c_api_client("own", force_dcn_cross_host_transfers=True)


def test_a_plugin_of_an_older_api_lacks_functions_by_name():
    short = Api.from_buffer_copy(Api.from_address(address_in(api_capsule())))
    short.struct_size = Api.functions.offset + 8 * 60
    plugin = Plugin("short", ctypes.addressof(short), short)
    plugin.initialize()
    assert plugin.has("Client_Create") and not plugin.has("Event_Set")
    with pytest.raises(UnimplementedError, match="PJRT_Event_Set: plugin short, which speaks API"):
        plugin.call("Event_Set")


def test_a_plugin_of_another_major_version_is_refused():
    other = Api.from_buffer_copy(Api.from_address(address_in(api_capsule())))
    other.version.major_version = 1
    assert ctypes.sizeof(STRUCT["Api_Version"]) == other.version.struct_size
    with pytest.raises(InvalidArgumentError, match=r"speaks PJRT API 1\.112"):
        registry._add(Plugin("other", ctypes.addressof(other), other))


def test_topologies_of_devices():
    first = xla_client.make_cpu_client(num_devices=2)
    topology = xla_client.get_topology_for_devices(first.devices())
    assert (topology.platform, topology.platform_version) == ("cpu", first.platform_version)
    other = xla_client.make_cpu_client(num_devices=2)
    assert topology.fingerprint == xla_client.get_topology_for_devices(other.devices()).fingerprint
    with pytest.raises(ValueError, match="requires >= 1 devices"):
        xla_client.get_topology_for_devices([])
    with pytest.raises(ValueError, match="come from different clients"):
        xla_client.get_topology_for_devices([first.devices()[0], other.devices()[0]])
