"""A client of haloc's own plugin, through the C API and in this process."""

import pytest

from haloc.jax.plugin import api_capsule
from haloc.pjrt.client import load_pjrt_plugin_with_c_api, make_c_api_client, pjrt_plugin_loaded


@pytest.fixture(scope="session")
def plugin_name():
    name = "haloc_table"
    if not pjrt_plugin_loaded(name):
        load_pjrt_plugin_with_c_api(name, api_capsule())
    return name


@pytest.fixture(scope="session")
def client(plugin_name):
    return make_c_api_client(plugin_name, {"num_devices": 2})
