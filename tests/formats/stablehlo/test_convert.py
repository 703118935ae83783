"""From the tree to HLO: the entry, its header, captured values, calls, shardings, annotations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from haloc import interpreter, xla_client
from haloc.errors import UnimplementedError
from haloc.formats.hlo_text import parse_module, to_text
from haloc.formats.stablehlo import parse_stablehlo
from haloc.ir.module import HloModule
from haloc.verifier import verify

X = np.ones((4, 4), np.float32)


def read(text: str) -> HloModule:
    module = parse_stablehlo(text)
    verify(module)
    printed = to_text(module)
    assert to_text(parse_module(printed)) == printed
    return module


def body(text: str, arguments: str = "%a: tensor<4xf32>", result: str = "tensor<4xf32>") -> str:
    return f"func.func @main({arguments}) -> {result} {{\n{text}\n}}\n"


# --- The entry -----------------------------------------------------------------------------------


def test_one_result_is_the_root_and_several_are_a_tuple():
    one = read(body("return %a : tensor<4xf32>"))
    assert one.entry.root.opcode == "parameter"
    two = read(
        body(
            "return %a, %a : tensor<4xf32>, tensor<4xf32>", result="(tensor<4xf32>, tensor<4xf32>)"
        )
    )
    assert str(two.entry.root.shape) == "(f32[4]{0}, f32[4]{0})"
    none = read(body("return", result="()"))
    assert str(none.entry.root.shape) == "()"


def test_entry_without_main():
    text = body("return %a : tensor<4xf32>").replace("@main", "@f")
    private = text.replace("func.func @f", "func.func private @g")
    assert read(text + private).entry.name == "f"


def test_module_attributes_and_aliasing():
    lowered = jax.jit(lambda a, b: (a + b, b * 2), donate_argnums=1).lower(X, X)
    module = read(lowered.as_text())
    assert module.name == "jit__lambda"
    # The header is what XLA's own conversion gives.
    hlo = parse_module(lowered.compiler_ir("hlo").as_hlo_text())
    assert module.header["input_output_alias"] == hlo.header["input_output_alias"]
    text = lowered.as_text().replace("num_replicas = 1", "num_replicas = 2")
    text = text.replace("num_partitions = 1", "num_partitions = 4")
    header = parse_stablehlo(text).header
    assert (header["replica_count"], header["num_partitions"]) == (2, 4)


def test_buffer_donors_layout_modes_and_memory_kinds():
    arguments = (
        "%a: tensor<4xf32> {jax.buffer_donor = true}, "
        '%b: tensor<4xf32> {mhlo.layout_mode = "{0}", mhlo.memory_kind = "pinned_host"}'
    )
    header = read(body("return %a : tensor<4xf32>", arguments)).header
    assert header["buffer_donor"] == ((0, ()),)
    assert header["frontend_attributes"] == {
        "arg_layout_modes": "default;{0}",
        "arg_memory_kinds": "default;pinned_host",
    }


def test_donated_buffers_are_reused():
    lowered = jax.jit(lambda a: a + 1, donate_argnums=0).lower(X)
    client = xla_client.make_cpu_client()
    executable = client.compile_and_load(
        lowered.as_text(), executable_devices=client.local_devices()
    )
    given = client.buffer_from_pyval(np.zeros((4, 4), np.float32))
    (result,) = executable.execute([given])
    assert given.is_deleted()
    np.testing.assert_array_equal(np.asarray(result), X)


# --- Locations -----------------------------------------------------------------------------------


def test_locations_are_metadata_and_names():
    text = body("%0 = stablehlo.add %a, %a : tensor<4xf32> loc(#loc2)\n  return %0 : tensor<4xf32>")
    text = text.replace("tensor<4xf32>)", 'tensor<4xf32> loc("x"))', 1)
    text += '#loc1 = loc("f.py":3:4 to :9)\n#loc2 = loc("jit(f)/while/body/mul"(#loc1))\n'
    root = read(text).entry.root
    assert root.name == "mul"
    assert root.metadata == {
        "op_name": "jit(f)/while/body/mul",
        "source_file": "f.py",
        "source_line": 3,
        "source_end_line": 3,
        "source_column": 4,
        "source_end_column": 9,
    }
    assert root.operands[0].name == "x"


# --- Regions -------------------------------------------------------------------------------------


def test_while_carries_what_it_captures():
    def f(n, x):
        y = jnp.sin(x)
        return jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * y + x), (0, x))

    lowered = jax.jit(f).lower(np.int32(3), X)
    # JAX carries captured values itself; this is the form that leaves them to the reader.
    text = """
    func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
      %y = stablehlo.sine %x : tensor<4xf32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4xf32>
      cond {
        %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        %w = stablehlo.multiply %v, %y : tensor<4xf32>
        stablehlo.return %j, %w : tensor<i32>, tensor<4xf32>
      }
      return %r#0, %r#1 : tensor<i32>, tensor<4xf32>
    }
    """
    module = read(text)
    (loop,) = module.instructions("while")
    # i and v, then n and y; the constants stand in the regions.
    assert [e.to_string(False) for e in loop.shape.elements] == [
        "s32[]",
        "f32[4]",
        "s32[]",
        "f32[4]",
    ]
    x = np.array([0.5, 1, 2, 3], np.float32)
    count, value = interpreter.run(module, [np.int32(3), x])
    assert count == 3
    np.testing.assert_allclose(value, x * np.sin(x) ** 3, rtol=1e-6)
    got = interpreter.run(read(lowered.as_text()), [np.int32(3), X])
    np.testing.assert_allclose(got[1], np.asarray(jax.jit(f)(np.int32(3), X)[1]), rtol=1e-6)


def test_nested_regions_capture_from_two_levels_out():
    text = """
    func.func @main(%p: tensor<i1>, %x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
      %0 = "stablehlo.if"(%p) ({
        %1 = "stablehlo.if"(%p) ({
          %2 = stablehlo.subtract %x, %y : tensor<f32>
          stablehlo.return %2 : tensor<f32>
        }, {
          stablehlo.return %y : tensor<f32>
        }) : (tensor<i1>) -> tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }, {
        stablehlo.return %x : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    """
    module = read(text)
    arguments = [np.float32(7), np.float32(3)]
    assert interpreter.run(module, [np.True_, *arguments]) == 4
    assert interpreter.run(module, [np.False_, *arguments]) == 7


def test_functions_are_converted_once():
    text = body(
        "%0 = call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>\n"
        "%1 = call @f(%0) : (tensor<4xf32>) -> tensor<4xf32>\n  return %1 : tensor<4xf32>"
    )
    text += body("return %a : tensor<4xf32>").replace("@main", "private @f")
    module = read(text)
    assert list(module.computations) == ["f", "main"]


# --- Calls ---------------------------------------------------------------------------------------


def test_custom_call_attributes():
    text = body(
        """
        %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {api_version = 4 : i32,
          backend_config = {uplo = 76 : ui8, x = 0.5 : f32, s = "t"}, has_side_effect = true,
          mhlo.frontend_attributes = {num_batch_dims = "0"},
          operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
          output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0],
            operand_index = 0, operand_tuple_indices = []>],
          result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
          : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<i32>)
        return %0#1 : tensor<i32>""",
        "%a: tensor<2x3xf32>",
        "tensor<i32>",
    )
    (call,) = parse_stablehlo(text).instructions("custom-call")
    assert str(call.shape) == "(f32[2,3]{0,1}, s32[])"
    assert call.backend_config == '{s = "t", uplo = 76 : ui8, x = 5.000000e-01 : f32}'
    assert call.frontend_attributes == {"num_batch_dims": "0"}
    assert call.attrs["api_version"] == "API_VERSION_TYPED_FFI"
    assert call.attrs["custom_call_has_side_effect"] is True
    assert call.attrs["output_to_operand_aliasing"] == (((0,), 0, ()),)
    assert str(call.attrs["operand_layout_constraints"][0]) == "f32[2,3]{0,1}"


