"""Every flag haloc has: one dataclass, its spellings in XLA_FLAGS and HALOC_* variables, its help.

Flags named `xla_*` are spelt `--xla_...=value` in XLA_FLAGS (separated by blanks) and by that name
in `env_option_overrides`; the others are environment variables `HALOC_<NAME>`. A flag that haloc
does not know is reported with a suggestion and then ignored: a bad variable never ends a process.

The ladder of HALOC_DEBUG; each step includes those before it:
    1   errors of the `haloc` command come with their traceback
    2   one line a compilation on stderr: module, instructions, seconds, code bytes
    3   the time of each pass
    4   the module before and after optimisation
    5   the module after every pass that changed it
    6   LLVM text of the kernels
"""

from __future__ import annotations

import difflib
import os
import shlex
import warnings
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, TypeAlias

from haloc.errors import InvalidArgumentError

FlagValue: TypeAlias = "bool | int | float | str"


def flag(default: FlagValue, help: str, owner: str) -> Any:
    """A field of `Flags`. owner: the file or folder that acts on it."""
    return field(default=default, metadata={"help": help, "owner": owner})


@dataclass(frozen=True)
class Flags:
    """All flags with their defaults. `Flags.from_environment()` is what a client starts from."""

    debug: int = flag(0, "how much to tell: the ladder above, 0 to 6", "haloc")
    progress: str = flag(
        "auto", "0: no progress line; 1: at once; auto: on a terminal, after 1 s", "cli/progress.py"
    )
    num_threads: int = flag(
        0, "threads a native program uses; 0: what affinity and the cgroup allow", "cpu/pool"
    )
    pool_bytes: int = flag(
        4 << 30, "most bytes of freed array memory kept for reuse", "runtime/memory_pool.py"
    )
    cache_dir: str = flag(
        "",
        "folder of compiled programs and kernels; none: haloc in XDG_CACHE_HOME or ~/.cache",
        "cpu/disk_cache.py",
    )
    cache_bytes: int = flag(
        1 << 30, "most bytes of compiled code kept on disk; 0: nothing is", "cpu/disk_cache.py"
    )
    xla_backend_optimization_level: int = flag(
        3, "effort of the compiler, 0 (compile fast) to 3 (run fast)", "cpu/compiler.py"
    )
    xla_disable_hlo_passes: str = flag(
        "", "passes not to run, separated by commas", "passes/driver.py"
    )
    xla_enable_hlo_passes_only: str = flag(
        "", "passes to run, separated by commas, and no others; none: all", "passes/driver.py"
    )
    xla_llvm_disable_expensive_passes: bool = flag(
        False, "LLVM generates code with little effort", "runtime/cpu_backend.py"
    )
    xla_cpu_enable_fast_math: bool = flag(
        False,
        "float arithmetic may contract multiplications with additions and ignore signs of zeros",
        "codegen/fast_math.py",
    )
    xla_cpu_fast_math_honor_nans: bool = flag(
        True, "False, with fast math: there are no NaNs", "codegen/fast_math.py"
    )
    xla_cpu_fast_math_honor_infs: bool = flag(
        True, "False, with fast math: there are no infinities", "codegen/fast_math.py"
    )
    xla_cpu_fast_math_honor_division: bool = flag(
        True, "False, with fast math: division may multiply by a reciprocal", "codegen/fast_math.py"
    )
    xla_cpu_fast_math_honor_functions: bool = flag(
        True, "False, with fast math: LLVM's functions may be approximate", "codegen/fast_math.py"
    )
    xla_force_host_platform_device_count: int = flag(
        1, "CPU devices a client has when not told otherwise", "runtime/client.py"
    )
    xla_cpu_collective_call_terminate_timeout_seconds: int = flag(
        40, "how long the participants of a collective wait for each other", "cpu/collective"
    )
    xla_dump_to: str = flag(
        "", "folder for dumps of modules; '-' or none with a format: stdout", "runtime/dump.py"
    )
    xla_dump_hlo_module_re: str = flag(
        "", "dump only modules whose name matches this regular expression", "runtime/dump.py"
    )
    xla_dump_hlo_as_text: bool = flag(False, "dump modules as HLO text", "runtime/dump.py")
    xla_dump_hlo_as_proto: bool = flag(
        False, "dump modules as HloModuleProto, .hlo.pb", "runtime/dump.py"
    )
    xla_dump_hlo_as_dot: bool = flag(
        False, "dump modules as graphs for Graphviz, .dot", "runtime/dump.py"
    )
    xla_dump_compress_protos: bool = flag(False, "dumped protos are gzipped", "runtime/dump.py")
    xla_dump_hlo_pass_re: str = flag(
        "",
        "dump modules also after each pass that changed them and matches this regular expression",
        "runtime/dump.py",
    )
    xla_dump_hlo_pipeline_re: str = flag(
        "", "of passes, only those of pipelines whose name matches", "runtime/dump.py"
    )
    xla_dump_hlo_as_long_text: bool = flag(
        True, "dumped text has backend configs and metadata", "runtime/dump.py"
    )
    xla_dump_disable_metadata: bool = flag(False, "dumped text has no metadata", "runtime/dump.py")
    xla_dump_max_hlo_modules: int = flag(
        -1, "dump at most this many modules; -1: no limit", "runtime/dump.py"
    )
    xla_enable_dumping: bool = flag(True, "False: xla_dump_* does nothing", "runtime/dump.py")
    xla_detailed_logging: bool = flag(
        True, "False: leave this program out of HALOC_DEBUG's compilation lines", "runtime"
    )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Flags:
        """Defaults overridden by HALOC_* variables and XLA_FLAGS, in that order.

        What is unknown or malformed is warned about (UserWarning) and left out.
        """
        environ = os.environ if environ is None else environ
        given: dict[str, str] = {}
        for name in FLAGS:
            variable = f"HALOC_{name.upper()}"
            if not name.startswith("xla_") and environ.get(variable, "") != "":
                given[name] = environ[variable]
        given |= _split_xla_flags(environ.get("XLA_FLAGS", ""))
        values: dict[str, Any] = {}
        for name, text in given.items():
            try:
                values[name] = parse_flag(name, text)
            except InvalidArgumentError as error:
                source = "XLA_FLAGS" if name.startswith("xla_") else "the environment"
                warnings.warn(f"{source}: {error.message}; ignored", stacklevel=2)
        return cls(**values)

    def with_overrides(self, overrides: Mapping[str, FlagValue]) -> Flags:
        """These flags with some `xla_*` ones set: a bool as a bool, others typed or as text.

        InvalidArgumentError for an unknown name or a value of the wrong type.
        """
        for name, value in overrides.items():
            if name in FLAGS and isinstance(FLAGS[name].default, bool) and isinstance(value, str):
                raise _no_value(name, value)
        values: dict[str, Any] = {n: parse_flag(n, v) for n, v in overrides.items()}
        return replace(self, **values)


