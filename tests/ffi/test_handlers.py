"""Handlers of the typed FFI, compiled from XLA's headers, called by programs."""

import ctypes
import gc
import threading

import ml_dtypes
import numpy as np
import pytest

from haloc.errors import HloError, InvalidArgumentError, UnimplementedError
from haloc.ffi import c_api
from haloc.ffi.api import api_pointer
from haloc.ffi.registration import register_custom_call_target, register_custom_type

FFI = "api_version=API_VERSION_TYPED_FFI"


@pytest.fixture(scope="session")
def types(library):
    """Registers the state types of the library."""
    library.RegisterTypes.restype = ctypes.c_void_p
    frame = c_api.CallFrame(api=api_pointer())
    assert library.RegisterTypes(ctypes.byref(frame)) is None


def _affine(weights, label, bias, negate):
    return (
        f'{{scale = 2.0 : f32, weights = array<i64{weights}>, label = \\"{label}\\", '
        f"options = {{bias = {bias} : f64, unused = 1 : i8}}, negate = {negate}}}"
    )


def test_arguments_results_and_every_kind_of_attribute(compiled, target, library):
    target("affine", library.AffineHandler, 1)
    program = compiled(
        f"""ENTRY e {{
          x = f32[2,2] parameter(0)
          ROOT c = (f32[2,2], s64[]) custom-call(x), custom_call_target="affine", {FFI},
            backend_config="{_affine(": 3, 4", "five!", "0.5", "true")}"
        }}"""
    )
    x = np.array([[1, 2], [3, 4]], np.float32)
    y, length = program(x)
    np.testing.assert_array_equal(y, -(x * 2 + 7 + 0.5))
    assert length == 5


def test_attributes_in_json(compiled, target, library):
    target("fail", library.FailHandler, 1)
    with pytest.raises(InvalidArgumentError, match=r"Wrong scalar data type: expected S32 but got"):
        compiled(_fail('{"code": 3, "message": "no"}'))(np.float32(1))


def _fail(config):
    quoted = config.replace('"', '\\"')
    return f"""ENTRY e {{
      x = f32[] parameter(0)
      ROOT c = f32[] custom-call(x), custom_call_target="fail", {FFI}, backend_config="{quoted}"
    }}"""


@pytest.mark.parametrize(
    ("code", "name"), [(3, "INVALID_ARGUMENT"), (13, "INTERNAL"), (15, "DATA_LOSS")]
)
def test_errors_come_back_with_their_code(compiled, target, library, code, name):
    target("fail", library.FailHandler, 1)
    program = compiled(_fail(f'{{code = {code} : i32, message = "it broke"}}'))
    for _ in range(2):  # a program that failed can run again
        with pytest.raises(HloError, match=f"^{name}: it broke") as raised:
            program(np.float32(1))
        assert raised.value.__notes__[0] == "in custom-call c to fail"


def test_wrong_attributes_are_the_handlers_error(compiled, target, library):
    target("fail", library.FailHandler, 1)
    with pytest.raises(InvalidArgumentError, match="Wrong number of attributes"):
        compiled(_fail("{code = 3 : i32}"))(np.float32(1))


@pytest.mark.parametrize("order", ["1,0", "0,1"])
def test_layouts_are_those_the_call_asks_for(compiled, target, library, order):
    target("in_memory", library.InMemoryHandler, 1)
    program = compiled(
        f"""ENTRY e {{
          x = s16[2,3] parameter(0)
          ROOT c = s16[6] custom-call(x), custom_call_target="in_memory", {FFI},
            operand_layout_constraints={{s16[2,3]{{{order}}}}}
        }}"""
    )
    x = np.arange(6, dtype=np.int16).reshape(2, 3)
    expected = x.ravel("C" if order == "1,0" else "F")
    np.testing.assert_array_equal(program(x)[0], expected)


