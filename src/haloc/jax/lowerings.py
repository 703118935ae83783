"""How JAX lowers primitives for platform haloc: as for CPUs."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from haloc.pjrt.plugin.host_callbacks import PROCESS_CALLBACKS


class CpuLowerings(MutableMapping[Any, Any]):
    """JAX's lowering rules for a platform: those registered for it, then those for CPUs.

    JAX has rules by platform for linear algebra, debug prints and the like; what they emit for a
    CPU, calls to LAPACK and to Python, haloc runs. Rules registered later count too. `shared`:
    primitives whose one rule asks for the platform's name.
    """

    def __init__(self, cpu: MutableMapping[Any, Any], common: Any, shared: frozenset[Any]):
        self._own: dict[Any, Any] = {}
        self._cpu = cpu
        self._common = common
        self._shared = shared

    def __getitem__(self, primitive: Any) -> Any:
        if primitive in self._own:
            return self._own[primitive]
        if primitive in self._cpu:
            entry = self._cpu[primitive]
        elif primitive in self._shared:
            entry = self._common[primitive]
        else:
            raise KeyError(primitive)
        made = type(entry)(_as_for_cpu(entry.rule), entry.inline)
        self._own[primitive] = made
        return made

    def __setitem__(self, primitive: Any, entry: Any) -> None:
        self._own[primitive] = entry

    def __delitem__(self, primitive: Any) -> None:
        del self._own[primitive]

    def __iter__(self) -> Iterator[Any]:
        return iter({**self._cpu, **self._own, **dict.fromkeys(self._shared)})

    def __len__(self) -> int:
        return len(list(iter(self)))


def _as_for_cpu(rule: Any) -> Any:
    """The rule, told that the platform is cpu."""

    def lowered(context: Any, *operands: Any, **parameters: Any) -> Any:
        module = context.module_context
        backend = module.backend and _AsCpu(module.backend)
        callbacks = _HostCallbacks(module)
        module = module.replace(platforms=("cpu",), backend=backend, host_callbacks=callbacks)
        inner = context.replace(module_context=module)
        results = rule(inner, *operands, **parameters)
        # A rule hands tokens of ordered effects back on its context.
        if getattr(inner, "tokens_out", None) is not None and context.tokens_out is None:
            context.set_tokens_out(inner.tokens_out)
        return results

    return lowered


class _HostCallbacks:
    """The host callbacks of a module, each with a number of the process's.

    jaxlib hands callbacks to programs of its own platforms only, by their place in this list; so
    those of platform haloc ask haloc. They are on JAX's list too, for it stores no program that
    has any.
    """

    def __init__(self, module: Any):
        self._module = module
        self._last = -1

    def append(self, callback: Any) -> None:
        self._module.host_callbacks.append(callback)
        self._module.add_keepalive(callback)
        self._last = PROCESS_CALLBACKS.add(callback)

    def __len__(self) -> int:
        """One more than the number of the last callback, as if it were its place."""
        return self._last + 1


class _AsCpu:
    """A backend as rules for CPUs expect it: by its platform's name."""

    platform = "cpu"

    def __init__(self, backend: Any):
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


def lower_as_for_cpu(platform: str) -> None:
    """Make JAX lower for `platform` as it does for CPUs."""
    from jax._src import callback  # noqa: PLC0415  # JAX is there only where it is used
    from jax._src.interpreters import mlir  # noqa: PLC0415

    rules = mlir._platform_specific_lowerings
    if not isinstance(rules[platform], CpuLowerings):
        shared = frozenset({callback.pure_callback_p, callback.io_callback_p})
        rules[platform] = CpuLowerings(rules["cpu"], mlir._lowerings, shared)
