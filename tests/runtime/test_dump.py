"""xla_dump_to and the HALOC_DEBUG ladder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from haloc.xla_client import Client, CompileOptions
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
