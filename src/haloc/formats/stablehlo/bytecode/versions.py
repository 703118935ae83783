"""Which version of StableHLO brought what: 1.0.0 is the first that haloc writes."""

from __future__ import annotations

from typing import TypeAlias

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.formats.stablehlo.mlir import MlirOp, RankedTensor, Struct

Version: TypeAlias = tuple[int, int, int]

OLDEST: Version = (1, 0, 0)
NEWEST: Version = (1, 17, 0)

_WITH_ACCURACY = (
    "cbrt cosine exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh"
)
SECOND_VERSIONS: dict[str, Version] = {
    "all_gather": (1, 5, 0),
    "all_reduce": (1, 5, 0),
    "all_to_all": (1, 5, 0),
    "composite": (1, 14, 0),
    "dot_general": (1, 6, 0),
    "dynamic_conv": (0, 20, 0),
    "dynamic_gather": (1, 1, 0),
    "exponential": (1, 9, 0),
    "gather": (1, 1, 0),
    "recv": (1, 12, 0),
    "scatter": (1, 1, 0),
    "send": (1, 12, 0),
    **dict.fromkeys(_WITH_ACCURACY.split(), (1, 10, 0)),
}
"""Since when an op is written in its second version."""

_OPS: dict[str, Version] = {"stablehlo.tan": (1, 4, 0)}
_ELEMENTS: dict[str, Version] = {
    "f8E4M3": (1, 7, 0),
    "f8E3M4": (1, 7, 0),
    "f4E2M1FN": (1, 8, 0),
    "f6E2M3FN": (1, 8, 0),
    "f6E3M2FN": (1, 8, 0),
    "f8E8M0FNU": (1, 8, 0),
    "i2": (1, 2, 0),
    "ui2": (1, 2, 0),
}
"""What came later than 1.0.0."""


def parse_version(text: str) -> Version:
    """ "1.4.0"; InvalidArgumentError for anything else, and what haloc does not write."""
    parts = text.split(".")
    if len(parts) != 3 or not all(p.isdecimal() and len(p) < 6 for p in parts):
        raise InvalidArgumentError(f"{text!r} is no StableHLO version such as 1.4.0")
    version = int(parts[0]), int(parts[1]), int(parts[2])
    if not OLDEST <= version <= NEWEST:
        raise InvalidArgumentError(
            f"StableHLO {text}: haloc writes versions {version_text(OLDEST)} to "
            f"{version_text(NEWEST)}"
        )
    return version


def version_text(version: Version) -> str:
    return ".".join(map(str, version))


def needed(op: MlirOp) -> Version:
    """The first version that has an op with its attributes and types."""
    found = _OPS.get(op.name, OLDEST)
    word = op.name.removeprefix("stablehlo.")
    if word in SECOND_VERSIONS and _needs_second(op, word):
        found = max(found, SECOND_VERSIONS[word])
    elif word == "custom_call" and isinstance(op.attributes.get("backend_config"), dict):
        found = max(found, (1, 3, 0))
    for value in op.results:
        if isinstance(value.type, RankedTensor) and isinstance(value.type.element, str):
            found = max(found, _ELEMENTS.get(value.type.element, OLDEST))
    return found


_SAYS_MORE = ("algorithm", "result_accuracy", "source_target_pairs")
"""Attributes that only second versions have."""


def _needs_second(op: MlirOp, word: str) -> bool:
    if any(name in op.attributes for name in _SAYS_MORE):
        return True
    if word in ("all_gather", "all_reduce", "all_to_all"):
        return len(op.operands) > 1
    structs = [v for v in op.attributes.values() if isinstance(v, Struct)]
    fields = [f for s in structs if "dot" not in s.name for f in s.fields.items()]
    return any(name.endswith("batching_dims") and value for name, value in fields)


def check_target(op: MlirOp, target: Version) -> None:
    """UnimplementedError when an op came after the target version."""
    wanted = needed(op)
    if wanted > target:
        raise UnimplementedError(
            f"{op.name}: StableHLO {version_text(target)} does not have it in this form, "
            f"version {version_text(wanted)} is the first that does"
        )
