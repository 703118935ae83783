"""Writes the generated pages: docs/ops.md from the op table, docs/flags.md from the flags,
docs/api.md from the stubs of what xla_client's documents describe.

python scripts/write_docs.py [--check]

--check writes nothing and fails when a page is out of date.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.api.documented_names import Name, documented_names  # noqa: E402

import haloc.flags  # noqa: E402 (the path comes first)
import haloc.ops  # noqa: E402 (fills the table)
from haloc.flags import FLAGS  # noqa: E402
from haloc.ops.table import OPS, REQUIRED, Effect, Expand, Indexed, OpDef, Structure  # noqa: E402

OPS_HEAD = """# The ops

Written by `scripts/docs` from the op table; do not edit.

All {total} opcodes of XLA run. Each row gives the operands (`*`: any number), the
attributes (`=` and the default where there is one), how the op runs natively, and what marks it:
commutes, stateful, side effect. What a row means is defined by its `evaluate` in `src/haloc/ops`.

| opcode | operands | attributes | native form | marks |
|---|---|---|---|---|
"""

FLAGS_HEAD = """# The flags

Written by `scripts/docs` from `src/haloc/flags.py`; do not edit.

{about}

| flag | default | meaning | acts in |
|---|---|---|---|
"""

API_HEAD = """# The documented API

Written by `scripts/docs` from `tests/api/documented`; do not edit.

What the documents of `jaxlib.xla_client` and `jax.lib.xla_bridge` describe: the signature they
give, haloc's where it differs (types left out), and a test that uses the name. Every documented way
to call something works here; where jaxlib 0.7.1 itself differs from its documents, its way works,
too. Behaviour is compared with the answers that jaxlib 0.7.1 gave: `tests/api`.
"""

API_COLUMNS = "| name | documented | here | test |\n|---|---|---|---|\n"


def ops_page() -> str:
    rows = sorted(OPS.values(), key=lambda r: r.opcode)
    return "".join([OPS_HEAD.format(total=len(OPS)), *map(_op_line, rows)])


def _op_line(row: OpDef) -> str:
    attributes = ", ".join(
        a.name if a.default is REQUIRED else f"{a.name}={_default(a.default)}" for a in row.attrs
    )
    marks = ["commutes"] if row.commutative else []
    marks += [row.effect.value] if row.effect is not Effect.PURE else []
    operands = ", ".join(row.operands).replace("*", r"\*")
    return f"| {row.opcode} | {operands} | {attributes} | {_native(row)} | {', '.join(marks)} |\n"


def _default(value: object) -> str:
    if value in ((), None, ""):
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _native(row: OpDef) -> str:
    lower = row.lower
    if isinstance(lower, Structure):
        return lower.value
    if isinstance(lower, Expand):
        return "expanded into other ops"
    if isinstance(lower, Indexed):
        return "indexed, a remap" if lower.is_remap else "indexed"
    return "elementwise"


def flags_page() -> str:
    about = inspect.cleandoc(haloc.flags.__doc__ or "").partition("\n\n")[2]
    about = about.replace(":\n    ", ":\n\n    ")  # Markdown wants a blank line before the ladder
    lines = [FLAGS_HEAD.format(about=about)]
    for name, field in FLAGS.items():
        spelling = f"--{name}" if name.startswith("xla_") else f"HALOC_{name.upper()}"
        default = repr(field.default) if isinstance(field.default, str) else field.default
        help, owner = field.metadata["help"], field.metadata["owner"]
        lines.append(f"| `{spelling}` | {default} | {help} | {owner} |\n")
    return "".join(lines)


def api_page() -> str:
    lines = [API_HEAD]
    heading = ("", "")
    for name in documented_names():
        parent = name.path.partition(".")[0]
        own = parent if parent[0].isupper() else "Functions"
        if (name.module, own) != heading:
            heading = (name.module, own)
            lines.append(f"\n## haloc{name.module}: {own}\n\n{API_COLUMNS}")
        lines.append(_api_line(name))
    return "".join(lines)


def _api_line(name: Name) -> str:
    here = f"UnimplementedError: {name.later}" if name.later else name.text_here()
    here = "" if here == "same" else f"`{here}`"
    documented = name.documented.replace("|", r"\|")
    return f"| {name.path} | `{documented}` | {here} | {name.used_in()} |\n"


PAGES = {"ops.md": ops_page, "flags.md": flags_page, "api.md": api_page}


def main(arguments: list[str]) -> int:
    stale = []
    for name, make in PAGES.items():
        path, text = ROOT / "docs" / name, make()
        if "--check" not in arguments:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(name)
    if stale:
        print(f"out of date: {', '.join(stale)}; run scripts/docs", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
