"""What limits a case, and what was tried: shown beside the ratios that fall short."""

from __future__ import annotations

import re

_CALL = (
    "what a call costs: `execute` is Python, checks its arguments and makes an array object for "
    "each result"
)
_NATIVE_BF16 = (
    "without AMX there is no kernel of bf16 (AVX512-BF16) or int8 (VNNI) instructions: elements "
    "are widened while they are packed and summed by f32 or int32 arithmetic"
)
_STEP = (
    "each step waits for the one before: latency of dependent arithmetic, and of values that go "
    "through memory from one kernel of a step to the next. Tried: kernels inlined into the loop"
)
_LAPACK = (
    "the factorisation is LAPACK's, by SciPy's OpenBLAS, one matrix after the other; jaxlib calls "
    "the same routines, PyTorch MKL's"
)
_MADE = (
    "cold, the kernel is made for these sizes and LLVM compiles its unrolled inner loop, where "
    "jaxlib calls a library compiled beforehand. Tried: lean passes, no loop strength reduction, "
    "kernels compiled in threads, a disk cache"
)

LIMITS: tuple[tuple[str, str], ...] = (
    (r"dispatch|add 10K|bits 16|sort 10$", _CALL),
    (r"matmul (bf16|int8)|bf16 64x128|conv bf16|GPT forward bf16", f"{_NATIVE_BF16}; {_MADE}"),
    (r"int32 512", f"32-bit products, of which the CPU makes half as many as f32 ones; {_MADE}"),
    (
        r"contractions: matmul f|A·Bᵀ|dense layer|complex 512",
        "the arithmetic; peers' libraries are written in assembly for each CPU, haloc's "
        f"micro-kernel is one text for all that have AVX-512. {_MADE}",
    ),
    (r"8192x8³", "packing is as much work as an 8x8 product; no form across lanes of the batch"),
    (r"vector|skinny|tall", f"memory: the matrix is read once; {_MADE}"),
    (r"attention", f"scores and softmax are kernels apart from the products; {_MADE}"),
    (
        r"with holes|transposed conv",
        "elements are packed one by one, and the zeros of a transposed convolution are multiplied: "
        f"it is not split by phase. {_MADE}",
    ),
    (r"convolutions:", f"implicit product: patches are packed for each block; {_MADE}"),
    (
        r"FFT and random: .*fft",
        "radix passes are made for each length, in vectors across lines; peers have codelets of "
        "larger radices, compiled beforehand. Tried: tables of roots kept out of LLVM's text",
    ),
    (
        r"threefry|uniform|normal 1M|categorical|permutation|philox",
        "integer arithmetic, in vectors",
    ),
    (r"linear algebra:", _LAPACK),
    (r"control flow: |hidden Markov", _STEP),
    (r"top 16", "one pass over each line with a test an element, not in vectors"),
    (
        r"sorting and scans: (sort|argsort|median)",
        "radix sort, digit by digit, writes all records for each; NumPy and PyTorch sort in "
        "registers (AVX-512 networks)",
    ),
    (r"cum|associative", "a prefix sum is carried element by element along a line"),
    (
        r"scatter|histogram|segments|embedding gradient",
        "updates are applied in order by one thread, which makes the result independent of threads",
    ),
    (r"indexing: ", "each index is checked and its element loaded apart; memory's latency"),
    (r"softmax|log-sum-exp", "the exponentials of a row are taken from the cache in a second pass"),
    (
        r"data movement: .*(transpose|NCHW|heads|column)",
        "strided reads or writes: lines of the cache are not used in one go. Tried: tiles of the "
        "transposed dimensions",
    ),
    (r"data movement: |elementwise: add|bf16 16M|where|complex", "memory, read and written once"),
    (r"elementwise: ", "arithmetic in vectors: polynomials within a few ULP (docs/ulp.md)"),
    (r"reductions: ", "memory and the sums' latency"),
    (
        r"models: (GPT|MLP|ResNet)",
        "products of a size where packing counts, and operations between them that each read and "
        f"write memory; {_MADE}",
    ),
)
"""(regular expression for "family: name", text); the first that matches counts."""


def limit_of(family: str, name: str) -> str | None:
    label = f"{family}: {name}"
    return next((text for pattern, text in LIMITS if re.search(pattern, label)), None)
