"""`haloc cache`: what the compile cache holds, how large it is, why a program is not in it."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from haloc.cpu.disk_cache import DiskCache
from haloc.errors import FailedPreconditionError
from haloc.flags import Flags
from haloc.runtime.compile_options import CompileOptions
from haloc.runtime.computation import read_computation
from haloc.runtime.program_cache import KIND, ProgramKey, described


def run(argv: Sequence[str]) -> int:
    """The exit code: 0 done, 1 when `why` is asked of a program that is not in the cache."""
    options = _parser().parse_args(argv)
    cache = DiskCache.of(Flags.from_environment())
    if cache is None:
        raise FailedPreconditionError("there is no compile cache: see HALOC_CACHE_BYTES and _DIR")
    return {"ls": _ls, "stat": _stat, "gc": _gc, "why": _why}[options.action](cache, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="haloc cache", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("ls", help="the programs, last used first")
    actions.add_parser("stat", help="where it is, how many entries and bytes, by kind")
    gc = actions.add_parser("gc", help="delete what was used longest ago")
    gc.add_argument(
        "--bytes", type=int, metavar="N", help="until N bytes are left (default: the limit)"
    )
    why = actions.add_parser("why", help="say why compiling a program would miss the cache")
    why.add_argument("file", metavar="FILE", help="a program; '-' for stdin")
    return parser


def _ls(cache: DiskCache, options: argparse.Namespace) -> int:
    found = sorted(described(cache), key=lambda pair: pair[0].used_at, reverse=True)
    for entry, manifest in found:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used_at))
        kernels = manifest["program"]["kernel_count"]
        print(
            f"{entry.key[:12]}  {used}  {entry.size_bytes:>10} bytes  "
            f"{kernels:>5} kernels  {manifest['name']}"
        )
    return 0


def _stat(cache: DiskCache, options: argparse.Namespace) -> int:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for entry in cache.entries():
        counts[entry.kind] += 1
        sizes[entry.kind] += entry.size_bytes
    print(f"folder    {cache.folder}\nlimit     {cache.limit_bytes} bytes")
    for kind in sorted(counts):
        print(f"{kind:9} {counts[kind]} entries, {sizes[kind]} bytes")
    print(f"total     {counts.total()} entries, {sizes.total()} bytes")
    return 0


def _gc(cache: DiskCache, options: argparse.Namespace) -> int:
    count, size_bytes = cache.collect(options.bytes)
    print(f"deleted {count} entries, {size_bytes} bytes")
    return 0


def _why(cache: DiskCache, options: argparse.Namespace) -> int:
    data = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    module = read_computation(data, "<stdin>" if options.file == "-" else options.file)
    forms: list[Any] = [data, module]  # as Client.compile may be given it, and as `haloc run` does
    with suppress(UnicodeDecodeError):
        forms.append(data.decode())
    options_proto = CompileOptions().SerializeAsString()
    keys = [ProgramKey(form, options_proto, Flags.from_environment()) for form in forms]
    if any(cache.read(KIND, key.digest) is not None for key in keys):
        print(f"{module.name} is in the cache")
        return 0
    same_name = 0
    misses: list[str] = []
    for entry, manifest in described(cache):
        same_name += manifest["name"] == module.name
        for key in keys:
            if manifest["key"].get("computation") == key.parts["computation"]:
                misses.append(_differences(entry.key, manifest["key"], key.parts))
    if misses:
        print(f"{module.name} is in the cache, but was compiled otherwise:")
        print("\n".join(misses))
    elif same_name:
        print(f"the cache has {same_name} program(s) named {module.name}, none equal to this one")
    else:
        print(f"the cache has no program named {module.name}")
    return 1


def _differences(entry: str, stored: dict[str, str], wanted: dict[str, str]) -> str:
    lines = [f"  {entry[:12]}:"]
    for name, now in wanted.items():
        before = stored.get(name, "")
        if before != now:
            lines.append(f"    {name}: {_short(before)}, now {_short(now)}")
    return "\n".join(lines)


def _short(text: str) -> str:
    """A digest by its beginning; flags without what they have in common are short already."""
    if text.startswith("{"):
        return ", ".join(f"{k}={v}" for k, v in json.loads(text).items()) or "defaults"
    return text if len(text) < 40 else text[:40] + "..."
