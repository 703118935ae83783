"""Fast math: LLVM's flags on float arithmetic, where the user gives up IEEE's letter for speed."""

from __future__ import annotations

import re

from haloc.flags import Flags

_ARITHMETIC = re.compile(r"(?<= = )(fadd|fsub|fmul|fdiv|frem|fneg|fcmp) ")
_CALL = re.compile(r"(?<= = )((?:tail )?call) (?=[\w<> ]*(?:half|bfloat|float|double)[> ]*@llvm\.)")


def fast_math_flags(flags: Flags) -> str:
    """The flags as LLVM writes them, "" without fast math.

    Never `reassoc`: sums keep their order, so that results are equal for any number of threads.
    """
    if not flags.xla_cpu_enable_fast_math:
        return ""
    honored = {
        "nnan": flags.xla_cpu_fast_math_honor_nans,
        "ninf": flags.xla_cpu_fast_math_honor_infs,
        "arcp": flags.xla_cpu_fast_math_honor_division,
        "afn": flags.xla_cpu_fast_math_honor_functions,
    }
    return " ".join(["nsz", "contract", *(name for name, keep in honored.items() if not keep)])


def relaxed(text: str, fast_math: str) -> str:
    """LLVM text with these flags on its float arithmetic and calls of LLVM's functions."""
    if not fast_math:
        return text
    text = _ARITHMETIC.sub(rf"\1 {fast_math} ", text)
    return _CALL.sub(rf"\1 {fast_math} ", text)
