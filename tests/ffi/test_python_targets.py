"""Python functions as custom call targets, and host callbacks."""

import threading
import traceback

import ml_dtypes
import numpy as np
import pytest

import haloc
from haloc.errors import HloError, InvalidArgumentError, NotFoundError
from haloc.ffi.registration import (
    custom_call,
    custom_call_targets,
    register_custom_call_handler,
    register_custom_call_target,
    unregister_custom_call_target,
)
from haloc.xla_client import make_cpu_client

X = np.float32([1, 2, 3])
ONE = """ENTRY e {
  x = f32[3] parameter(0)
  ROOT c = f32[3] custom-call(x), custom_call_target="test_python"%s
}"""


@pytest.fixture
def python():
    """A decorator for the target test_python, for the length of a test."""
    yield lambda **options: custom_call("test_python", **options)
    unregister_custom_call_target("test_python")


def test_a_function_that_returns(compiled, python):
    seen = []

    @python()
    def double(x):
        seen.append((x.dtype, x.shape, x.flags.writeable))
        return 2 * x

    np.testing.assert_array_equal(compiled(ONE % "")(X)[0], 2 * X)
    assert seen == [(np.float32, (3,), False)]


def test_a_function_that_fills(compiled, python):
    @python(writes_results=True)
    def fill(x, y, total, difference):
        total[...] = x + y
        difference[...] = x - y

    program = compiled(
        """ENTRY e {
          x = f32[3] parameter(0)
          y = f32[3] parameter(1)
          ROOT c = (f32[3], f32[3]) custom-call(x, y), custom_call_target="test_python"
        }"""
    )
    total, difference = program(3 * X, X)
    np.testing.assert_array_equal(total, 4 * X)
    np.testing.assert_array_equal(difference, 2 * X)


def test_typed_attributes_are_keywords(compiled, python):
    @python()
    def scaled(x, *, scale, offsets, name):
        assert name == "n"
        return x * scale + offsets.astype(np.float32)

    config = (
        ', api_version=API_VERSION_TYPED_FFI, backend_config="{scale = 2.0 : f32, '
        'offsets = array<i32: 1, 2, 3>, name = \\"n\\"}"'
    )
    np.testing.assert_array_equal(compiled(ONE % config)(X)[0], 3 * X)


def test_an_exception_ends_the_program(compiled, python):
    @python()
    def fail(x):
        raise ValueError("boom")

    program = compiled(ONE % "")
    for _ in range(2):
        with pytest.raises(HloError, match=r"^INTERNAL: CpuCallback error calling") as got:
            program(X)
        assert isinstance(got.value.__cause__, ValueError)
        text = got.value.message
        assert text.endswith("ValueError: boom")
        assert 'raise ValueError("boom")' in text
        assert "haloc/ffi" not in text
        assert "in custom-call c to test_python" in got.value.__notes__
        names = [f.name for f in traceback.extract_tb(got.value.__cause__.__traceback__)]
        assert names[-1] == "fail"


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (X.astype(np.float64), r"returned f64\[3\] as result 0, but the program wants f32\[3\]"),
        (X[:2], r"returned f32\[2\] as result 0"),
        ((X, X), "returned 2 arrays, but the program wants 1"),
        (None, "returned 0 arrays, but the program wants 1"),
        (["a"], r"returned <U1\[\] as result 0"),
    ],
)
def test_what_is_returned_must_fit(compiled, python, returned, message):
    python()(lambda x: returned)
    with pytest.raises(InvalidArgumentError, match=message):
        compiled(ONE % "")(X)


def test_only_calls_with_side_effects_are_kept(compiled, python):
    calls = []
    python()(lambda x: calls.append(1) or x)
    program = compiled(
        """ENTRY e {
          x = f32[3] parameter(0)
          a = f32[3] custom-call(x), custom_call_target="test_python"
          b = f32[3] custom-call(x), custom_call_target="test_python",
            custom_call_has_side_effect=true
          ROOT n = f32[3] negate(x)
        }"""
    )
    program(X)
    assert len(calls) in (1, 2)  # the interpreter runs what is there


def test_in_loops_and_branches(compiled, python):
    calls = []

    @python()
    def count(x):
        calls.append(float(x))
        return x + np.float32(1)

    program = compiled(
        """
        more {
          x = f32[] parameter(0)
          n = f32[] constant(4)
          ROOT l = pred[] compare(x, n), direction=LT
        }
        step {
          x = f32[] parameter(0)
          ROOT c = f32[] custom-call(x), custom_call_target="test_python"
        }
        same { ROOT x = f32[] parameter(0) }
        ENTRY e {
          x = f32[] parameter(0)
          w = f32[] while(x), condition=more, body=step
          n = f32[] constant(4)
          p = pred[] compare(w, n), direction=EQ
          ROOT k = f32[] conditional(p, w, w), true_computation=step, false_computation=same
        }"""
    )
    assert float(program(np.float32(0))[0]) == 5
    assert calls == [0, 1, 2, 3, 4]


