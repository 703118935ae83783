"""Programs that older versions of JAX exported, as installed with jax: they load, and run."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import jax._src.internal_test_util.export_back_compat_test_data as stored
import numpy as np
import pytest

from haloc import verifier
from haloc.formats.jax_export.refine import refine
from haloc.formats.stablehlo import to_hlo
from haloc.formats.stablehlo.bytecode import parse_bytecode
from haloc.formats.stablehlo.mlir import RankedTensor
from haloc.triage.engine import INTERPRETER, NATIVE

UP_TO_PHASE = ("geev", "gees", "syevd", "heevd")
"""Routines whose vectors are fixed only up to a factor, or a rotation where values repeat: which
one comes out depends on LAPACK's version. Of matrices of vectors, the norms are compared."""

RTOL = ATOL = 1e-4
"""What JAX's own test of these data allows for single precision."""


def collect() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, dict) and "mlir_module_serialized" in value:
            found[name] = value
        elif isinstance(value, dict):
            for key, inner in value.items():
                add(f"{name}/{key}", inner)
        elif isinstance(value, list | tuple):
            for number, inner in enumerate(value):
                add(f"{name}/{number}", inner)

    for module in pkgutil.iter_modules(stored.__path__):
        if not module.ispkg:
            for key, value in vars(
                importlib.import_module(f"{stored.__name__}.{module.name}")
            ).items():
                if key.startswith("data"):
                    add(f"{module.name}.{key}", value)
    return found


DATA = collect()
CPU = [name for name, data in DATA.items() if data["platform"] == "cpu"]


def test_there_are_many():
    assert len(CPU) >= 40
    assert len(DATA) >= 120


def test_every_program_of_any_platform_is_read():
    for name, data in DATA.items():
        module = parse_bytecode(data["mlir_module_serialized"], name)
        assert any(op.attributes.get("sym_name") == "main" for op in module.operations)


@pytest.mark.parametrize("engine", [INTERPRETER, NATIVE], ids=str)
@pytest.mark.parametrize("name", CPU)
def test_program(name, engine):
    data = DATA[name]
    module = parse_bytecode(data["mlir_module_serialized"], name)
    inputs = [np.asarray(value) for value in data["inputs"]]
    main = next(op for op in module.operations if op.attributes.get("sym_name") == "main")
    arguments = main.regions[0].blocks[0].arguments
    types = [
        RankedTensor(value.shape, argument.type.element)
        for value, argument in zip(inputs, arguments, strict=True)
    ]
    hlo = to_hlo(refine(module, types))
    verifier.verify(hlo)
    results = engine.run(hlo, inputs)
    wanted = data["expected_outputs"]
    targets = "".join(data["custom_call_targets"])
    only_values = any(routine in targets for routine in UP_TO_PHASE)
    for got, want in zip(results, wanted, strict=True):
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        if only_values and got.ndim > 1:
            np.testing.assert_allclose(np.linalg.norm(got), np.linalg.norm(want), RTOL, ATOL)
        else:
            np.testing.assert_allclose(got, want, RTOL, ATOL)
