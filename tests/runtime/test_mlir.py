"""The functions of jaxlib's `_jax.mlir`, beside jaxlib's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.interpreters import mlir as jax_mlir
from jaxlib import _jax
from jaxlib.mlir import ir

from haloc import interpreter
from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.formats.hlo_proto import serialize_hlo_module
from haloc.formats.hlo_text import parse_module
from haloc.formats.stablehlo import parse_bytecode, to_hlo
from haloc.runtime import mlir
from haloc.runtime.xla_computation import XlaComputation
from haloc.verifier import verify

PROGRAM = """
HloModule m, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY e {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  ROOT z = f32[3] subtract(x, y)
}
"""


def test_computation_to_text_and_back():
    computation = XlaComputation(serialize_hlo_module(parse_module(PROGRAM)))
    text = mlir.xla_computation_to_mlir_module(computation)
    with jax_mlir.make_ir_context():
        assert str(ir.Module.parse(text)) == text
    back = mlir.mlir_module_to_xla_computation(text).as_hlo_module().ir
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(interpreter.run(back, [x, x + 1]), [-1, -1, -1])


def test_proto_to_bytecode():
    proto = serialize_hlo_module(parse_module(PROGRAM))
    ours, theirs = mlir.hlo_to_stablehlo(proto), _jax.mlir.hlo_to_stablehlo(proto)
    a, b = (to_hlo(parse_bytecode(data)).entry.root for data in (ours, theirs))
    assert (a.opcode, a.shape) == (b.opcode, b.shape)


@pytest.mark.parametrize("return_tuple", [False, True])
@pytest.mark.parametrize("use_tuple_args", [False, True])
def test_tuple_options(use_tuple_args, return_tuple):
    text = mlir.xla_computation_to_mlir_module(
        XlaComputation(serialize_hlo_module(parse_module(PROGRAM)))
    )
    ours = mlir.mlir_module_to_xla_computation(text, use_tuple_args, return_tuple)
    theirs = _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args, return_tuple)
    module = ours.as_hlo_module().ir
    verify(module)
    wanted = parse_module(theirs.as_hlo_text())
    assert [p.shape for p in module.entry.parameters] == [p.shape for p in wanted.entry.parameters]
    assert module.entry.root.shape == wanted.entry.root.shape
    ((output, number, inside, _),) = module.header["input_output_alias"]
    assert output == ((0,) if return_tuple else ())
    assert (number, inside) == (0, (0,) if use_tuple_args else ())


def test_artifacts():
    text = jax.jit(lambda x: jax.scipy.special.erfc(x) + jax.nn.gelu(x)).lower(
        np.ones(4, np.float32)
    ).as_text()  # fmt: skip
    data = mlir.serialize_portable_artifact(text, "1.0.0")
    assert b"StableHLO_v1.0.0" in data
    again = mlir.deserialize_portable_artifact(data)
    with jax_mlir.make_ir_context() as context:
        assert str(_jax.mlir.deserialize_portable_artifact(data, context))
    x = np.linspace(-2, 2, 4, dtype=np.float32)
    wanted = interpreter.run(to_hlo(parse_bytecode(data)), [x])
    computation = mlir.mlir_module_to_xla_computation(again)
    np.testing.assert_array_equal(interpreter.run(computation.as_hlo_module().ir, [x]), wanted)
    np.testing.assert_allclose(
        wanted, jax.scipy.special.erfc(x) + jax.nn.gelu(x), rtol=1e-5, atol=1e-6
    )


def test_refine_polymorphic_shapes():
    (b,) = jax.export.symbolic_shape("b")
    exported = jax.export.export(jax.jit(lambda x: jnp.sum(x * 2.0, axis=0)))(
        jax.ShapeDtypeStruct((b, 3), np.float32)
    )
    text = str(exported.mlir_module())
    with pytest.raises(InvalidArgumentError, match=r"argument 0 of @main is tensor<\?x3xf32>"):
        mlir.refine_polymorphic_shapes(text.encode())
    static = """
    func.func public @main(%a: tensor<2x3xf32>) -> tensor<?x3xf32> {
      %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<2x3xf32>) -> tensor<i32>
      %c = stablehlo.constant dense<3> : tensor<1xi32>
      %1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %s = stablehlo.concatenate %1, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %z = stablehlo.constant dense<1.0> : tensor<f32>
      %r = stablehlo.dynamic_broadcast_in_dim %z, %s, dims = []
        : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
      return %r : tensor<?x3xf32>
    }"""
    module = to_hlo(parse_bytecode(mlir.refine_polymorphic_shapes(static.encode())))
    assert module.entry.root.shape.dims == (2, 3)


def test_what_is_not_there_is_named():
    for call in (
        lambda: mlir.serialize_portable_artifact("", "1.0.0", use_mixed_serialization=True),
        lambda: mlir.deserialize_portable_artifact(b"", context=object()),
        lambda: mlir.refine_polymorphic_shapes(b"", enable_shape_assertions=False),
        lambda: mlir.refine_polymorphic_shapes(b"", validate_static_shapes=False),
    ):
        with pytest.raises(
            UnimplementedError, match=r"use_mixed|context|enable_shape_assertions|validate_static"
        ):
            call()
    with pytest.raises(TypeError, match="not int"):
        mlir.mlir_module_to_xla_computation(3)