def test_types_of_few_bits(compiled, python):
    python()(lambda x: x)
    text = (ONE % "").replace("f32", "s4")
    x = np.array([-8, 7, 1], ml_dtypes.int4)
    np.testing.assert_array_equal(compiled(text)(x)[0], x)


def test_programs_keep_their_target(compiled):
    custom_call("test_python")(lambda x: -x)
    program = compiled(ONE % "")
    program(X)
    unregister_custom_call_target("test_python")
    with pytest.raises(HloError, match="test_python"):
        compiled(ONE % "")(X)
    if program.client.platform == "cpu":
        np.testing.assert_array_equal(program(X)[0], -X)


def test_a_callback_may_run_a_program(compiled, python):
    inner = compiled("ENTRY e { x = f32[3] parameter(0)\n ROOT n = f32[3] negate(x) }")
    python()(lambda x: inner(np.array(x))[0])
    np.testing.assert_array_equal(compiled(ONE % "")(X)[0], -X)


LARGE = """ENTRY e {
  x = f32[900,900] parameter(0)
  d = f32[900,900] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[1,3] slice(d), slice={[0:1],[0:3]}
  r = f32[3] reshape(s)
  ROOT c = f32[3] %s
}"""


def test_a_callback_of_a_program_in_the_queue_may_run_programs(python):
    client = make_cpu_client(asynchronous=True)
    device = client.devices()[0]

    def loaded(text):
        return client.compile_and_load(f"HloModule m\n{text}", [device])

    small = loaded("ENTRY e { x = f32[3] parameter(0)\n ROOT n = f32[3] negate(x) }")
    large = loaded(LARGE % "negate(r)")
    eye = client.buffer_from_pyval(np.eye(900, dtype=np.float32))

    @python()
    def callback(x):
        (first,) = small.execute([client.buffer_from_pyval(np.array(x))])
        (second,) = large.execute([eye])
        return np.asarray(first) + np.asarray(second)

    outer = loaded(LARGE % 'custom-call(r), custom_call_target="test_python"')
    results = [outer.execute([eye])[0] for _ in range(2)]
    for result in results:
        np.testing.assert_array_equal(np.asarray(result), [-2, 0, 0])


def test_from_many_threads(compiled, python):
    python()(lambda x: 2 * x)
    program = compiled(ONE % "")
    results = {}

    def work(seed):
        results[seed] = [program(X + np.float32(seed))[0] for _ in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        for result in results[seed]:
            np.testing.assert_array_equal(result, 2 * (X + np.float32(seed)))


def test_the_packages_own_name(compiled):
    haloc.custom_call("test_python")(lambda x: x + 1)
    try:
        np.testing.assert_array_equal(compiled(ONE % "")(X)[0], X + 1)
    finally:
        unregister_custom_call_target("test_python")


def test_unknown_targets_name_the_nearest(compiled, python):
    python()(lambda x: x)
    with pytest.raises(HloError, match=r"test_pythn.*test_python"):
        compiled((ONE % "").replace("test_python", "test_pythn"))(X)


def test_the_list_of_targets(python):
    def function(x):
        return x

    python()(function)
    targets = custom_call_targets("cpu")
    assert targets["test_python"] is function
    assert "xla_ffi_python_cpu_callback" in targets
    assert "lapack_spotrf_ffi" in targets
    assert custom_call_targets("Host") == targets
    assert custom_call_targets("CUDA") == {}


def test_other_platforms_wait_for_their_handler():
    seen = []
    register_custom_call_target("a", 1, "test_platform", 1, 1)
    register_custom_call_handler("test_platform", lambda *what: seen.append(what))
    assert seen == [("a", 1, "test_platform", 1, 1)]
    register_custom_call_target("b", 2, "test_platform")
    register_custom_call_handler("test_platform", lambda *what: seen.append("never"))
    register_custom_call_target("c", 3, "test_platform")
    assert [what[0] for what in seen] == ["a", "b", "c"]


def test_forgetting_what_is_not_there():
    with pytest.raises(NotFoundError, match="no custom call target named 'test_nothing'"):
        unregister_custom_call_target("test_nothing")
