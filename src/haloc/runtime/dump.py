"""xla_dump_to and its friends: a compilation's stages as files with XLA's names.

module_0003.name.before_optimizations.txt               also .hlo.pb, .dot, as the flags ask
module_0003.name.0001.cpu.after_cse.before_dce.txt      of passes that xla_dump_hlo_pass_re names
module_0003.name.cpu_after_optimizations.txt
module_0003.name.cpu_after_optimizations-buffer-assignment.txt
module_0003.name.ir-no-opt.ll                           LLVM text of the program
module_0003.name.debug_options                          flags that are not at their defaults
"""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import re
import sys
from pathlib import Path

from haloc.errors import InvalidArgumentError
from haloc.flags import FLAGS, Flags
from haloc.formats.dot import to_dot
from haloc.formats.hlo_proto import serialize_hlo_module
from haloc.formats.hlo_text import PrintOptions, to_text
from haloc.ir.module import HloModule
from haloc.runtime.backend import Program
from haloc.runtime.buffer_assignment import allocations

_numbers = itertools.count()


def is_dumping(flags: Flags) -> bool:
    """Whether the flags ask for dumps of some modules."""
    asks = (
        flags.xla_dump_to,
        flags.xla_dump_hlo_as_text,
        flags.xla_dump_hlo_as_proto,
        flags.xla_dump_hlo_as_dot,
        flags.xla_dump_hlo_pass_re,
    )
    return flags.xla_enable_dumping and any(asks)


class Dumper:
    """Dumps the stages of one compilation, as the flags in force ask. platform: the backend's."""

    def __init__(self, flags: Flags, module_name: str, platform: str):
        self.flags = flags
        self.platform = platform
        self.stem = f"module_{(number := next(_numbers)):04d}.{_file_name(module_name)}"
        limit = flags.xla_dump_max_hlo_modules
        self.enabled = (
            is_dumping(flags)
            and (limit < 0 or number < limit)
            and _matches(flags, "xla_dump_hlo_module_re", module_name)
        )
        self._passes = 0

    @property
    def dumps_passes(self) -> bool:
        return self.enabled and bool(self.flags.xla_dump_hlo_pass_re)

    def before(self, module: HloModule) -> None:
        """The module as it came, and the flags."""
        if self.enabled:
            self._module(module, "before_optimizations")
            self._write("debug_options", _set_flags(self.flags))

    def after_pass(self, step: int, name: str, module: HloModule) -> None:
        """A module that a pass has changed."""
        flags = self.flags
        is_asked = _matches(flags, "xla_dump_hlo_pass_re", name) and _matches(
            flags, "xla_dump_hlo_pipeline_re", self.platform
        )
        if step and is_asked:
            stage = f"{self._passes:04d}.{self.platform}.after_{name}.before_{self._next(name)}"
            self._module(module, stage)
            self._passes += 1

    def _next(self, name: str) -> str:
        """The pass that stands behind this one."""
        # Who runs a stored program does not load the passes.
        from haloc.passes.driver import Fixpoint  # noqa: PLC0415
        from haloc.passes.pipelines import PIPELINES  # noqa: PLC0415

        names: list[str] = []
        for entry in PIPELINES.get(self.platform, ()):
            names += entry.names if isinstance(entry, Fixpoint) else [entry]
        place = names.index(name) + 1 if name in names else len(names)
        return names[place] if place < len(names) else "pipeline-end"

    def after(self, program: Program) -> None:
        """The compiled program: its module, memory and LLVM text."""
        if not self.enabled:
            return
        stage = f"{self.platform}_after_optimizations"
        self._module(program.optimized, stage)
        self._write(f"{stage}-buffer-assignment.txt", _buffer_assignment(program))
        if text := getattr(program, "text", ""):
            self._write("ir-no-opt.ll", text)

    def _module(self, module: HloModule, stage: str) -> None:
        flags = self.flags
        others = flags.xla_dump_hlo_as_proto or flags.xla_dump_hlo_as_dot
        if flags.xla_dump_hlo_as_text or not others:
            metadata = flags.xla_dump_hlo_as_long_text and not flags.xla_dump_disable_metadata
            options = dataclasses.replace(PrintOptions(), print_metadata=metadata)
            self._write(f"{stage}.txt", to_text(module, options))
        if flags.xla_dump_hlo_as_dot:
            self._write(f"{stage}.dot", to_dot(module))
        if flags.xla_dump_hlo_as_proto:
            data = serialize_hlo_module(module)
            if flags.xla_dump_compress_protos:
                self._write(f"{stage}.hlo.pb.gz", gzip.compress(data, mtime=0))
            else:
                self._write(f"{stage}.hlo.pb", data)

    def _write(self, ending: str, content: str | bytes) -> None:
        name = f"{self.stem}.{ending}"
        if self.flags.xla_dump_to in ("", "-"):
            if isinstance(content, bytes):
                print(
                    f"Refusing to write {name} to stdout. Pass --xla_dump_to=<path>",
                    file=sys.stderr,
                )
                return
            sys.stdout.write(f"*** Begin {name} ***\n{content.rstrip()}\n*** End {name} ***\n")
            return
        folder = Path(self.flags.xla_dump_to)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise InvalidArgumentError(f"xla_dump_to={str(folder)!r}: {error}") from None


def _set_flags(flags: Flags) -> str:
    """The XLA flags that are not at their defaults, one a line."""
    lines = []
    for name, field in FLAGS.items():
        value = getattr(flags, name)
        if name.startswith("xla_") and value != field.default:
            text = f'"{value}"' if isinstance(value, str) else str(value).lower()
            lines.append(f"{name}: {text}\n")
    return "".join(lines)


def _buffer_assignment(program: Program) -> str:
    """What a run allocates: results, arguments, constants, and the arena of everything between."""
    found = allocations(program)
    lines = [f"allocation {number}: {allocation}:" for number, allocation in enumerate(found)]
    total = sum(a.size_bytes for a in found)
    return "\n".join(["BufferAssignment:", *lines, "", f"Total bytes used: {total}", ""])


def _matches(flags: Flags, flag: str, name: str) -> bool:
    pattern = getattr(flags, flag)
    if not pattern:
        return True
    try:
        return re.search(pattern, name) is not None
    except re.error as error:
        raise InvalidArgumentError(f"{flag}={pattern!r}: {error}") from None


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.+-]", "_", name)[:200] or "unnamed"
