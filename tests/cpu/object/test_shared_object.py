"""Shared objects written from images load as any others do."""

import ctypes
import platform
import struct

import pytest

from haloc.codegen.target import host_target
from haloc.cpu.jit import compile_text
from haloc.cpu.object.atom import split
from haloc.cpu.object.elf import read_elf
from haloc.cpu.object.image import Image, link
from haloc.cpu.object.shared_object import shared_object

PROGRAM = """
declare i64 @strlen(ptr)
@word = constant [6 x i8] c"hello\\00", section ".rodata.word"
@place = constant ptr @word, section ".data.rel.ro.place"
@calls = global i64 40, section ".data.calls"

define i64 @length() section ".text.length" {
  %word = load ptr, ptr @place
  %size = call i64 @strlen(ptr %word)
  ret i64 %size
}

define i64 @count() section ".text.count" {
  %was = load i64, ptr @calls
  %now = add i64 %was, 1
  store i64 %now, ptr @calls
  ret i64 %now
}
"""


@pytest.mark.skipif(platform.system() != "Linux", reason="ELF is for Linux")
def test_code_constants_and_variables(tmp_path):
    atoms = split(read_elf(compile_text(PROGRAM, host_target(), 1)))
    image = link(atoms, ["length", "count"], platform.machine())
    file = tmp_path / "library.so"
    file.write_bytes(shared_object(image, "library.so"))
    library = ctypes.CDLL(str(file))
    assert library.length() == 5
    assert [library.count(), library.count()] == [41, 42]
    assert not hasattr(library, "calls")
    # Another copy has variables of its own.
    other = tmp_path / "other.so"
    other.write_bytes(shared_object(image, "other.so", ["libc.so.6"]))
    assert ctypes.CDLL(str(other)).count() == 41


@pytest.mark.parametrize(
    ("machine", "number", "symbolic", "relative", "page"),
    [("x86_64", 62, 1, 8, 4096), ("aarch64", 183, 257, 1027, 65536)],
)
def test_numbers_of_machines(machine, number, symbolic, relative, page):
    image = Image(
        machine,
        data=b"\xc3",
        size_bytes=2 * page,
        code_bytes=page,
        constant_bytes=page,
        code_size_bytes=1,
        exports={"f": 0},
        imports=(("puts", page),),
        rebases=((page + 8, 0),),
    )
    data = shared_object(image, "x.so")
    assert struct.unpack_from("<HH", data, 16) == (3, number)
    offset, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    segments = [struct.unpack_from("<IIQQQQQQ", data, offset + 56 * n) for n in range(count)]
    loads = [s for s in segments if s[0] == 1]
    assert [s[1] for s in loads] == [4, 5, 6]
    assert all(s[2] % page == s[3] % page and s[7] == page for s in loads)
    (dynamic,) = [s for s in segments if s[0] == 2]
    entries = dict(struct.iter_unpack("<QQ", data[dynamic[2] : dynamic[2] + dynamic[5]]))
    table = data[entries[7] : entries[7] + entries[8]]
    kinds = [info & 0xFFFFFFFF for _, info, _ in struct.iter_unpack("<QQq", table)]
    assert kinds == [symbolic, relative]
