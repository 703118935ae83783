"""`haloc convert`: every format out, by --to or suffix; errors."""

import sys

import numpy as np
import pytest

from haloc import interpreter
from haloc.cli.convert import FORMATS, run
from haloc.cli.main import main
from haloc.formats.dot import to_dot
from haloc.formats.hlo_text import parse_module
from haloc.formats.sniff import Format, detect_format, load_module

SOURCE = """
HloModule m

ENTRY e {
  x = f32[2] parameter(0)
  ROOT y = f32[2] tanh(x), metadata={op_name="jit(f)/tanh"}
}
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "p.hlo"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize(
    ("suffix", "format_"),
    [
        (".hlo", Format.HLO_TEXT),
        (".pb", Format.HLO_MODULE_PROTO),
        (".mlir", Format.STABLEHLO_TEXT),
        (".mlirbc", Format.STABLEHLO_BYTECODE),
    ],
)
def test_suffixes(source, tmp_path, suffix, format_):
    out = tmp_path / f"q{suffix}"
    assert run([str(source), "-o", str(out)]) == 0
    data = out.read_bytes()
    assert detect_format(data) is format_
    x = np.array([0.0, 1.0], np.float32)
    np.testing.assert_array_equal(interpreter.run(load_module(data), [x]), np.tanh(x))
    # And back again.
    assert run([str(out), "--to", "hlo", "-o", str(tmp_path / "r.hlo")]) == 0
    assert "tanh(" in (tmp_path / "r.hlo").read_text()


def test_dot(source, tmp_path):
    assert run([str(source), "-o", str(tmp_path / "q.dot")]) == 0
    assert (tmp_path / "q.dot").read_text() == to_dot(parse_module(SOURCE))


@pytest.mark.parametrize("name", FORMATS)
def test_stdout(source, name, capfdbinary):
    assert run([str(source), "--to", name]) == 0
    assert capfdbinary.readouterr().out


def test_options(source, tmp_path, capsys):
    out = tmp_path / "q.mlir"
    assert run([str(source), "-o", str(out), "--locations"]) == 0
    assert 'loc("jit(f)/tanh")' in out.read_text()
    out = tmp_path / "q.bin"
    assert run([str(source), "-o", str(out), "--to", "bytecode", "--target", "1.9.0"]) == 0
    assert b"StableHLO_v1.9.0" in out.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say the format with --to: hlo, proto, stablehlo, bytecode, dot"),
        (["-o", "q.xyz"], "q.xyz: suffix .xyz says no format"),
        (["--to", "hlo", "--target", "1.0.0"], "--target is a version of StableHLO bytecode"),
        (["--to", "hlo", "--locations"], "--locations goes with StableHLO text"),
        (["--to", "bytecode", "--target", "9"], "'9' is no StableHLO version"),
    ],
)
def test_errors(source, arguments, message, capsys):
    assert main(["convert", str(source), *arguments]) == 1
    assert message in capsys.readouterr().err


def test_no_binary_on_a_terminal(source, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["convert", str(source), "--to", "proto"]) == 1
    assert "binary data for a terminal" in capsys.readouterr().err
