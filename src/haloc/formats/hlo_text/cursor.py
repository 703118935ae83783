"""A position in HLO text: matches patterns, skips blanks, and says what is wrong where.

There is no token list: each grammar rule is one compiled pattern tried at the position, so that a
line of HLO costs a handful of matches and no object per token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import NoReturn

from haloc.errors import HloParseError, InvalidArgumentError
from haloc.ops.quoting import unquote

DEPTH_LIMIT = 100
"""How deep tuple shapes and nested operand instructions may go."""

NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"

_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|//[^\n]*|/\*', re.DOTALL)
_SKIP = re.compile(r"\s*")
_TOKEN = re.compile(rf'"(?:[^"\\\n]|\\.)*"|%?{NAME}|-?[\d.]+(?:[eE][+-]?\d+)?\w*|->|<=|\S')
_NOT_NEWLINE = re.compile(r"[^\n]")
_INTEGER = re.compile(r"-?\d+(?![\w.])")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"', re.DOTALL)
_ATOM = re.compile(r'"(?:[^"\\]|\\.)*"|[^"{}()\[\],\n]+', re.DOTALL)
_NESTED = re.compile(r'"(?:[^"\\]|\\.)*"|[^"{}()\[\]]+', re.DOTALL)
_CLOSING = {"{": "}", "(": ")", "[": "]"}
_NAME = re.compile(rf"%?({NAME})")


def did_you_mean(wrong: str, known: Sequence[str]) -> str:
    """ "; did you mean 'negate'?", or nothing when no known word is near."""
    near = get_close_matches(wrong, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


class Cursor:
    """Where the parser stands in a text.

    text: the source with comments blanked out, so that positions stay those of the source.
    """

    __slots__ = ("depth", "filename", "pos", "source", "text")

    def __init__(self, source: str, filename: str):
        self.source = source
        self.filename = filename
        self.pos = 0
        self.depth = 0
        self.text = source
        if "/*" in source or "//" in source:
            self.text = _COMMENT.sub(self._blank, source)

    def _blank(self, found: re.Match[str]) -> str:
        text = found[0]
        if text[0] == '"':
            return text
        if text == "/*":
            self.fail_at("this comment is not closed, expected */", found.start(), found.end())
        return _NOT_NEWLINE.sub(" ", text)

    # --- Reading ---------------------------------------------------------------------------

    def skip(self) -> int:
        """Step over blanks; the position behind them."""
        self.pos = _SKIP.match(self.text, self.pos).end()  # type: ignore[union-attr]
        return self.pos

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.pos)
        if found is None:
            found = pattern.match(self.text, self.skip())
            if found is None:
                return None
        self.pos = found.end()
        return found

    def peek(self, token: str) -> bool:
        return self.text.startswith(token, self.skip())

    def accept(self, token: str) -> bool:
        text, pos = self.text, self.pos
        if not text.startswith(token, pos):
            pos = self.skip()
            if not text.startswith(token, pos):
                return False
        self.pos = pos + len(token)
        return True

    def expect(self, token: str) -> None:
        if not self.accept(token):
            self.expected(repr(token))

    def integer(self) -> int:
        found = self.match(_INTEGER)
        return int(found[0]) if found else self.expected("an integer")

    def name(self, what: str) -> str:
        """A name, without its `%`."""
        found = self.match(_NAME)
        return found[1] if found else self.expected(what)

    def string(self) -> str:
        found = self.match(_STRING)
        if found is None:
            if self.peek('"'):
                self.fail("this string is not closed", -1)
            self.expected("a quoted string")
        try:
            return unquote(found[1])
        except InvalidArgumentError as error:
            self.fail(error.message, len(found[0]))

    def balanced(self) -> str:
        """The text of a value: up to a comma, newline or closing bracket at its own level."""
        start = self.skip()
        while True:
            atom = _ATOM.match(self.text, self.pos)
            if atom:
                self.pos = atom.end()
            elif self.pos < len(self.text) and self.text[self.pos] in _CLOSING:
                self.group()
            else:
                break
        value = self.text[start : self.pos].rstrip()
        return value or self.expected("a value")

    def group(self) -> str:
        """A bracketed text with everything inside, strings included."""
        start = self.skip()
        text = self.text
        if start >= len(text) or text[start] not in _CLOSING:
            self.expected("'{'")
        open_at = [start]
        self.pos = start + 1
        while open_at:
            inner = _NESTED.match(text, self.pos)
            if inner:
                self.pos = inner.end()
                continue
            if self.pos >= len(text) or text[self.pos] == '"':
                self.pos = open_at[-1]
                self.fail(f"this {text[self.pos]!r} is not closed", -1)
            bracket = text[self.pos]
            if bracket in _CLOSING:
                open_at.append(self.pos)
            elif bracket == _CLOSING[text[open_at[-1]]]:
                open_at.pop()
            else:
                self.expected(f"{_CLOSING[text[open_at[-1]]]!r}")
            self.pos += 1
        return text[start : self.pos]

    @contextmanager
    def nested(self, what: str) -> Iterator[None]:
        """One level deeper in something that holds its own kind; not for ever, the stack ends."""
        if self.depth >= DEPTH_LIMIT:
            self.fail(f"{what} nested more than {DEPTH_LIMIT} deep")
        self.depth += 1
        yield
        self.depth -= 1

    # --- Faults ----------------------------------------------------------------------------

    def found(self) -> tuple[str, int]:
        """The next token and its end, for messages."""
        token = _TOKEN.match(self.text, self.skip())
        if token is None:
            return "end of text", self.pos
        word = token[0] if len(token[0]) <= 40 else token[0][:37] + "..."
        return repr(word), token.end()

    def expected(self, what: str) -> NoReturn:
        found, end = self.found()
        self.fail_at(f"found {found}, expected {what}", self.pos, end)

    def fail(self, message: str, width: int = 0) -> NoReturn:
        """HloParseError marking the next token, or the `width` characters just read; with a
        negative width, the character that comes next."""
        if width > 0:
            self.fail_at(message, self.pos - width, self.pos)
        elif width < 0:
            self.fail_at(message, self.pos, self.pos + 1)
        _, end = self.found()
        self.fail_at(message, self.pos, end)

    def fail_at(self, message: str, start: int, end: int = 0) -> NoReturn:
        """HloParseError: the message, then file:line:column with the source line, then a caret."""
        source = self.source
        # At the end of the text, point behind the last thing written.
        start = min(start, len(source.rstrip()))
        line_start = source.rfind("\n", 0, start) + 1
        line_end = source.find("\n", start)
        line_end = len(source) if line_end < 0 else line_end
        line, column = source.count("\n", 0, start) + 1, start - line_start + 1
        width = max(1, min(end, line_end) - start)
        text, mark = _window(source[line_start:line_end].expandtabs(1), column - 1, width)
        where = f"  {self.filename}:{line}:{column}   "
        caret = " " * (len(where) + mark) + "^" * width
        raise HloParseError(f"{message}\n{where}{text}\n{caret}", line, column)


def _window(line: str, column: int, width: int, limit: int = 160) -> tuple[str, int]:
    """The line, or of a very long line the part around `column`; and the column in it."""
    if len(line) <= limit:
        return line, column
    start = max(0, column - limit // 2)
    end = max(start + limit, column + width)
    return ("..." if start else "") + line[start:end], column - start + (3 if start else 0)
