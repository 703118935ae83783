"""xla_dump_to: modules as files with XLA's names, before and after optimisation."""

from __future__ import annotations

import dataclasses
import itertools
import re
import sys
from pathlib import Path

from haloc.errors import InvalidArgumentError
from haloc.flags import Flags
from haloc.formats.hlo_text import PrintOptions, to_text
from haloc.ir.module import HloModule

_numbers = itertools.count()


class Dumper:
    """Dumps the stages of one compilation, as the flags in force ask."""

    def __init__(self, flags: Flags, module_name: str):
        self.flags = flags
        self.stem = f"module_{(number := next(_numbers)):04d}.{_file_name(module_name)}"
        limit = flags.xla_dump_max_hlo_modules
        self.enabled = (
            flags.xla_enable_dumping
            and bool(flags.xla_dump_to or flags.xla_dump_hlo_as_text)
            and (limit < 0 or number < limit)
            and _matches(flags.xla_dump_hlo_module_re, module_name)
        )

    def dump(self, module: HloModule, stage: str) -> None:
        """Write `<folder>/<stem>.<stage>.txt`, or to stdout when there is no folder."""
        if not self.enabled:
            return
        flags = self.flags
        metadata = flags.xla_dump_hlo_as_long_text and not flags.xla_dump_disable_metadata
        options = dataclasses.replace(PrintOptions(), print_metadata=metadata)
        self.write(f"{self.stem}.{stage}.txt", to_text(module, options))

    def write(self, name: str, text: str) -> None:
        if not self.enabled:
            return
        if self.flags.xla_dump_to in ("", "-"):
            sys.stdout.write(f"*** Begin {name} ***\n{text.rstrip()}\n*** End {name} ***\n")
            return
        folder = Path(self.flags.xla_dump_to)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        except OSError as error:
            raise InvalidArgumentError(f"xla_dump_to={str(folder)!r}: {error}") from None


def _matches(pattern: str, name: str) -> bool:
    if not pattern:
        return True
    try:
        return re.search(pattern, name) is not None
    except re.error as error:
        raise InvalidArgumentError(f"xla_dump_hlo_module_re={pattern!r}: {error}") from None


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.+-]", "_", name)[:200] or "unnamed"
