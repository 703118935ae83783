"""`CompileOptions` and `ExecutableBuildOptions`: how a program is to be compiled."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.flags import Flags, FlagValue
from haloc.runtime.debug_options import DebugOptions, is_only_known, refuse_unless_default
from haloc.runtime.option_protos import (
    DEFAULT_REST,
    compile_options_to_bytes,
    read_compile_options,
)
from haloc.runtime.xla_shape import XlaShape

if TYPE_CHECKING:
    from haloc.runtime.device_assignment import DeviceAssignment


class ExecutableBuildOptions:
    """Options of one executable, with jaxlib's names and defaults. See `check_supported`."""

    def __init__(self) -> None:
        self._rest = dict(DEFAULT_REST)
        self._has_debug_options = True
        self.debug_options = DebugOptions.from_flags(Flags.from_environment())
        self.result_layout: XlaShape | None = None
        self.fdo_profile = b""
        self.num_replicas = 1
        self.num_partitions = 1
        self.device_assignment: DeviceAssignment | None = None
        self.use_spmd_partitioning = False
        self.use_auto_spmd_partitioning = False
        self.auto_spmd_partitioning_mesh_shape: list[int] = []
        self.auto_spmd_partitioning_mesh_ids: list[int] = []
        self.use_shardy_partitioner = False
        self.allow_spmd_sharding_propagation_to_output = [False]
        self.allow_spmd_sharding_propagation_to_parameters = [False]
        self.exec_time_optimization_effort = 0.0
        self.memory_fitting_effort = 0.0
        self.optimization_level = 0
        self.memory_fitting_level = 0

    _SIGNED = ("num_replicas", "num_partitions", "optimization_level", "memory_fitting_level")

    def __setattr__(self, name: str, value: Any) -> None:
        if "memory_fitting_level" in self.__dict__ and name not in self.__dict__:
            raise AttributeError(f"'ExecutableBuildOptions' object has no attribute {name!r}")
        if name in self._SIGNED:
            value = operator.index(value)
        self.__dict__[name] = value

    def compilation_environments_from_serialized_proto(self, serialized_proto: bytes) -> None:
        """UnimplementedError for anything but an empty proto."""
        if serialized_proto:
            raise UnimplementedError("compilation_environments_from_serialized_proto")

    def __repr__(self) -> str:
        layout = "nullopt" if self.result_layout is None else str(self.result_layout)
        return (
            f"ExecutableBuildOptions{{device_ordinal=-1, result_layout={layout}, "
            f"num_replicas={self.num_replicas}}}"
        )


class CompileOptions:
    """Options of one compilation, with jaxlib's names and defaults.

    num_replicas, num_partitions and device_assignment are those of `executable_build_options`,
    which (unlike jaxlib's) may also be assigned. env_option_overrides: (flag name, value) pairs,
    applied over the debug options. compile_portable_executable: the program is for one device, and
    `execute(..., device=...)` says for which.
    """

    def __init__(self) -> None:
        self.executable_build_options = ExecutableBuildOptions()
        self.argument_layouts: list[XlaShape] | None = None
        self.parameter_is_tupled_arguments = False
        self.compile_portable_executable = False
        self.profile_version = 0
        self.env_option_overrides: list[tuple[str, FlagValue]] = []
        self._rest: dict[str, Any] = {}

    def SerializeAsString(self) -> bytes:
        """A CompileOptionsProto that jaxlib reads. InvalidArgumentError for a value that does not
        fit its field."""
        return compile_options_to_bytes(self)

    @staticmethod
    def ParseFromString(s: bytes) -> CompileOptions:
        """The options in a serialised CompileOptionsProto. What they have no attribute for is kept
        and written back. HloParseError for other data (jaxlib gives some object then)."""
        options = CompileOptions()
        read_compile_options(options, s)
        return options

    def __reduce__(self) -> tuple[Any, ...]:
        return (CompileOptions.ParseFromString, (self.SerializeAsString(),))

    _FIELDS = frozenset({
        "_rest",
        "argument_layouts",
        "compile_portable_executable",
        "device_assignment",
        "env_option_overrides",
        "executable_build_options",
        "num_partitions",
        "num_replicas",
        "parameter_is_tupled_arguments",
        "profile_version",
        "tuple_arguments",
    })  # fmt: skip

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._FIELDS:
            raise AttributeError(f"'CompileOptions' object has no attribute {name!r}")
        object.__setattr__(self, name, value)

    @property
    def num_replicas(self) -> int:
        return self.executable_build_options.num_replicas

    @num_replicas.setter
    def num_replicas(self, count: int) -> None:
        self.executable_build_options.num_replicas = count

    @property
    def num_partitions(self) -> int:
        return self.executable_build_options.num_partitions

    @num_partitions.setter
    def num_partitions(self, count: int) -> None:
        self.executable_build_options.num_partitions = count

    @property
    def device_assignment(self) -> DeviceAssignment | None:
        return self.executable_build_options.device_assignment

    @device_assignment.setter
    def device_assignment(self, assignment: DeviceAssignment) -> None:
        self.executable_build_options.device_assignment = assignment

    @property
    def tuple_arguments(self) -> bool:
        """Another name of `parameter_is_tupled_arguments`: the program's entry takes one tuple of
        what it took before. Arguments are given to `execute` one by one all the same.
        """
        return self.parameter_is_tupled_arguments

    @tuple_arguments.setter
    def tuple_arguments(self, value: bool) -> None:
        self.parameter_is_tupled_arguments = value

    def flags(self) -> Flags:
        """The flags in force: the debug options, then env_option_overrides."""
        flags = Flags.from_environment()
        flags = flags.with_overrides(self.executable_build_options.debug_options.flag_values())
        overrides = dict(self.env_option_overrides)
        for name in [n for n in overrides if is_only_known(n)]:
            refuse_unless_default(name, overrides.pop(name))
        return flags.with_overrides(overrides)


def check_supported(options: CompileOptions) -> None:
    """Raise for options that contradict each other (InvalidArgumentError) or that haloc does not
    act on yet (UnimplementedError, naming the option and its value)."""
    build = options.executable_build_options
    for name in ("num_replicas", "num_partitions"):
        count = getattr(build, name)
        if count < 1:
            raise InvalidArgumentError(f"{name}={count} must be at least 1")
    if build.num_partitions > 1 and not build.use_spmd_partitioning:
        raise InvalidArgumentError(
            f"num_partitions={build.num_partitions} but SPMD partitioning not enabled."
        )
    accepted = {
        "use_auto_spmd_partitioning": False,
        "exec_time_optimization_effort": 0.0,
        "memory_fitting_effort": 0.0,
        "optimization_level": 0,
        "memory_fitting_level": 0,
    }
    for name, only in accepted.items():
        value = getattr(build, name)
        # JAX writes the default of a level as its number: O2 is 29.
        if value != only and not (name.endswith("_level") and value == 29):
            raise UnimplementedError(f"{name}={value}: haloc runs with {name}={only} only so far")
    build.debug_options.check_supported()
    if build.fdo_profile:
        raise UnimplementedError("fdo_profile: haloc does not use profiles yet")
    if options.compile_portable_executable and build.num_replicas * build.num_partitions > 1:
        raise InvalidArgumentError(
            f"compile_portable_executable=True with {build.num_replicas} replicas and "
            f"{build.num_partitions} partitions: a portable executable runs on one device"
        )
