"""The house's import order: a lower layer never imports a higher one."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "haloc"

LAYERS = [
    {"errors", "flags", "version"},
    {"ir"},
    {"ops"},
    {"verifier", "formats", "interpreter", "analysis"},
    {"passes", "spmd"},
    {"codegen"},
    {"cpu", "ffi", "gpu"},
    {"runtime"},
    {"distributed"},
    {"frontend", "lax", "numpy", "pjrt"},
    {"jax"},
    {"xla_client", "xla_bridge", "lib"},
    {"triage"},
    {"cli", "viewer"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


def imports(path: Path) -> set[str]:
    """Names of the haloc rooms a file imports, anywhere in it."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{a.name}" for a in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "haloc" and len(parts) > 1 and parts[1] in LEVEL:
                rooms.add(parts[1])
    return rooms


@pytest.mark.parametrize("room", sorted(LEVEL))
def test_room_imports_only_lower_layers(room):
    files = [*SOURCE.glob(f"{room}.py"), *(SOURCE / room).rglob("*.py")]
    for path in files:
        for other in imports(path) - {room}:
            assert LEVEL[other] <= LEVEL[room], f"{path} imports haloc.{other}, a higher layer"


def test_every_room_has_a_layer():
    rooms = {p.stem for p in SOURCE.iterdir() if not p.name.startswith("__")}
    assert rooms <= set(LEVEL), rooms - set(LEVEL)