FLAGS: dict[str, Field[Any]] = {f.name: f for f in fields(Flags)}

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""on_progress(stage, done, total): called by the compiler as it advances; total 0 if not known."""


def no_progress(stage: str, done: int, total: int) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True)
class CompilerOptions:
    """What a backend's `compile` is given. on_progress may be called from the compiling thread.
    num_replicas, num_partitions: of the participants that run the program together. on_pass: called
    as `PassOptions.dump`. keep_text: keep the LLVM text on the program."""

    flags: Flags = field(default_factory=Flags)
    on_progress: OnProgress = no_progress
    num_replicas: int = 1
    num_partitions: int = 1
    on_pass: Callable[[int, str, Any], None] | None = None
    keep_text: bool = False


def parse_flag(name: str, value: FlagValue) -> FlagValue:
    """`value` as flag `name` takes it. Text is read; a number or bool must have the flag's type.

    InvalidArgumentError otherwise; for an unknown name it suggests the nearest.
    """
    declared = FLAGS.get(name)
    if declared is None:
        raise InvalidArgumentError(f"No such compile option: {name!r}{_suggestion(name)}")
    wanted = type(declared.default)
    if wanted is str and isinstance(value, str):
        return value
    if wanted is bool:
        truth = {"true": True, "1": True, "false": False, "0": False}
        parsed = truth.get(str(value).lower())
        if isinstance(value, bool | str) and parsed is not None:
            return parsed
    if wanted is int and not isinstance(value, bool | float):
        try:
            return int(value)
        except ValueError:
            pass
    raise _no_value(name, value)


def _no_value(name: str, value: FlagValue) -> InvalidArgumentError:
    kind = {bool: "bool", int: "int32", str: "string"}[type(FLAGS[name].default)]
    return InvalidArgumentError(
        f"While setting option {name}, {value!r} is not a valid {kind} value."
    )


def _split_xla_flags(text: str) -> dict[str, str]:
    """{"xla_dump_to": "/tmp"} of "--xla_dump_to=/tmp"; a flag without a value is "true"."""
    found: dict[str, str] = {}
    try:
        words = shlex.split(text)
    except ValueError as error:
        warnings.warn(f"XLA_FLAGS: {error} in {text!r}; ignored", stacklevel=3)
        return found
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--xla_"):
            hint = f"; did you mean --{name}?" if name in FLAGS else _suggestion(name, "--")
            warnings.warn(f"XLA_FLAGS: {word!r} is not a --xla_ flag{hint}; ignored", stacklevel=3)
            continue
        found[name] = value if equals else "true"
    return found


def _suggestion(name: str, dashes: str = "") -> str:
    near = difflib.get_close_matches(name, [n for n in FLAGS if n.startswith("xla_")], n=1)
    return f"; did you mean {dashes}{near[0]}?" if near else ""
