"""The callbacks through which a plugin's processes find each other."""

import ctypes

import pytest

from haloc.errors import DeadlineExceededError
from haloc.jax.plugin import api_capsule
from haloc.pjrt.abi import ARGS, FUNCTION, Api
from haloc.pjrt.abi.capsule import address_in
from haloc.pjrt.abi.layout import CALLBACK_ARGS
from haloc.pjrt.client import Plugin
from haloc.pjrt.client.client import CApiClient

TELL = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t)


class Store:
    """A distributed client of one process."""

    def __init__(self):
        self.values = {}

    def key_value_set_bytes(self, key, value):
        self.values[key] = value

    def key_value_try_get_bytes(self, key):
        return self.values[key]

    def blocking_key_value_get_bytes(self, key, timeout_in_ms):
        if key not in self.values:
            raise DeadlineExceededError(
                f"GetKeyValue() timed out with key: {key} ({timeout_in_ms})"
            )
        return self.values[key]


class Meeting:
    """haloc's plugin, whose Client_Create puts a key, gets it, and gets one that nobody puts."""

    def __init__(self):
        self.log = []
        self.table = Api.from_buffer_copy(Api.from_address(address_in(api_capsule())))
        number = list(ARGS).index("Client_Create")
        self.create = FUNCTION(self.table.functions[number])
        self.mine = FUNCTION(self.meet)
        self.tell = TELL(self.told)
        self.tell_at = ctypes.c_void_p(ctypes.cast(self.tell, ctypes.c_void_p).value)
        self.table.functions[number] = ctypes.cast(self.mine, ctypes.c_void_p).value
        self.plugin = Plugin("meeting", ctypes.addressof(self.table), self)

    def told(self, code, message, size):
        self.log.append((code, message[:size].decode()))
        return 1

    def meet(self, pointer):
        args = ARGS["Client_Create"].from_address(pointer)
        self.log.append(bool(args.kv_get_callback))
        if args.kv_get_callback:
            value = ctypes.create_string_buffer(b"here\0too", 8)
            self.ask("put", args, b"name", value=ctypes.addressof(value), value_size=8)
            self.log.append(self.ask("get", args, b"name", timeout_in_ms=5))
            self.log.append(self.ask("try_get", args, b"name"))
            self.ask("get", args, b"nobody", timeout_in_ms=5)
        return self.create(pointer)

    def ask(self, name, args, key, **fields):
        kind = CALLBACK_ARGS[f"KeyValue{name.title().replace('_', '')}Callback"]
        text = ctypes.create_string_buffer(key)
        call = kind.sized(
            key=ctypes.addressof(text),
            key_size=len(key),
            callback_error=ctypes.addressof(self.tell_at),
            **fields,
        )
        error = FUNCTION(getattr(args, f"kv_{name}_callback"))(ctypes.addressof(call))
        if error or name == "put":
            return None
        found = ctypes.string_at(call.value, call.value_size)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(call.value_deleter_callback)(call.value)
        return found


@pytest.mark.parametrize("shared", [False, True])
def test_a_plugin_meets_through_the_store(shared):
    meeting, store = Meeting(), Store()
    client = CApiClient(meeting.plugin, {}, store if shared else None)
    assert client.device_count() == 1
    if not shared:
        assert meeting.log == [False]
        return
    assert store.values == {"name": b"here\0too"}
    timed_out = "DEADLINE_EXCEEDED: GetKeyValue() timed out with key: nobody (5)"
    assert meeting.log == [True, b"here\0too", b"here\0too", (4, timed_out)]
