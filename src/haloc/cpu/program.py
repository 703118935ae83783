"""A compiled program as it runs: code, constants, shapes. Neither LLVM nor the compiler is needed.

The compiler (`haloc.cpu.compiler`) makes programs; a stored one is made from its parts again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from struct import Struct

import numpy as np

from haloc.cpu.collective.call import ParticipantCall
from haloc.cpu.collective.gang import run_gang
from haloc.cpu.collective.site import Site
from haloc.cpu.object.image import Image
from haloc.cpu.object.loader import LoadedImage
from haloc.cpu.run_context import RunContext
from haloc.cpu.symbols import CALL_SITE_PREFIX, resolve
from haloc.ir.module import HloModule
from haloc.ir.shape import Shape

FUNCTION = "program"
"""The function of the image that runs the program: as in `haloc.cpu.run_context`."""

_PROTOTYPE = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_char_p, ctypes.c_char_p, *[ctypes.c_void_p] * 3
)


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """What running a program takes to know, besides its code and constants.

    parameters: shapes of the leaves of the entry's parameters, in order. result: the root's shape.
    aliases: result leaf -> parameter leaf whose memory it takes over (from input_output_alias):
    the argument's block is overwritten, and the same pointer has to be given for the result.
    arena_bytes: size of the block `run` works in; it needs no clearing and may be used by one run
    at a time. uses_run: whether the program looks at its run's context.
    features: what the code takes a CPU to have, as LLVM spells it.
    cost_ns: estimated time of a run. calls_host: whether it may call back. num_partitions, sites,
    gang_bytes: of the participants, and where they meet (`haloc.cpu.collective`).
    """

    parameters: tuple[Shape, ...]
    result: Shape
    aliases: dict[int, int]
    arena_bytes: int
    kernel_count: int
    uses_run: bool
    features: tuple[str, ...]
    cost_ns: float = 0.0
    calls_host: bool = False
    num_partitions: int = 1
    sites: tuple[Site, ...] = ()
    gang_bytes: int = 0


class CpuProgram:
    """A compiled module, ready to run. constants: its block, 64-byte aligned. optimized: makes the
    optimised module when it is asked for. symbols: addresses known besides `resolve`'s.

    pass_report: what the HLO passes did, text: the LLVM text, both where they were kept.
    """

    pass_report: object = None
    text: str = ""

    def __init__(
        self,
        facts: ProgramFacts,
        image: Image,
        constants: np.ndarray,
        optimized: Callable[[], HloModule],
        symbols: dict[str, int] | None = None,
    ):
        self.facts = facts
        self.image = image
        self.parameters = list(facts.parameters)
        self.result_shape = facts.result
        self.results = facts.result.leaves()
        self.aliases = facts.aliases
        self.arena_bytes = facts.arena_bytes
        self.kernel_count = facts.kernel_count
        self.uses_run = facts.uses_run
        self.cost_ns = facts.cost_ns
        self.code_size_bytes = image.code_size_bytes
        self.constants = constants
        self.constant_bytes = constants.nbytes
        self._make_optimized = optimized
        known = dict(symbols or {})
        imports = [name for name, _ in image.imports]
        if any(name.startswith(CALL_SITE_PREFIX) for name in imports):
            # Few programs need this, and loading the others should stay fast.
            from haloc.ffi.call_site import sites_of  # noqa: PLC0415

            self._sites = sites_of(self.optimized)
            known |= self._sites.symbols(imports)
        self._code = LoadedImage(image, lambda s: known[s] if s in known else resolve(s))
        self.function_pointer = self._code.address(FUNCTION)
        self.function = _PROTOTYPE(self.function_pointer)
        self.constants_pointer = constants.ctypes.data
        # Bytes are made faster than arrays of ctypes, and read as well.
        self._argument_words = Struct(f"{len(self.parameters)}Q").pack
        self._result_words = Struct(f"{len(self.results)}Q").pack

    @cached_property
    def optimized(self) -> HloModule:
        return self._make_optimized()

    def run(
        self,
        argument_pointers: Sequence[int],
        result_pointers: Sequence[int],
        arena_pointer: int,
        run: RunContext | None = None,
    ) -> None:
        """Execute once. Pointers are addresses of dense row-major arrays, one a leaf. run: the
        default is that of a lone participant. Raises what failed in the program."""
        if run is None and self.uses_run:
            run = RunContext()
        status = self.function(
            self._argument_words(*argument_pointers),
            self._result_words(*result_pointers),
            arena_pointer,
            self.constants_pointer,
            None if run is None else run.pointer,
        )
        if status:
            raise run.exception(status)  # type: ignore[union-attr]  # only runs with one can fail

    def run_gang(
        self, calls: Sequence[ParticipantCall], timeout_s: float, keep: object = None
    ) -> None:
        """Execute once by all participants together; see `haloc.cpu.collective.gang`."""
        run_gang(self, calls, timeout_s, keep)
