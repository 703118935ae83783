"""`DebugOptions`: XLA's debugging and effort flags of one compilation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NoReturn

from haloc.errors import UnimplementedError
from haloc.flags import FLAGS, Flags
from haloc.runtime.debug_defaults import UNSAID, XLA_DEFAULTS


@dataclass
class DebugOptions:
    """The documented fields with jaxlib's defaults; those that are flags start from XLA_FLAGS.

    A field that haloc does not act on takes its default only: anything else raises
    UnimplementedError with the field's name. A name that does not exist raises AttributeError, a
    value of the wrong type TypeError.
    """

    xla_backend_optimization_level: int = 3
    xla_cpu_enable_fast_math: bool = False
    xla_cpu_fast_math_honor_infs: bool = True
    xla_cpu_fast_math_honor_nans: bool = True
    xla_cpu_fast_math_honor_division: bool = True
    xla_cpu_fast_math_honor_functions: bool = True
    xla_gpu_enable_fast_min_max: bool = False
    xla_cpu_enable_xprof_traceme: bool = False
    xla_llvm_disable_expensive_passes: bool = False
    xla_test_all_input_layouts: bool = False
    xla_disable_hlo_passes: str = ""
    xla_enable_hlo_passes_only: str = ""
    xla_force_host_platform_device_count: int = 1
    xla_dump_to: str = ""
    xla_dump_hlo_module_re: str = ""
    xla_dump_hlo_pass_re: str = ""
    xla_dump_hlo_pipeline_re: str = ""
    xla_dump_hlo_as_text: bool = False
    xla_dump_hlo_as_proto: bool = False
    xla_dump_hlo_as_dot: bool = False
    xla_dump_hlo_as_url: bool = False
    xla_dump_hlo_as_html: bool = False
    xla_dump_fusion_visualization: bool = False
    xla_dump_hlo_snapshots: bool = False
    xla_dump_max_hlo_modules: int = -1
    xla_dump_module_metadata: bool = False
    xla_dump_compress_protos: bool = False
    xla_dump_hlo_as_long_text: bool = True
    xla_dump_disable_metadata: bool = False
    xla_gpu_cuda_data_dir: str = "./cuda_sdk_lib"
    xla_detailed_logging: bool = True
    xla_enable_dumping: bool = True

    def __setattr__(self, name: str, value: Any) -> None:
        default = _DEFAULTS.get(name)
        if default is None:
            raise AttributeError(f"'DebugOptions' object has no attribute {name!r}")
        if type(value) is not type(default):
            wanted = type(default).__name__
            raise TypeError(f"DebugOptions.{name} takes {wanted}, not {type(value).__name__}")
        if name not in FLAGS and value != default:
            _refuse(name, value)
        object.__setattr__(self, name, value)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rest", dict(XLA_DEFAULTS))
        object.__setattr__(self, "_unsaid", {n: _DEFAULTS[n] for n in UNSAID})

    @classmethod
    def from_flags(cls, flags: Flags) -> DebugOptions:
        return cls(**{n: getattr(flags, n) for n in _DEFAULTS if n in FLAGS})

    def flag_values(self) -> dict[str, Any]:
        """The fields that are flags."""
        return {n: getattr(self, n) for n in _DEFAULTS if n in FLAGS}

    def field_values(self) -> dict[str, Any]:
        """All fields, by name."""
        return {n: getattr(self, n) for n in _DEFAULTS}

    def set_read(self, values: dict[str, Any], rest: dict[str, Any]) -> None:
        """Take what was read from a proto, also values that haloc does not act on: those are for
        `check_supported` to refuse. rest: the fields of the proto that there is no name for."""
        for name, value in values.items():
            object.__setattr__(self, name, value)
        unsaid = {n: v for n, v in self.field_values().items() if n not in values}
        object.__setattr__(self, "_rest", rest)
        object.__setattr__(self, "_unsaid", unsaid)

    def proto_values(self) -> dict[str, Any]:
        """The fields to write into a proto: those that jaxlib writes for new options, or that were
        there when these were read, and those that have changed since."""
        unsaid = self.__dict__["_unsaid"]
        return {n: v for n, v in self.field_values().items() if n not in unsaid or unsaid[n] != v}

    def check_supported(self) -> None:
        """UnimplementedError for a value that haloc does not act on."""
        for name, default in _DEFAULTS.items():
            if name not in FLAGS and getattr(self, name) != default:
                _refuse(name, getattr(self, name))


_DEFAULTS: dict[str, Any] = {f.name: f.default for f in fields(DebugOptions)}


def is_only_known(name: str) -> bool:
    """Whether XLA has a flag of this name, and haloc does not act on it."""
    return name not in FLAGS and (name in _DEFAULTS or name in XLA_DEFAULTS)


def refuse_unless_default(name: str, value: Any) -> None:
    """UnimplementedError unless an override says of such a flag what XLA's default is."""
    default = _DEFAULTS.get(name, XLA_DEFAULTS.get(name))
    if value != default and str(value) != str(default):
        _refuse(name, value)


def _refuse(name: str, value: Any) -> NoReturn:
    raise UnimplementedError(f"DebugOptions.{name}={value!r}: haloc does not act on it")
