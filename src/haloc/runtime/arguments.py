"""Checks the arguments of an execution, and says which one is wrong and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.runtime.array import ArrayImpl
from haloc.runtime.array_spec import ArraySpec


def check_arguments(arguments: Sequence[Any], parameters: Sequence[ArraySpec]) -> list[ArrayImpl]:
    """The arguments as arrays, one for each parameter; a list of one array stands for the array.

    TypeError for what is not an array; InvalidArgumentError for a wrong count, device, shape or
    element type, and for deleted arrays.
    """
    if isinstance(arguments, ArrayImpl) or not isinstance(arguments, list | tuple):
        raise TypeError(
            f"execute(): arguments is a {type(arguments).__name__}; wanted a list of arrays"
        )
    if len(arguments) != len(parameters):
        raise InvalidArgumentError(
            f"Execution supplied {len(arguments)} buffers but compiled program expected "
            f"{len(parameters)} buffers"
        )
    arrays = [_one_array(a, i) for i, a in enumerate(arguments)]
    for number, (array, parameter) in enumerate(zip(arrays, parameters, strict=True)):
        _check(array, parameter, number)
    return arrays


def _one_array(argument: Any, number: int) -> ArrayImpl:
    if isinstance(argument, list | tuple):
        if len(argument) != 1:
            raise InvalidArgumentError(
                f"argument {number} has {len(argument)} shards, but the program runs on 1 device"
            )
        argument = argument[0]
    if not isinstance(argument, ArrayImpl):
        raise TypeError(
            f"execute(): argument {number} is a {type(argument).__module__}."
            f"{type(argument).__qualname__}; wanted an array made by client.buffer_from_pyval"
        )
    return argument


def _check(array: ArrayImpl, parameter: ArraySpec, number: int) -> None:
    given = array._spec
    if array.is_deleted():
        raise InvalidArgumentError(
            f"Invalid buffer passed as argument {number}: buffer has been deleted or donated."
        )
    if given.device is not parameter.device:
        place = str(given.device)
        if given.device.client is not parameter.device.client:
            place += " of another client"
        raise InvalidArgumentError(
            f"Buffer passed to Execute() as argument {number} to replica 0 is on device {place}, "
            f"but replica is assigned to device {parameter.device}."
        )
    if given.dims == parameter.dims and given.dtype is parameter.dtype:
        return
    if given.size_bytes != parameter.size_bytes:
        raise InvalidArgumentError(
            f"Executable expected parameter {number} of size {parameter.size_bytes} ({parameter}) "
            f"but got buffer with incompatible size {given.size_bytes} ({given})"
        )
    raise InvalidArgumentError(
        f"Executable expected parameter {number} to be {parameter} but got {given}"
    )