def test_result_layouts(compiled, target, library):
    target("in_memory", library.InMemoryHandler, 1)
    program = compiled(
        f"""ENTRY e {{
          x = f64[2,3,4] parameter(0)
          ROOT c = f64[4,2,3]{{0,2,1}} custom-call(x), custom_call_target="in_memory", {FFI},
            operand_layout_constraints={{f64[2,3,4]{{2,1,0}}}}
        }}"""
    )
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(program(x)[0], x.transpose(2, 0, 1))


def test_a_result_that_begins_as_an_operand(compiled, target):
    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
    def add_first(out, ins):
        """out is operand 1 already"""
        given = (ctypes.c_float * 2).from_address(ins[0])
        result = (ctypes.c_float * 2).from_address(out)
        for k in range(2):
            result[k] += given[k]

    target("add_first", add_first)
    program = compiled(
        """ENTRY e {
          x = f32[2] parameter(0)
          y = f32[2] parameter(1)
          c = f32[2] custom-call(x, y), custom_call_target="add_first",
            output_to_operand_aliasing={{}: (1, {})}
          ROOT t = (f32[2], f32[2]) tuple(c, y)
        }"""
    )
    result, y = program(np.float32([1, 2]), np.float32([10, 20]))
    np.testing.assert_array_equal(result, [11, 22])
    np.testing.assert_array_equal(y, [10, 20])


COUNT = f"""ENTRY e {{
  ROOT c = s32[] custom-call(), custom_call_target="count", {FFI},
    custom_call_has_side_effect=true, backend_config="{{start = 5 : i32}}"
}}"""


def test_state_lives_as_long_as_the_executable(compiled, target, library, types):
    stages = {"instantiate": library.CountInstantiateHandler, "execute": library.CountHandler}
    target("count", stages, 1)
    before = library.LiveStates()
    program = compiled(COUNT)
    assert [int(program()[0]) for _ in range(3)] == [5, 6, 7]
    other = compiled(COUNT)
    assert int(other()[0]) == 5
    assert library.LiveStates() == before + 2
    del program, other
    gc.collect()  # modules are cycles
    assert library.LiveStates() == before


def test_state_between_stages_lives_as_long_as_the_call(compiled, target, library, types):
    stages = {
        "instantiate": library.CountInstantiateHandler,
        "prepare": library.CountPrepareHandler,
        "initialize": library.CountInitializeHandler,
        "execute": library.PlannedCountHandler,
    }
    target("count", stages, 1)
    program = compiled(COUNT)
    before = library.LiveStates()
    assert [int(program()[0]) for _ in range(2)] == [500, 600]
    assert library.LiveStates() in (before, before + 1)  # the interpreter instantiates at a call


def test_instantiation_may_fail(compiled, target, library, types):
    stages = {"instantiate": library.CountInstantiateHandler, "execute": library.CountHandler}
    target("count", stages, 1)
    with pytest.raises(InvalidArgumentError, match="start is negative"):
        compiled(COUNT.replace("start = 5", "start = -5"))()


def test_the_execution_context(compiled, target, library):
    target("context", library.ContextHandler, 1)
    program = compiled(
        f"""ENTRY e {{
          x = s32[5] parameter(0)
          ROOT c = (s32[], s64[4]) custom-call(x), custom_call_target="context", {FFI}
        }}"""
    )
    x = np.arange(5, dtype=np.int32)
    total, (threads, first_run, device, misalignment) = program(x)
    assert (total, device, misalignment) == (10, 0, 0)
    assert threads >= 1
    _, (_, second_run, _, _) = program(x)
    assert first_run != second_run


def test_there_are_no_streams(compiled, target, library):
    target("stream", library.StreamHandler, 1)
    text = f'ENTRY e {{ ROOT c = f32[] custom-call(), custom_call_target="stream", {FFI} }}'
    with pytest.raises(HloError, match="a CPU has no streams"):
        compiled(text)()


LATER = f"""ENTRY e {{
  x = f32[3] parameter(0)
  c = f32[3] custom-call(x), custom_call_target="later", {FFI}, backend_config="{{fail = %s}}"
  ROOT n = f32[3] negate(c)
}}"""


