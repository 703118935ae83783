"""Compiled code kept on disk between processes: `{folder}/{kind}/{first two digits}/{key}`.

An entry's name is the SHA-256 of all that decides its content, so that nothing is ever out of date:
what is no longer asked for is the first to be deleted when there is no room. An entry is written
under another name and renamed, and begins with its content's checksum: processes may share a folder
without locks, and half-written or damaged entries count as missing and are written anew.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from haloc.flags import Flags

_CHECKSUM_BYTES = 32
_TOUCH_AFTER_S = 3600.0
_COLLECT_AFTER_S = 86400.0
_KEEP_OF_LIMIT = 0.9


@dataclass(frozen=True, slots=True)
class Entry:
    """kind: "program" or "unit". used_at: when it was last written or read, about (epoch)."""

    kind: str
    key: str
    path: Path
    size_bytes: int
    used_at: float


class DiskCache:
    """limit_bytes: what the folder is cut down to, now and then."""

    def __init__(self, folder: Path, limit_bytes: int):
        self.folder = folder
        self.limit_bytes = limit_bytes
        self._written_bytes = 0

    @staticmethod
    def of(flags: Flags) -> DiskCache | None:
        """The cache that HALOC_CACHE_DIR and HALOC_CACHE_BYTES name; None if there is none."""
        if flags.cache_bytes <= 0:
            return None
        return _opened(flags.cache_dir, flags.cache_bytes)

    def read(self, kind: str, key: str) -> bytes | None:
        """An entry's content, or None."""
        path = self._path(kind, key)
        try:
            with open(path, "rb") as file:
                data = file.read()
                if time.time() - os.fstat(file.fileno()).st_mtime > _TOUCH_AFTER_S:
                    os.utime(path)
        except OSError:
            return None
        content = data[_CHECKSUM_BYTES:]
        if hashlib.sha256(content).digest() != data[:_CHECKSUM_BYTES]:
            return None
        return content

    def write(self, kind: str, key: str, content: bytes) -> None:
        """Store an entry. A disk that is full or read-only is no error: nothing is stored."""
        if len(content) > self.limit_bytes // 8:
            return
        path = self._path(kind, key)
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".")
            try:
                with open(descriptor, "wb") as file:
                    file.write(hashlib.sha256(content).digest() + content)
                os.replace(name, path)
            except BaseException:
                os.unlink(name)
                raise
            self._written_bytes += len(content)
            self._collect_if_due()

    def entries(self) -> Iterator[Entry]:
        """Everything stored, in no order. Entries may go while one looks."""
        for path in self.folder.glob("*/??/*"):
            with suppress(OSError):
                status = path.stat()
                kind = path.parent.parent.name
                yield Entry(kind, path.name, path, status.st_size, status.st_mtime)

    def collect(self, limit_bytes: int | None = None) -> tuple[int, int]:
        """Delete what was used longest ago until the rest fits; (entries, bytes) deleted."""
        limit = self.limit_bytes if limit_bytes is None else limit_bytes
        found = sorted(self.entries(), key=lambda e: e.used_at)
        total = sum(e.size_bytes for e in found)
        count = size_bytes = 0
        if total > limit:
            for entry in found:
                if total - size_bytes <= limit * _KEEP_OF_LIMIT:
                    break
                with suppress(OSError):
                    entry.path.unlink()
                    count += 1
                    size_bytes += entry.size_bytes
        return count, size_bytes

    def _collect_if_due(self) -> None:
        """Once a day, and whenever this process has written a good part of the limit."""
        stamp = self.folder / "collected"
        is_due = self._written_bytes > self.limit_bytes // 16
        if not is_due and self._written_bytes:
            try:
                is_due = time.time() - stamp.stat().st_mtime > _COLLECT_AFTER_S
            except FileNotFoundError:
                is_due = True
        if is_due:
            self._written_bytes = 0
            stamp.touch()
            self.collect()

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / key[:2] / key


def default_folder() -> Path:
    """$XDG_CACHE_HOME/haloc, or ~/.cache/haloc."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "haloc"


@cache
def _opened(folder: str, limit_bytes: int) -> DiskCache | None:
    """The cache in a folder that only this user can write to: it holds code that will be run."""
    try:
        path = Path(folder).expanduser() if folder else default_folder()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
        if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            warnings.warn(
                f"the compile cache {path} is not used: others than this user can write to it",
                stacklevel=2,
            )
            return None
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        if folder:
            warnings.warn(f"HALOC_CACHE_DIR={folder}: {error}; not used", stacklevel=2)
        return None
    return DiskCache(path, limit_bytes)
