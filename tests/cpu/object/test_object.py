"""Object files to running code: atoms, linking, loading."""

import ctypes
import gc
import json
import re
import struct
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from haloc.codegen.target import Target, host_target
from haloc.cpu.jit import compile_text
from haloc.cpu.object.atom import (
    Atom,
    Fixup,
    atoms_from_bytes,
    atoms_to_bytes,
    constant_atom,
    split,
)
from haloc.cpu.object.elf import read_elf
from haloc.cpu.object.image import Image, link
from haloc.cpu.object.loader import LoadedImage
from haloc.cpu.object.relocation import RULES
from haloc.cpu.symbols import resolve
from haloc.errors import FailedPreconditionError, InternalError, InvalidArgumentError

# Vectors (constants of several sizes), a table with addresses, a variable, calls in and out.
TEXT = """
@table = hidden constant [2 x ptr] [ptr @twice, ptr @thrice], section ".data.rel.ro.table"
@counter = hidden global i64 5, section ".variable.counter"
@given = external hidden constant [8 x i8]
@outside = external global i64

declare double @fmod(double, double)
declare i64 @outer(i64)

define hidden i64 @twice(i64 %x) nounwind section ".text.twice" {
  %y = mul i64 %x, 2
  ret i64 %y
}

define hidden i64 @thrice(i64 %x) nounwind section ".text.thrice" {
  %y = mul i64 %x, 3
  ret i64 %y
}

define hidden i64 @pick(i64 %k, i64 %x) nounwind section ".text.pick" {
  %p = getelementptr ptr, ptr @table, i64 %k
  %f = load ptr, ptr %p
  %y = call i64 %f(i64 %x)
  ret i64 %y
}

define hidden i64 @count() nounwind section ".text.count" {
  %n = atomicrmw add ptr @counter, i64 1 seq_cst
  ret i64 %n
}

define hidden void @vectors(ptr %p) nounwind section ".text.vectors" {
  %x = load <16 x float>, ptr %p, align 4
  %y = fmul <16 x float> %x, <float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0,
      float 7.0, float 8.0, float 9.0, float 10.0, float 11.0, float 12.0, float 13.0, float 14.0,
      float 15.0, float 16.0>
  %z = fadd <16 x float> %y, splat (float 0.5)
  store <16 x float> %z, ptr %p, align 4
  ret void
}

define hidden double @remainder(double %x) nounwind section ".text.remainder" {
  %y = call double @fmod(double %x, double 7.5)
  ret double %y
}

define hidden i64 @others(i64 %x) nounwind section ".text.others" {
  %a = call i64 @outer(i64 %x)
  %b = load i64, ptr @outside
  %c = load i64, ptr @given
  %d = add i64 %a, %b
  %e = add i64 %d, %c
  ret i64 %e
}
"""

OUTSIDE = ctypes.c_int64(1000)
OUTER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x + 100)
ADDRESSES = {
    "outside": ctypes.addressof(OUTSIDE),
    "outer": ctypes.cast(OUTER, ctypes.c_void_p).value,
}
FUNCTIONS = ("pick", "count", "vectors", "remainder", "others")


def known(symbol):
    return ADDRESSES.get(symbol) or resolve(symbol)


@pytest.fixture(scope="module")
def atoms():
    given = constant_atom("given", struct.pack("<q", 10_000))
    return split(read_elf(compile_text(TEXT, host_target(), 2))) | {"given": given}


@pytest.fixture(scope="module")
def image(atoms):
    return link(atoms, FUNCTIONS, host_target().triple.partition("-")[0])


def call(loaded, name, *arguments, result=ctypes.c_int64):
    types = [ctypes.c_double if isinstance(a, float) else ctypes.c_int64 for a in arguments]
    return ctypes.CFUNCTYPE(result, *types)(loaded.address(name))(*arguments)


def check(loaded):
    assert [call(loaded, "pick", k, 7) for k in (0, 1)] == [14, 21]
    assert call(loaded, "remainder", 17.0, result=ctypes.c_double) == 2.0
    assert call(loaded, "others", 1) == 11_101
    floats = (ctypes.c_float * 16)(*[2.0] * 16)
    call(loaded, "vectors", ctypes.addressof(floats))
    assert list(floats) == [2.0 * k + 0.5 for k in range(1, 17)]


def test_code_runs(image):
    check(LoadedImage(image, known))


def test_variables_belong_to_one_loaded_image(image):
    one, two = LoadedImage(image, known), LoadedImage(image, known)
    assert [call(one, "count") for _ in range(3)] == [5, 6, 7]
    assert call(two, "count") == 5


def test_images_survive_bytes(image):
    again = Image.from_bytes(image.to_bytes())
    assert again == image
    check(LoadedImage(again, known))


