"""`haloc fmt`: canonical text out, options, --check, errors."""

import io
import sys

import pytest

from haloc.cli.fmt import run
from haloc.cli.main import main
from haloc.formats.hlo_proto import serialize_hlo_module
from haloc.formats.hlo_text import parse_module, to_text

SOURCE = (
    '// a program\nENTRY %e { %a = f32[2,8] parameter(0), metadata={op_name="é"}\n'
    "ROOT %b = f32[2,8] add(%a, f32[2,8] constant({...})) }\n"
)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "p.hlo"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_canonical_text_goes_to_stdout(source, capsys):
    assert run([str(source)]) == 0
    assert capsys.readouterr().out == to_text(parse_module(SOURCE))


def test_output_file_and_check(source, tmp_path, capsys):
    out = tmp_path / "q.hlo"
    assert run([str(source), "-o", str(out)]) == 0
    assert run([str(out), "--check"]) == 0
    assert capsys.readouterr().out == ""
    assert run([str(source), "--check"]) == 1
    assert "p.hlo: not in canonical form" in capsys.readouterr().err
    assert source.read_text(encoding="utf-8") == SOURCE


def test_stdin(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SOURCE.encode())))
    assert run(["-"]) == 0
    assert capsys.readouterr().out == to_text(parse_module(SOURCE))


@pytest.mark.parametrize(
    ("option", "there", "gone"),
    [
        ("--no-metadata", "{1,0} parameter", "op_name"),
        ("--short", "constant({...})", "{1,0} parameter"),
        ("--percent", "ROOT %b", "ROOT b"),
    ],
)
def test_options(source, capsys, option, there, gone):
    assert run([str(source), option]) == 0
    text = capsys.readouterr().out
    assert there in text
    assert gone not in text
    assert parse_module(text).entry.root.name == "b"


def test_an_error_names_the_file(tmp_path, capsys):
    path = tmp_path / "bad.hlo"
    path.write_text("ENTRY e {\n  ROOT a = f32[2] negatee()\n}\n")
    assert main(["fmt", str(path)]) == 1
    assert capsys.readouterr().err == (
        "haloc: INVALID_ARGUMENT: unknown opcode 'negatee'; did you mean 'negate'?\n"
        f"  {path}:2:19     ROOT a = f32[2] negatee()\n"
        + " " * (len(f"  {path}:2:19   ") + 18)
        + "^^^^^^^\n"
    )


def test_a_missing_file_is_an_error(tmp_path, capsys):
    assert main(["fmt", str(tmp_path / "none.hlo")]) == 1
    assert "none.hlo" in capsys.readouterr().err


def test_other_formats_are_printed_as_hlo_text(tmp_path, capsys):
    text = "HloModule m\n\nENTRY e (x: f32[3]) -> f32[3] {\n  ROOT x = f32[3]{0} parameter(0)\n}\n"
    (tmp_path / "m.pb").write_bytes(serialize_hlo_module(parse_module(text)))
    assert run([str(tmp_path / "m.pb")]) == 0
    assert "ROOT x = f32[3]{0} parameter(0)" in capsys.readouterr().out
