"""Events with state, buffers that wait for them, and transfers in pieces, through the C API."""

import ctypes
import threading

import numpy as np
import pytest

from haloc.errors import HloError, InvalidArgumentError
from haloc.pjrt.abi import STRUCT
from haloc.pjrt.abi.memory import int64s
from haloc.pjrt.client.event import Event
from haloc.pjrt.native.library import library
from tests.pjrt.test_client import ADD, ramp

F32, S32 = 11, 4
"""PJRT_Buffer_Types."""
INTERNAL = 13


@pytest.fixture
def event(client):
    return Event(client.plugin, client.plugin.call("Event_Create").event)


def set_event(event, code=0, message=b""):
    text = ctypes.create_string_buffer(message)
    event.plugin.call(
        "Event_Set",
        event=event._handle.address,
        error_code=code,
        error_message=ctypes.addressof(text),
        error_message_size=len(message),
    )


def test_an_event_happens_once(event):
    told = []
    event.on_ready(lambda error: told.append(("early", error)))
    assert not event.is_ready()
    assert told == []
    set_event(event)
    assert event.is_ready()
    event.on_ready(lambda error: told.append(("late", error)))
    assert told == [("early", None), ("late", None)]
    event.wait()
    with pytest.raises(HloError, match="has been set before"):
        set_event(event)


def test_errors_travel_with_events(event):
    told = []
    event.on_ready(told.append)
    event.on_ready(told.append)
    set_event(event, INTERNAL, b"the words of the error")
    assert [str(e) for e in told] == ["INTERNAL: the words of the error"] * 2
    with pytest.raises(HloError, match="INTERNAL: the words of the error"):
        event.wait()


def test_waiting_lets_other_threads_run(event):
    threading.Timer(0.05, set_event, [event]).start()
    event.wait()
    assert event.is_ready()


def test_many_threads_wait(event):
    told = []
    threads = [threading.Thread(target=event.on_ready, args=[told.append]) for _ in range(16)]
    for thread in threads:
        thread.start()
    set_event(event)
    for thread in threads:
        thread.join()
    assert told == [None] * 16


class Transfers:
    """A transfer manager of one buffer f32[4]."""

    def __init__(self, client):
        self.plugin = client.plugin
        dims = int64s([4])
        self.spec = STRUCT["ShapeSpec"].sized(
            dims=ctypes.addressof(dims), num_dims=1, element_type=F32
        )
        self.address = self.plugin.call(
            "Client_CreateBuffersForAsyncHostToDevice",
            client=client.handle.address,
            shape_specs=ctypes.addressof(self.spec),
            num_shape_specs=1,
            memory=client.devices()[0].default_memory().address,
        ).transfer_manager

    def call(self, function, **fields):
        name = f"AsyncHostToDeviceTransferManager_{function}"
        return self.plugin.call(name, transfer_manager=self.address, **fields)

    def send(self, values, offset, is_last=False):
        array = np.array(values, np.float32)
        self.call(
            "TransferData",
            data=array.ctypes.data,
            offset=offset,
            transfer_size=array.nbytes,
            is_last_transfer=is_last,
        )

    def ready_event(self, buffer):
        return Event(self.plugin, self.plugin.call("Buffer_ReadyEvent", buffer=buffer).event)

    def value(self, buffer):
        result = np.zeros(4, np.float32)
        self.plugin.call(
            "Buffer_ToHostBuffer", src=buffer, dst=result.ctypes.data, dst_size=result.nbytes
        )
        return result.tolist()


@pytest.fixture
def transfers(client):
    made = Transfers(client)
    yield made
    made.call("Destroy")


