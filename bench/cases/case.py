"""A case: a JAX function, its arguments, what peers do for the same answer, its least cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

Maker = Callable[[np.random.Generator], Any]

M = 1 << 20
BF16, F16, F64 = jnp.bfloat16, np.float16, np.float64


@dataclass(frozen=True)
class Case:
    """arguments: makes them from a random generator, as a tuple of trees of arrays.

    torch: the same answer in PyTorch, called with the module `torch` and tensors; numpy: in NumPy
    or SciPy, called with arrays; None: there is no equal call. flops: multiplications and additions
    that the answer needs (0: bytes decide alone). floor: whether bytes and flops bound the time.
    error: accepted ||haloc - jaxlib|| / ||jaxlib||; 0 for equal. peer_error: the same for peers.
    x64: whether JAX makes 64-bit types.
    """

    family: str
    name: str
    function: Callable[..., Any]
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    torch: Callable[..., Any] | None = None
    numpy: Callable[..., Any] | None = None
    flops: float = 0.0
    dtype: str = "f32"
    floor: bool = True
    error: float = 1e-5
    peer_error: float = 1e-3
    x64: bool = False


@dataclass(frozen=True)
class Family:
    """Cases that are summed up together."""

    name: str
    cases: list[Case] = field(default_factory=list)

    def add(self, name: str, function: Callable[..., Any], *makers: Maker, **facts: Any) -> None:
        """A case whose arguments are made one by one."""
        arguments = lambda rng: tuple(make(rng) for make in makers)  # noqa: E731
        self.cases.append(Case(self.name, name, function, arguments, **facts))


def normal(*dims: int, dtype: Any = np.float32, scale: float = 1.0) -> Maker:
    """A maker of one array of normally distributed numbers."""

    def make(rng: np.random.Generator) -> Any:
        drawn = rng.standard_normal(dims, np.float32) * np.float32(scale)
        return jnp.asarray(drawn.astype(dtype))

    return make


def positive(*dims: int, dtype: Any = np.float32) -> Maker:
    """Numbers between 0.1 and 2."""
    return lambda rng: jnp.asarray((rng.random(dims, np.float32) * 1.9 + 0.1).astype(dtype))


def integers(low: int, high: int, *dims: int, dtype: Any = np.int32) -> Maker:
    """Whole numbers of low <= n < high."""
    return lambda rng: jnp.asarray(rng.integers(low, high, dims).astype(dtype))


def complexes(*dims: int) -> Maker:
    """complex64, both parts normally distributed."""
    part = normal(*dims)
    return lambda rng: part(rng) + 1j * part(rng)