def test_composite_is_a_call_of_its_decomposition():
    text = body(
        '%0 = stablehlo.composite "my.op" %a {composite_attributes = {k = 2 : i64}, '
        "decomposition = @f, version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  return %0 : tensor<4xf32>"
    )
    text += body("return %a : tensor<4xf32>").replace("@main", "private @f")
    root = read(text).entry.root
    assert (root.opcode, root.attrs["is_composite"]) == ("call", True)
    assert root.frontend_attributes == {
        "composite.attributes": "{k = 2 : i64}",
        "composite.name": "my.op",
        "composite.version": "3",
    }


def test_custom_calls_that_stand_for_ops_of_mhlo():
    text = body(
        "%0:2 = stablehlo.custom_call @mhlo.topk(%a) {mhlo.attributes = {k = 2 : i64, "
        "largest = true}} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)\n"
        "  return %0#1 : tensor<2xi32>",
        result="tensor<2xi32>",
    )
    assert [i.attrs["k"] for i in read(text).instructions("topk")] == [2]


# --- Constants -----------------------------------------------------------------------------------


def test_large_splats_are_broadcasts():
    text = body(
        "%0 = stablehlo.constant dense<1.5> : tensor<1000000x1000000xf32>\n"
        "  %1 = stablehlo.slice %0 [0:1, 0:2] : (tensor<1000000x1000000xf32>) -> tensor<1x2xf32>\n"
        "  return %1 : tensor<1x2xf32>",
        result="tensor<1x2xf32>",
    )
    module = read(text)
    assert [i.shape.dims for i in module.instructions("constant")] == [()]