def test_atoms_survive_bytes_and_link_to_the_same(atoms, image):
    again = {a.name: a for a in atoms_from_bytes(atoms_to_bytes(atoms.values()))}
    assert again == atoms
    assert link(again, FUNCTIONS, image.machine) == image
    for wrong in (b"", b"[]", b"[[1]]\0", b"{}\0x", atoms_to_bytes(atoms.values())[:-1]):
        with pytest.raises((ValueError, TypeError)):
            atoms_from_bytes(wrong)


def test_only_what_is_needed_is_linked(atoms):
    machine = host_target().triple.partition("-")[0]
    small = link(atoms, ("remainder",), machine)
    assert [name for name, _ in small.imports] == ["fmod"]
    assert small.code_size_bytes < 64
    with pytest.raises(KeyError, match="nobody"):
        link(atoms, ("nobody",), machine)


def test_functions_and_constants_are_atoms(atoms):
    assert {a.name for a in atoms.values() if a.kind == "code"} == {
        "twice", "thrice", "pick", "count", "vectors", "remainder", "others"
    }  # fmt: skip
    assert atoms["table"].kind == "constant"
    assert [f.target for f in atoms["table"].fixups] == ["twice", "thrice"]
    assert atoms["counter"].kind == "variable"


def test_the_image_lies_about_nothing_it_is_told(image):
    """A header whose places lie outside is refused before anything is written."""
    for change in (
        {"size_bytes": 4096},
        {"code_bytes": -4096},
        {"code_bytes": 100},
        {"imports": [["x", 0]]},
        {"imports": [["x", 1 << 40]]},
        {"rebases": [[image.code_bytes, 1 << 40]]},
        {"exports": {"program": image.code_bytes}},
        {"machine": "vax"},
    ):
        fields = {**_fields(image), **change}
        with pytest.raises(InvalidArgumentError, match="do not fit together"):
            Image.from_bytes(_bytes(fields, image.data))
    for wrong in (b"", b"nothing", b"{}\0", b"[1]\0"):
        with pytest.raises(InvalidArgumentError, match="do not fit together"):
            Image.from_bytes(wrong)


def _fields(image):
    return json.loads(image.to_bytes().partition(b"\0")[0])


def _bytes(fields, data):
    return json.dumps(fields).encode() + b"\0" + data


def test_a_symbol_that_is_not_there(image):
    with pytest.raises(FailedPreconditionError, match="'outer', which this process does not have"):
        LoadedImage(image, resolve)


def mapping_at(address):
    """Protection of the pages at an address, as the system has it; None if there are none."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end, protection = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
        if int(start, 16) <= address < int(end, 16):
            return protection
    return None


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux's list of mappings")
def test_no_page_is_both_written_and_run_and_all_are_given_back(image):
    loaded = LoadedImage(image, known)
    code = loaded.address("pick")
    start = code - image.exports["pick"]
    assert mapping_at(code) == "r-xp"
    assert mapping_at(start + image.code_bytes) == "r--p"
    assert mapping_at(start + image.code_bytes + image.constant_bytes) == "rw-p"
    del loaded
    gc.collect()
    before = len(Path("/proc/self/maps").read_text().splitlines())
    for _ in range(200):
        LoadedImage(image, known)
    assert len(Path("/proc/self/maps").read_text().splitlines()) <= before + 2


def test_unknown_relocations_are_a_fault_of_haloc():
    odd = Atom("f", "code", 16, 8, bytes(8), (Fixup(0, 99, "g", 0),))
    with pytest.raises(InternalError, match="relocation of type 99 for x86_64"):
        link({"f": odd}, ("f",), "x86_64")
    with pytest.raises(InternalError, match="starts with b'MZ"):
        read_elf(b"MZ" + bytes(100))


def test_every_relocation_that_llvm_uses_for_arm_is_known():
    """There is no such machine here: its code is linked, and branches and pages are recomputed."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = Target("aarch64-unknown-linux-gnu", "generic", frozenset({"neon"}), 16)
    atoms = split(read_elf(compile_text(TEXT, target, 2)))
    atoms["given"] = constant_atom("given", bytes(8))
    image = link(atoms, FUNCTIONS, "aarch64")
    assert image.code_bytes % 65536 == 0
    kinds = {f.kind for a in atoms.values() for f in a.fixups}
    assert kinds <= RULES["aarch64"].keys()
    checked = 0
    for name in FUNCTIONS:
        for fixup in atoms[name].fixups:
            place = image.exports[name] + fixup.offset
            (word,) = struct.unpack_from("<I", image.data, place)
            if fixup.kind == 283:  # bl: to the stub of what is outside
                assert word >> 26 == 0b100101
                to = place + 4 * ((word & 0x3FFFFFF) - ((word & 0x2000000) << 1))
                assert struct.unpack_from("<I", image.data, to + 8) == (0xD61F0220,)  # br x17
                checked += 1
            if fixup.kind == 275 and fixup.target == "counter":  # adrp: the page of variables
                pages = (word >> 29 & 3) | (word >> 5 & 0x7FFFF) << 2
                page = (place & ~0xFFF) + 4096 * pages
                assert page == image.code_bytes + image.constant_bytes
                checked += 1
    assert checked == 3
