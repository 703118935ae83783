"""Fuel and counters of rewrite rules: bisection by number, disabling by name."""

from __future__ import annotations

import re


class Fuel:
    """What rule-driven passes ask before they rewrite.

    limit: rewrites allowed in all; None for no limit. disabled: regular expression on whole rule
    names. hits: how often each rule fired since `start_pass`.
    """

    def __init__(self, limit: int | None = None, disabled: str = ""):
        self.left = limit
        self.hits: dict[str, int] = {}
        self._disabled = re.compile(disabled) if disabled else None

    def start_pass(self) -> None:
        self.hits = {}

    def allows(self, rule: str) -> bool:
        """Whether `rule` may fire now."""
        if self.left is not None and self.left <= 0:
            return False
        return not (self._disabled and self._disabled.fullmatch(rule))

    def burn(self, rule: str) -> None:
        """Record that `rule` fired."""
        self.hits[rule] = self.hits.get(rule, 0) + 1
        if self.left is not None:
            self.left -= 1
