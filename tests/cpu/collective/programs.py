"""Runs HLO as several participants, natively and in the interpreter."""

from __future__ import annotations

import numpy as np

from haloc import interpreter
from haloc.cpu.collective.call import ParticipantCall
from haloc.cpu.compiler import CpuOptions, compile_module
from haloc.cpu.run_context import RunContext
from haloc.formats.hlo_text import parse_module
from haloc.verifier import verify


def aligned(size_bytes):
    raw = np.zeros(size_bytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size_bytes]


class Native:
    """A module compiled for num_replicas x num_partitions participants."""

    def __init__(self, text, num_replicas, num_partitions=1):
        module = parse_module(text)
        verify(module)
        options = CpuOptions(num_replicas=num_replicas, num_partitions=num_partitions)
        self.program = compile_module(module, options)
        self.counts = (num_replicas, num_partitions)

    def run(self, arguments, timeout_s=20.0):
        """arguments[participant][leaf]; results likewise."""
        program, (replicas, partitions) = self.program, self.counts
        calls, results, kept = [], [], []
        for number in range(replicas * partitions):
            given = [np.ascontiguousarray(a).copy() for a in arguments[number]]
            own = [aligned(s.byte_size) for s in program.results]
            arena = aligned(program.arena_bytes)
            run = RunContext(number // partitions, number % partitions)
            pointers = [a.ctypes.data for a in given], [r.ctypes.data for r in own]
            calls.append(ParticipantCall(*pointers, arena.ctypes.data, run))
            results.append(own)
            kept.append((given, arena))
        program.run_gang(calls, timeout_s, (kept, results))
        return [
            [r.view(s.dtype.numpy).reshape(s.dims) for r, s in zip(own, program.results)]
            for own in results
        ]


def leaves(value):
    return [x for v in value for x in leaves(v)] if isinstance(value, tuple) else [value]


def check(text, arguments, num_replicas, num_partitions=1):
    """Native results are those of the interpreter, bit by bit; returns them."""
    got = Native(text, num_replicas, num_partitions).run(arguments)
    module = parse_module(text)
    wanted = interpreter.run_participants(module, arguments, num_replicas, num_partitions)
    for one, value in zip(got, wanted, strict=True):
        for x, y in zip(one, leaves(value), strict=True):
            np.testing.assert_array_equal(x, np.asarray(y))
    return got
