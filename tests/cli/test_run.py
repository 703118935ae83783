"""`haloc run`, `haloc opt` and the command around them, in this process."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from haloc.cli.main import main
from haloc.ir.dtype import ARRAY_DTYPES, DType
from haloc.ir.shape import Shape
from haloc.triage.compare import compare
from haloc.triage.engine import random_array
from tests.runtime.programs import ADD, DONATE, LOOP

Out = pytest.CaptureFixture[str]


@pytest.fixture
def add(tmp_path: Path) -> str:
    path = tmp_path / "add.hlo"
    path.write_text(ADD)
    return str(path)


def stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


class TestRun:
    def test_with_inputs(self, add: str, tmp_path: Path, capsys: Out) -> None:
        x, y, out = tmp_path / "x.npy", tmp_path / "y.npy", tmp_path / "out.npz"
        np.save(x, np.array([1, 2, 3], np.float32))
        np.save(y, np.array([4, 5, 6], np.float32))
        assert main(["run", add, "-i", str(x), "-i", str(y), "-o", str(out), "--check"]) == 0
        printed = capsys.readouterr().out
        assert "output 0: float32[3] [5., 7., 9.]" in printed
        assert "check output 0: ok, max error 0" in printed
        assert np.load(out)["output0"].tolist() == [5, 7, 9]

    def test_one_npz_with_all_inputs(self, add: str, tmp_path: Path, capsys: Out) -> None:
        path = tmp_path / "both.npz"
        np.savez(path, x=np.ones(3, np.float32), y=np.ones(3, np.float32))
        assert main(["run", add, "-i", str(path)]) == 0
        assert "[2., 2., 2.]" in capsys.readouterr().out

    @pytest.mark.parametrize("backend", ["cpu", "interpreter"])
    def test_random_inputs_follow_the_seed(self, add: str, capsys: Out, backend: str) -> None:
        printed = []
        for seed in ("1", "1", "2"):
            assert main(["run", add, "--random", "--seed", seed, "--backend", backend]) == 0
            printed.append(capsys.readouterr().out.splitlines()[0])
        assert printed[0] == printed[1] != printed[2]

    def test_latencies(self, add: str, capsys: Out) -> None:
        assert main(["run", add, "--random", "--repeat", "5", "--quiet"]) == 0
        printed = capsys.readouterr().out
        assert re.fullmatch(
            r"compile \S+ m?s; run p50 \S+ us, p90 \S+ \S+, min \S+ us \(5 runs\)\n", printed
        )

    def test_a_program_that_takes_its_argument_over(
        self, monkeypatch: pytest.MonkeyPatch, capsys: Out
    ) -> None:
        stdin(monkeypatch, DONATE)
        assert main(["run", "-", "--random", "--repeat", "3", "--check"]) == 0
        assert capsys.readouterr().out.count(": ok") == 2

    def test_bf16_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
        path = tmp_path / "x.npy"
        np.save(path, np.array([1.5, 2], ml_dtypes.bfloat16))
        stdin(
            monkeypatch,
            "HloModule m\nENTRY e { x = bf16[2] parameter(0)\nROOT y = bf16[2] add(x, x) }",
        )
        assert main(["run", "-", "-i", str(path)]) == 0
        assert "output 0: bfloat16[2] [3, 4]" in capsys.readouterr().out

    def test_a_difference_is_reported(
        self, add: str, monkeypatch: pytest.MonkeyPatch, capsys: Out
    ) -> None:
        monkeypatch.setattr("haloc.triage.compare._distance", lambda got, wanted: 1.0)
        assert main(["run", add, "--random", "--check"]) == 1
        captured = capsys.readouterr()
        assert "check output 0: WRONG, max error 1" in captured.out
        assert captured.err == "haloc: the results differ from the interpreter's\n"

    def test_who_made_the_first_nan(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
    ) -> None:
        path = tmp_path / "x.npy"
        np.save(path, np.array([1, -1, 0], np.float32))
        text = (
            "ENTRY e { x = f32[3] parameter(0)  y = f32[3] log(x), metadata={source_file="
            '"f.py" source_line=7}  ROOT z = f32[3] tanh(y) }'
        )
        stdin(monkeypatch, text)
        assert main(["run", "-", "-i", str(path), "--check-nans"]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.splitlines() == [
            "haloc: OUT_OF_RANGE: log made a NaN: 1 of 3 elements, the first at [1]",
            "operand 0: %x = f32[3]{0} parameter(0)",
            "    -1 at [1]; at [0:3]: [1, -1, 0]",
            "evaluating %y = f32[3]{0} log(%x)  (f.py:7)",
        ]

    def test_no_nan(self, add: str, capsys: Out) -> None:
        assert main(["run", add, "--random", "--check-nans"]) == 0
        assert capsys.readouterr().out.startswith("check: no NaN made in 1 steps\n")
        assert main(["run", add, "--random", "--check-infs"]) == 0
        assert "no NaN and no infinity made" in capsys.readouterr().out

    def test_wrong_inputs(self, add: str, tmp_path: Path, capsys: Out) -> None:
        good, wrong, text = (str(tmp_path / n) for n in ("good.npy", "wrong.npy", "text.npy"))
        np.save(good, np.ones(3, np.float32))
        np.save(wrong, np.ones(3))
        Path(text).write_text("hello")
        for inputs, message in (
            ([good], "1 input array(s) given, but the program has 2 parameter(s): f32[3]{0}, f32"),
            ([good, wrong], "wrong.npy is float64[3], but parameter 1 is f32[3]{0}"),
            ([good, text], "text.npy is not an .npy or .npz file"),
            ([good, good + "x"], "good.npyx: No such file or directory"),
            ([], "give them with -i, or --random"),
        ):
            assert main(["run", add, *(a for name in inputs for a in ("-i", name))]) == 1
            assert message in capsys.readouterr().err
        assert main(["run", add, "--random", "-i", good]) == 1
        assert "give --random or -i, not both" in capsys.readouterr().err


class TestOpt:
    def test_a_pipeline(self, add: str, capsys: Out) -> None:
        assert main(["opt", add, "--pipeline", "cpu", "--short", "--time-passes"]) == 0
        captured = capsys.readouterr()
        assert captured.out.startswith("HloModule add_module")
        assert re.search(r"^dce +[\d.]+ ", captured.err, re.MULTILINE)

    def test_chosen_passes_show_their_changes(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Out
    ) -> None:
        dead = LOOP.replace("  zero = s32[]", "  dead = f32[] constant(1)\n  zero = s32[]")
        stdin(monkeypatch, dead)
        out = tmp_path / "out.hlo"
        assert (
            main(["opt", "-", "--passes", "cse,dce", "--print-after-change", "-o", str(out)]) == 0
        )
        titles = re.findall(r"^// --- (.*) ---$", capsys.readouterr().out, re.MULTILINE)
        assert titles[0] == "before all passes"
        assert titles[-1].startswith("after dce (step ")
        assert "dead" not in out.read_text()

    def test_disabled_passes_do_not_run(self, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
        stdin(
            monkeypatch,
            LOOP.replace("  zero = s32[]", "  dead = f32[] constant(1)\n  zero = s32[]"),
        )
        assert main(["opt", "-", "--passes", "dce", "--disable", "dce"]) == 0
        assert "dead" in capsys.readouterr().out

    def test_list(self, capsys: Out) -> None:
        assert main(["opt", "--list-passes"]) == 0
        printed = capsys.readouterr().out
        assert re.search(r"^dce +\S", printed, re.MULTILINE)
        assert re.search(r"^cpu +pipeline of", printed, re.MULTILINE)


class TestCommand:
    def test_version(self, capsys: Out) -> None:
        assert main(["--version"]) == 0
        assert re.fullmatch(r"haloc \d+\.\d+\.\d+\n", capsys.readouterr().out)

    def test_help(self, capsys: Out) -> None:
        assert main(["--help"]) == 0
        assert "haloc run" in capsys.readouterr().out
        assert main(["run", "--help"]) == 0
        assert "--repeat" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "usage: haloc COMMAND"),
            (["frob"], "haloc: no command 'frob'"),
            (["run"], "the following arguments are required: FILE"),
            (["run", "x", "--frob"], "unrecognized arguments: --frob"),
            (["run", "x", "--repeat", "0"], "'0' is not a positive number"),
            (["run", "x", "--backend", "tpu"], "invalid choice: 'tpu'"),
            (["opt", "x", "--pipeline", "no"], "invalid choice: 'no'"),
        ],
    )
    def test_wrong_use_is_exit_code_2(
        self, arguments: list[str], message: str, capsys: Out
    ) -> None:
        assert main(arguments) == 2
        captured = capsys.readouterr()
        assert message in captured.err + captured.out

    def test_an_error_is_one_message(self, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
        stdin(monkeypatch, ADD.replace("add(x", "addd(x"))
        assert main(["run", "-", "--random"]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("haloc: INVALID_ARGUMENT: unknown opcode 'addd'")
        assert "<stdin>:7:" in captured.err
        assert "Traceback" not in captured.err

    def test_with_its_traceback_when_debugging(
        self, monkeypatch: pytest.MonkeyPatch, capsys: Out
    ) -> None:
        monkeypatch.setenv("HALOC_DEBUG", "1")
        stdin(monkeypatch, "")
        assert main(["run", "-"]) == 1
        assert capsys.readouterr().err.startswith("Traceback")

    @pytest.mark.parametrize("command", ["run", "opt", "fmt"])
    def test_a_missing_file(self, command: str, capsys: Out) -> None:
        assert main([command, "/nowhere/x.hlo"]) == 1
        assert "/nowhere/x.hlo: No such file or directory" in capsys.readouterr().err

    def test_a_bug_says_that_it_is_one(
        self, add: str, monkeypatch: pytest.MonkeyPatch, capsys: Out
    ):
        def fail(*_: object) -> None:
            raise KeyError("x")

        monkeypatch.setattr("haloc.cli.files.random_array", fail)
        assert main(["run", add, "--random"]) == 1
        assert capsys.readouterr().err == (
            "haloc: KeyError: 'x'\nThis is a bug in haloc. HALOC_DEBUG=1 shows where.\n"
        )

    def test_an_interruption(self, add: str, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("haloc.cli.files.random_array", interrupt)
        assert main(["run", add, "--random"]) == 130
        assert capsys.readouterr().err == "haloc: interrupted\n"

    def test_as_a_module(self, add: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "haloc", "run", add, "--random", "--backend", "interpreter"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("output 0: float32[3] [")

    def test_a_closed_pipe_is_no_error(self, add: str) -> None:
        script = (
            "import os, sys\nfrom haloc.cli.main import main\nr, w = os.pipe()\nos.close(r)\n"
            f"os.dup2(w, 1)\nsys.exit(main(['opt', {add!r}, '--list-passes']))"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=str)
def test_random_arrays_are_of_their_type(dtype: DType) -> None:
    array = random_array(Shape(dtype, (5, 7)), np.random.default_rng(0))
    assert (array.dtype, array.shape) == (dtype.numpy, (5, 7))
    if not dtype.is_complex:
        assert np.isfinite(array.astype(np.float64)).all()
    assert len(np.unique(array.astype(np.complex128))) > 1


class TestCompare:
    @pytest.mark.parametrize(
        ("got", "wanted", "ok"),
        [
            ([1.0, np.nan], [1.0, np.nan], True),
            ([1.0, np.nan], [1.0, 2.0], False),
            ([1.0, np.inf], [1.0, np.inf], True),
            ([1.0, np.inf], [1.0, -np.inf], False),
            ([1.0, 1.00001], [1.0, 1.0], True),
            ([1.0, 1.001], [1.0, 1.0], False),
            ([], [], True),
        ],
    )
    def test_floats(self, got: list[float], wanted: list[float], ok: bool) -> None:
        assert compare(np.array(got, np.float32), np.array(wanted, np.float32)).ok is ok

    def test_integers_must_be_equal(self) -> None:
        big = np.array([2**63 + 1], np.uint64)
        difference = compare(big, big - np.uint64(1))
        assert (difference.ok, difference.max_error) == (False, 1.0)
        assert compare(np.array([True]), np.array([True])).ok
