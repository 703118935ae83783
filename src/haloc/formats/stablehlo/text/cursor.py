"""A position in MLIR text: HLO text's cursor with MLIR's tokens, strings and aliases."""

from __future__ import annotations

import re

from haloc.formats.hlo_text.cursor import Cursor
from haloc.formats.stablehlo.mlir import Attribute, Location, MlirType

_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|[%@#!^]?[A-Za-z_][\w.$-]*|[%#!^]\d+|-?\d[\w.]*(?:[eE][+-]\d+)?|->|::|\S'
)
_STRING = re.compile(r'\s*"((?:[^"\\\n]|\\.)*)"')
_ESCAPE = re.compile(r"((?:\\[0-9A-Fa-f]{2})+)|\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_WORD = re.compile(r"\s*([A-Za-z_][\w$]*)")
_KEY = re.compile(r'\s*(?:([A-Za-z_][\w$.]*)|"((?:[^"\\\n]|\\.)*)")')
_INTEGER = re.compile(r"\s*(-?\d+)(?![\w.])")
_INTS = re.compile(r"\s*\[\s*((?:-?\d+\s*,\s*)*-?\d+)?\s*\]")
_SYMBOL = re.compile(r'\s*@(?:([A-Za-z_][\w$.-]*)|"((?:[^"\\\n]|\\.)*)")')
_ALIAS = re.compile(r"^([#!])([A-Za-z_][\w$.-]*|\d+)[ \t]*=[ \t]*", re.MULTILINE)

INT64_MAX = 2**63 - 1


class MlirCursor(Cursor):
    """attribute_aliases, type_aliases: where the text behind `#name =` and `!name =` begins.

    resolved: aliases that are read; alias_ends: where their text ends. types: tensor types
    already met, by their text.
    resources: the bytes behind dense_resource names.
    """

    __slots__ = (
        "alias_ends",
        "attribute_aliases",
        "resolved",
        "resolving",
        "resources",
        "type_aliases",
        "types",
    )

    def __init__(self, source: str, filename: str):
        super().__init__(source, filename)
        self.attribute_aliases: dict[str, int] = {}
        self.type_aliases: dict[str, int] = {}
        self.resolved: dict[str, Attribute | Location | MlirType | None] = {}
        self.alias_ends: dict[str, int] = {}
        self.resolving: set[str] = set()
        self.types: dict[str, MlirType] = {}
        self.resources: dict[str, bytes] = {}
        for found in _ALIAS.finditer(self.text):
            aliases = self.attribute_aliases if found[1] == "#" else self.type_aliases
            if found[2] in aliases:
                name = found[1] + found[2]
                self.fail_at(f"alias {name} is already defined", found.start(), found.end(2))
            aliases[found[2]] = found.end()

    def string(self) -> str:
        found = self.match(_STRING)
        if found is None:
            if self.peek('"'):
                self.fail("this string is not closed", -1)
            self.expected("a quoted string")
        return self.unescape(found[1], found.start(1))

    def unescape(self, text: str, start: int) -> str:
        if "\\" not in text:
            return text

        def one(found: re.Match[str]) -> str:
            if found[1]:  # hex pairs in a row are the bytes of UTF-8
                return bytes.fromhex(found[1].replace("\\", "")).decode(errors="replace")
            if found[2] in _ESCAPED:
                return _ESCAPED[found[2]]
            at = start + found.start()
            return self.fail_at(f"unknown escape {found[0]!r} in a string", at, at + 2)

        return _ESCAPE.sub(one, text)

    def word(self, what: str = "a word") -> str:
        found = self.match(_WORD)
        return found[1] if found else self.expected(what)

    def accept_word(self, word: str) -> bool:
        """Step over `word` if it comes next and is not the start of a longer one."""
        found = _WORD.match(self.text, self.pos)
        if found is None or found[1] != word:
            return False
        self.pos = found.end()
        return True

    def expect_word(self, word: str) -> None:
        if not self.accept_word(word):
            self.expected(repr(word))

    def key(self) -> str:
        """The name of an attribute: `a.b`, or a quoted string."""
        found = self.match(_KEY)
        if found is None:
            return self.expected("the name of an attribute")
        return found[1] or self.unescape(found[2], found.start(2))

    def symbol(self) -> str:
        """A symbol's name, without its `@`."""
        found = self.match(_SYMBOL)
        if found is None:
            return self.expected("a symbol such as @main")
        return found[1] or self.unescape(found[2], found.start(2))

    def integer(self) -> int:
        found = self.match(_INTEGER)
        return int(found[1]) if found else self.expected("an integer")

    def ints(self, what: str = "a list of integers such as [0, 1]") -> tuple[int, ...]:
        """`[1, 2]`; each within 64 bits."""
        found = self.match(_INTS)
        if found is None:
            return self.expected(what)
        values = tuple(map(int, found[1].split(","))) if found[1] else ()
        for value in values:
            if not -INT64_MAX - 1 <= value <= INT64_MAX:
                self.fail_at(f"{value} does not fit 64 bits", found.start(1), found.end(1))
        return values

    def found(self) -> tuple[str, int]:
        token = _TOKEN.match(self.text, self.skip())
        if token is None:
            return "end of text", self.pos
        word = token[0] if len(token[0]) <= 40 else token[0][:37] + "..."
        return repr(word), token.end()