def test_what_is_done_later_is_waited_for(compiled, target, library):
    target("later", library.LaterHandler, 1)
    x = np.float32([1, 2, 3])
    np.testing.assert_array_equal(compiled(LATER % "false")(x)[0], -2 * x)
    with pytest.raises(HloError, match=r"^DATA_LOSS: failed later"):
        compiled(LATER % "true")(x)


def test_one_program_in_many_threads(compiled, target, library):
    target("affine", library.AffineHandler, 1)
    program = compiled(
        f"""ENTRY e {{
          x = f32[1000] parameter(0)
          ROOT c = (f32[1000], s64[]) custom-call(x), custom_call_target="affine", {FFI},
            backend_config="{_affine("", "", "0.0", "false")}"
        }}"""
    )
    wrong = []

    def work(seed):
        x = np.full(1000, seed, np.float32)
        wrong.extend(1 for _ in range(20) if not (program(x)[0] == 2 * x).all())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_zero_sized_buffers_and_scalars(compiled, target, library):
    target("in_memory", library.InMemoryHandler, 1)
    program = compiled(
        f"""ENTRY e {{
          x = c64[0,3] parameter(0)
          y = pred[] parameter(1)
          a = c64[0,3] custom-call(x), custom_call_target="in_memory", {FFI}
          b = pred[] custom-call(y), custom_call_target="in_memory", {FFI}
          ROOT t = (c64[0,3], pred[]) tuple(a, b)
        }}"""
    )
    a, b = program(np.zeros((0, 3), np.complex64), np.bool_(True))
    assert a.shape == (0, 3)
    assert b


def test_packed_types_are_refused(compiled, target, library):
    target("in_memory", library.InMemoryHandler, 1)
    text = (
        "ENTRY e { x = s4[2] parameter(0) "
        f'ROOT c = s4[2] custom-call(x), custom_call_target="in_memory", {FFI} }}'
    )
    with pytest.raises(UnimplementedError, match=r"s4\[2\]\{0\} for native code"):
        compiled(text)(np.zeros(2, ml_dtypes.int4))


def test_a_library_registers_its_own_handlers(compiled, library):
    library.RegisterInMemory.restype = ctypes.c_void_p
    frame = c_api.CallFrame(api=api_pointer())
    assert library.RegisterInMemory(ctypes.byref(frame)) is None
    program = compiled(
        "ENTRY e { x = f32[2] parameter(0) "
        f'ROOT c = f32[2] custom-call(x), custom_call_target="registered_by_library", {FFI} }}'
    )
    np.testing.assert_array_equal(program(np.float32([1, 2]))[0], [1, 2])


def test_handlers_of_another_major_version_are_refused(library):
    with pytest.raises(UnimplementedError, match=r"version 1\.0 of the FFI; haloc speaks 0\.1 to"):
        register_custom_call_target("future", library.FromTheFuture, api_version=1)


@pytest.mark.parametrize("stages", [{}, {"instantiate": 1}, {"execute": 1, "bogus": 2}])
def test_wrong_stages(stages):
    with pytest.raises(InvalidArgumentError, match='a handler has "execute" and may have'):
        register_custom_call_target("stages", stages, api_version=1)


def test_types_get_ids(library, types):
    library.CounterId.restype = ctypes.c_void_p
    cell = ctypes.c_int64()
    register_custom_type("test_registered_type", ctypes.addressof(cell))
    assert cell.value > 0
    with pytest.raises(InvalidArgumentError, match="is that of 'test_registered_type'"):
        register_custom_type("test_another_type", ctypes.addressof(cell))
    assert ctypes.c_int64.from_address(library.CounterId()).value > 0
    with pytest.raises(InvalidArgumentError, match="wanted 'type_id' and perhaps 'type_info'"):
        register_custom_type("test_type", {"type_info": 1})
