"""Every wrong call gives one clear error of the right class."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from haloc.errors import HloParseError, InvalidArgumentError, UnimplementedError
from haloc.xla_client import (
    Client,
    CompileOptions,
    DeviceAssignment,
    DeviceList,
    ExecutableBuildOptions,
    HostBufferSemantics,
    LoadedExecutable,
    Shape,
    batched_block_until_ready,
    dtype_to_etype,
    make_cpu_client,
    make_interpreter_client,
)
from tests.runtime.programs import ADD


class World:
    """What the cases use: a client with two devices, an executable, a foreign client."""

    def __init__(self, make_client: Callable[..., Client]):
        self.client = make_client(num_devices=2)
        self.here, self.there = self.client.devices()
        self.foreign = make_client()
        self.add: LoadedExecutable = self.client.compile_and_load(ADD, [self.here])

    def put(self, value: Any, device: Any = None) -> Any:
        return self.client.buffer_from_pyval(value, device)

    def deleted(self) -> Any:
        array = self.put(np.ones(3, np.float32))
        array.delete()
        return array

    def options(self, **values: Any) -> CompileOptions:
        options = CompileOptions()
        for name, value in values.items():
            setattr(options, name, value)
        return options

    def compile(self, text: Any = ADD, devices: Any = None, options: Any = None) -> Any:
        devices = [self.here] if devices is None else devices
        return self.client.compile_and_load(text, devices, options)


ONES = np.ones(3, np.float32)
Case = tuple[Callable[[World], object], type[Exception], str]

EXECUTE: dict[str, Case] = {
    "no arguments": (
        lambda w: w.add.execute([]),
        InvalidArgumentError,
        "Execution supplied 0 buffers but compiled program expected 2 buffers",
    ),
    "too many arguments": (
        lambda w: w.add.execute([w.put(ONES)] * 3),
        InvalidArgumentError,
        "Execution supplied 3 buffers but compiled program expected 2 buffers",
    ),
    "another shape": (
        lambda w: w.add.execute([w.put(ONES), w.put(np.ones(4, np.float32))]),
        InvalidArgumentError,
        "Executable expected parameter 1 of size 12 (f32[3]) but got buffer with incompatible "
        "size 16 (f32[4])",
    ),
    "another rank of the same size": (
        lambda w: w.add.execute([w.put(ONES[None]), w.put(ONES)]),
        InvalidArgumentError,
        "Executable expected parameter 0 to be f32[3] but got f32[1,3]",
    ),
    "another type of the same size": (
        lambda w: w.add.execute([w.put(np.ones(3, np.int32)), w.put(ONES)]),
        InvalidArgumentError,
        "Executable expected parameter 0 to be f32[3] but got s32[3]",
    ),
    "another type": (
        lambda w: w.add.execute([w.put(np.ones(3)), w.put(ONES)]),
        InvalidArgumentError,
        "parameter 0 of size 12 (f32[3]) but got buffer with incompatible size 24 (f64[3])",
    ),
    "a deleted array": (
        lambda w: w.add.execute([w.put(ONES), w.deleted()]),
        InvalidArgumentError,
        "Invalid buffer passed as argument 1: buffer has been deleted or donated.",
    ),
    "an array on another device": (
        lambda w: w.add.execute([w.put(ONES), w.put(ONES, w.there)]),
        InvalidArgumentError,
        "Buffer passed to Execute() as argument 1 to replica 0 is on device",
    ),
    "an array of another client": (
        lambda w: w.add.execute([w.put(ONES), w.foreign.buffer_from_pyval(ONES)]),
        InvalidArgumentError,
        "of another client, but replica is assigned to device",
    ),
    "a NumPy array": (
        lambda w: w.add.execute([w.put(ONES), ONES]),
        TypeError,
        "execute(): argument 1 is a numpy.ndarray; wanted an array made by",
    ),
    "None": (lambda w: w.add.execute([None, w.put(ONES)]), TypeError, "argument 0 is a builtins."),
    "None for the list": (lambda w: w.add.execute(None), TypeError, "arguments is a NoneType"),
    "an array for the list": (
        lambda w: w.add.execute(w.put(ONES)),
        TypeError,
        "arguments is a single array; wanted a list of arrays",
    ),
    "an iterator for the list": (
        lambda w: w.add.execute(iter([w.put(ONES)] * 2)),
        TypeError,
        "arguments is a list_iterator; wanted a list of arrays",
    ),
    "two shards on one device": (
        lambda w: w.add.execute_sharded([[w.put(ONES)] * 2, w.put(ONES)]),
        InvalidArgumentError,
        "to have 1 shards, got: [2, 1]",
    ),
    "no shards": (
        lambda w: w.add.execute_sharded([[], w.put(ONES)]),
        InvalidArgumentError,
        "to have 1 shards, got: [0, 1]",
    ),
    "another device than loaded on": (
        lambda w: w.add.execute([w.put(ONES)] * 2, w.there),
        InvalidArgumentError,
        "the executable is loaded on",
    ),
}

PYVALS: dict[str, Case] = {
    "None": (lambda w: w.put(None), TypeError, "the value is None"),
    "a list": (lambda w: w.put([1.0]), InvalidArgumentError, "Got type <class 'list'>"),
    "a string": (lambda w: w.put("x"), InvalidArgumentError, "Got type <class 'str'>"),
    "an object": (lambda w: w.put(object()), InvalidArgumentError, "Got type <class 'object'>"),
    "an object array": (
        lambda w: w.put(np.array([None])),
        InvalidArgumentError,
        "Unknown NumPy dtype dtype('O') char O kind O itemsize 8",
    ),
    "a string array": (
        lambda w: w.put(np.array(["a"])),
        InvalidArgumentError,
        "Unknown NumPy dtype dtype('<U1') char U kind U itemsize 4",
    ),
    "dates": (
        lambda w: w.put(np.array([datetime.date(2020, 1, 1)], "M8[D]")),
        InvalidArgumentError,
        "Unknown NumPy dtype dtype('<M8[D]') char M kind M itemsize 8",
    ),
    "a record array": (
        lambda w: w.put(np.zeros(2, [("a", "i4")])),
        InvalidArgumentError,
        "Unknown NumPy dtype",
    ),
    "extended precision": (
        lambda w: w.put(np.zeros(2, np.longdouble)),
        InvalidArgumentError,
        "Unknown NumPy dtype",
    ),
    "a masked array": (
        lambda w: w.put(np.ma.masked_array([1.0], [True])),
        InvalidArgumentError,
        "a masked array; fill it first",
    ),
    "an int of 71 bits": (
        lambda w: w.put(2**70),
        InvalidArgumentError,
        "Unable to convert Python scalar to S64. This most likely means the value "
        "(1180591620717411303424) overflows the range of the type.",
    ),
    "a device of another client": (
        lambda w: w.put(1.0, w.foreign.devices()[0]),
        InvalidArgumentError,
        "Cannot copy value to device",
    ),
    "a device that is none": (lambda w: w.put(1.0, 0), TypeError, "device is a int, not a Device"),
    "semantics that are none": (
        lambda w: w.client.buffer_from_pyval(1.0, host_buffer_semantics=2),
        TypeError,
        "host_buffer_semantics is a HostBufferSemantics, not int",
    ),
    "a deleted array": (
        lambda w: w.client.buffer_from_pyval(w.deleted()),
        InvalidArgumentError,
        "Array has been deleted with shape=float32[3].",
    ),
    "no array among arrays": (
        lambda w: batched_block_until_ready([w.put(1.0), 1.0]),
        InvalidArgumentError,
        "batched_block_until_ready takes arrays only, got float",
    ),
}

COMPILE: dict[str, Case] = {
    "a number for the text": (
        lambda w: w.compile(3),
        TypeError,
        "a computation is HLO or StableHLO (str or bytes) or an HloModule, not int",
    ),
    "no devices": (
        lambda w: w.compile(devices=[]),
        InvalidArgumentError,
        "executable_devices is empty",
    ),
    "a bare device": (
        lambda w: w.compile(devices=w.here),
        TypeError,
        "executable_devices is a DeviceList or a sequence of devices, not Device",
    ),
    "numbers for devices": (
        lambda w: w.compile(devices=[0]),
        InvalidArgumentError,
        "executable_devices[0] is 0, not a Device",
    ),
    "a device of another client": (
        lambda w: w.compile(devices=w.foreign.devices()),
        InvalidArgumentError,
        "executable_devices[0] is a device of another client",
    ),
    "a device twice": (
        lambda w: w.compile(devices=[w.here, w.here]),
        InvalidArgumentError,
        "Device(id=0) twice",
    ),
    "options that are none": (
        lambda w: w.compile(options={}),
        TypeError,
        "compile_options is a dict, not a CompileOptions",
    ),
    "host callbacks": (
        lambda w: w.client.compile_and_load(ADD, [w.here], CompileOptions(), [print, 3]),
        TypeError,
        "host_callbacks[1] is a int; wanted a callable",
    ),
    "no replicas": (
        lambda w: w.compile(options=w.options(num_replicas=0)),
        InvalidArgumentError,
        "num_replicas=0 must be at least 1",
    ),
    "an assignment to no device": (
        lambda w: w.compile(
            options=w.options(device_assignment=DeviceAssignment.create(np.array([[7]])))
        ),
        InvalidArgumentError,
        "No matching device found for device_id 7",
    ),
    "an assignment of two devices": (
        lambda w: w.compile(
            options=w.options(device_assignment=DeviceAssignment.create(np.array([[0, 1]])))
        ),
        InvalidArgumentError,
        "device_assignment is of 1 replica(s) and 2 partition(s), but num_replicas=1",
    ),
    "an assignment that is none": (
        lambda w: w.compile(options=w.options(device_assignment=[[0]])),
        TypeError,
        "device_assignment is a list, not a DeviceAssignment",
    ),
    "an unknown override": (
        lambda w: w.compile(options=w.options(env_option_overrides=[("xla_bogus", True)])),
        InvalidArgumentError,
        "No such compile option: 'xla_bogus'",
    ),
    "an override of the wrong type": (
        lambda w: w.compile(
            options=w.options(env_option_overrides=[("xla_backend_optimization_level", "a")])
        ),
        InvalidArgumentError,
        "While setting option xla_backend_optimization_level, 'a' is not a valid int32 value.",
    ),
    "a bad regular expression": (
        lambda w: w.compile(
            options=w.options(
                env_option_overrides=[("xla_dump_to", "/x"), ("xla_dump_hlo_module_re", "(")]
            )
        ),
        InvalidArgumentError,
        "xla_dump_hlo_module_re='('",
    ),
    "a dump folder that is a file": (
        lambda w: w.compile(options=w.options(env_option_overrides=[("xla_dump_to", __file__)])),
        InvalidArgumentError,
        "xla_dump_to=",
    ),
}

OPTIONS: dict[str, Case] = {
    "an unknown compile option": (
        lambda w: setattr(CompileOptions(), "bogus", 1),
        AttributeError,
        "'CompileOptions' object has no attribute 'bogus'",
    ),
    "an unknown build option": (
        lambda w: setattr(ExecutableBuildOptions(), "bogus", 1),
        AttributeError,
        "'ExecutableBuildOptions' object has no attribute 'bogus'",
    ),
    "an unknown debug option": (
        lambda w: setattr(ExecutableBuildOptions().debug_options, "bogus", 1),
        AttributeError,
        "'DebugOptions' object has no attribute 'bogus'",
    ),
    "a debug option of the wrong type": (
        lambda w: setattr(ExecutableBuildOptions().debug_options, "xla_dump_to", 1),
        TypeError,
        "DebugOptions.xla_dump_to takes str, not int",
    ),
    "a count that is no number": (
        lambda w: setattr(CompileOptions(), "num_replicas", "2"),
        TypeError,
        "cannot be interpreted as an integer",
    ),
    "an assignment from a list": (
        lambda w: DeviceAssignment.create([[0]]),  # type: ignore[arg-type]
        TypeError,
        "two-dimensional NumPy array",
    ),
    "an assignment of one dimension": (
        lambda w: DeviceAssignment.create(np.array([0])),
        TypeError,
        "two-dimensional NumPy array",
    ),
    "an assignment of fractions": (
        lambda w: DeviceAssignment.create(np.array([[0.5]])),
        TypeError,
        "device ids are integers, not float64",
    ),
    "a device list from a list": (
        lambda w: DeviceList([w.here]),  # type: ignore[arg-type]
        TypeError,
        "DeviceList takes a tuple of devices, not list",
    ),
}

REST: dict[str, Case] = {
    "no devices in a client": (
        lambda w: make_cpu_client(num_devices=0),
        InvalidArgumentError,
        "num_devices=0: a client needs a device",
    ),
    "a device count that is no number": (
        lambda w: make_cpu_client(num_devices="2"),  # type: ignore[arg-type]
        TypeError,
        "num_devices is an int or None, not str",
    ),
    "an unknown client option": (
        lambda w: make_cpu_client(foo=1),  # type: ignore[call-arg]
        TypeError,
        "unexpected keyword argument 'foo'",
    ),
    "an unknown memory kind": (
        lambda w: w.here.memory("bogus"),
        InvalidArgumentError,
        "memory kinds: device, pinned_host, unpinned_host. Got memory kind: bogus",
    ),
    "an unknown hardware id": (
        lambda w: w.client.device_from_local_hardware_id(9),
        InvalidArgumentError,
        "No matching device found for local_device_id 9",
    ),
    "defragmentation": (lambda w: w.client.defragment(), UnimplementedError, "Defragmentation"),
    "a shape that is none": (lambda w: Shape("bogus"), HloParseError, "bogus"),
    "a shape of negative size": (
        lambda w: Shape.array_shape(np.dtype("f4"), (-2,)),
        InvalidArgumentError,
        "Invalid dimension size -2, is_dynamic=false",
    ),
    "members of no tuple": (
        lambda w: Shape("f32[2]").tuple_shapes(),
        InvalidArgumentError,
        "f32[2]{0} is not a tuple",
    ),
    "the layout of a tuple": (
        lambda w: Shape("(f32[2])").layout(),
        InvalidArgumentError,
        "has no layout: only arrays have one",
    ),
    "a layout that orders nothing": (
        lambda w: Shape.array_shape(np.dtype("f4"), (2, 3), (0, 0)),
        InvalidArgumentError,
        "layout {0,0} does not order the 2 dimensions",
    ),
    "an element type that HLO has not": (
        lambda w: dtype_to_etype(np.dtype("U1")),
        InvalidArgumentError,
        "Unknown NumPy dtype",
    ),
    "an unknown semantics": (
        lambda w: HostBufferSemantics(3),
        ValueError,
        "3 is not a valid HostBufferSemantics",
    ),
}

GROUPS = {
    "execute": EXECUTE,
    "pyval": PYVALS,
    "compile": COMPILE,
    "options": OPTIONS,
    "rest": REST,
}
CASES = {
    f"{group}: {name}": case for group, cases in GROUPS.items() for name, case in cases.items()
}


@pytest.fixture(scope="module", params=["interpreter", "cpu"])
def world(request: pytest.FixtureRequest) -> World:
    return World({"interpreter": make_interpreter_client, "cpu": make_cpu_client}[request.param])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_refused(world: World, case: Case) -> None:
    call, kind, message = case
    with pytest.raises(kind, match=re.escape(message)):
        call(world)


def test_an_executable_still_works_after_all_that(world: World) -> None:
    (result,) = world.add.execute([world.put(ONES), world.put(ONES)])
    assert np.asarray(result).tolist() == [2, 2, 2]
