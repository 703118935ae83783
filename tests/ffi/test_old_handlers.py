"""Handlers of version 0.1 of the FFI (jaxlib 0.7), which keep state in another way."""

import ctypes
import gc

import numpy as np
import pytest

from haloc.errors import InvalidArgumentError, NotFoundError
from haloc.ffi import c_api, types

DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def call(frame, name, arguments):
    """A function of the API that the frame brings along; its error or None."""
    table = c_api.Api.from_address(frame.api)
    return FUNCTION(getattr(table, name))(ctypes.addressof(arguments))


def handler_of(stage, act):
    """A handler that answers for its metadata as one of version 0.1, and then does `act`."""

    @c_api.HANDLER
    def handler(pointer):
        frame = pointer.contents
        if frame.extension_start:
            extension = c_api.MetadataExtension.from_address(frame.extension_start)
            extension.metadata.contents.api_version.major_version = 0
            extension.metadata.contents.api_version.minor_version = 1
            return None
        assert frame.stage == stage
        return act(frame)

    return handler


class Keeper:
    """A handler with state of one type, which says what became of it."""

    def __init__(self, set_type, get_type):
        self.deleted = []
        self.deleter = DELETER(self.deleted.append)
        self.memory = ctypes.c_int64(41)
        self.set_type, self.get_type = c_api.TypeId(set_type), c_api.TypeId(get_type)
        self.stages = {
            "instantiate": handler_of(c_api.Stage.INSTANTIATE, self.instantiate),
            "execute": handler_of(c_api.Stage.EXECUTE, self.execute),
        }

    def arguments(self, frame, type_id):
        deleter = ctypes.cast(self.deleter, ctypes.c_void_p)
        return c_api.OldStateArgs(ctx=frame.ctx, type_id=ctypes.pointer(type_id), deleter=deleter)

    def instantiate(self, frame):
        arguments = self.arguments(frame, self.set_type)
        arguments.state = ctypes.addressof(self.memory)
        return call(frame, "State_Set", arguments)

    def execute(self, frame):
        arguments = self.arguments(frame, self.get_type)
        if error := call(frame, "State_Get", arguments):
            return error
        self.memory.value += 1
        results = ctypes.cast(frame.rets.rets, ctypes.POINTER(ctypes.POINTER(c_api.Buffer)))
        value = ctypes.c_int64.from_address(arguments.state).value
        ctypes.c_int64.from_address(results[0].contents.data).value = value
        return None


TEXT = """ENTRY e { ROOT c = s64[] custom-call(), custom_call_target="test_keeper",
  api_version=API_VERSION_TYPED_FFI, custom_call_has_side_effect=true }"""


def test_state(compiled, target):
    number = types.register("test_old_state")
    keeper = Keeper(number, number)
    target("test_keeper", keeper.stages, 1)
    program = compiled(TEXT)
    assert [int(program()[0]) for _ in range(2)] == [42, 43]
    assert keeper.deleted == []
    del program
    gc.collect()
    assert keeper.deleted == [ctypes.addressof(keeper.memory)]


def test_state_of_another_type(compiled, target):
    keeper = Keeper(types.register("test_old_state"), types.register("test_older_state"))
    target("test_keeper", keeper.stages, 1)
    with pytest.raises(InvalidArgumentError, match=r"state of stage instantiate has type id \d+"):
        compiled(TEXT)()


def test_no_state(compiled, target):
    keeper = Keeper(1, 1)
    target("test_keeper", {"execute": keeper.stages["execute"]}, 1)
    with pytest.raises(NotFoundError, match="no state of stage instantiate is set"):
        compiled(TEXT)()


def test_results_are_those_of_numpy_memory(compiled, target):
    @c_api.HANDLER
    def fill(pointer):
        frame = pointer.contents
        if frame.extension_start:
            extension = c_api.MetadataExtension.from_address(frame.extension_start)
            extension.metadata.contents.api_version.minor_version = 1
            return None
        buffers = ctypes.cast(frame.args.args, ctypes.POINTER(ctypes.POINTER(c_api.Buffer)))
        given = buffers[0].contents
        dims = [ctypes.c_int64.from_address(given.dims + 8 * k).value for k in range(given.rank)]
        assert (given.dtype, dims) == (11, [2, 3])
        results = ctypes.cast(frame.rets.rets, ctypes.POINTER(ctypes.POINTER(c_api.Buffer)))
        ctypes.memmove(results[0].contents.data, given.data, 24)
        return None

    target("test_keeper", fill, 1)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    program = compiled("""ENTRY e { x = f32[2,3] parameter(0)
      ROOT c = f32[2,3] custom-call(x), custom_call_target="test_keeper",
        api_version=API_VERSION_TYPED_FFI }""")
    np.testing.assert_array_equal(program(x)[0], x)
