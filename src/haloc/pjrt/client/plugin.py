"""`Plugin`: a table of functions, and calls of them that raise the plugin's errors."""

from __future__ import annotations

import ctypes
import weakref
from functools import cached_property
from typing import Any

from haloc.errors import HloError, UnimplementedError, error_of_status
from haloc.pjrt.abi import ARGS, EXTENSION_ARGS, EXTENSIONS, FUNCTION, STRUCT, Api, Struct
from haloc.pjrt.abi.memory import text_at
from haloc.pjrt.abi.named_values import read_named_values

_VOID = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_NUMBERS = {function: number for number, function in enumerate(ARGS)}
_POINTER_BYTES = 8


class Plugin:
    """A PJRT plugin, by the address of its PJRT_Api, which must stay valid.

    keep: whatever the table needs to stay alive. The calls are those of the C API, without `PJRT_`:
    `plugin.call("Client_PlatformName", client=address).platform_name`.
    """

    def __init__(self, name: str, address: int, keep: Any = None):
        self.name = name
        self.address = address
        self._keep = keep
        self._functions: dict[str, Any] = {}
        self.is_initialized = False

    def __repr__(self) -> str:
        major, minor = self.api_version
        return f"<PJRT plugin {self.name}, API {major}.{minor}>"

    # --- What it is -------------------------------------------------------------------------------

    @property
    def _head(self) -> Any:
        # Only the beginning is read through this: a plugin's table may be shorter than ours.
        return Api.from_address(self.address)

    @cached_property
    def api_version(self) -> tuple[int, int]:
        """(major, minor) of the C API that the plugin was built with."""
        version = self._head.version
        return version.major_version, version.minor_version

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """What the plugin says about itself: xla_version, stablehlo_current_version, ..."""
        args = self.call("Plugin_Attributes")
        return read_named_values(args.attributes, args.num_attributes)

    @cached_property
    def extensions(self) -> dict[int, int]:
        """PJRT_Extension_Type -> the address of the extension."""
        found, at = {}, self._head.extension_start
        while at:
            base = STRUCT["Extension_Base"].from_address(at)
            found[base.type] = at
            at = base.next
        return found

    def initialize(self) -> None:
        """PJRT_Plugin_Initialize, which plugins want once, before any client."""
        self.call("Plugin_Initialize")
        self.is_initialized = True

    # --- Calls ------------------------------------------------------------------------------------

    def call(self, function: str, **fields: Any) -> Struct:
        """Call a function of the table; its argument struct, with what it has set.

        Raises the plugin's error, as an HloError with its code, and UnimplementedError for a
        function that the plugin does not have.
        """
        args = ARGS[function].sized(**fields)
        self._raise(self._function(function)(ctypes.addressof(args)))
        return args

    def has(self, function: str) -> bool:
        return bool(self._address_of(function))

    def has_extension(self, name: str) -> bool:
        return EXTENSIONS[name] in self.extensions

    def call_extension(self, name: str, function: str, **fields: Any) -> Struct:
        """Call a function of an extension that the plugin has."""
        struct = EXTENSION_ARGS[function]
        family = [f for f in EXTENSION_ARGS if f.startswith(f"{name}_")]
        base = self.extensions[EXTENSIONS[name]]
        at = (
            base + ctypes.sizeof(STRUCT["Extension_Base"]) + _POINTER_BYTES * family.index(function)
        )
        args = struct.sized(**fields)
        self._raise(FUNCTION(_pointer_at(at))(ctypes.addressof(args)))
        return args

    def _function(self, function: str) -> Any:
        known = self._functions.get(function)
        if known is None:
            address = self._address_of(function)
            if not address:
                major, minor = self.api_version
                raise UnimplementedError(
                    f"PJRT_{function}: plugin {self.name}, which speaks API {major}.{minor}, does "
                    "not have it"
                )
            kind = _VOID if function in ("Error_Destroy", "Error_Message") else FUNCTION
            known = self._functions[function] = kind(address)
        return known

    def _address_of(self, function: str) -> int:
        offset = Api.functions.offset + _POINTER_BYTES * _NUMBERS[function]
        if offset + _POINTER_BYTES > self._head.struct_size:
            return 0
        return _pointer_at(self.address + offset)

    # --- Errors -----------------------------------------------------------------------------------

    def _raise(self, error: int | None) -> None:
        if error:
            raise self.error(error)

    def error(self, error: int) -> HloError:
        """The exception of a PJRT_Error, which is destroyed."""
        message = ARGS["Error_Message"].sized(error=error)
        self._function("Error_Message")(ctypes.addressof(message))
        text = text_at(message.message, message.message_size)
        code = self.call("Error_GetCode", error=error).code
        gone = ARGS["Error_Destroy"].sized(error=error)
        self._function("Error_Destroy")(ctypes.addressof(gone))
        return error_of_status(code, text)


def _pointer_at(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


class Owned:
    """An object of the plugin that is destroyed when nothing in Python refers to it any more, or
    when the interpreter ends; those made last go first."""

    def __init__(self, plugin: Plugin, kind: str, address: int, *needs: Any):
        """kind: "Buffer" for what PJRT_Buffer_Destroy destroys. needs: other objects that must not
        be destroyed before this one."""
        self.plugin = plugin
        self.address = address
        self._finalizer = weakref.finalize(self, _destroy, plugin, kind, address, needs)

    def destroy(self) -> None:
        """Now; once."""
        self._finalizer()


def _destroy(plugin: Plugin, kind: str, address: int, needs: tuple[Any, ...]) -> None:
    function = f"{kind}_Destroy"
    field = ARGS[function]._fields_[2][0]
    plugin.call(function, **{field: address})
