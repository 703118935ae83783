"""The contract of native programs: their context, calls that fail, and what is raised then."""

import ctypes

import numpy as np
import pytest

from haloc.codegen.kernel import PREFIX, Kernel, Phase
from haloc.cpu.compiler import CpuOptions, compile_module
from haloc.cpu.custom_call import TARGETS
from haloc.cpu.run_context import RunContext
from haloc.errors import DeadlineExceededError, HloError, InvalidArgumentError
from haloc.formats.hlo_text import parse_module

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@pytest.fixture
def callback_target(monkeypatch):
    """custom-call target "callback": s32[] -> s32[], a Python function (run, argument, result) ->
    status, set by `callback_target.function = ...`."""

    class Holder:
        function = None

    @_CALLBACK
    def trampoline(argument, result, run):
        return Holder.function(
            RunContext.at(run),
            ctypes.c_int32.from_address(argument),
            ctypes.c_int32.from_address(result),
        )

    def emit(instruction, target):
        symbol = f"{PREFIX}.call"
        text = f"""
define i32 @{symbol}(ptr %b0, ptr %b1, ptr %scratch, ptr %run) nounwind {{
  %status = call i32 @test_callback(ptr %b0, ptr %b1, ptr %run)
  ret i32 %status
}}
"""
        address = ctypes.cast(trampoline, ctypes.c_void_p).value
        declares = ("declare i32 @test_callback(ptr, ptr, ptr)",)
        phases = (Phase(symbol, can_fail=True),)
        return Kernel(text, phases, declares, symbols={"test_callback": address})

    monkeypatch.setitem(TARGETS, "callback", emit)
    return Holder


LOOP = """
HloModule m
go_on {
  s = (s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT l = pred[] compare(i, n), direction=LT
}
step {
  s = (s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  c = s32[] custom-call(i), custom_call_target="callback", custom_call_has_side_effect=true
  ROOT t = (s32[]) tuple(c)
}
ENTRY e {
  p = s32[] parameter(0)
  t = (s32[]) tuple(p)
  w = (s32[]) while(t), condition=go_on, body=step
  ROOT r = s32[] get-tuple-element(w), index=0
}
"""


def run(program, argument, context=None):
    given, result = np.array(argument, np.int32), np.array(-1, np.int32)
    arena = np.zeros(program.arena_bytes + 64, np.uint8)
    pointer = -(-arena.ctypes.data // 64) * 64
    program.run([given.ctypes.data], [result.ctypes.data], pointer, context)
    return int(result)


def test_a_call_that_succeeds_goes_on(callback_target):
    def add_three(context, argument, result):
        result.value = argument.value + 3
        return 0

    callback_target.function = add_three
    program = compile_module(parse_module(LOOP), CpuOptions(passes=False))
    assert program.uses_run
    assert run(program, 0) == 12


def test_a_call_that_fails_ends_the_program_with_its_exception(callback_target):
    seen = []

    def count_to_two(context, argument, result):
        seen.append(argument.value)
        result.value = argument.value + 1
        return context.fail(ValueError("two")) if argument.value == 2 else 0

    callback_target.function = count_to_two
    program = compile_module(parse_module(LOOP), CpuOptions(passes=False))
    with pytest.raises(ValueError, match="two"):
        run(program, 0)
    assert seen == [0, 1, 2]
    assert run(program, 11) == 11  # the program still runs


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        (3, InvalidArgumentError, "INVALID_ARGUMENT"),
        (4, DeadlineExceededError, "DEADLINE_EXCEEDED"),
        (13, HloError, "INTERNAL"),
        (99, HloError, "UNKNOWN"),
    ],
)
def test_a_bare_status_becomes_an_error(callback_target, status, error, code):
    callback_target.function = lambda context, argument, result: status
    program = compile_module(parse_module(LOOP), CpuOptions(passes=False))
    with pytest.raises(error, match=f"^{code}: "):
        run(program, 0)


def test_the_first_failure_of_a_run_is_kept():
    context = RunContext()
    assert context.fail(InvalidArgumentError("first")) == 3
    assert context.fail(ValueError("second")) == 13
    assert context.exception(13).message == "first"


def test_replica_and_partition_ids_come_from_the_context():
    program = compile_module(
        parse_module("""
        HloModule m
        ENTRY e {
          p = s32[] parameter(0)
          r = u32[] replica-id()
          q = u32[] partition-id()
          c = u32[] constant(100)
          m = u32[] multiply(r, c)
          s = u32[] add(m, q)
          t = s32[] convert(s)
          ROOT o = s32[] add(t, p)
        }""")
    )
    assert run(program, 1) == 1
    assert run(program, 1, RunContext(replica_id=7, partition_id=3)) == 704


def test_programs_without_such_calls_get_no_context():
    program = compile_module(
        parse_module("HloModule m\nENTRY e {\n  p = s32[] parameter(0)\n"
                     "  ROOT n = s32[] negate(p)\n}")
    )  # fmt: skip
    assert not program.uses_run
    assert run(program, 5) == -5
