"""Programs as facts for JSON and blocks of bytes, and back, in any process that may run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import lru_cache, partial
from typing import Any

import numpy as np

from haloc.cpu import pool
from haloc.cpu.collective.site import Site
from haloc.cpu.constants import aligned_block
from haloc.cpu.features import missing_features
from haloc.cpu.object.image import Image
from haloc.cpu.program import CpuProgram, ProgramFacts
from haloc.cpu.symbols import provider_of
from haloc.errors import FailedPreconditionError, InvalidArgumentError
from haloc.formats.hlo_proto import parse_hlo_module_proto, serialize_hlo_module
from haloc.formats.hlo_text.shapes import parse_shape
from haloc.ir.module import HloModule

Blocks = Mapping[str, bytes | memoryview]

_PLAIN = ("arena_bytes", "kernel_count", "uses_run", "cost_ns", "calls_host")
_PLAIN += ("num_partitions", "gang_bytes")


def to_parts(
    program: CpuProgram, *, only_code: bool = False
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """(facts, blocks): "code" and "constants"; unless it should be only code, "module" too, and
    "pool" if the program shares loops."""
    facts = program.facts
    described = {name: getattr(facts, name) for name in _PLAIN}
    described |= {
        "parameters": [str(s) for s in facts.parameters],
        "result": str(facts.result),
        "aliases": sorted(facts.aliases.items()),
        "features": list(facts.features),
        "sites": [asdict(site) for site in facts.sites],
    }
    blocks = {"code": program.image.to_bytes(), "constants": program.constants.tobytes()}
    if not only_code:
        blocks["module"] = serialize_hlo_module(program.optimized)
        if any(provider_of(symbol) == pool.__name__ for symbol, _ in program.image.imports):
            blocks["pool"] = pool.image().to_bytes()
    return described, blocks


def from_parts(
    described: Mapping[str, Any],
    blocks: Blocks,
    optimized: Callable[[], HloModule] | None = None,
) -> CpuProgram:
    """The program, loaded. optimized: makes its optimised module; the default is to read the block
    "module". FailedPreconditionError, saying what is missing, where it cannot run;
    InvalidArgumentError for parts that do not fit together."""
    try:
        facts = _facts(described)
        code, constants = blocks["code"], blocks["constants"]
        if optimized is None:
            optimized = partial(parse_hlo_module_proto, bytes(blocks["module"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"a stored program lacks a part: {error!r}") from None
    missing = missing_features(facts.features)
    if missing:
        raise FailedPreconditionError(
            f"the program is compiled for a CPU with {', '.join(missing)}, which this one has not"
        )
    if "pool" in blocks:
        pool.install(Image.from_bytes(bytes(blocks["pool"])))
    image = Image.from_bytes(bytes(code))
    return CpuProgram(facts, image, aligned_block(np.frombuffer(constants, np.uint8)), optimized)


def _facts(described: Mapping[str, Any]) -> ProgramFacts:
    given = {name: described[name] for name in _PLAIN}
    given |= {
        "parameters": tuple(_shape(text) for text in described["parameters"]),
        "result": _shape(described["result"]),
        "aliases": {int(r): int(p) for r, p in described["aliases"]},
        "features": tuple(described["features"]),
        "sites": tuple(_site(site) for site in described["sites"]),
    }
    assert given.keys() == {f.name for f in fields(ProgramFacts)}, given.keys()
    return ProgramFacts(**given)


_shape = lru_cache(maxsize=1024)(parse_shape)


def _site(described: Mapping[str, Any]) -> Site:
    given = dict(described)
    given["groups"] = tuple(map(tuple, described["groups"]))
    given |= {name: tuple(described[name]) for name in ("offsets", "sources")}
    return Site(**given)