def test_constants_keep_their_bits():
    text = body(
        "%0 = stablehlo.constant dense<[0x7FC00001, -0.0, 0xFF800000, 1.0e-45]> : tensor<4xf32>\n"
        "  return %0 : tensor<4xf32>"
    )
    value = interpreter.run(read(text), [np.zeros(4, np.float32)])
    assert value.view(np.uint32).tolist() == [0x7FC00001, 0x80000000, 0xFF800000, 1]


# --- Shardings -----------------------------------------------------------------------------------


def test_shardings_of_jax():
    mesh = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("a", "b"))
    spec = NamedSharding(mesh, PartitionSpec("a", "b"))

    def f(x):
        return jax.lax.with_sharding_constraint(jnp.sin(x), spec)

    lowered = jax.jit(f, in_shardings=spec).lower(X)
    module = read(lowered.as_text())
    assert str(module.entry.parameters[0].sharding) == "{replicated}"
    assert module.header["frontend_attributes"]["xla.sdy.meshes"].startswith("{mesh = #sdy.mesh<")
    (constraint,) = module.instructions("custom-call")
    assert constraint.attrs["custom_call_target"] == "Sharding"
    value = interpreter.run(module, [X])
    np.testing.assert_allclose(value, np.sin(X), rtol=1e-6)


def test_shardings_over_a_mesh_and_as_text():
    text = 'sdy.mesh @m = <["x"=2, "y"=4]>\nsdy.mesh @one = <[], device_ids=[3]>\n' + body(
        "%0 = sdy.sharding_constraint %b <@m, [{?}]> : tensor<4xf32>\n  return %0 : tensor<4xf32>",
        '%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x":(1)2, ?}], replicated={"y"}>},'
        ' %b: tensor<4xf32> {mhlo.sharding = "{devices=[2]0,1}"},'
        " %c: tensor<4xf32> {sdy.sharding = #sdy.sharding<@one, []>}",
        '(tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>})',
    )
    module = read(text)
    assert [str(p.sharding) for p in module.entry.parameters] == [
        "{mesh['x'=2,'y'=4], [{'x':(1)2, ?}], replicated={'y'}}",
        "{devices=[2]0,1}",
        "{maximal device=3}",
    ]
    assert str(module.entry.root.sharding) == "{mesh['x'=2,'y'=4], [{'y'}]}"


def test_shard_map_over_one_device_runs():
    mesh = Mesh(np.array(jax.devices()[:1]), ("a",))
    spec = PartitionSpec("a")
    f = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=spec, out_specs=spec)
    module = read(jax.jit(f).lower(X).as_text())
    np.testing.assert_array_equal(interpreter.run(module, [X]), X * 2)


# --- Types ---------------------------------------------------------------------------------------


def test_quantized_types_are_named():
    quantized = "tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>"
    text = body("return %a : " + quantized, "%a: " + quantized, quantized)
    with pytest.raises(UnimplementedError, match=r"quantized type tensor<4x!quant\.uniform<i8:f32"):
        parse_stablehlo(text)


