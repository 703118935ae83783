"""Writes the generated pages: docs/ops.md from the op table, docs/flags.md from the flags.

python scripts/write_docs.py [--check]

--check writes nothing and fails when a page is out of date.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import haloc.flags  # noqa: E402 (the path comes first)
import haloc.ops  # noqa: E402 (fills the table)
from haloc.flags import FLAGS  # noqa: E402
from haloc.ops.table import OPS, REQUIRED, Effect, Expand, Indexed, OpDef, Structure  # noqa: E402

OPS_HEAD = """# The ops

Written by `scripts/docs` from the op table; do not edit.

{complete} of XLA's {total} opcodes run. Each row gives the operands (`*`: any number), the
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


def ops_page() -> str:
    complete = [row for row in OPS.values() if not row.missing]
    lines = [OPS_HEAD.format(complete=len(complete), total=len(OPS))]
    lines += [_op_line(row) for row in sorted(complete, key=lambda r: r.opcode)]
    missing = sorted((r for r in OPS.values() if r.missing), key=lambda r: r.opcode)
    if missing:
        lines.append("\n## Read and printed, not run yet\n\n| opcode | reason |\n|---|---|\n")
    lines += [f"| {row.opcode} | {row.missing} |\n" for row in missing]
    return "".join(lines)


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


PAGES = {"ops.md": ops_page, "flags.md": flags_page}


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
