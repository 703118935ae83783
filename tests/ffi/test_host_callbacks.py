"""host_callbacks of compile_and_load."""

import numpy as np
import pytest

from haloc.errors import HloError, InvalidArgumentError

X = np.float32([1, 2, 3])


def text(config="{index = 0 : ui64}", target="xla_ffi_python_cpu_callback", results="f32[3]"):
    return f"""ENTRY e {{
      x = f32[3] parameter(0)
      ROOT c = {results} custom-call(x), custom_call_target="{target}",
        api_version=API_VERSION_TYPED_FFI, backend_config="{config}"
    }}"""


def test_called_with_read_only_views(compiled):
    seen = []

    def callback(x):
        seen.append((type(x), x.dtype, x.shape, x.flags.writeable))
        return (2 * x,)

    program = compiled(text(), host_callbacks=[callback])
    np.testing.assert_array_equal(program(X)[0], 2 * X)
    assert seen == [(np.ndarray, np.float32, (3,), False)]


def test_by_their_number(compiled):
    callbacks = [lambda x: (x,), lambda x: (x + 1, x.sum(keepdims=True).astype(np.int32))]
    program = compiled(
        text("{index = 1 : ui64}", results="(f32[3], s32[1])"), host_callbacks=callbacks
    )
    plus, total = program(X)
    np.testing.assert_array_equal(plus, X + 1)
    np.testing.assert_array_equal(total, [6])


def test_the_older_form(compiled):
    older = """ENTRY e {
      x = f32[3] parameter(0)
      ROOT c = f32[3] custom-call(x), custom_call_target="xla_python_cpu_callback",
        backend_config="1"
    }"""
    program = compiled(older, host_callbacks=[lambda x: (x,), lambda x: [-x]])
    np.testing.assert_array_equal(program(X)[0], -X)


def test_each_executable_has_its_own(compiled):
    one = compiled(text(), host_callbacks=[lambda x: (x + 1,)])
    two = compiled(text(), host_callbacks=[lambda x: (x + 2,)])
    for _ in range(2):
        np.testing.assert_array_equal(one(X)[0], X + 1)
        np.testing.assert_array_equal(two(X)[0], X + 2)


def test_exceptions(compiled):
    def boom(x):
        raise KeyError("boom")

    program = compiled(text(), host_callbacks=[boom])
    with pytest.raises(HloError, match=r"^INTERNAL: CpuCallback error calling") as got:
        program(X)
    assert isinstance(got.value.__cause__, KeyError)
    assert "KeyError: 'boom'" in got.value.message


@pytest.mark.parametrize(
    ("callback", "message"),
    [
        (lambda x: x, "host callback 0 returned ndarray; wanted a tuple of 1 arrays"),
        (lambda x: None, "host callback 0 returned NoneType"),
        (lambda x: (x, x), "host callback 0 returned 2 arrays, but the program wants 1"),
        (lambda x: (x.astype(np.float64),), r"returned f64\[3\] as result 0"),
    ],
)
def test_what_is_returned_must_fit(compiled, callback, message):
    with pytest.raises(InvalidArgumentError, match=message):
        compiled(text(), host_callbacks=[callback])(X)


def test_numbers_that_there_are_not(compiled):
    with pytest.raises(InvalidArgumentError, match="is to host callback 3, but the executable has"):
        compiled(text("{index = 3 : ui64}"), host_callbacks=[lambda x: (x,)])(X)
    with pytest.raises(InvalidArgumentError, match="must say which host callback it calls"):
        compiled(text("{}"), host_callbacks=[lambda x: (x,)])(X)


def test_what_is_no_callback(compiled):
    with pytest.raises(TypeError, match=r"host_callbacks\[0\] is a int; wanted a callable"):
        compiled(text(), host_callbacks=[5])
