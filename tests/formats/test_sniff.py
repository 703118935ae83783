"""The format of a program is told by its content, and every door takes every format."""

import gzip
import random
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jaxlib import _jax

import haloc
from haloc import verifier
from haloc.cli.main import main
from haloc.errors import HloError, HloParseError, InvalidArgumentError
from haloc.formats.hlo_proto import serialize_hlo_module
from haloc.formats.hlo_proto.containers import HloModuleProtoWithConfig, HloProto, HloSnapshot
from haloc.formats.hlo_text import parse_module, to_text
from haloc.formats.sniff import Format, detect_format, load_module
from haloc.interpreter import run
from haloc.xla_client import make_cpu_client

HLO = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  p = f32[4] multiply(x, y)
  ROOT r = f32[4] add(p, x)
}
"""


def f(x, y):
    return x * y + x


def every_format() -> dict[Format, bytes]:
    x = jax.ShapeDtypeStruct((4,), jnp.float32)
    module = jax.jit(f).lower(x, x).compiler_ir("stablehlo")
    hlo = parse_module(HLO)
    return {
        Format.HLO_TEXT: HLO.encode(),
        Format.HLO_MODULE_PROTO: serialize_hlo_module(hlo),
        Format.HLO_PROTO: HloProto(hlo).serialize(),
        Format.HLO_SNAPSHOT: HloSnapshot(HloProto(hlo)).serialize(),
        Format.HLO_MODULE_WITH_CONFIG: HloModuleProtoWithConfig(hlo).serialize(),
        Format.STABLEHLO_TEXT: str(module).encode(),
        Format.STABLEHLO_BYTECODE: _jax.mlir.serialize_portable_artifact(module, "1.0.0"),
        Format.JAX_EXPORT: bytes(export.export(jax.jit(f))(x, x).serialize()),
    }


PROGRAMS = every_format()
FORMATS = list(PROGRAMS)


def test_every_format_is_there():
    assert {*FORMATS, Format.GZIP, Format.UNKNOWN} == set(Format)


@pytest.mark.parametrize("format", FORMATS, ids=lambda f: f.name)
class TestEach:
    def check(self, module):
        verifier.verify(module)
        x, y = np.arange(4, dtype=np.float32), np.full(4, 2, np.float32)
        np.testing.assert_array_equal(run(module, [x, y]), f(x, y))

    def test_detect(self, format):
        assert detect_format(PROGRAMS[format]) is format

    def test_load_bytes(self, format):
        self.check(haloc.load(PROGRAMS[format]))

    def test_load_file(self, format, tmp_path):
        path = tmp_path / "no_hint_in_the_name"
        path.write_bytes(PROGRAMS[format])
        self.check(haloc.load(path))
        self.check(haloc.load(str(path)))

    def test_gzip(self, format):
        data = gzip.compress(PROGRAMS[format])
        assert detect_format(data) is Format.GZIP
        self.check(haloc.load(data))

    def test_compile(self, format):
        client = make_cpu_client()
        executable = client.compile_and_load(PROGRAMS[format], client.devices())
        x = client.buffer_from_pyval(np.arange(4, dtype=np.float32))
        (result,) = executable.execute([x, x])
        np.testing.assert_array_equal(np.asarray(result), [0, 2, 6, 12])

    def test_command(self, format, tmp_path, capsys):
        path = tmp_path / "program"
        path.write_bytes(PROGRAMS[format])
        assert main(["run", str(path), "--random", "--check"]) == 0
        assert "check output 0: ok" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (HLO, Format.HLO_TEXT),
        ("\ufeff" + HLO, Format.HLO_TEXT),
        ("// module @m {\n" + HLO, Format.HLO_TEXT),
        ("/* stablehlo.add */ ENTRY e {}", Format.HLO_TEXT),
        ("%add (x: f32[]) -> f32[] {}", Format.HLO_TEXT),
        ('module (x: f32[]) -> f32[] {\n  ROOT x = f32[] parameter(0)\n}', Format.STABLEHLO_TEXT),
        ("module @m {}", Format.STABLEHLO_TEXT),
        ("module {}", Format.STABLEHLO_TEXT),
        ("module attributes {a = 1 : i32} {}", Format.STABLEHLO_TEXT),
        ("// HloModule\nfunc.func @main() {}", Format.STABLEHLO_TEXT),
        ('#loc = loc("x")\nmodule @m {}', Format.STABLEHLO_TEXT),
        ('"builtin.module"() ({}) : () -> ()', Format.STABLEHLO_TEXT),
        ("hello", Format.HLO_TEXT),
        ("", Format.HLO_TEXT),
    ],
)  # fmt: skip
def test_text(text, format):
    assert detect_format(text) is format
    assert detect_format(text.encode()) is format


def test_symbolic_sizes_need_arguments():
    x = jax.ShapeDtypeStruct(export.symbolic_shape("b"), jnp.float32)
    data = bytes(export.export(jax.jit(f))(x, x).serialize())
    with pytest.raises(InvalidArgumentError, match=r"symbolic sizes \(f32\[b\], f32\[b\]\)"):
        haloc.load(data)


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"", InvalidArgumentError, "the program is empty; expected HLO text, HloModuleProto, "),
        (b" \n", InvalidArgumentError, "the program is empty"),
        (b"\0\1\2", InvalidArgumentError, "<string>: data of an unknown format, 3 bytes beginning"),
        (b"HloModule \xff", HloParseError, "<string>: byte 10 of the text is no UTF-8"),
        (gzip.compress(HLO.encode())[:-9], HloParseError, "gzip data that does not decompress"),
        (gzip.compress(gzip.compress(b"x")), InvalidArgumentError, "unknown format"),
        (b"ML\xefR", HloParseError, "MLIR bytecode, byte 4, header: found its end, expected the"),
    ],
)
def test_not_a_program(data, kind, message):
    with pytest.raises(kind) as caught:
        load_module(data)
    assert message in caught.value.message


@pytest.mark.parametrize("count", [1000, pytest.param(50_000, marks=pytest.mark.nightly)])
def test_mutations_of_every_format(count):
    """Damaged programs of any format end with an HloError or a module."""
    rng = random.Random(count)
    inputs = list(PROGRAMS.values())
    for number in range(count):
        data = bytearray(rng.choice(inputs))
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            load_module(bytes(data))
        except HloError as error:
            assert error.code != "INTERNAL", (number, bytes(data))
        except Exception as error:
            error.add_note(f"mutation {number}: {data.hex()}")
            raise


def test_import_stays_light():
    """`import haloc` loads no reader, and not even NumPy."""
    code = "import sys, haloc; print(any(m in sys.modules for m in ('numpy', 'haloc.formats')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_text_round_trip():
    module = haloc.load(PROGRAMS[Format.STABLEHLO_BYTECODE])
    assert to_text(parse_module(to_text(module))) == to_text(module)