def test_bounded_dynamic_shapes():
    text = body(
        "%0 = stablehlo.set_dimension_size %a, %n, dim = 0 : (tensor<4xf32>, tensor<i32>) -> "
        "tensor<?xf32, #stablehlo.bounds<4>>\n"
        "  return %0 : tensor<?xf32, #stablehlo.bounds<4>>",
        "%a: tensor<4xf32>, %n: tensor<i32>",
        "tensor<?xf32, #stablehlo.bounds<4>>",
    )
    assert str(parse_stablehlo(text).entry.root.shape) == "f32[<=4]{0}"


def test_reshape_to_a_bounded_shape():
    text = body(
        """%0 = stablehlo.set_dimension_size %a, %n, dim = 0 : (tensor<4x2xf32>, tensor<i32>) ->
          tensor<?x2xf32, #stablehlo.bounds<4, ?>>
        %1 = stablehlo.add %n, %n : tensor<i32>
        %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
        %3 = stablehlo.dynamic_reshape %0, %2 : (tensor<?x2xf32, #stablehlo.bounds<4, ?>>,
          tensor<1xi32>) -> tensor<?xf32, #stablehlo.bounds<8>>
        return %3 : tensor<?xf32, #stablehlo.bounds<8>>""",
        "%a: tensor<4x2xf32>, %n: tensor<i32>",
        "tensor<?xf32, #stablehlo.bounds<8>>",
    )
    module = parse_stablehlo(text)
    verify(module)
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(interpreter.run(module, [x, np.int32(3)]), np.arange(6))


def test_approximate_top_k_is_exact():
    x = np.random.default_rng(0).normal(size=(3, 50)).astype(np.float32)
    for keep in (True, False):
        lowered = jax.jit(lambda v, k=keep: jax.lax.approx_max_k(v, 4, aggregate_to_topk=k)).lower(
            x
        )
        values, indices = interpreter.run(read(lowered.as_text()), [x])
        wanted = -np.sort(-x, axis=1)[:, : values.shape[1]]
        np.testing.assert_array_equal(values, wanted)
        np.testing.assert_array_equal(np.take_along_axis(x, indices, 1), wanted)


def test_numbers_in_backend_configs():
    numbers = "a = 0.949999988 : f32, b = 0.1 : f64, e = 0.123456789 : f32, d = 1.0 : f32"
    config = "{c = 0x7F800000 : f32, " + numbers + "}"
    text = body(
        f"%0 = stablehlo.custom_call @f(%a) {{backend_config = {config}}} "
        ": (tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>"
    )
    (call,) = parse_stablehlo(text).instructions("custom-call")
    assert call.backend_config == (
        "{a = 9.500000e-01 : f32, b = 1.000000e-01 : f64, c = 0x7F800000 : f32, "
        "d = 1.000000e+00 : f32, e = 0.123456791 : f32}"
    )


MANUAL = """
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"x"}, {}]>]
      out_shardings=[<@m, [{"x"}, {}]>] manual_axes={"x", "y"} (%b: tensor<4x4xf32>) {
    %1 = stablehlo.negate %b : tensor<4x4xf32>
    sdy.return %1 : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""


def test_manual_computation_over_several_devices_is_cut_and_joined():
    module = read(MANUAL)
    found = [
        (i.attrs.get("custom_call_target", i.opcode), i.shape.dims, str(i.sharding))
        for i in module.entry.instructions[1:]
    ]
    over_x = "{mesh['x'=2,'y'=2], [{'x'}, {}]}"
    assert found == [
        ("Sharding", (8, 4), over_x),
        ("SPMDFullToShardShape", (4, 4), "{manual}"),
        ("negate", (4, 4), "None"),
        ("Sharding", (4, 4), "{manual}"),
        ("SPMDShardToFullShape", (8, 4), over_x),
    ]


def test_manual_computation_over_some_axes_is_refused():
    with pytest.raises(UnimplementedError, match="manual over some axes only: y is left"):
        parse_stablehlo(MANUAL.replace('manual_axes={"x", "y"}', 'manual_axes={"x"}'))
