"""Functions of the untyped ABI as custom call targets."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from haloc.errors import HloError, InvalidArgumentError, NotFoundError, UnimplementedError
from haloc.ffi.registration import (
    custom_call,
    register_custom_call_target,
    unregister_custom_call_target,
)
from haloc.xla_client import make_cpu_client

X = np.float32([1, 2, 3])
OTHER_NAME = b"arrow_schema"  # a capsule refers to it
capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype = ctypes.py_object
capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


ADD = """ENTRY e {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  ROOT c = f32[3] custom-call(x, y), custom_call_target="test_add"
}"""


def test_a_function_of_ctypes(compiled, target, library):
    target("test_add", library.Add)
    np.testing.assert_array_equal(compiled(ADD)(X, 2 * X)[0], 3 * X)


@pytest.mark.parametrize("name", [b"xla._CUSTOM_CALL_TARGET", None])
def test_a_capsule(compiled, target, library, name):
    target("test_add", capsule(address(library.Add), name, None))
    np.testing.assert_array_equal(compiled(ADD)(X, 2 * X)[0], 3 * X)


def test_an_address_and_an_object_with_one(compiled, target, library):
    target("test_add", SimpleNamespace(address=address(library.Add)))  # as numba's
    target("test_add", address(library.Add))  # the same again: nothing changes
    np.testing.assert_array_equal(compiled(ADD)(X, 2 * X)[0], 3 * X)


def test_several_results_are_pointers(compiled, target, library):
    target("sum_and_product", library.SumAndProduct)
    program = compiled(
        """ENTRY e {
          x = f32[3] parameter(0)
          ROOT c = (f32[], f32[]) custom-call(x), custom_call_target="sum_and_product"
        }"""
    )
    assert [float(r) for r in program(np.float32([2, 3, 4]))] == [9, 24]


ROOT = """ENTRY e {
  x = f32[] parameter(0)
  ROOT c = f32[] custom-call(x), custom_call_target="root", api_version=%s%s
}"""


@pytest.mark.parametrize(("x", "text"), [(-1, "x < 0"), (-5, "x is far too negative for a root")])
def test_a_status(compiled, target, library, x, text):
    target("root", library.RootOrFail)
    program = compiled(ROOT % ("API_VERSION_STATUS_RETURNING", ""))
    assert float(program(np.float32(9))[0]) == 4.5
    with pytest.raises(HloError, match=f"^INTERNAL: {text}") as raised:
        program(np.float32(x))
    assert raised.value.__notes__[0] == "in custom-call c to root"


@pytest.mark.parametrize("text", ["short", "a text that does not fit into a string itself"])
def test_a_status_set_by_xlas_own_code_and_the_opaque_string(compiled, target, library, text):
    target("root", library.FailAsXlaDoes)
    version = "API_VERSION_STATUS_RETURNING_UNIFIED"
    program = compiled(ROOT % (version, f', backend_config="{text}"'))
    with pytest.raises(HloError, match=f"^INTERNAL: {text}"):
        program(np.float32(1))


def test_jaxlibs_kernels(compiled, target):
    """jaxlib's handlers of LAPACK, in haloc's programs, in JAX's layouts."""
    lapack = pytest.importorskip("jaxlib.cpu._lapack")
    lapack.initialize()
    target("lapack_dpotrf_ffi", lapack.registrations()["lapack_dpotrf_ffi"], 1)
    program = compiled(
        """ENTRY e {
          p = f64[2,3,3] parameter(0)
          ROOT c = (f64[2,3,3]{1,2,0}, s32[2]) custom-call(p),
            custom_call_target="lapack_dpotrf_ffi", api_version=API_VERSION_TYPED_FFI,
            operand_layout_constraints={f64[2,3,3]{1,2,0}}, backend_config="{uplo = 76 : ui8}"
        }"""
    )
    a = np.random.default_rng(0).normal(size=(2, 3, 3))
    a = a @ a.transpose(0, 2, 1) + np.eye(3)
    lower, info = program(a)
    np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(a), rtol=1e-12)
    np.testing.assert_array_equal(info, [0, 0])


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        ("add", "wanted a PyCapsule, a ctypes or numba function or an address, got str"),
        (0, "is a null pointer"),
        (True, "got bool"),
        (capsule(1, OTHER_NAME, None), "is a capsule of 'arrow_schema'; wanted 'xla._CUSTOM"),
    ],
)
def test_what_is_no_function(fn, message):
    with pytest.raises(InvalidArgumentError, match=message):
        register_custom_call_target("test_wrong", fn)


def test_a_function_is_for_calls_of_its_kind(compiled, target, library):
    target("test_add", library.Add)
    typed = ADD.replace('"test_add"', '"test_add", api_version=API_VERSION_TYPED_FFI')
    with pytest.raises(NotFoundError, match="No FFI handler registered for test_add"):
        compiled(typed)(X, X)


def test_a_name_has_one_function(target, library):
    target("test_add", library.Add)
    with pytest.raises(InvalidArgumentError, match="'test_add' is registered already"):
        register_custom_call_target("test_add", library.SumAndProduct)


def test_unknown_api_versions(library):
    with pytest.raises(UnimplementedError, match="API version 7 is not supported"):
        register_custom_call_target("test_add", library.Add, "cpu", 7)


def test_a_stored_program_wants_its_targets(target, library):
    client = make_cpu_client()
    target("test_add", library.Add)
    stored = client.serialize_executable(
        client.compile_and_load(f"HloModule m\n{ADD}", client.devices())
    )
    executable = client.deserialize_executable(stored, client.devices())
    arrays = [client.buffer_from_pyval(X)] * 2
    np.testing.assert_array_equal(np.asarray(executable.execute(arrays)[0]), 2 * X)
    unregister_custom_call_target("test_add")
    with pytest.raises(NotFoundError, match=r"not registered in this process .* calls: test_add"):
        client.deserialize_executable(stored, client.devices())
    custom_call("test_add")(lambda x, y: x + y)  # another kind of function
    with pytest.raises(NotFoundError, match="not registered in this process as they were"):
        client.deserialize_executable(stored, client.devices())
