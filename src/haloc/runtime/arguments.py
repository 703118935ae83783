"""Checks the arguments of an execution, and says which one is wrong and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.runtime.array import ArrayImpl
from haloc.runtime.array_spec import ArraySpec
from haloc.runtime.device import Device
from haloc.runtime.single_device_array import SingleDeviceArray

Rows = list[list[SingleDeviceArray]]
"""Arguments by participant."""


def checked_arguments(
    arguments: Sequence[Any], parameters: Sequence[Sequence[ArraySpec]], num_partitions: int
) -> Rows:
    """The arguments by participant: [participant][parameter].

    arguments[i]: an array with a shard for each participant, or a list of arrays, one for each.
    parameters: what each participant takes. TypeError for what is not an array;
    InvalidArgumentError for a wrong number of arguments or shards, a wrong device, shape, element
    type or layout, and for deleted arrays. All is checked before anything runs.
    """
    rows = _fitting_rows(arguments, parameters)
    if rows is not None:
        return rows
    if not isinstance(arguments, list | tuple):
        given = "single array" if isinstance(arguments, ArrayImpl) else type(arguments).__name__
        raise TypeError(f"execute(): arguments is a {given}; wanted a list of arrays")
    _check_count(len(arguments), len(parameters[0]))
    columns = [_shards(a, i) for i, a in enumerate(arguments)]
    wanted, given = len(parameters), [len(c) for c in columns]
    if any(count != wanted for count in given):
        raise InvalidArgumentError(
            f"Expected args to execute_sharded_on_local_devices to have {wanted} shards, "
            f"got: {given}"
        )
    rows = [[column[number] for column in columns] for number in range(wanted)]
    _check_rows(rows, parameters, num_partitions)
    return rows


def _fitting_rows(
    arguments: Sequence[Any], parameters: Sequence[Sequence[ArraySpec]]
) -> Rows | None:
    """The arguments by participant, if nothing is wrong with them: the quick way to know."""
    if not isinstance(arguments, list | tuple):
        return None
    try:
        if len(parameters) == 1:
            rows = [list(arguments)]
        else:
            columns = [a if type(a) is list else a._shards for a in arguments]
            rows = [list(row) for row in zip(*columns, strict=True)]
        fits = [[a._spec for a in own] for own in rows] == parameters
    except (AttributeError, TypeError, ValueError):
        return None
    return rows if fits else None


def checked_rows(
    arguments: Sequence[Any], parameters: Sequence[Sequence[ArraySpec]], num_partitions: int
) -> Rows:
    """The same for arguments[participant][parameter], a list of lists of arrays of one device."""
    for own in arguments:
        _check_count(len(own), len(parameters[0]))
    rows = [[a._live_shards("Execute")[0] for a in own] for own in arguments]
    _check_rows(rows, parameters, num_partitions)
    return rows


def is_by_device(arguments: Sequence[Any], devices: Sequence[Device]) -> bool:
    """Whether arguments are lists by device, [device][parameter], rather than by parameter: the
    first list has arrays of the first of several devices only, and so on."""
    if not isinstance(arguments, list | tuple) or not 1 < len(arguments) <= len(devices):
        return False
    for own, device in zip(arguments, devices):
        if not isinstance(own, list | tuple):
            return False
        for array in own:
            if not isinstance(array, SingleDeviceArray) or array._spec.device is not device:
                return False
    return True


def _check_count(given: int, wanted: int) -> None:
    if given != wanted:
        raise InvalidArgumentError(
            f"Execution supplied {given} buffers but compiled program expected {wanted} buffers"
        )


def _shards(argument: Any, number: int) -> list[SingleDeviceArray]:
    """An argument's arrays of one device each; none if it has been deleted."""
    members = argument if isinstance(argument, list | tuple) else [argument]
    shards: list[SingleDeviceArray] = []
    for member in members:
        if not isinstance(member, ArrayImpl):
            raise TypeError(
                f"execute(): argument {number} is a {type(member).__module__}."
                f"{type(member).__qualname__}; wanted an array made by client.buffer_from_pyval"
            )
        if member.is_deleted():
            raise InvalidArgumentError(
                f"Invalid buffer passed as argument {number}: buffer has been deleted or donated."
            )
        shards += member._live_shards("Execute")
    return shards


def _check_rows(rows: Rows, parameters: Sequence[Sequence[ArraySpec]], num_partitions: int) -> None:
    for number, (own, specs) in enumerate(zip(rows, parameters, strict=True)):
        if [a._spec for a in own] == specs:
            continue
        replica, partition = divmod(number, num_partitions)
        for position, (array, spec) in enumerate(zip(own, specs, strict=True)):
            fault = _fault(array, spec, position, replica)
            if fault and len(rows) > 1:
                fault += (
                    f": while running replica {replica} and partition {partition} of a replicated "
                    "computation; nothing has been run"
                )
            if fault:
                raise InvalidArgumentError(fault)


def _fault(array: SingleDeviceArray, parameter: ArraySpec, number: int, replica: int) -> str:
    """What is wrong with an argument; "" if nothing is."""
    given = array._spec
    if array.is_deleted():
        return f"Invalid buffer passed as argument {number}: buffer has been deleted or donated."
    if given.device is not parameter.device:
        place = str(given.device)
        if given.device.client is not parameter.device.client:
            place += " of another client"
        return (
            f"Buffer passed to Execute() as argument {number} to replica {replica} is on device "
            f"{place}, but replica is assigned to device {parameter.device}."
        )
    if given.dims == parameter.dims and given.dtype is parameter.dtype:
        if given.lies_as(parameter):
            return ""
        return (
            f"Executable expected parameter {number} in layout {parameter.layout} "
            f"({parameter.shape}) but got a buffer in layout {given.layout} ({given.shape}); "
            f"client.buffer_from_pyval(array, device_layout={parameter.layout.minor_to_major}) "
            "makes one that fits"
        )
    if given.size_bytes != parameter.size_bytes:
        return (
            f"Executable expected parameter {number} of size {parameter.size_bytes} ({parameter}) "
            f"but got buffer with incompatible size {given.size_bytes} ({given})"
        )
    return f"Executable expected parameter {number} to be {parameter} but got {given}"
