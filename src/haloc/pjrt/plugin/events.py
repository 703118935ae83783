"""Events as Python sees them."""

from __future__ import annotations

import ctypes

from haloc.errors import error_of_status
from haloc.pjrt.abi import ARGS, FUNCTION
from haloc.pjrt.native.events import ERROR_HEADER_BYTES, HAPPENED
from haloc.pjrt.native.library import library


def has_happened(event: int) -> bool:
    return ctypes.c_uint64.from_address(event).value == HAPPENED


def wait_for(event: int) -> None:
    """Returns when the event has happened; raises the error it has."""
    if not has_happened(event):
        arguments = ARGS["Event_Await"].sized(event=event)
        # FUNCTION lets other threads run meanwhile.
        error = FUNCTION(library().address("Event_Await"))(ctypes.addressof(arguments))
        library().call("error_free", error or 0)
    error = ctypes.c_uint64.from_address(event + 8).value
    if error:
        code, size = (ctypes.c_uint64 * 2).from_address(error + 8)
        message = ctypes.string_at(error + ERROR_HEADER_BYTES, size).decode(errors="replace")
        raise error_of_status(code, message)


def new_error(code: int, message: str) -> int:
    text = message.encode()
    buffer = ctypes.create_string_buffer(text, len(text) + 1)
    return library().call("error_create", code, ctypes.addressof(buffer), len(text))


def failed_event(code: int, message: str) -> int:
    """A new event that has happened, with an error."""
    event = library().call("event_create")
    library().call("event_set", event, new_error(code, message))
    return event
