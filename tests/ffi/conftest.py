"""Programs run in both ways, and a C++ library of handlers made with XLA's own headers."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from haloc.ffi.registration import register_custom_call_target, unregister_custom_call_target
from haloc.ffi.status import STATUS_FUNCTIONS
from haloc.xla_client import make_cpu_client, make_interpreter_client

CLIENTS = {"cpu": make_cpu_client, "interpreter": make_interpreter_client}


@pytest.fixture(scope="session", params=list(CLIENTS))
def client(request):
    return CLIENTS[request.param]()


class Program:
    """HLO text compiled for a client; called with NumPy arrays."""

    def __init__(self, client, text, **options):
        self.client = client
        devices = client.devices()[:1]
        self.executable = client.compile_and_load(f"HloModule m\n{text}", devices, **options)

    def __call__(self, *arrays):
        given = [self.client.buffer_from_pyval(np.asarray(a)) for a in arrays]
        return [np.asarray(r) for r in self.executable.execute(given)]


@pytest.fixture
def compiled(client):
    """compiled(text, **options): a callable program."""
    return lambda text, **options: Program(client, text, **options)


@pytest.fixture
def target():
    """target(name, fn, api_version): register for the length of a test."""
    names = set()

    def register(name, fn, api_version=0):
        register_custom_call_target(name, fn, api_version=api_version)
        names.add(name)

    yield register
    for name in names:
        unregister_custom_call_target(name)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The functions of handlers.cc."""
    jaxlib = pytest.importorskip("jaxlib")
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    include = Path(jaxlib.__file__).parent / "include"
    source, built = Path(__file__).parent / "handlers.cc", tmp_path_factory.mktemp("ffi") / "h.so"
    flags = ["-std=c++17", "-shared", "-fPIC", "-w", f"-I{include}"]
    subprocess.run([compiler, *flags, str(source), "-o", str(built)], check=True)
    loaded = ctypes.CDLL(str(built))
    loaded.UseSetFailure(ctypes.c_void_p(STATUS_FUNCTIONS["XlaCustomCallStatusSetFailure"]))
    return loaded
