"""Runs one program in jaxlib, in haloc and in haloc's interpreter, and compares."""

from __future__ import annotations

import jax
import numpy as np
from jaxlib._hlo import hlo_module_from_text

from haloc import interpreter, xla_client
from haloc.formats.hlo_text import parse_module, to_text
from tests.formats.compare import differences

TOLERANCE = {
    # (relative, absolute): a few units in the last place, times what a short sum loses.
    np.dtype("float64"): (1e-12, 1e-12),
    np.dtype("complex128"): (1e-12, 1e-12),
    np.dtype("float32"): (2e-5, 2e-6),
    np.dtype("complex64"): (2e-5, 2e-5),
    np.dtype("float16"): (4e-3, 2e-3),
}
NARROW = (2e-2, 2e-2)


def hlo_of(function, arguments) -> str:
    """The HLO text JAX makes of a function, constants in full."""
    lowered = jax.jit(function, keep_unused=True).lower(*arguments)
    return lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True)


def flat(value) -> list[np.ndarray]:
    """The leaves of a value as arrays."""
    return [np.asarray(x) for x in jax.tree.leaves(value)]


def check(function, arguments, scale: float = 1.0) -> None:
    """jaxlib, native and interpreter agree; and printing and parsing the program changes nothing.

    scale: factor on the tolerances, for programs that lose more than a few units.
    """
    text = hlo_of(function, arguments)
    wanted = flat(jax.jit(function)(*arguments))
    module = parse_module(text)
    check_round_trip(module)
    assert_close("interpreter", flat(interpreter.run(module, list(arguments))), wanted, scale)
    assert_close("native", run_native(text, arguments), wanted, scale)


def check_round_trip(module) -> None:
    """What haloc prints, it reads back as the same module, and XLA's own parser takes it."""
    printed = to_text(module)
    again = parse_module(printed)
    assert differences(module, again) == []
    assert to_text(again) == printed
    hlo_module_from_text(printed)


def run_native(text: str, arguments) -> list[np.ndarray]:
    client = xla_client.make_cpu_client()
    executable = client.compile_and_load(text, executable_devices=client.local_devices())
    buffers = [client.buffer_from_pyval(a) for a in arguments]
    return [np.asarray(r) for r in executable.execute(buffers)]


def assert_close(who: str, got: list, wanted: list, scale: float) -> None:
    assert len(got) == len(wanted), who
    for number, (g, w) in enumerate(zip(got, wanted)):
        assert g.shape == w.shape, (who, number, g.shape, w.shape)
        assert g.dtype == w.dtype, (who, number, g.dtype, w.dtype)
        if w.dtype.kind in "biu":
            np.testing.assert_array_equal(g, w, err_msg=f"{who} result {number}")
            continue
        relative, absolute = TOLERANCE.get(w.dtype, NARROW)
        wide = np.complex128 if w.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(
            g.astype(wide),
            w.astype(wide),
            rtol=relative * scale,
            atol=absolute * scale,
            err_msg=f"{who} result {number}",
        )
