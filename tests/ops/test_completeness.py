"""The op table against the list of all HLO opcodes: `pytest -s` on this file prints the status."""

from __future__ import annotations

import pytest

import haloc.ops  # noqa: F401
from haloc.ops.opcodes import ARITY, OPCODES
from haloc.ops.table import OPS, REQUIRED

FIXED_COUNT = {"rng"}
"""Variadic in XLA's opcode list, though every one of their forms has the operands of the row."""

NOT_YET = {"sharding": "factor rules come with SPMD partitioning"}
"""Fields that no row has yet."""


def test_every_opcode_has_a_row_and_no_row_is_made_up():
    assert len(OPCODES) == 133
    assert sorted(OPS) == sorted(OPCODES)


@pytest.mark.parametrize("opcode", OPCODES)
def test_arity(opcode):
    row, count = OPS[opcode], ARITY[opcode]
    if opcode in FIXED_COUNT:
        assert not row.is_variadic
    else:
        assert (None if row.is_variadic else len(row.operands)) == count


@pytest.mark.parametrize("opcode", OPCODES)
def test_each_field_is_there(opcode):
    row = OPS[opcode]
    for field in ("infer", "evaluate", "lower", "cost", "example", "effect"):
        assert getattr(row, field) is not None
    assert all(a.codec is not None for a in row.attrs)
    assert len({a.name for a in row.attrs}) == len(row.attrs)


@pytest.mark.parametrize("opcode", OPCODES)
def test_attribute_defaults_are_immutable(opcode):
    for a in OPS[opcode].attrs:
        if a.default is not REQUIRED:
            hash(a.default)


def test_status_page(capsys):
    with capsys.disabled():
        print(f"\n{len(OPS)} of {len(OPCODES)} opcodes have complete rows")
        for field, reason in NOT_YET.items():
            count = sum(not getattr(OPS[o], field) for o in OPCODES)
            print(f"  without {field}: {count} ({reason})")
    assert all(NOT_YET.values())
