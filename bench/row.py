"""What was measured of one case; plain data, as it goes into results.json."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

HALOC, JAXLIB, TORCH, NUMPY = "haloc", "jaxlib", "torch", "numpy"
SIDES = (HALOC, JAXLIB, TORCH, NUMPY)
PEERS = (JAXLIB, TORCH, NUMPY)


@dataclass
class Row:
    """Times in seconds, sizes in bytes, all by side. best, median: of `runs` timings of a call.
    error: relative difference from jaxlib's results. wrong: sides whose error is not accepted;
    their ratios do not count. failure: the message of a side that raised; the key "process" for
    what ended the process. cold, warm: of a compilation, with an empty cache and a full one.
    floor: the least time that the machine needs, None if there is no bound."""

    family: str
    name: str
    dtype: str = "f32"
    runs: int = 0
    best: dict[str, float] = field(default_factory=dict)
    median: dict[str, float] = field(default_factory=dict)
    error: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    failure: dict[str, str] = field(default_factory=dict)
    cold: dict[str, float] = field(default_factory=dict)
    warm: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    read_bytes: int = 0
    written_bytes: int = 0
    flops: float = 0.0
    has_floor: bool = True
    floor: float | None = None

    @property
    def is_right(self) -> bool:
        """haloc ran and agrees with jaxlib."""
        return HALOC in self.best and HALOC not in self.wrong

    def ratio(self, peer: str, times: str = "best") -> float | None:
        """The peer's time over haloc's; None where one has none, or not the same results."""
        taken = getattr(self, times)
        if HALOC not in taken or peer not in taken or {HALOC, peer} & set(self.wrong):
            return None
        return taken[peer] / taken[HALOC]

    def best_peer_ratio(self) -> float | None:
        """The fastest peer's time over haloc's."""
        ratios = [r for r in map(self.ratio, PEERS) if r is not None]
        return min(ratios) if ratios else None

    def floor_fraction(self) -> float | None:
        """How much of what the machine can do haloc uses: 1 at the floor."""
        return self.floor / self.best[HALOC] if self.floor and HALOC in self.best else None


def geometric_mean(ratios: list[float | None]) -> float | None:
    """Of those that there are."""
    known = [r for r in ratios if r is not None]
    return float(np.exp(np.mean(np.log(known)))) if known else None
