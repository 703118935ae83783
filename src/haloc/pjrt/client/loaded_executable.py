"""`CApiLoadedExecutable`: a program on the devices of a plugin's client, ready to run."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from haloc.errors import InvalidArgumentError
from haloc.formats.proto import decode
from haloc.pjrt.abi import STRUCT
from haloc.pjrt.abi.memory import address_of_bytes, bytes_at, int64s, pointers_at
from haloc.pjrt.client.array import CApiArray
from haloc.pjrt.client.device import CApiDevice
from haloc.pjrt.client.event import Completion, Event
from haloc.pjrt.client.executable import CApiExecutable
from haloc.pjrt.client.plugin import Owned
from haloc.runtime.results import ExecuteResults, ShardedToken, Token

if TYPE_CHECKING:
    from haloc.pjrt.client.client import CApiClient

_launches = itertools.count(1)
_NOWHERE = b""

Rows = list[list[CApiArray]]


class CApiLoadedExecutable(CApiExecutable):
    """A program ready to run, by one participant or by several together."""

    def __init__(self, client: CApiClient, address: int):
        plugin = client.plugin
        self.client = client
        self._loaded = Owned(plugin, "LoadedExecutable", address, client.handle)
        args = plugin.call("LoadedExecutable_GetExecutable", loaded_executable=address)
        super().__init__(plugin, args.executable, self._loaded)
        devices = self._of("AddressableDevices")
        self._devices = [
            client.device_at(a)
            for a in pointers_at(devices.addressable_devices, devices.num_addressable_devices)
        ]
        client.executables.add(self)

    def _of(self, function: str, **given: Any) -> Any:
        function = f"LoadedExecutable_{function}"
        return self.plugin.call(function, executable=self._loaded.address, **given)

    # --- Where ------------------------------------------------------------------------------------

    def local_devices(self) -> list[CApiDevice]:
        """The devices of this process's participants, in the order of arguments and results."""
        return list(self._devices)

    addressable_devices = local_devices

    def local_logical_device_ids(self) -> list[tuple[int, int]]:
        """(replica, partition) of each of `local_devices()`."""
        args = self._of("AddressableDeviceLogicalIds")
        count = 2 * args.num_addressable_device_logical_ids
        flat = (ctypes.c_int32 * count).from_address(args.addressable_device_logical_ids)
        return list(zip(flat[::2], flat[1::2]))

    def device_assignment(self) -> dict[str, Any]:
        """The devices of all participants, as the fields of a DeviceAssignmentProto."""
        args = self._of("GetDeviceAssignment")
        message = decode(
            "DeviceAssignmentProto", bytes_at(args.serialized_bytes, args.serialized_bytes_size)
        )
        deleter = args.serialized_device_assignment_deleter
        if deleter:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(args.serialized_device_assignment)
        return message

    # --- Life -------------------------------------------------------------------------------------

    def delete(self) -> None:
        """Take it off its devices; it cannot run any more. May be repeated."""
        self._of("Delete")

    def is_deleted(self) -> bool:
        return self._of("IsDeleted").is_deleted

    # --- Running ----------------------------------------------------------------------------------

    def execute(
        self,
        arguments: Sequence[CApiArray | list[CApiArray]],
        device: CApiDevice | None = None,
        *,
        keep: Sequence[int] = (),
    ) -> list[CApiArray]:
        """Run once; the array leaves of the result: those of the first device.

        arguments: the array leaves of the parameters; for several devices as in `execute_sharded`.
        What the program donates is deleted, but for the parameters in `keep`. Raises
        InvalidArgumentError for arguments that are none of this client's arrays, and the plugin's
        errors: those of the run itself when a result is read or waited for.
        """
        if device is not None and device not in self._devices:
            raise InvalidArgumentError(f"execute(device={device!r}): not among {self._devices}")
        rows, _ = self._rows(arguments)
        return self._run(rows, keep)[0][0]

    def execute_with_token(
        self, arguments: Sequence[CApiArray | list[CApiArray]]
    ) -> tuple[list[CApiArray], Token]:
        """`execute`, and a token that is ready when the execution is."""
        results, events = self._run(self._rows(arguments)[0], (), with_events=True)
        return results[0], Token(Completion(events))

    def execute_sharded(
        self,
        arguments: Sequence[CApiArray | list[CApiArray]],
        with_tokens: bool = False,
        *,
        keep: Sequence[int] = (),
    ) -> ExecuteResults:
        """Run once on all devices.

        arguments[i]: a list of arrays, one on each of `local_devices()`, in this order. Or
        arguments[d]: the list of all arguments on device d; then the results are by device, too.
        Which one it is tell the devices of the arrays.
        """
        rows, by_device = self._rows(arguments)
        results, events = self._run(rows, keep, with_events=with_tokens)
        token = ShardedToken(with_tokens and len(rows), Completion(events))
        columns = [list(column) for column in zip(*results)]
        return ExecuteResults(columns, token, by_device)  # type: ignore[arg-type]

    def _rows(self, arguments: Sequence[Any]) -> tuple[Rows, bool]:
        """Arguments by device, [device][parameter], and whether they were given so."""
        if not isinstance(arguments, list | tuple):
            raise TypeError(
                f"execute(): arguments is a {type(arguments).__name__}; wanted a list of arrays"
            )
        count = len(self._devices)
        lists = [list(a) if isinstance(a, list | tuple) else [a] for a in arguments]
        for number, array in ((n, a) for n, own in enumerate(lists) for a in own):
            self._check(number, array)
        by_device = len(lists) == count > 1 and all(
            array.device is device for own, device in zip(lists, self._devices) for array in own
        )
        if by_device:
            return lists, True
        given = [len(own) for own in lists]
        if any(n != count for n in given):
            raise InvalidArgumentError(
                f"Expected args to execute_sharded_on_local_devices to have {count} shards, "
                f"got: {given}"
            )
        return [[own[d] for own in lists] for d in range(count)], False

    def _check(self, number: int, array: Any) -> None:
        if not isinstance(array, CApiArray):
            raise TypeError(
                f"execute(): argument {number} is a {type(array).__module__}."
                f"{type(array).__qualname__}; wanted an array made by client.buffer_from_pyval"
            )
        if array.client is not self.client:
            raise InvalidArgumentError(f"argument {number} is an array of another client")

    def _run(
        self, rows: Rows, keep: Sequence[int], *, with_events: bool = False
    ) -> tuple[Rows, list[Event]]:
        """Results by device, and an event for each device's execution."""
        count, width = len(rows), len(rows[0])
        lists = [_pointers([a.address for a in own]) for own in rows]
        outputs = [_pointers([0] * self.num_outputs) for _ in rows]
        events = _pointers([0] * count)
        argument_lists, output_lists = (
            _pointers(map(ctypes.addressof, x)) for x in (lists, outputs)
        )
        kept = int64s(keep)
        options = STRUCT["ExecuteOptions"].sized(
            launch_id=next(_launches),
            non_donatable_input_indices=ctypes.addressof(kept),
            num_non_donatable_input_indices=len(keep),
            call_location=address_of_bytes(_NOWHERE),
        )
        self._of(
            "Execute",
            options=ctypes.addressof(options),
            argument_lists=ctypes.addressof(argument_lists),
            num_devices=count,
            num_args=width,
            output_lists=ctypes.addressof(output_lists),
            device_complete_events=ctypes.addressof(events) if with_events else None,
        )
        results = [[CApiArray(self.client, address) for address in own] for own in outputs]
        return results, [Event(self.plugin, e) for e in events] if with_events else []


def _pointers(addresses: Iterable[int]) -> Any:
    listed = list(addresses)
    return (ctypes.c_uint64 * len(listed))(*listed)
