"""What code is generated for: the CPU's features and the vector width they allow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Target:
    """triple, cpu and features as LLVM spells them. vector_bytes: width of the widest registers
    worth using. Features decide, not the CPU's name: LLVM may know the CPU by an older one."""

    triple: str
    cpu: str
    features: frozenset[str]
    vector_bytes: int

    def has(self, *features: str) -> bool:
        return all(f in self.features for f in features)

    def lanes(self, element_bytes: int) -> int:
        """Elements of this size in one vector register."""
        return max(1, self.vector_bytes // element_bytes)

    @property
    def feature_string(self) -> str:
        return ",".join(f"+{f}" for f in sorted(self.features))


@cache
def host_target() -> Target:
    """The machine this process runs on."""
    # Loading LLVM takes long, and only whoever compiles needs to.
    import llvmlite.binding as llvm  # noqa: PLC0415

    # Tuning hints, not instructions: they make code from one CPU unloadable on its like.
    tuning = {"prefer-no-gather", "prefer-no-scatter"}
    features = frozenset(
        name for name, present in llvm.get_host_cpu_features().items() if present
    ) - frozenset(tuning)
    if "avx512f" in features and "avx512vl" in features:
        vector_bytes = 64
    elif "avx2" in features:
        vector_bytes = 32
    else:
        vector_bytes = 16
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), features, vector_bytes)