def test_transfers_in_pieces(transfers):
    buffer = transfers.call("RetrieveBuffer").buffer_out
    assert transfers.call("BufferCount").buffer_count == 1
    assert transfers.call("BufferSize").buffer_size == 16
    ready = transfers.ready_event(buffer)
    transfers.send([3, 4], 8)
    assert not ready.is_ready()
    transfers.send([1, 2], 0, is_last=True)
    assert ready.is_ready()
    assert transfers.value(buffer) == [1, 2, 3, 4]
    with pytest.raises(InvalidArgumentError, match="ended before"):
        transfers.send([1], 0, is_last=True)
    with pytest.raises(InvalidArgumentError, match="bytes 8 to 24 of a buffer of 16"):
        transfers.send([1, 2, 3, 4], 8)
    transfers.plugin.call("Buffer_Destroy", buffer=buffer)


def test_reading_waits_for_the_last_piece(transfers):
    buffer = transfers.call("RetrieveBuffer").buffer_out
    threading.Timer(0.05, transfers.send, [[5, 6, 7, 8], 0, True]).start()
    assert transfers.value(buffer) == [5, 6, 7, 8]
    transfers.plugin.call("Buffer_Destroy", buffer=buffer)


def test_a_transfer_that_fails(transfers):
    buffer = transfers.call("RetrieveBuffer").buffer_out
    text = ctypes.create_string_buffer(b"the disk is gone")
    transfers.call(
        "SetBufferError",
        error_code=INTERNAL,
        error_message=ctypes.addressof(text),
        error_message_size=16,
    )
    with pytest.raises(HloError, match="the disk is gone"):
        transfers.value(buffer)
    transfers.plugin.call("Buffer_Destroy", buffer=buffer)


def test_a_manager_destroyed_early_fails_its_buffers(client):
    transfers = Transfers(client)
    buffer = transfers.call("RetrieveBuffer").buffer_out
    transfers.call("Destroy")
    with pytest.raises(HloError, match="destroyed before its transfers ended"):
        transfers.value(buffer)
    transfers.plugin.call("Buffer_Destroy", buffer=buffer)


def test_programs_refuse_buffers_with_errors(client):
    executable = client.compile_and_load(ADD, client.devices()[:1])
    x = client.buffer_from_pyval(ramp())
    assert executable.execute([x, x])[0].tolist() == [0, 2, 4, 6]
    failed = library().call("event_create")
    text = ctypes.create_string_buffer(b"poisoned")
    error = library().call("error_create", INTERNAL, ctypes.addressof(text), 8)
    library().call("event_set", failed, error)
    library().call("buffer_await", x.address, failed)
    with pytest.raises(HloError, match="poisoned"):
        executable.execute([x, x])


def test_bitcast_shares_the_memory(client):
    plugin = client.plugin
    x = client.buffer_from_pyval(np.ones(4, np.float32))
    dims = int64s([2, 2])
    made = plugin.call(
        "Buffer_Bitcast",
        buffer=x.address,
        element_type=S32,
        dims=ctypes.addressof(dims),
        num_dims=2,
    ).out_buffer
    assert plugin.call("Buffer_ElementType", buffer=made).type == S32
    assert (
        plugin.call("Buffer_UnsafePointer", buffer=made).buffer_pointer
        == plugin.call("Buffer_UnsafePointer", buffer=x.address).buffer_pointer
    )
    with pytest.raises(InvalidArgumentError, match="16 bytes"):
        plugin.call(
            "Buffer_Bitcast",
            buffer=x.address,
            element_type=S32,
            dims=ctypes.addressof(dims),
            num_dims=1,
        )
    plugin.call("Buffer_Destroy", buffer=made)


def test_an_error_in_place_of_a_buffer(client):
    plugin, dims = client.plugin, int64s([4])
    text = ctypes.create_string_buffer(b"never computed")
    buffer = plugin.call(
        "Client_CreateErrorBuffer",
        client=client.handle.address,
        error_code=INTERNAL,
        error_message=ctypes.addressof(text),
        error_message_size=14,
        shape_dims=ctypes.addressof(dims),
        shape_num_dims=1,
        shape_element_type=F32,
        memory=client.devices()[0].default_memory().address,
    ).buffer
    with pytest.raises(HloError, match="never computed"):
        Event(plugin, plugin.call("Buffer_ReadyEvent", buffer=buffer).event).wait()
    plugin.call("Buffer_Destroy", buffer=buffer)
