"""custom-call on the CPU: kernels by target name."""

from __future__ import annotations

from collections.abc import Callable

from haloc.codegen.kernel import KernelEmitter

TARGETS: dict[str, KernelEmitter] = {}
"""Emitters by `custom_call_target`."""


def target_for(*names: str) -> Callable[[KernelEmitter], KernelEmitter]:
    """Register the emitter of these custom call targets."""

    def add(emitter: KernelEmitter) -> KernelEmitter:
        for name in names:
            assert name not in TARGETS, name
            TARGETS[name] = emitter
        return emitter

    return add
