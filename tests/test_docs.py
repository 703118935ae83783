"""The generated pages are up to date, and the map has every folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_generated_pages_are_up_to_date():
    command = [sys.executable, "scripts/write_docs.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def folders(root: Path, depth: int) -> list[Path]:
    """Folders with Python in them, `depth` levels deep."""
    found = [p for p in root.iterdir() if p.is_dir() and next(p.glob("*.py"), None)]
    deeper = [f for p in found for f in folders(p, depth - 1)] if depth > 1 else []
    return [*found, *deeper]


def test_map_lists_every_folder():
    text = (ROOT / "docs" / "map.md").read_text()
    house = folders(ROOT / "src" / "haloc", 2)
    # Tests that only mirror the house need no line.
    mirrored = {p.name for p in house}
    rooms = [p for p in folders(ROOT / "tests", 1) if p.name not in mirrored]
    missing = [p for p in [*house, *rooms] if f"`{p.relative_to(ROOT)}`" not in text]
    assert not missing


def test_map_lists_nothing_else():
    text = (ROOT / "docs" / "map.md").read_text()
    named = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert named and all((ROOT / name).is_dir() for name in named)
