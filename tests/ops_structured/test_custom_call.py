"""custom-call: LAPACK routines as JAX calls them, annotations, and unknown targets."""

import numpy as np
import pytest

from haloc import interpreter
from haloc.errors import InvalidArgumentError, NotFoundError
from haloc.formats.hlo_text import parse_module
from haloc.ops.custom_call import config_attributes
from tests.ops_structured.against_jaxlib import assert_close, leaves, module
from tests.ops_structured.jax_programs import PROGRAMS, lowered

RTOL = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-10, "complex128": 1e-10}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("bits", [32, 64])
def test_linear_algebra_of_jax(name, bits):
    text, argument, wanted = lowered(name, bits)
    given = leaves(interpreter.run(parse_module(text), [argument]))
    for a, b in zip(given, wanted, strict=True):
        assert_close(a, b, RTOL.get(b.dtype.name, 0.0))


def test_annotations_pass_through():
    text = module(
        """  p = f32[3] parameter(0)
  ROOT c = f32[3] custom-call(p), custom_call_target="Sharding", sharding={replicated}"""
    )
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(interpreter.run(parse_module(text), [x]), x)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("my_kernel", "No registered implementation for untyped custom call to my_kernel for Host"),
        ("lapack_sgetrf", "lapack_sgetrf for Host; did you mean lapack_sgetrf_ffi?"),
    ],
)
def test_an_unknown_target_is_named_with_the_nearest(target, message):
    text = module(
        f"""  p = f32[3] parameter(0)
  ROOT c = f32[3] custom-call(p), custom_call_target="{target}\""""
    )
    with pytest.raises(NotFoundError) as error:
        interpreter.run(parse_module(text), [np.zeros(3, np.float32)])
    assert str(error.value).endswith(message)
    assert error.value.__notes__[0].startswith("evaluating ROOT %c = f32[3]{0} custom-call(%p)")


@pytest.mark.parametrize(
    ("config", "attributes"),
    [
        ("", {}),
        ("{}", {}),
        ("{uplo = 76 : ui8}", {"uplo": 76}),
        (
            '{mode = 86 : ui8, "x" = -1.5 : f32, t = "a, b", b = true}',
            {"mode": 86, "x": -1.5, "t": "a, b", "b": True},
        ),
        ('{"k": "v", "n": 1}', {"k": "v", "n": 1}),
    ],
)
def test_backend_config(config, attributes):
    parsed = parse_module(
        module(
            """  p = f32[3] parameter(0)
  ROOT c = f32[3] custom-call(p), custom_call_target="x\""""
        )
    )
    parsed.entry.root.backend_config = config
    assert config_attributes(parsed.entry.root) == attributes


def test_backend_config_that_cannot_be_read():
    parsed = parse_module(
        module(
            """  p = f32[3] parameter(0)
  ROOT c = f32[3] custom-call(p), custom_call_target="x\""""
        )
    )
    parsed.entry.root.backend_config = "{uplo = [1, 2]}"
    with pytest.raises(InvalidArgumentError, match=r"neither JSON nor an MLIR dictionary"):
        config_attributes(parsed.entry.root)
