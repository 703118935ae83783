"""What limits a case, and what was tried: shown beside the ratios that fall short."""

from __future__ import annotations

import re

LIMITS: tuple[tuple[str, str], ...] = ()
"""(regular expression for "family: name", text); the first that matches counts."""


def limit_of(family: str, name: str) -> str | None:
    label = f"{family}: {name}"
    return next((text for pattern, text in LIMITS if re.search(pattern, label)), None)
