"""haloc cache: ls, stat, gc, why."""

import re

import pytest

from haloc import xla_client
from haloc.cli.main import main

TEXT = """
HloModule doubled
ENTRY main {
  x = f32[4] parameter(0)
  ROOT y = f32[4] add(x, x)
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HALOC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HALOC_CACHE_BYTES", str(1 << 24))
    return tmp_path / "cache"


@pytest.fixture
def program(tmp_path):
    (tmp_path / "p.hlo").write_text(TEXT)
    return str(tmp_path / "p.hlo")


def compile_it(text=TEXT):
    client = xla_client.make_cpu_client()
    return client.compile_and_load(text, client.devices()[:1])


def test_ls_stat_gc(folder, capsys):
    assert main(["cache", "ls"]) == 0
    assert capsys.readouterr().out == ""
    compile_it()
    assert main(["cache", "ls"]) == 0
    assert "1 kernels  doubled" in capsys.readouterr().out
    assert main(["cache", "stat"]) == 0
    shown = capsys.readouterr().out
    assert str(folder) in shown
    assert "program   1 entries" in shown
    assert "unit      1 entries" in shown
    assert main(["cache", "gc", "--bytes", "0"]) == 0
    assert re.match(r"deleted [23] entries", capsys.readouterr().out)  # the pool may be one
    assert not [p for p in folder.rglob("*") if p.is_file() and p.name != "collected"]


def test_why(folder, program, capsys, monkeypatch):
    assert main(["cache", "why", program]) == 1
    assert "no program named doubled" in capsys.readouterr().out
    compile_it()
    assert main(["cache", "why", program]) == 0
    assert "doubled is in the cache" in capsys.readouterr().out
    monkeypatch.setenv("XLA_FLAGS", "--xla_disable_hlo_passes=dce")
    assert main(["cache", "why", program]) == 1
    shown = capsys.readouterr().out
    assert "compiled otherwise" in shown
    assert "flags: defaults, now xla_disable_hlo_passes=dce" in shown
    monkeypatch.delenv("XLA_FLAGS")
    with open(program, "a") as file:
        file.write("\n// more\n")
    assert main(["cache", "why", program]) == 1
    assert "1 program(s) named doubled, none equal" in capsys.readouterr().out


def test_without_a_cache(monkeypatch, capsys):
    monkeypatch.setenv("HALOC_CACHE_BYTES", "0")
    assert main(["cache", "ls"]) == 1
    assert "no compile cache" in capsys.readouterr().err
