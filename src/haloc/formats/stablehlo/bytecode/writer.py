"""`MlirModule` to a portable artifact: MLIR bytecode whose ops are VHLO's of a chosen version."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from haloc.errors import UnimplementedError
from haloc.formats.stablehlo.bytecode.container import (
    ATTR_TYPE,
    DIALECT,
    IR,
    MAGIC,
    NEWEST_VERSION,
    OFFSETS,
    PROPERTIES,
    RESOURCE,
    RESOURCE_OFFSET,
    STRING,
)
from haloc.formats.stablehlo.bytecode.encode import Encoder, flagged, varint
from haloc.formats.stablehlo.bytecode.to_vhlo import properties, vhlo_name, without_chlo
from haloc.formats.stablehlo.bytecode.versions import (
    NEWEST,
    OLDEST,
    Version,
    check_target,
    needed,
    parse_version,
    version_text,
)
from haloc.formats.stablehlo.mlir import (
    MlirBlock,
    MlirModule,
    MlirOp,
    MlirRegion,
    MlirValue,
)

_ATTRIBUTES, _RESULTS, _OPERANDS, _REGIONS, _PROPERTIES = 1, 2, 4, 16, 64


def serialize_portable_artifact(module: MlirModule, target: str = "") -> bytes:
    """The module as a portable artifact of StableHLO version `target`, "1.0.0" to "1.17.0".

    target: "" for the oldest version that has all the module uses, which most readers read.
    Raises InvalidArgumentError for another target, UnimplementedError naming the op, attribute or
    type that the target does not have.
    """
    if target:
        version = parse_version(target)
        for op in _walk(module.operations):
            check_target(op, version)
    else:
        version = max(map(needed, _walk(module.operations)), default=OLDEST)
    assert OLDEST <= version <= NEWEST
    return _Writer(version).module(module)


def _walk(operations: Iterable[MlirOp]) -> Iterable[MlirOp]:
    for op in operations:
        yield op
        for region in op.regions:
            for block in region.blocks:
                yield from _walk(block.operations)


class _Writer:
    """values: the number of each value in scope; next: the first number that is free."""

    def __init__(self, version: Version):
        self.version = version
        self.encoder = Encoder()
        self.names: dict[str, int] = {}
        self.blobs: dict[bytes, int] = {}
        self.values: dict[MlirValue, int] = {}
        self.next = 0
        self._vhlo_names: dict[str, str] = {}

    # --- The file --------------------------------------------------------------------------

    def module(self, module: MlirModule) -> bytes:
        ir = self.top(module)
        dialects = self.dialects()
        offsets, entries = self.entries()
        sections = (
            (DIALECT, dialects),
            (OFFSETS, offsets),
            (ATTR_TYPE, entries),
            (IR, ir),
            (RESOURCE_OFFSET, varint(0)),
            (RESOURCE, b""),
            (STRING, self.strings()),
            (PROPERTIES, self.properties()),
        )
        producer = f"StableHLO_v{version_text(self.version)}".encode() + b"\0"
        head = MAGIC + varint(NEWEST_VERSION) + producer
        return head + b"".join([_section(number, data) for number, data in sections])

    def top(self, module: MlirModule) -> bytes:
        """The builtin.module, the one op of the outermost block."""
        encoder = self.encoder
        symbol = encoder.builtin(module.name) if module.name else 0
        blob = flagged(symbol, True) if module.name else varint(0)
        name = varint(self.name("builtin.module"))
        mask = _REGIONS | _PROPERTIES | (_ATTRIBUTES if module.attributes else 0)
        parts = [flagged(1, False), name, bytes((mask,)), self.location(module.location)]
        if module.attributes:
            parts.append(varint(encoder.builtin(module.attributes)))
        parts.append(varint(self.blob(blob + varint(0))))
        body = self.region(MlirRegion([MlirBlock([], module.operations)]))
        parts += [flagged(1, True), _section(IR, body)]
        return b"".join(parts)

    def dialects(self) -> bytes:
        """Dialects and the names of their ops; the numbers of ops count through all of them."""
        encoder = self.encoder
        names = ("builtin", "vhlo")
        parts = [varint(len(names)), *(flagged(encoder.string(n), False) for n in names)]
        parts.append(varint(len(self.names)))
        for dialect, group in groupby(self.names, key=lambda n: n.partition(".")[0]):
            words = [n.partition(".")[2] for n in group]
            parts += [varint(names.index(dialect)), varint(len(words))]
            parts += [flagged(encoder.string(w), True) for w in words]
        return b"".join(parts)

    def entries(self) -> tuple[bytes, bytes]:
        """Sizes of attributes and types, and their bytes."""
        tables = (list(self.encoder.attributes), list(self.encoder.types))
        parts = [varint(len(table)) for table in tables]
        data = []
        for table in tables:
            for dialect, group in groupby(table, key=lambda entry: entry[0]):
                listed = [entry[1] for entry in group]
                parts += [varint(("builtin", "vhlo").index(dialect)), varint(len(listed))]
                parts += [flagged(len(entry), True) for entry in listed]
                data += listed
        return b"".join(parts), b"".join(data)

    def strings(self) -> bytes:
        """Lengths last to first, each with its zero byte, then the strings."""
        strings = list(self.encoder.strings)
        lengths = [varint(len(s) + 1) for s in reversed(strings)]
        return varint(len(strings)) + b"".join(lengths) + b"".join([s + b"\0" for s in strings])

    def properties(self) -> bytes:
        listed = [varint(len(blob)) + blob for blob in self.blobs]
        return varint(len(listed)) + b"".join(listed)

    # --- Operations ------------------------------------------------------------------------

    def name(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))

    def blob(self, data: bytes) -> int:
        return self.blobs.setdefault(data, len(self.blobs))

    def location(self, location: Any) -> bytes:
        return varint(self.encoder.location(location))

    def region(self, region: MlirRegion) -> bytes:
        """Entering a region takes as many numbers as it defines values; leaving frees them."""
        if not region.blocks:
            return varint(0)
        (block,) = region.blocks
        start = self.next
        for value in block.arguments:
            self.values[value] = self.next
            self.next += 1
        for op in block.operations:
            for value in op.results:
                self.values[value] = self.next
                self.next += 1
        head = varint(1) + varint(self.next - start)
        parts = [head, flagged(len(block.operations), bool(block.arguments))]
        if block.arguments:
            parts.append(varint(len(block.arguments)))
            for value in block.arguments:
                parts += [flagged(self.encoder.type(value.type), True)]
                parts += [self.location(value.location)]
            parts.append(b"\0")  # no orders of uses
        parts += [self.op(op) for op in block.operations]
        self.next = start
        return b"".join(parts)

    def op(self, op: MlirOp) -> bytes:
        op = without_chlo(op)
        name = self._vhlo_names.get(op.name)
        if name is None:
            name = self._vhlo_names[op.name] = vhlo_name(op.name, self.version)
        encoder = self.encoder
        values, others = properties(op, name)
        mask = 0
        parts: list[bytes] = []
        if others:
            mask |= _ATTRIBUTES
            parts.append(varint(encoder.named(others)))
        if values:
            mask |= _PROPERTIES
            given = [varint(encoder.attribute(v)) for v in values]
            parts.append(varint(self.blob(b"".join(given))))
        if op.results:
            mask |= _RESULTS
            parts.append(varint(len(op.results)))
            parts += [varint(encoder.type(r.type)) for r in op.results]
        if op.operands:
            mask |= _OPERANDS
            parts.append(varint(len(op.operands)))
            parts += [varint(self.values[o]) for o in op.operands]
        if op.regions:
            mask |= _REGIONS
            parts.append(self.regions(op))
        head = varint(self.name(name)) + bytes((mask,)) + self.location(op.location)
        return head + b"".join(parts)

    def regions(self, op: MlirOp) -> bytes:
        """Those of a function see nothing outside: numbers start anew, in a section of its own."""
        if op.name != "func.func":
            return flagged(len(op.regions), False) + b"".join([self.region(r) for r in op.regions])
        if len(op.regions) != 1:
            raise UnimplementedError("a function without a body in bytecode")
        outer, self.next = self.next, 0
        body = self.region(op.regions[0])
        self.next = outer
        return flagged(1, True) + _section(IR, body)


def _section(number: int, data: bytes) -> bytes:
    return bytes((number,)) + varint(len(data)) + data
