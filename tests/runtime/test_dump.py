"""xla_dump_to and the HALOC_DEBUG ladder."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

import haloc
from haloc.xla_client import Client, CompileOptions, make_cpu_client
from tests.runtime.programs import ADD


def dumping(**values: object) -> CompileOptions:
    options = CompileOptions()
    for name, value in values.items():
        setattr(options.executable_build_options.debug_options, name, value)
    return options


def names(folder: Path) -> set[str]:
    return {re.sub(r"module_\d{4}", "module_N", p.name) for p in folder.iterdir()}


def test_files_have_xlas_names(client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    client.compile_and_load(ADD, client.devices(), dumping(xla_dump_to=str(folder)))
    after = f"module_N.add_module.{client.platform}_after_optimizations"
    expected = {
        "module_N.add_module.before_optimizations.txt",
        f"{after}.txt",
        f"{after}-buffer-assignment.txt",
        "module_N.add_module.debug_options",
    }
    if client.platform == "cpu":
        expected.add("module_N.add_module.ir-no-opt.ll")
    assert names(folder) == expected
    for path in folder.glob("*_optimizations.txt"):
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
    assert len(re.findall(r"\*\*\* End module_.*_optimizations\.txt", out)) == 2


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
    assert len(list(tmp_path.glob("*_optimizations.txt"))) == 2


def test_protos_and_graphs(client: Client, tmp_path: Path) -> None:
    options = dumping(
        xla_dump_to=str(tmp_path), xla_dump_hlo_as_proto=True, xla_dump_hlo_as_dot=True
    )
    client.compile_and_load(ADD, client.devices(), options)
    found = names(tmp_path)
    for stage in ("before_optimizations", f"{client.platform}_after_optimizations"):
        assert f"module_N.add_module.{stage}.hlo.pb" in found
        assert f"module_N.add_module.{stage}.dot" in found
        assert f"module_N.add_module.{stage}.txt" not in found
    (proto,) = tmp_path.glob("*.before_optimizations.hlo.pb")
    executable = client.compile_and_load(proto.read_bytes(), client.devices())
    ones = client.buffer_from_pyval(np.ones(3, np.float32))
    assert np.asarray(executable.execute([ones, ones])[0]).tolist() == [2, 2, 2]
    (graph,) = tmp_path.glob("*.before_optimizations.dot")
    assert graph.read_text().startswith("digraph G {")


def test_compressed_protos(client: Client, tmp_path: Path) -> None:
    options = dumping(
        xla_dump_to=str(tmp_path), xla_dump_hlo_as_proto=True, xla_dump_compress_protos=True
    )
    client.compile_and_load(ADD, client.devices(), options)
    (proto,) = tmp_path.glob("*.before_optimizations.hlo.pb.gz")
    assert haloc.load(gzip.decompress(proto.read_bytes())).name == "add_module"


def test_protos_are_not_written_to_stdout(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.compile_and_load(ADD, client.devices(), dumping(xla_dump_hlo_as_proto=True))
    err = capsys.readouterr().err
    assert re.search(r"Refusing to write module_\d{4}\.add_module\.before_.*pb to stdout\.", err)


def test_after_each_pass(tmp_path: Path) -> None:
    client = make_cpu_client()
    options = dumping(xla_dump_to=str(tmp_path), xla_dump_hlo_pass_re="^fusion$|cse")
    client.compile_and_load(SQUARE_OF_SUM, client.devices(), options)
    assert "module_N.add_module.0000.cpu.after_fusion.before_row-fusion.txt" in names(tmp_path)
    none = tmp_path / "none"
    options = dumping(
        xla_dump_to=str(none), xla_dump_hlo_pass_re=".*", xla_dump_hlo_pipeline_re="gpu"
    )
    client.compile_and_load(SQUARE_OF_SUM, client.devices(), options)
    assert not [name for name in names(none) if "after_fusion" in name]


def test_what_is_dumped_says_what_is_allocated_and_asked(tmp_path: Path) -> None:
    client = make_cpu_client()
    client.compile_and_load(ADD, client.devices(), dumping(xla_dump_to=str(tmp_path)))
    (assignment,) = tmp_path.glob("*-buffer-assignment.txt")
    text = assignment.read_text()
    assert text.startswith(
        "BufferAssignment:\nallocation 0: size 12, parameter 0, shape |f32[3]{0}|:\n"
    )
    assert "size 12, output shape is |f32[3]{0}|, maybe-live-out:\n" in text
    (flags,) = tmp_path.glob("*.debug_options")
    assert flags.read_text() == f'xla_dump_to: "{tmp_path}"\n'


def test_only_some_passes() -> None:
    client = make_cpu_client()
    options = dumping(xla_enable_hlo_passes_only="cse,dce,layout-normalization")
    executable = client.compile_and_load(SQUARE_OF_SUM, client.devices(), options)
    assert "fusion(" not in executable.hlo_modules()[0].to_string()


FMA = """HloModule m
ENTRY e {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  z = f32[3] parameter(2)
  p = f32[3] multiply(x, y)
  ROOT s = f32[3] add(p, z)
}"""


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, ["fadd float", "fmul float"]),
        ({"xla_cpu_enable_fast_math": True}, ["fadd nsz contract float"]),
        (
            {"xla_cpu_enable_fast_math": True, "xla_cpu_fast_math_honor_nans": False},
            ["fadd nsz contract nnan float"],
        ),
        (
            {
                "xla_cpu_enable_fast_math": True,
                "xla_cpu_fast_math_honor_infs": False,
                "xla_cpu_fast_math_honor_division": False,
                "xla_cpu_fast_math_honor_functions": False,
            },
            ["fmul nsz contract ninf arcp afn float"],
        ),
    ],
)
def test_fast_math(tmp_path: Path, values: dict[str, object], expected: list[str]) -> None:
    client = make_cpu_client()
    options = dumping(xla_dump_to=str(tmp_path), **values)
    executable = client.compile_and_load(FMA, client.devices(), options)
    (text,) = tmp_path.glob("*.ir-no-opt.ll")
    for line in expected:
        assert line in re.sub(r"<\d+ x float>", "float", text.read_text())
    arrays = [client.buffer_from_pyval(np.float32([1, 2, 3])) for _ in range(3)]
    assert np.asarray(executable.execute(arrays)[0]).tolist() == [2, 6, 12]


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
