"""What is wrong is said in full: bad.txt holds programs and, behind `---`, the whole message."""

from pathlib import Path

import pytest

from haloc import errors
from haloc.formats.stablehlo import parse_stablehlo


def cases() -> list[tuple[str, str, str, str]]:
    """(name, program, error class, message with its notes)."""
    found = []
    for part in (Path(__file__).parent / "bad.txt").read_text().split("=== ")[1:]:
        name, _, rest = part.partition("\n")
        program, _, outcome = rest.partition("\n--- ")
        kind, _, message = outcome.partition("\n")
        found.append((name, program + "\n", kind, message.rstrip("\n")))
    return found


CASES = cases()


def test_there_are_enough():
    assert len(CASES) >= 70


@pytest.mark.parametrize(("program", "kind", "message"), [c[1:] for c in CASES], ids=lambda c: None)
def test_message(program, kind, message):
    with pytest.raises(getattr(errors, kind)) as caught:
        parse_stablehlo(program, "bad.mlir")
    notes = getattr(caught.value, "__notes__", [])
    given = "\n".join([caught.value.message, *notes])
    assert [line.rstrip() for line in given.splitlines()] == message.splitlines()
    if kind == "HloParseError":
        assert f"bad.mlir:{caught.value.line}:{caught.value.column} " in given


LONG = {
    "types nested more than 100 deep": "tuple<" * 200,
    "a number has too many digits": f"tensor<{'9' * 5000}xf32>",
    "does not fit 64 bits": "tensor<9999999999999999999xf32>",
    "expected a type": "tensor<" + "4x" * 5000,
}


@pytest.mark.parametrize("message", LONG)
def test_long_types(message):
    with pytest.raises(errors.HloParseError, match="too many digits|" + message):
        parse_stablehlo(f"func.func @main(%a: {LONG[message]}) {{\n  return\n}}\n")


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ("stablehlo.custom_call @f() {a = " + "[" * 500, "", "attributes nested more than 100"),
        ('"stablehlo.case"(%i) ({' * 300, "", "regions nested more than 100"),
        ("stablehlo.constant dense<" + "[" * 500 + "]" * 500, "> : tensor<4xf32>", "200 deep"),
        ("return loc(" + "callsite(" * 500, "", "locations nested more than 100"),
    ],
)
def test_deep_nesting(start, end, message):
    text = f"func.func @main(%i: tensor<i32>) {{\n  {start}{end}\n  return\n}}\n"
    with pytest.raises(errors.HloParseError, match=message):
        parse_stablehlo(text)
