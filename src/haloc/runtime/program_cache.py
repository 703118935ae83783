"""Whole programs in the disk cache: what was compiled before is only loaded.

An entry's key is made of everything that decides the code, by name, so that `haloc cache why` can
say what has changed. The optimised module is not stored: who asks for it has the passes run again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np

import haloc
from haloc.cpu.disk_cache import DiskCache, Entry
from haloc.cpu.features import cpu_description
from haloc.cpu.program import CpuProgram
from haloc.cpu.stored_program import from_parts, to_parts
from haloc.cpu.symbols import CALL_SITE_PREFIX
from haloc.errors import HloError
from haloc.flags import FLAGS, Flags
from haloc.formats.hlo_proto import serialize_hlo_module
from haloc.ir.module import HloModule
from haloc.runtime.hlo_module import XlaHloModule
from haloc.runtime.serialization_format import pack, unpack
from haloc.runtime.xla_computation import XlaComputation
from haloc.version import VERSION

KIND = "program"

_NOT_CODE = frozenset({"progress", "num_threads", "pool_bytes", "cache_dir", "cache_bytes"})
"""Flags that change nothing about a program."""


@dataclass(frozen=True, slots=True)
class Found:
    """A program from the cache."""

    program: CpuProgram
    num_replicas: int
    num_partitions: int


class ProgramKey:
    """What decides a program: {"computation": ..., "options": ..., ...}, digests or versions."""

    def __init__(self, computation: Any, options_proto: bytes, flags: Flags):
        self.parts = {
            "computation": _digest(_computation_bytes(computation)),
            "compile options": _digest(options_proto),
            "flags": _flags_text(flags),
            "cpu": cpu_description(),
            "haloc": f"{VERSION} {_source_digest()}",
            "llvmlite": _version("llvmlite"),
            "numpy": np.__version__,
        }
        self.digest = _digest(json.dumps(self.parts).encode())


def find(cache: DiskCache, key: ProgramKey, optimized: Callable[[], HloModule]) -> Found | None:
    """The program stored under a key. optimized: makes its optimised module."""
    stored = cache.read(KIND, key.digest)
    if stored is None:
        return None
    try:
        manifest, blocks = unpack(stored)
        program = from_parts(manifest["program"], blocks, optimized)
        return Found(program, manifest["num_replicas"], manifest["program"]["num_partitions"])
    except (HloError, KeyError):  # of another haloc: compiled and written anew
        return None


def store(cache: DiskCache, key: ProgramKey, program: object, num_replicas: int, name: str) -> None:
    """Keep a program, unless it calls what only this process has."""
    if not isinstance(program, CpuProgram) or any(
        symbol.startswith(CALL_SITE_PREFIX) for symbol, _ in program.image.imports
    ):
        return
    facts, blocks = to_parts(program, only_code=True)
    manifest = {"program": facts, "num_replicas": num_replicas, "key": key.parts, "name": name}
    cache.write(KIND, key.digest, pack(manifest, blocks))


def described(cache: DiskCache) -> Iterator[tuple[Entry, dict[str, Any]]]:
    """The programs stored, each with its manifest."""
    for entry in cache.entries():
        if entry.kind == KIND:
            stored = cache.read(KIND, entry.key)
            if stored is not None:
                try:
                    yield entry, unpack(stored)[0]
                except HloError:
                    continue


def _computation_bytes(computation: Any) -> bytes:
    if isinstance(computation, str):
        return b"text\0" + computation.encode("utf-8", "surrogateescape")
    if isinstance(computation, bytes | bytearray | memoryview):
        return b"bytes\0" + bytes(computation)
    if isinstance(computation, XlaComputation):
        return b"proto\0" + computation.as_serialized_hlo_module_proto()
    module = computation.ir if isinstance(computation, XlaHloModule) else computation
    return b"module\0" + serialize_hlo_module(module)


def _flags_text(flags: Flags) -> str:
    """Those that are not as they are by default."""
    given = {
        f.name: getattr(flags, f.name)
        for f in fields(flags)
        if f.name not in _NOT_CODE and getattr(flags, f.name) != FLAGS[f.name].default
    }
    return json.dumps(given, sort_keys=True)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@cache
def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "none"


@cache
def _source_digest() -> str:
    """Of haloc's own source: who changes a pass gets programs compiled by it."""
    root = os.path.dirname(haloc.__file__)
    digest = hashlib.sha256()
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), "rb", buffering=0) as file:
                    digest.update(name.encode() + b"\0" + file.read() + b"\0")
    return digest.hexdigest()[:16]
