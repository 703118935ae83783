"""What is measured, by family: `all_cases()`."""

from __future__ import annotations

from bench.cases.case import Case


def all_cases() -> list[Case]:
    """Every case in the order of the report. Imports JAX."""
    from bench.cases import (  # noqa: PLC0415 (only a process that measures needs them)
        contractions,
        control,
        convolutions,
        elementwise,
        indexing,
        linalg,
        models,
        movement,
        order,
        reductions,
        transforms,
    )

    families = (
        elementwise,
        reductions,
        movement,
        contractions,
        convolutions,
        indexing,
        order,
        transforms,
        linalg,
        control,
        models,
    )
    return [case for family in families for case in family.FAMILY.cases]
