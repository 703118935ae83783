"""What each relocation of ELF puts where, for the machines haloc compiles for.

S: the address of the target, A: the addend, P: the address of the place; all relative to the
image's start, which is at a page boundary. G: where the image keeps the target's address.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from haloc.errors import InternalError

ADDRESS, RELATIVE, CALL, TABLE = "address", "relative", "call", "table"
"""What a relocation needs of its target: an absolute address (written when the image is loaded),
S itself, a function to call (a stub if it lies outside), G."""

Patch = Callable[[bytearray, int, int], None]
"""(image, P, S + A or G + A)"""


@dataclass(frozen=True, slots=True)
class Rule:
    needs: str
    patch: Patch


def _relative(size: int) -> Patch:
    limit = 1 << (8 * size - 1)

    def patch(image: bytearray, place: int, target: int) -> None:
        distance = target - place
        if not -limit <= distance < limit:
            raise InternalError(f"a distance of {distance} bytes does not fit a relocation")
        image[place : place + size] = distance.to_bytes(size, "little", signed=True)

    return patch


def _nothing(image: bytearray, place: int, target: int) -> None:
    raise InternalError("addresses are written when an image is loaded")


def _bits(image: bytearray, place: int, mask: int, bits: int) -> None:
    """Set the masked bits of an instruction word."""
    (word,) = struct.unpack_from("<I", image, place)
    struct.pack_into("<I", image, place, word & ~mask | bits & mask)


def _branch26(image: bytearray, place: int, target: int) -> None:
    distance = target - place
    if not -(1 << 27) <= distance < 1 << 27:
        raise InternalError(f"a branch over {distance} bytes does not fit a relocation")
    _bits(image, place, 0x03FFFFFF, distance >> 2)


def _page21(image: bytearray, place: int, target: int) -> None:
    """adrp: the distance in pages of 4096 bytes."""
    pages = (target >> 12) - (place >> 12)
    _bits(image, place, 0x60FFFFE0, (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5)


def _low12(shift: int) -> Patch:
    """The target's place in its page, in units of what is loaded."""

    def patch(image: bytearray, place: int, target: int) -> None:
        _bits(image, place, 0x003FFC00, ((target & 0xFFF) >> shift) << 10)

    return patch


RULES: dict[str, dict[int, Rule]] = {
    "x86_64": {
        1: Rule(ADDRESS, _nothing),  # R_X86_64_64
        2: Rule(RELATIVE, _relative(4)),  # R_X86_64_PC32
        4: Rule(CALL, _relative(4)),  # R_X86_64_PLT32
        9: Rule(TABLE, _relative(4)),  # R_X86_64_GOTPCREL
        24: Rule(RELATIVE, _relative(8)),  # R_X86_64_PC64
        41: Rule(TABLE, _relative(4)),  # R_X86_64_GOTPCRELX
        42: Rule(TABLE, _relative(4)),  # R_X86_64_REX_GOTPCRELX
    },
    "aarch64": {
        257: Rule(ADDRESS, _nothing),  # R_AARCH64_ABS64
        260: Rule(RELATIVE, _relative(8)),  # R_AARCH64_PREL64
        261: Rule(RELATIVE, _relative(4)),  # R_AARCH64_PREL32
        275: Rule(RELATIVE, _page21),  # R_AARCH64_ADR_PREL_PG_HI21
        277: Rule(RELATIVE, _low12(0)),  # R_AARCH64_ADD_ABS_LO12_NC
        278: Rule(RELATIVE, _low12(0)),  # R_AARCH64_LDST8_ABS_LO12_NC
        282: Rule(CALL, _branch26),  # R_AARCH64_JUMP26
        283: Rule(CALL, _branch26),  # R_AARCH64_CALL26
        284: Rule(RELATIVE, _low12(1)),  # R_AARCH64_LDST16_ABS_LO12_NC
        285: Rule(RELATIVE, _low12(2)),  # R_AARCH64_LDST32_ABS_LO12_NC
        286: Rule(RELATIVE, _low12(3)),  # R_AARCH64_LDST64_ABS_LO12_NC
        299: Rule(RELATIVE, _low12(4)),  # R_AARCH64_LDST128_ABS_LO12_NC
        311: Rule(TABLE, _page21),  # R_AARCH64_ADR_GOT_PAGE
        312: Rule(TABLE, _low12(3)),  # R_AARCH64_LD64_GOT_LO12_NC
        314: Rule(CALL, _relative(4)),  # R_AARCH64_PLT32
    },
}
"""{machine: {relocation number: rule}}"""

STUB_BYTES = 16

PAGE_BYTES = {"x86_64": 4096, "aarch64": 65536}
"""The largest page a machine's system may have: protection changes only at its multiples."""


def write_stub(machine: str, image: bytearray, place: int, slot: int) -> None:
    """A jump to the address that the image keeps at `slot`."""
    if machine == "x86_64":  # jmp *[rip + distance]
        image[place : place + STUB_BYTES] = b"\xff\x25" + bytes(4) + b"\xcc" * 10
        _relative(4)(image, place + 2, slot - 4)
        return
    # adrp x16, slot; ldr x17, [x16, low bits]; br x17
    words = (0x90000010, 0xF9400211, 0xD61F0220, 0xD4200000)
    struct.pack_into("<4I", image, place, *words)
    _page21(image, place, slot)
    _low12(3)(image, place + 4, slot)


def rule_of(machine: str, kind: int) -> Rule:
    rule = RULES[machine].get(kind)
    if rule is None:
        raise InternalError(f"LLVM wrote a relocation of type {kind} for {machine}")
    return rule
