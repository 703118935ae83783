"""Structural equality: keys and fingerprints that ignore names, metadata and text order of callees.

A key is a hashable tuple, good within one process. A fingerprint is a hex digest, the same in
every process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from haloc.ir.literal import Literal, Value
from haloc.ir.module import HloComputation, HloInstruction, HloModule

Fingerprints = dict[HloComputation, str]
"""A memo of computation fingerprints; valid until a computation changes."""


def instruction_key(
    instruction: HloInstruction,
    numbers: Mapping[HloInstruction, int],
    fingerprints: Fingerprints,
) -> tuple[Any, ...]:
    """Equal for two instructions that compute the same from the same operands.

    numbers: identity of each operand, equal for operands already known to be equal.
    """
    attrs = tuple(
        sorted((k, _attr_key(v, fingerprints)) for k, v in instruction.attrs.items())
        if len(instruction.attrs) > 1
        else [(k, _attr_key(v, fingerprints)) for k, v in instruction.attrs.items()]
    )
    return (
        instruction.opcode,
        instruction.shape,
        tuple([numbers[o] for o in instruction.operands]),
        attrs,
        instruction.backend_config,
    )


def _attr_key(value: Any, fingerprints: Fingerprints) -> Any:
    if isinstance(value, HloComputation):
        return computation_fingerprint(value, fingerprints)
    if isinstance(value, tuple) and value and isinstance(value[0], HloComputation):
        return tuple([computation_fingerprint(v, fingerprints) for v in value])
    return value


def computation_fingerprint(computation: HloComputation, memo: Fingerprints | None = None) -> str:
    """Hex digest of a computation: its instructions in order, its root and what it calls."""
    memo = {} if memo is None else memo
    known = memo.get(computation)
    if known is not None:
        return known
    digest = hashlib.blake2b(digest_size=16)
    numbers: dict[HloInstruction, int] = {}
    for number, instruction in enumerate(computation.instructions):
        numbers[instruction] = number
    for instruction in computation.instructions:
        digest.update(_instruction_text(instruction, numbers, memo).encode())
    digest.update(f"root {numbers[computation.root]} {computation.execution_thread}".encode())
    memo[computation] = digest.hexdigest()
    return memo[computation]


def _instruction_text(
    instruction: HloInstruction, numbers: Mapping[HloInstruction, int], memo: Fingerprints
) -> str:
    attrs = sorted((k, _value_text(v, memo)) for k, v in instruction.attrs.items())
    operands = [numbers[o] for o in instruction.operands]
    before = [numbers[p] for p in instruction.control_predecessors]
    return (
        f"{instruction.opcode} {instruction.shape} {operands} {attrs} {before}"
        f" {instruction.sharding} {instruction.backend_config} {instruction.frontend_attributes}\n"
    )


def _value_text(value: Any, memo: Fingerprints) -> str:
    if isinstance(value, HloComputation):
        return computation_fingerprint(value, memo)
    if isinstance(value, tuple) and value and isinstance(value[0], HloComputation):
        return " ".join(computation_fingerprint(v, memo) for v in value)
    if isinstance(value, Literal):
        return f"{value.shape} {_value_digest(value.value)}"
    return repr(value)


def _value_digest(value: Value) -> str:
    if isinstance(value, tuple):
        return "(" + ",".join(_value_digest(v) for v in value) + ")"
    if value is None:
        return "token"
    return hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()


def module_fingerprint(module: HloModule) -> str:
    """Hex digest of everything a pass may change: instructions, computations and header.

    Names, metadata and the order of computations do not count; the order of instructions does.
    """
    memo: Fingerprints = {}
    digest = hashlib.blake2b(digest_size=16)
    reachable = module.post_order()
    for computation in reachable:
        digest.update(computation_fingerprint(computation, memo).encode())
    others = set(module.computations.values()) - set(reachable)
    digest.update(repr(sorted(computation_fingerprint(c, memo) for c in others)).encode())
    digest.update(repr(sorted((k, repr(v)) for k, v in module.header.items())).encode())
    return digest.hexdigest()
