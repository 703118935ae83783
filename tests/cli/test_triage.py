"""`haloc diff-run`, `haloc reduce` and `haloc bisect`, as commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haloc.cli.main import main
from haloc.formats.hlo_text import parse_module
from haloc.triage.engine import Engine
from tests.triage.faults import PROGRAM, BrokenRule, broken_rule

Out = pytest.CaptureFixture[str]

A = """HloModule a
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] exponential(x)
  z = f32[4] tanh(y), metadata={source_file="f.py" source_line=4}
  ROOT w = f32[4] add(z, y)
}
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A, and A with another function in it."""
    a, b = tmp_path / "a.hlo", tmp_path / "b.hlo"
    a.write_text(A)
    b.write_text(A.replace("tanh", "sine"))
    return str(a), str(b)


@pytest.fixture
def big(tmp_path: Path) -> str:
    path = tmp_path / "big.hlo"
    path.write_text(PROGRAM)
    return str(path)


class TestDiffRun:
    def test_one_program_in_two_ways(self, files: tuple[str, str], capsys: Out) -> None:
        assert main(["diff-run", files[0], "--random"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[:2] == [f"A: {files[0]}, native", f"B: {files[0]}, interpreter"]
        assert lines[3].startswith("ok  output 0  float32[4]")

    def test_two_programs_part_where_they_differ(self, files: tuple[str, str], capsys: Out) -> None:
        ways = ["--run-a", "passes:cse,dce", "--run-b", "interpreter"]
        assert main(["diff-run", *files, "--random", *ways]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == f"A: {files[0]}, passes:cse,dce"
        assert lines[3].startswith("DIFFERS  output 0")
        assert lines[4] == "first to differ, of values of common names:"
        assert lines[6].startswith("DIFFERS  z ")
        assert lines[7] == "A: %z = f32[4]{0} tanh(%y)  (f.py:4)"
        assert lines[8] == "B: %z = f32[4]{0} sine(%y)  (f.py:4)"

    def test_native_values_are_kept(self, files: tuple[str, str], capsys: Out) -> None:
        ways = ["--run-a", "native:O1,-fusion"]
        assert main(["diff-run", *files, "--random", *ways]) == 1
        printed = capsys.readouterr().out
        assert "(native code was compiled again, to keep every value)" in printed
        assert "DIFFERS  z " in printed

    def test_outputs_only(self, files: tuple[str, str], capsys: Out) -> None:
        assert main(["diff-run", *files, "--random", "--outputs-only"]) == 1
        assert "first to differ" not in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("way", "message"),
        [
            ("gpu", "no way to run 'gpu'; there are: native, interpreter, passes"),
            ("passes:nopass", "no pass named 'nopass'"),
            ("native:cse", "native takes no passes"),
            ("passes:O1", "passes takes no level"),
            ("interpreter:-cse", "interpreter takes no options"),
        ],
    )
    def test_wrong_ways(self, files: tuple[str, str], way: str, message: str, capsys: Out) -> None:
        assert main(["diff-run", files[0], "--random", "--run-a", way]) == 1
        assert message in capsys.readouterr().err

    def test_programs_that_do_not_fit(
        self, files: tuple[str, str], tmp_path: Path, capsys: Out
    ) -> None:
        other = tmp_path / "other.hlo"
        other.write_text(A.replace("f32[4]", "f32[5]"))
        assert main(["diff-run", files[0], str(other), "--random"]) == 1
        assert "different parameters: A f32[4]; B f32[5]" in capsys.readouterr().err
        other.write_text("ENTRY e { x = f32[4] parameter(0)  ROOT t = s32[4] convert(x)}")
        assert main(["diff-run", files[0], str(other), "--random"]) == 1
        assert "A gives float32[4], B gives int32[4]" in capsys.readouterr().err


class TestReduce:
    def test_by_a_command(self, big: str, tmp_path: Path, capsys: Out) -> None:
        out = tmp_path / "small.hlo"
        assert main(["reduce", big, "--test", "grep -q atan2(", "-o", str(out)]) == 0
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("haloc: the command exits with 0: 19 operations on ")
        assert " became 1 operation on 3 elements" in captured.err
        opcodes = [i.opcode for i in parse_module(out.read_text()).instructions()]
        assert opcodes.count("atan2") == 1 and len(opcodes) == 3

    def test_a_mismatch(
        self, big: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
    ) -> None:
        monkeypatch.setattr("haloc.cli.reduce.Mismatch", lambda engine: BrokenRule())
        out = tmp_path / "small.hlo"
        assert main(["reduce", big, "--mismatch", "-o", str(out), "--timeout", "5"]) == 0
        assert "haloc: mismatch: " in capsys.readouterr().err
        small = parse_module(out.read_text())
        inputs = tmp_path / "small.npz"
        leaves = dict(np.load(inputs)) if inputs.exists() else {}
        assert BrokenRule()(small, list(leaves.values())) == "mismatch"

    def test_nothing_to_reduce(self, big: str, capsys: Out) -> None:
        assert main(["reduce", big, "--crash", "--run", "passes"]) == 1
        assert "nothing is wrong with big: there is no fault to keep" in capsys.readouterr().err

    def test_a_fault_has_to_be_named(self, big: str, capsys: Out) -> None:
        assert main(["reduce", big]) == 2
        assert "one of the arguments --test --mismatch --crash" in capsys.readouterr().err


class TestBisect:
    def test_the_rule(self, big: str, capsys: Out) -> None:
        with broken_rule():
            assert main(["bisect", big]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("pass algebraic-simplifier breaks it: number ")
        assert lines[1].startswith("rule broken: rewrite ")
        assert lines[2:4] == ["--- before", "+++ after"]
        assert any(line.startswith("-") and " atan2(" in line for line in lines)
        assert any(line.startswith("+") and " subtract(" in line for line in lines)

    def test_by_a_command(self, big: str, capsys: Out) -> None:
        assert main(["bisect", big, "--test", "sh -c '! grep -q sine $0'"]) == 1
        assert "is right after all passes of pipeline cpu" in capsys.readouterr().out
        assert main(["bisect", big, "--test", "grep -q kLoop"]) == 0
        assert capsys.readouterr().out.startswith("pass fusion breaks it: number ")

    def test_nothing_is_wrong(self, big: str, capsys: Out) -> None:
        assert main(["bisect", big, "--mismatch"]) == 1
        assert capsys.readouterr().out.splitlines() == [
            "the program is right after all passes of pipeline cpu",
            "and so is native code",
        ]

    def test_code_generation_is_at_fault(
        self, files: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: Out
    ) -> None:
        right = Engine._run_native

        def wrong(*given: Any) -> list[np.ndarray]:
            return [r + 1 for r in right(*given)]

        monkeypatch.setattr(Engine, "_run_native", wrong)
        assert main(["bisect", files[0]]) == 0
        printed = capsys.readouterr().out
        assert "the fault is in code generation" in printed and "DIFFERS  output 0" in printed
        assert "first to differ when every value is kept:" in printed
