"""Every wrong program gives one clear error of the right class, on every backend."""

from __future__ import annotations

import pytest

from haloc.errors import HloError, HloParseError, InternalError, ResourceExhaustedError
from haloc.xla_client import Client, make_cpu_client, make_interpreter_client
from tests.bad_input.programs import CONSTRAINTS, SYNTAX, UNSUPPORTED, Case
from tests.runtime.programs import LOOP

CASES = SYNTAX | CONSTRAINTS | UNSUPPORTED


@pytest.fixture(scope="module", params=["interpreter", "cpu"])
def client(request: pytest.FixtureRequest) -> Client:
    return {"interpreter": make_interpreter_client, "cpu": make_cpu_client}[request.param]()


def refusal(client: Client, text: str | bytes) -> HloError:
    with pytest.raises(HloError) as caught:
        client.compile_and_load(text, client.devices())
    return caught.value


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_refused(client: Client, case: Case) -> None:
    text, kind, message = case
    error = refusal(client, text)
    assert isinstance(error, kind)
    assert not isinstance(error, InternalError)
    assert message in str(error)
    assert str(error).startswith(f"{error.code}: ")


@pytest.mark.parametrize(
    "name", [n for n, c in SYNTAX.items() if c[1] is HloParseError and isinstance(c[0], str)]
)
def test_syntax_errors_show_the_place(client: Client, name: str) -> None:
    text = SYNTAX[name][0]
    assert isinstance(text, str)
    error = refusal(client, text)
    assert isinstance(error, HloParseError)
    assert 1 <= error.line <= text.count("\n") + 1
    assert f"<string>:{error.line}:{error.column}" in str(error)
    assert "^" in str(error).splitlines()[-1]


def test_all_faults_are_reported_at_once(client: Client) -> None:
    text = """HloModule m
    ENTRY e {
      x = f32[2,3] parameter(0)
      a = f32[2,4] negate(x)
      ROOT b = f32[9] reshape(x)
    }"""
    message = str(refusal(client, text))
    assert message.startswith("INVALID_ARGUMENT: 2 faults in module m")
    assert "negate: the shape is f32[2,4]" in message
    assert "reshape: " in message


def test_two_results_in_one_parameters_memory(client: Client) -> None:
    text = """HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (0, {}, may-alias) }
    ENTRY e {
      x = f32[2] parameter(0)
      y = f32[2] negate(x)
      ROOT t = (f32[2], f32[2]) tuple(x, y)
    }"""
    assert "input_output_alias gives parameter 0" in str(refusal(client, text))


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_truncated_text_never_crashes(client: Client, cut: int) -> None:
    try:
        client.compile_and_load(LOOP[:cut], client.devices())
    except HloError as error:
        assert not isinstance(error, InternalError)


@pytest.mark.parametrize("size", [1 << 50, (1 << 63) - 1])
def test_more_memory_than_there_is(client: Client, size: int) -> None:
    text = f"HloModule m\nENTRY e {{ c = f32[] constant(1)\n ROOT b = f32[{size}] broadcast(c) }}"
    text = text.replace("broadcast(c)", "broadcast(c), dimensions={}")
    with pytest.raises(ResourceExhaustedError, match="Out of memory while trying to allocate"):
        client.compile_and_load(text, client.devices()).execute([])
