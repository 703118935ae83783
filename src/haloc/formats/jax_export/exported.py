"""`read_exported(data)`: a program that `jax.export` wrote, ready to become HLO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from haloc.errors import HloParseError, InvalidArgumentError, UnimplementedError
from haloc.formats.jax_export import dimensions
from haloc.formats.jax_export.artifact import Artifact, Aval, read_artifact
from haloc.formats.jax_export.refine import has_dynamic_sizes, is_dynamic, refine
from haloc.formats.stablehlo.bytecode import parse_bytecode
from haloc.formats.stablehlo.convert import to_hlo
from haloc.formats.stablehlo.mlir import MlirModule, MlirOp, MlirType, RankedTensor
from haloc.ir.module import HloModule

_PLATFORM = "_platform_index"
_OLDEST_CONVENTION, _NEWEST_CONVENTION = 9, 10


@dataclass(frozen=True, slots=True)
class Exported:
    """An exported function.

    artifact: all its fields. module: the program as a StableHLO tree.
    """

    artifact: Artifact
    module: MlirModule = field(repr=False)

    @property
    def fun_name(self) -> str:
        return self.artifact.function_name

    @property
    def in_avals(self) -> tuple[Aval, ...]:
        return self.artifact.in_avals

    @property
    def out_avals(self) -> tuple[Aval, ...]:
        return self.artifact.out_avals

    @property
    def platforms(self) -> tuple[str, ...]:
        return self.artifact.platforms

    @property
    def symbols(self) -> tuple[str, ...]:
        """The dimension variables of the arguments' shapes, in order of appearance."""
        found: dict[str, None] = {}
        for aval in self.in_avals:
            for d in aval.shape:
                if isinstance(d, str):
                    found.update(dict.fromkeys(dimensions.variables(d)))
        return tuple(found)

    def argument_shapes(self, **sizes: int) -> list[tuple[int, ...]]:
        """The sizes of every flat argument for these values of the dimension variables.

        Raises InvalidArgumentError naming a variable that has no value, or that there is not.
        """
        for name in sizes:
            if name not in self.symbols:
                listed = ", ".join(self.symbols) or "none"
                raise InvalidArgumentError(
                    f"{self.fun_name!r} has no dimension variable {name!r}; it has {listed}"
                )
        return [
            tuple([d if isinstance(d, int) else dimensions.value(d, sizes) for d in aval.shape])
            for aval in self.in_avals
        ]

    def vjp(self) -> Exported:
        """The exported derivative; InvalidArgumentError when there is none."""
        if self.artifact.vjp is None:
            raise InvalidArgumentError(f"{self.fun_name!r} was exported without its derivative")
        return _exported(self.artifact.vjp, self.module.filename)

    # --- Arguments and results -------------------------------------------------------------------

    def flatten_arguments(self, *arguments: Any, **keywords: Any) -> list[Any]:
        """The flat arguments, one for each of `in_avals`, as the function's pytree has them."""
        return self.artifact.in_tree.flatten((arguments, keywords))

    def kept(self, flat: Sequence[Any]) -> list[Any]:
        """Of flat arguments, those that the program takes."""
        if len(flat) != len(self.in_avals):
            raise InvalidArgumentError(
                f"{self.fun_name!r} takes {len(self.in_avals)} flat arguments, not {len(flat)}"
            )
        return [flat[i] for i in self.artifact.module_kept_variables]

    def unflatten_results(self, flat: Sequence[Any]) -> Any:
        """The results as the function's pytree has them."""
        return self.artifact.out_tree.unflatten(flat)

    # --- The program -----------------------------------------------------------------------------

    def to_hlo(
        self,
        platform: str = "cpu",
        argument_shapes: Sequence[Sequence[int]] | None = None,
    ) -> HloModule:
        """The program for one platform and one set of argument sizes. Not verified.

        argument_shapes: the sizes of every flat argument; may be left out when no size is
        symbolic. The module's parameters are the kept arguments. Raises InvalidArgumentError for
        shapes that do not fit (with the program's own words where an assertion fails) and for a
        platform that the export was not made for; UnimplementedError for ordered effects.
        """
        return to_hlo(self.refined(platform, argument_shapes))

    def refined(
        self,
        platform: str = "cpu",
        argument_shapes: Sequence[Sequence[int]] | None = None,
    ) -> MlirModule:
        """`to_hlo`'s program as StableHLO."""
        self._check(platform)
        main = _main(self.module)
        block = main.regions[0].blocks[0]
        types = [v.type for v in block.arguments]
        known: dict[int, np.ndarray] = {}
        if _takes_platform(main):
            wide = isinstance(types[0], RankedTensor) and types[0].element == "i64"
            known[0] = np.array(self._platform_index(platform), np.int64 if wide else np.int32)
        kept = self.artifact.module_kept_variables
        if len(types) != len(kept) + len(known):
            raise InvalidArgumentError(
                f"the module's main takes {len(types)} arguments, but the artifact speaks of "
                f"{len(kept)}"
            )
        if argument_shapes is not None:
            shapes = self.kept(argument_shapes)
            for place, (number, shape) in enumerate(zip(kept, shapes, strict=True), len(known)):
                types[place] = self._typed(types[place], shape, number)
        elif any(is_dynamic(type) for type in types):
            shapes_text = ", ".join(map(str, self.in_avals))
            raise InvalidArgumentError(
                f"{self.fun_name!r} has symbolic sizes ({shapes_text}): argument_shapes is needed"
            )
        if not known and not has_dynamic_sizes(self.module):
            return self.module
        return refine(self.module, types, known)

    def _check(self, platform: str) -> None:
        artifact = self.artifact
        convention = artifact.calling_convention_version
        if not _OLDEST_CONVENTION <= convention <= _NEWEST_CONVENTION:
            raise UnimplementedError(
                f"calling convention version {convention} of {self.fun_name!r}; haloc knows "
                f"{_OLDEST_CONVENTION} to {_NEWEST_CONVENTION}"
            )
        if artifact.ordered_effects:
            raise UnimplementedError(
                f"{self.fun_name!r} has ordered effects ({', '.join(artifact.ordered_effects)}); "
                "haloc runs exported programs without effects"
            )
        if platform not in self.platforms and not self._any_platform():
            raise InvalidArgumentError(
                f"{self.fun_name!r} was exported for {', '.join(self.platforms)}, not for "
                f"{platform}"
            )

    def _platform_index(self, platform: str) -> int:
        return self.platforms.index(platform) if platform in self.platforms else 0

    def _any_platform(self) -> bool:
        """Whether the exporter switched the platform check off (for a one-platform module)."""
        checks = self.artifact.disabled_checks
        return len(self.platforms) == 1 and any(c.is_platform for c in checks)

    def _typed(self, type: MlirType, shape: Sequence[int], number: int) -> MlirType:
        """A parameter's type with an argument's sizes."""
        dims = tuple(int(d) for d in shape)
        if not isinstance(type, RankedTensor):
            return type
        fits = len(dims) == len(type.dims) and all(
            d >= 0 and w in (None, d) for d, w in zip(dims, type.dims, strict=True)
        )
        if not fits:
            raise InvalidArgumentError(
                f"flat argument {number} of {self.fun_name!r} has sizes {list(dims)}, expected "
                f"{self.in_avals[number]}"
            )
        return RankedTensor(dims, type.element)


def read_exported(data: bytes, filename: str = "<artifact>") -> Exported:
    """Read what `jax.export.Exported.serialize` wrote, without jax.

    HloParseError for bytes that are not that.
    """
    return _exported(read_artifact(bytes(data)), filename)


def _exported(artifact: Artifact, filename: str) -> Exported:
    return Exported(artifact, parse_bytecode(artifact.module, filename))


def _main(module: MlirModule) -> MlirOp:
    for op in module.operations:
        is_main = op.name == "func.func" and op.attributes.get("sym_name") == "main"
        if is_main and op.regions and op.regions[0].blocks:
            return op
    raise HloParseError("jax.export artifact: its module has no function 'main'")


def _takes_platform(main: MlirOp) -> bool:
    """Whether main's first argument is the number of the platform."""
    attributes = main.attributes.get("arg_attrs")
    first = attributes[0] if isinstance(attributes, tuple) and attributes else {}
    return isinstance(first, dict) and first.get("jax.global_constant") == _PLATFORM
