"""The pool's native code: from the disk cache, or compiled."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Sequence

from haloc.cpu.disk_cache import DiskCache
from haloc.cpu.object.image import Image, link
from haloc.cpu.pool.native import pool_text
from haloc.errors import HloError
from haloc.flags import Flags

_DEFINE = re.compile(r"^define (?:internal )?([^\n]*?@([\w.]+)\([^{]*)\{$", re.M)


def stored_or_compiled(exports: Sequence[str]) -> Image:
    """The pool's image for any CPU of this machine's kind: it goes along with stored programs."""
    text = pool_text()
    what = "\n".join([platform.machine(), *exports, text])
    key = hashlib.sha256(what.encode()).hexdigest()
    cache = DiskCache.of(Flags.from_environment())
    stored = None if cache is None else cache.read("pool", key)
    if stored is not None:
        try:
            return Image.from_bytes(stored)
        except HloError:  # of another haloc: written anew below
            pass
    image = _compiled(text, exports)
    if cache is not None:
        cache.write("pool", key, image.to_bytes())
    return image


def _compiled(text: str, exports: Sequence[str]) -> Image:
    # LLVM only where it must be: stored programs run without it.
    from haloc.codegen.target import Target, host_target  # noqa: PLC0415
    from haloc.cpu.jit import compile_text  # noqa: PLC0415
    from haloc.cpu.object.atom import split  # noqa: PLC0415
    from haloc.cpu.object.elf import read_elf  # noqa: PLC0415

    triple = host_target().triple
    machine = triple.partition("-")[0]
    cpu = "x86-64" if machine == "x86_64" else "generic"
    # Linking takes functions by their sections.
    text = _DEFINE.sub(r'define hidden \1section ".text.\2" {', text)
    object_file = compile_text(text, Target(triple, cpu, frozenset(), 16), 2)
    return link(split(read_elf(object_file)), exports, machine)
