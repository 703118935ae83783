"""Programs get small and keep their fault; a process that dies is survived."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from haloc.errors import HloError, InternalError, InvalidArgumentError
from haloc.formats.hlo_text import parse_module, to_text
from haloc.ir.literal import Value
from haloc.ir.module import HloModule
from haloc.triage.engine import NATIVE, Engine, random_values
from haloc.triage.failures import Command, Crash, Mismatch
from haloc.triage.reduce import reduced
from haloc.triage.worker import Isolated
from haloc.verifier import verify
from tests.fuzz.generate import random_arguments, random_module
from tests.triage.faults import PROGRAM, BrokenRule, Deadly

PASSES = Engine("passes")


def arguments_of(module: HloModule) -> list[Value]:
    return random_values([p.shape for p in module.entry.parameters], 0)


def opcodes(module: HloModule) -> list[str]:
    return sorted(i.opcode for i in module.instructions())


class TestReduced:
    def test_a_broken_rule(self):
        module = parse_module(PROGRAM)
        text = to_text(module)
        # In another process: candidates may be loops without an end.
        with Isolated(BrokenRule(), timeout_s=5.0, deaths_count=False) as fault:
            small = reduced(module, arguments_of(module), fault, constants=False)
            filled = reduced(small.module, small.arguments, fault)
        assert BrokenRule()(small.module, small.arguments) == "mismatch"
        assert opcodes(small.module) == ["atan2", "parameter", "parameter"]
        assert small.module.entry.root.shape.to_string(False) == "f32[1,1]"
        assert not small.module.entry.root.metadata
        assert [a.shape for a in small.arguments] == [(1, 1), (1, 1)]
        assert to_text(module) == text
        assert BrokenRule()(filled.module, filled.arguments) == "mismatch"
        assert len(filled.arguments) < 2  # small arguments end up inside

    def test_inside_a_loop(self):
        """What is wrong stands in the body: the loop stays, the rest goes."""
        module = parse_module(PROGRAM)

        def fault(candidate: HloModule, arguments: Sequence[Value]) -> str:
            bodies = [i.attrs["body"] for i in candidate.instructions("while")]
            return "cosine in a loop" * any(
                i.opcode == "cosine" for body in bodies for i in body.instructions
            )

        small = reduced(module, arguments_of(module), fault)
        found = opcodes(small.module)
        assert found.count("while") == 1 and found.count("cosine") == 1
        assert "sine" not in found and "reduce" not in found and "atan2" not in found
        assert len(found) < 20
        verify(small.module)

    @pytest.mark.parametrize("seed", range(6))
    def test_random_programs_keep_an_opcode(self, seed):
        module = random_module(seed)
        wanted = module.entry.instructions[-2].opcode  # dead, or a result

        def fault(candidate: HloModule, arguments: Sequence[Value]) -> str:
            return "there" if wanted in opcodes(candidate) else ""

        small = reduced(module, random_arguments(module, seed), fault, constants=False)
        verify(small.module)
        assert wanted in opcodes(small.module)
        assert len(opcodes(small.module)) < len(opcodes(module))
        shapes = [p.shape.dims for p in small.module.entry.parameters if p.shape.is_array]
        assert [np.shape(a) for a in small.arguments if not isinstance(a, tuple)] == shapes

    def test_a_program_that_is_right(self):
        module = parse_module(PROGRAM)
        with pytest.raises(InvalidArgumentError, match="nothing is wrong with big"):
            reduced(module, arguments_of(module), Mismatch(PASSES))

    def test_an_interruption_ends_it_with_the_smallest_so_far(self):
        module = parse_module(PROGRAM)
        found = []

        def fault(candidate: HloModule, arguments: Sequence[Value]) -> str:
            if len(found) == 1:
                found.append(candidate)
                raise KeyboardInterrupt
            if "atan2" not in opcodes(candidate):
                return ""
            if len(opcodes(candidate)) < len(opcodes(module)):
                found.append(candidate)
            return "there"

        small = reduced(module, arguments_of(module), fault, constants=False)
        assert opcodes(small.module) == opcodes(found[0]) != opcodes(module)

    def test_steps_are_told(self):
        steps = []
        module = parse_module(PROGRAM)
        reduced(
            module,
            arguments_of(module),
            lambda m, a: "there" if "atan2" in opcodes(m) else "",
            on_step=lambda tried, program: steps.append((tried, program.size[0])),
        )
        assert steps[-1] == (len({tried for tried, _ in steps}), 1)
        assert len(steps) > 5


class TestFailures:
    def test_nothing_is_wrong(self):
        module = parse_module(PROGRAM)
        assert Mismatch(NATIVE)(module, arguments_of(module)) == ""
        assert Crash(PASSES)(module, arguments_of(module)) == ""

    def test_a_crash_is_no_error_of_the_program(self, monkeypatch):
        module = parse_module(PROGRAM)
        for error, told in (
            (HloError("x"), ""),
            (KeyError("x"), "KeyError 'x'"),
            (InternalError("a b c d e f"), "InternalError INTERNAL: a b c"),
        ):

            def fail(*_, error=error):
                raise error

            monkeypatch.setattr("haloc.interpreter.run", fail)
            assert Crash(PASSES)(module, arguments_of(module)) == told

    def test_commands(self, tmp_path):
        module = parse_module(PROGRAM)
        assert Command("grep -q atan2")(module, []) == "the command exits with 0"
        assert Command("grep -q atan3")(module, []) == ""
        assert Command(f"cp {{}} {tmp_path}/copy.hlo")(module, [])
        assert (tmp_path / "copy.hlo").read_text() == to_text(module)
        assert Command("sleep 5", timeout_s=0.1)(module, []) == ""
        for text, message in (
            ("/nowhere/x", "No such file"),
            ("'", "No closing quotation"),
            ("", "an empty command"),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                Command(text)(module, [])


class TestIsolated:
    def test_a_process_that_ends_is_a_fault_and_the_next_one_lives(self):
        module = parse_module(PROGRAM)
        bare = parse_module("ENTRY e { ROOT x = f32[] parameter(0) }")
        with Isolated(Deadly("atan2")) as failure:
            assert failure(module, []) == "died of SIGSEGV"
            assert failure(bare, []) == ""
            small = reduced(module, arguments_of(module), failure, constants=False)
            assert opcodes(small.module) == ["atan2", "parameter", "parameter"]
            failure.failure = Deadly("atan2", "leaves")
            assert failure(module, []) == "exited with 7"
            failure.failure, failure.timeout_s = Deadly("atan2", "hangs"), 0.1
            assert failure(module, []) == "no answer in 0.1 s"
            failure.deaths_count = False
            assert failure(module, []) == ""
            failure.failure, failure.timeout_s = Mismatch(NATIVE), 30.0
            assert failure(module, arguments_of(module)) == ""
