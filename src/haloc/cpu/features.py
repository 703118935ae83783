"""Which CPU features compiled code relies on, and whether this machine has them; without LLVM."""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterable, Iterator
from functools import cache

_X86 = {
    "sse3": "pni",
    "ssse3": "ssse3",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "sse4a": "sse4a",
    "popcnt": "popcnt",
    "lzcnt": "abm",
    "bmi": "bmi1",
    "bmi2": "bmi2",
    "tbm": "tbm",
    "adx": "adx",
    "aes": "aes",
    "pclmul": "pclmulqdq",
    "sha": "sha_ni",
    "gfni": "gfni",
    "vaes": "vaes",
    "vpclmulqdq": "vpclmulqdq",
    "avx": "avx",
    "avx2": "avx2",
    "f16c": "f16c",
    "fma": "fma",
    "fma4": "fma4",
    "xop": "xop",
    "movbe": "movbe",
    "cx16": "cx16",
    "prfchw": "3dnowprefetch",
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512cd": "avx512cd",
    "avx512dq": "avx512dq",
    "avx512vl": "avx512vl",
    "avx512ifma": "avx512ifma",
    "avx512vbmi": "avx512vbmi",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni",
    "avx512bitalg": "avx512_bitalg",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avx512vp2intersect": "avx512_vp2intersect",
    "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16",
    "avxvnni": "avx_vnni",
    "avxifma": "avx_ifma",
    "avxneconvert": "avx_ne_convert",
    "avxvnniint8": "avx_vnni_int8",
    "avxvnniint16": "avx_vnni_int16",
    "amx-tile": "amx_tile",
    "amx-int8": "amx_int8",
    "amx-bf16": "amx_bf16",
    "amx-fp16": "amx_fp16",
    "amx-complex": "amx_complex",
    "movdiri": "movdiri",
}
_ARM = {
    "neon": "asimd",
    "fp-armv8": "fp",
    "aes": "aes",
    "sha2": "sha2",
    "crc": "crc32",
    "lse": "atomics",
    "fullfp16": "fphp",
    "rdm": "asimdrdm",
    "jsconv": "jscvt",
    "complxnum": "fcma",
    "rcpc": "lrcpc",
    "sha3": "sha3",
    "dotprod": "asimddp",
    "fp16fml": "asimdfhm",
    "sve": "sve",
    "sve2": "sve2",
    "i8mm": "i8mm",
    "bf16": "bf16",
}
NAMES = _X86 | _ARM
"""{feature, as LLVM spells it: Linux's name of it in /proc/cpuinfo}, for the features that let
compilers use further instructions. Others in LLVM's lists are for systems or for tuning."""


def code_features(features: Iterable[str]) -> tuple[str, ...]:
    """Those among a target's features that decide whether its code runs elsewhere, sorted."""
    return tuple(sorted(f for f in features if f in NAMES))


def missing_features(needed: Collection[str]) -> list[str]:
    """Those of the features that this machine does not have."""
    present = _present()
    return [f for f in needed if NAMES.get(f, f) not in present]


@cache
def cpu_description() -> str:
    """What code for this machine may depend on: its kind, model and features."""
    model = platform.processor()
    for name, words in _cpuinfo():
        if name == "model name":
            model = words
            break
    return f"{platform.machine()} {model}: {' '.join(sorted(_present()))}"


@cache
def _present() -> frozenset[str]:
    """This machine's features by Linux's names."""
    for name, words in _cpuinfo():
        if name in ("flags", "Features"):
            return frozenset(words.split())
    # Systems other than Linux: LLVM knows how to ask.
    from haloc.codegen.target import host_target  # noqa: PLC0415  (LLVM only where it must be)

    return frozenset(NAMES.get(f, f) for f in host_target().features)


def _cpuinfo() -> Iterator[tuple[str, str]]:
    """The fields of Linux's description of the first CPU; nothing on other systems."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if not line.strip():
                    return
                name, _, words = line.partition(":")
                yield name.strip(), words.strip()
    except OSError:
        return
