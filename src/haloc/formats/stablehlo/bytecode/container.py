"""The outside of an MLIR bytecode file: header, sections, and the tables they hold.

    "ML\\xefR" version producer\\0 section*
    section = id | aligned << 7, length, [alignment, 0xCB padding], data

Attributes and types are only located here; entries.py decodes one when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from haloc.formats.stablehlo.bytecode.cursor import ByteCursor

MAGIC = b"ML\xefR"
NEWEST_VERSION = 6

STRING, DIALECT, ATTR_TYPE, OFFSETS, IR, RESOURCE, RESOURCE_OFFSET, VERSIONS, PROPERTIES = range(9)
SECTION_NAMES = (
    "string section",
    "dialect section",
    "attribute section",
    "attribute offset section",
    "IR section",
    "resource section",
    "resource offset section",
    "dialect version section",
    "property section",
)
_REQUIRED = (STRING, DIALECT, ATTR_TYPE, OFFSETS, IR)
_PADDING = 0xCB


@dataclass(slots=True)
class Entry:
    """Where one attribute or type stands in the attribute section."""

    dialect: str
    start: int
    size: int
    is_custom: bool
    """Encoded by its dialect; otherwise it is assembly text."""


@dataclass(slots=True)
class Container:
    version: int
    producer: str
    strings: list[bytes]
    op_names: list[str]
    attributes: list[Entry]
    types: list[Entry]
    entry_data: ByteCursor
    properties: list[ByteCursor]
    """One cursor per property blob; copy its start before reading."""
    ir: ByteCursor
    resources: list[bytes | None]
    """The blobs that dense_resource attributes name by number; None for other resources."""


def read_container(data: bytes) -> Container:
    """Split a bytecode file into its tables. HloParseError names the byte that is wrong."""
    file = ByteCursor(data, "header")
    if not data.startswith(MAGIC):
        file.expected("the bytes 4D 4C EF 52")
    file.pos = len(MAGIC)
    version = file.varint("the bytecode version")
    if version > NEWEST_VERSION:
        file.fail(f"bytecode version {version}, but haloc reads versions 0 to {NEWEST_VERSION}")
    end = data.find(b"\0", file.pos)
    if end < 0:
        file.expected("a producer name that ends in a zero byte")
    producer = data[file.pos : end].decode("utf-8", "replace")
    file.pos = end + 1

    sections: dict[int, ByteCursor] = {}
    while file.remaining:
        identifier, section = read_section(file)
        if identifier in sections:
            section.fail("the section comes twice", 0)
        sections[identifier] = section
    for identifier in _REQUIRED:
        if identifier not in sections:
            file.fail(f"the {SECTION_NAMES[identifier]} is missing")

    strings = _read_strings(sections[STRING])
    dialects, op_names = _read_dialects(sections[DIALECT], strings, version)
    attributes, types = _read_offsets(sections[OFFSETS], sections[ATTR_TYPE], dialects)
    return Container(
        version,
        producer,
        strings,
        op_names,
        attributes,
        types,
        sections[ATTR_TYPE],
        _read_properties(sections.get(PROPERTIES)),
        sections[IR],
        _read_resources(sections, strings),
    )


def read_section(outer: ByteCursor) -> tuple[int, ByteCursor]:
    """The next section of a file or of an op: its id and a cursor over its data."""
    start = outer.pos
    head = outer.byte("a section")
    identifier = head & 0x7F
    if identifier >= len(SECTION_NAMES):
        outer.fail(f"section id {identifier}, expected 0 to {len(SECTION_NAMES) - 1}", start)
    name = SECTION_NAMES[identifier]
    length = outer.varint(f"the length of the {name}")
    if head & 0x80:
        outer.varint("an alignment")
        while outer.remaining and outer.data[outer.pos] == _PADDING:
            outer.pos += 1
    return identifier, outer.sub(length, name)


def _read_strings(cursor: ByteCursor) -> list[bytes]:
    lengths = [cursor.varint("a string length") for _ in range(cursor.count("strings"))]
    strings = []
    for length in reversed(lengths):
        if not length:
            cursor.fail("a string of length 0, expected at least its zero byte")
        strings.append(cursor.take(length, "a string")[:-1])
    return strings


def _name(cursor: ByteCursor, strings: list[bytes], index: int, what: str) -> str:
    if index >= len(strings):
        cursor.fail(f"string {index} as {what}, but there are {len(strings)} strings")
    return strings[index].decode("utf-8", "replace")


def _read_dialects(
    cursor: ByteCursor, strings: list[bytes], version: int
) -> tuple[list[str], list[str]]:
    dialects = []
    for _ in range(cursor.count("dialects")):
        if version < 1:
            index, versioned = cursor.varint("a dialect name"), False
        else:
            index, versioned = cursor.flagged("a dialect name")
        dialects.append(_name(cursor, strings, index, "a dialect name"))
        if versioned:
            read_section(cursor)
    if version >= 4:
        cursor.varint("the number of ops")
    op_names = []
    while cursor.remaining:
        number = cursor.varint("a dialect number")
        if number >= len(dialects):
            cursor.fail(f"dialect {number}, but there are {len(dialects)} dialects")
        for _ in range(cursor.count("op names")):
            index = cursor.varint("an op name")
            index = index >> 1 if version >= 5 else index
            op_names.append(f"{dialects[number]}.{_name(cursor, strings, index, 'an op name')}")
    return dialects, op_names


def _read_offsets(
    cursor: ByteCursor, data: ByteCursor, dialects: list[str]
) -> tuple[list[Entry], list[Entry]]:
    totals = [cursor.count("attributes"), cursor.count("types")]
    tables: list[list[Entry]] = []
    offset = 0
    for total in totals:
        entries: list[Entry] = []
        while len(entries) < total:
            number = cursor.varint("a dialect number")
            if number >= len(dialects):
                cursor.fail(f"dialect {number}, but there are {len(dialects)} dialects")
            group = cursor.count("entries")
            if not group or len(entries) + group > total:
                cursor.fail(f"a group of {group} entries where {total - len(entries)} are left")
            for _ in range(group):
                size, is_custom = cursor.flagged("an entry size")
                entries.append(Entry(dialects[number], offset, size, is_custom))
                offset += size
                if offset > len(data.data):
                    cursor.fail(f"entries beyond the {len(data.data)} bytes of attribute data")
        tables.append(entries)
    return tables[0], tables[1]


def _read_properties(cursor: ByteCursor | None) -> list[ByteCursor]:
    if cursor is None:
        return []
    found = []
    for _ in range(cursor.count("properties")):
        found.append(cursor.sub(cursor.varint("a property size"), "an op's properties"))
    return found


def _read_resources(sections: dict[int, ByteCursor], strings: list[bytes]) -> list[bytes | None]:
    """The resources of dialects; those of others (external ones) come first and are skipped."""
    offsets, data = sections.get(RESOURCE_OFFSET), sections.get(RESOURCE)
    if offsets is None or data is None:
        return []
    found: list[bytes | None] = []
    external = offsets.count("external resource groups")
    groups = 0
    while offsets.remaining:
        offsets.varint("a resource group key")
        groups += 1
        for _ in range(offsets.count("resources")):
            _name(offsets, strings, offsets.varint("a resource key"), "a resource key")
            size = offsets.varint("a resource size")
            is_blob = offsets.byte("a resource kind") == 0
            resource = data.sub(size, "a resource")
            if groups > external:
                found.append(_aligned_blob(resource) if is_blob and size else None)
    return found


def _aligned_blob(cursor: ByteCursor) -> bytes:
    cursor.varint("an alignment")
    length = cursor.varint("a length")
    # The data is aligned, with padding before it, and reaches the end.
    cursor.pos = max(cursor.pos, len(cursor.data) - length)
    return cursor.take(length, "a blob")
