"""xla_dump_to and the HALOC_DEBUG ladder."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from haloc.xla_client import Client, CompileOptions, make_cpu_client
from tests.runtime.programs import ADD


def dumping(**values: object) -> CompileOptions:
    options = CompileOptions()
    for name, value in values.items():
        setattr(options.executable_build_options.debug_options, name, value)
    return options


def test_files_have_xlas_names(client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    client.compile_and_load(ADD, client.devices(), dumping(xla_dump_to=str(folder)))
    names = sorted(re.sub(r"module_\d{4}", "module_N", p.name) for p in folder.iterdir())
    assert names == [
        "module_N.add_module.before_optimizations.txt",
        f"module_N.add_module.{client.platform}_after_optimizations.txt",
    ]
    for path in folder.iterdir():
        text = path.read_text()
        assert text.startswith("HloModule add_module")
        client.compile_and_load(text, client.devices())


def test_without_a_folder_it_goes_to_stdout(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.compile_and_load(ADD, client.devices(), dumping(xla_dump_hlo_as_text=True))
    out = capsys.readouterr().out
    assert re.search(
        r"\*\*\* Begin module_\d{4}\.add_module\.before_optimizations\.txt \*\*\*", out
    )
    assert out.count("*** End module_") == 2


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"xla_enable_dumping": False},
        {"xla_dump_hlo_module_re": "other"},
        {"xla_dump_max_hlo_modules": 0},
    ],
)
def test_no_dump(client: Client, tmp_path: Path, values: dict[str, object]) -> None:
    folder = tmp_path / "dump"
    if values:
        values = {"xla_dump_to": str(folder)} | values
    client.compile_and_load(ADD, client.devices(), dumping(**values))
    assert not folder.exists()


def test_xla_flags_dump(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={tmp_path} --xla_dump_hlo_module_re=add")
    client.compile_and_load(ADD, client.devices())
    assert len(list(tmp_path.iterdir())) == 2


def test_debug_2_tells_one_line(
    client: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALOC_DEBUG", "2")
    client.compile_and_load(ADD, client.devices())
    err = capsys.readouterr().err
    assert re.fullmatch(
        r"haloc: compiled add_module: \d+ instructions in [\d.]+ s, .* of scratch\n", err
    )


def test_debug_4_shows_the_module_twice(
    client: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALOC_DEBUG", "4")
    client.compile_and_load(ADD, client.devices())
    assert capsys.readouterr().err.count("HloModule add_module") >= 2


SQUARE_OF_SUM = ADD.replace(
    "ROOT add = f32[3] add(x, y)", "s = f32[3] add(x, y)\n  ROOT m = f32[3] multiply(s, s)"
)


def test_disabled_passes_do_not_run() -> None:
    client = make_cpu_client()
    for disabled, has_fusion in (("", True), ("fusion", False), ("cse, fusion", False)):
        options = dumping(xla_disable_hlo_passes=disabled)
        executable = client.compile_and_load(SQUARE_OF_SUM, client.devices(), options)
        assert ("fusion(" in executable.hlo_modules()[0].to_string()) is has_fusion
        (result,) = executable.execute([client.buffer_from_pyval(np.ones(3, np.float32))] * 2)
        assert np.asarray(result).tolist() == [4, 4, 4]


def test_disabling_an_unknown_pass_is_warned_about() -> None:
    client = make_cpu_client()
    with pytest.warns(UserWarning, match="haloc has no pass 'frob'"):
        client.compile_and_load(ADD, client.devices(), dumping(xla_disable_hlo_passes="frob"))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_effort_level_gives_the_same(level: int) -> None:
    client = make_cpu_client()
    options = dumping(xla_backend_optimization_level=level)
    executable = client.compile_and_load(SQUARE_OF_SUM, client.devices(), options)
    (result,) = executable.execute([client.buffer_from_pyval(np.ones(3, np.float32))] * 2)
    assert np.asarray(result).tolist() == [4, 4, 4]


def test_debug_6_shows_passes_changes_and_llvm(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALOC_DEBUG", "6")
    client = make_cpu_client()
    client.compile_and_load(SQUARE_OF_SUM, client.devices())
    err = capsys.readouterr().err
    assert re.search(r"^fusion +[\d.]+ ", err, re.MULTILINE)
    assert re.search(r"^--- after fusion \(step \d+\) ---$", err, re.MULTILINE)
    assert re.search(r"^define .*void @", err, re.MULTILINE)
