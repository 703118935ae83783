"""StableHLO programs over ops and attributes that JAX does not emit on CPU."""

PROGRAMS: dict[str, str] = {}


def add(name: str, arguments: str, results: str, body: str, rest: str = "") -> None:
    PROGRAMS[name] = f"""
module @{name} {{
  func.func public @main({arguments}) -> ({results}) {{
{body}
  }}
{rest}
}}"""


ADD = """({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    })"""

add(
    "all_gather",
    "%x: tensor<2x3xf32>",
    "tensor<4x3xf32>",
    """
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, use_global_device_ids,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}>
      : (tensor<2x3xf32>) -> tensor<4x3xf32>
    return %0 : tensor<4x3xf32>""",
)
add(
    "all_reduce",
    "%x: tensor<2x3xf32>",
    "tensor<2x3xf32>",
    f"""
    %0 = "stablehlo.all_reduce"(%x) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> {ADD}
      : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>""",
)
add(
    "all_to_all",
    "%x: tensor<2x4xf32>",
    "tensor<4x2xf32>",
    """
    %0 = "stablehlo.all_to_all"(%x) <{split_dimension = 1 : i64, concat_dimension = 0 : i64,
      split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>}>
      : (tensor<2x4xf32>) -> tensor<4x2xf32>
    return %0 : tensor<4x2xf32>""",
)
add(
    "collective_permute",
    "%x: tensor<2xf32>",
    "tensor<2xf32>, tensor<2xf32>",
    """
    %0 = "stablehlo.collective_permute"(%x) <{
      source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>}>
      : (tensor<2xf32>) -> tensor<2xf32>
    %1 = "stablehlo.collective_broadcast"(%0) <{
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32>
    return %0, %1 : tensor<2xf32>, tensor<2xf32>""",
)
add(
    "reduce_scatter",
    "%x: tensor<4xf32>",
    "tensor<2xf32>, tensor<ui32>, tensor<ui32>",
    f"""
    %0 = "stablehlo.reduce_scatter"(%x) <{{scatter_dimension = 0 : i64,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids,
      channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>}}> {ADD}
      : (tensor<4xf32>) -> tensor<2xf32>
    %1 = stablehlo.partition_id : tensor<ui32>
    %2 = stablehlo.replica_id : tensor<ui32>
    return %0, %1, %2 : tensor<2xf32>, tensor<ui32>, tensor<ui32>""",
)
add(
    "custom_call",
    "%x: tensor<2x3xf32>",
    "tensor<2x3xf32>, tensor<i32>",
    """
    %0:2 = "stablehlo.custom_call"(%x) <{call_target_name = "foo", has_side_effect = true,
      backend_config = "text", api_version = 2 : i32, called_computations = [@helper],
      operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
      result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>],
      output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0],
        operand_index = 0, operand_tuple_indices = []>]}> {mhlo.frontend_attributes = {a = "b"}}
      : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<i32>)
    %1 = stablehlo.custom_call @bar(%0#0) {api_version = 4 : i32,
      backend_config = {eps = 1.5 : f32, n = 3 : i64, name = "x", flag = true,
        list = [1 : i32, 2 : i32], arr = dense<[1, 2]> : tensor<2xi64>}}
      : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %1, %0#1 : tensor<2x3xf32>, tensor<i32>""",
    """
  func.func private @helper(%a: tensor<f32>) -> tensor<f32> {
    return %a : tensor<f32>
  }""",
)
add(
    "tokens",
    "%x: tensor<2xf32>, %t: !stablehlo.token",
    "tensor<2xf32>, !stablehlo.token",
    """
    %0 = stablehlo.create_token : !stablehlo.token
    %1 = stablehlo.after_all %0, %t : !stablehlo.token
    %2:2 = "stablehlo.infeed"(%1) <{infeed_config = "c", layout = [[0]]}>
      : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
    %3 = "stablehlo.outfeed"(%2#0, %2#1) <{outfeed_config = "d"}>
      : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
    %4 = "stablehlo.send"(%x, %3) <{is_host_transfer = true,
      channel_handle = #stablehlo.channel_handle<handle = 7, type = 2>}>
      : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
    %5:2 = "stablehlo.recv"(%4) <{is_host_transfer = true,
      channel_handle = #stablehlo.channel_handle<handle = 8, type = 3>}>
      : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
    return %5#0, %5#1 : tensor<2xf32>, !stablehlo.token""",
)
add(
    "dynamism",
    "%x: tensor<?x3xf32>, %s: tensor<2xi32>, %p: tensor<2xi32>",
    "tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xi32>, tensor<?x?xf32>, tensor<i32>",
    """
    %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [0, 1]
      {known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>}
      : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    %1 = stablehlo.dynamic_reshape %0, %s : (tensor<?x?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    %2 = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi32>) -> tensor<?x?xi32>
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %3 = stablehlo.dynamic_pad %1, %c, %p, %p, %p : (tensor<?x?xf32>, tensor<f32>, tensor<2xi32>,
      tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %4 = stablehlo.real_dynamic_slice %3, %p, %s, %s : (tensor<?x?xf32>, tensor<2xi32>,
      tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %5 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    return %1, %3, %2, %4, %5 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xi32>,
      tensor<?x?xf32>, tensor<i32>""",
)
add(
    "bounded",
    "%x: tensor<?x3xf32, #stablehlo.bounds<4, ?>>, %n: tensor<i32>",
    "tensor<?x3xf32, #stablehlo.bounds<4, ?>>",
    """
    %0 = stablehlo.set_dimension_size %x, %n, dim = 0
      : (tensor<?x3xf32, #stablehlo.bounds<4, ?>>, tensor<i32>)
      -> tensor<?x3xf32, #stablehlo.bounds<4, ?>>
    return %0 : tensor<?x3xf32, #stablehlo.bounds<4, ?>>""",
)
add(
    "dynamic_gather_and_conv",
    "%x: tensor<3x4x2xf32>, %i: tensor<2x3x2xi64>, %s: tensor<3xi64>, "
    "%l: tensor<1x8x8x4xf32>, %r: tensor<3x3x4x5xf32>, %p: tensor<2x2xi64>",
    "tensor<?x?x?x?xf32>, tensor<1x?x?x5xf32>",
    """
    %0 = "stablehlo.dynamic_gather"(%x, %i, %s) <{
      dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0],
        start_index_map = [1, 0], index_vector_dim = 2>, indices_are_sorted = true}>
      : (tensor<3x4x2xf32>, tensor<2x3x2xi64>, tensor<3xi64>) -> tensor<?x?x?x?xf32>
    %1 = "stablehlo.dynamic_conv"(%l, %r, %p) <{window_strides = array<i64: 4, 4>,
      dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
      batch_group_count = 1 : i64, feature_group_count = 1 : i64,
      precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]}>
      : (tensor<1x8x8x4xf32>, tensor<3x3x4x5xf32>, tensor<2x2xi64>) -> tensor<1x?x?x5xf32>
    return %0, %1 : tensor<?x?x?x?xf32>, tensor<1x?x?x5xf32>""",
)
add(
    "dots",
    "%a: tensor<2x3x4xbf16>, %b: tensor<2x4x5xbf16>",
    "tensor<2x3x5xf32>",
    """
    %0 = "stablehlo.dot_general"(%a, %b) <{
      dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0],
        rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2],
        rhs_contracting_dimensions = [1]>,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>],
      algorithm = #stablehlo.dot_algorithm<lhs_precision_type = bf16, rhs_precision_type = bf16,
        accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1,
        num_primitive_operations = 3, allow_imprecise_accumulation = false>}>
      : (tensor<2x3x4xbf16>, tensor<2x4x5xbf16>) -> tensor<2x3x5xf32>
    return %0 : tensor<2x3x5xf32>""",
)
add(
    "constants",
    "",
    "tensor<5xi4>, tensor<5xui4>, tensor<3xi2>, tensor<9xi1>, tensor<2x2xcomplex<f32>>, "
    "tensor<3xf8E4M3FN>, tensor<2xf4E2M1FN>, tensor<3xbf16>, tensor<100xf32>, tensor<0x2xf32>, "
    "tensor<2xui64>, tensor<3xi1>, tensor<8xi1>, tensor<f64>, tensor<1xi1>, tensor<3xf8E8M0FNU>",
    """
    %0 = stablehlo.constant dense<[-8, -1, 0, 3, 7]> : tensor<5xi4>
    %1 = stablehlo.constant dense<[0, 1, 7, 8, 15]> : tensor<5xui4>
    %2 = stablehlo.constant dense<[-2, -1, 1]> : tensor<3xi2>
    %3 = stablehlo.constant dense<[true, false, true, true, false, false, true, true, true]>
      : tensor<9xi1>
    %4 = stablehlo.constant dense<[[(1.0, 2.0), (-0.0, 1.0)], [(3.0, 0.5), (0.0, 1.0e10)]]>
      : tensor<2x2xcomplex<f32>>
    %5 = stablehlo.constant dense<[1.0, -0.5, 448.0]> : tensor<3xf8E4M3FN>
    %6 = stablehlo.constant dense<[1.5, -6.0]> : tensor<2xf4E2M1FN>
    %7 = stablehlo.constant dense<[1.0, 0x7F80, 0x7FC0]> : tensor<3xbf16>
    %8 = stablehlo.constant dense<2.5> : tensor<100xf32>
    %9 = stablehlo.constant dense<> : tensor<0x2xf32>
    %10 = stablehlo.constant dense<[18446744073709551615, 1]> : tensor<2xui64>
    %11 = stablehlo.constant dense<true> : tensor<3xi1>
    %12 = stablehlo.constant dense<false> : tensor<8xi1>
    %13 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %14 = stablehlo.constant dense<[true]> : tensor<1xi1>
    %15 = stablehlo.constant dense<[1.0, 0.5, 2.0]> : tensor<3xf8E8M0FNU>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15 : tensor<5xi4>,
      tensor<5xui4>, tensor<3xi2>, tensor<9xi1>, tensor<2x2xcomplex<f32>>, tensor<3xf8E4M3FN>,
      tensor<2xf4E2M1FN>, tensor<3xbf16>, tensor<100xf32>, tensor<0x2xf32>, tensor<2xui64>,
      tensor<3xi1>, tensor<8xi1>, tensor<f64>, tensor<1xi1>, tensor<3xf8E8M0FNU>""",
)
add(
    "composite",
    "%x: tensor<4xf32>",
    "tensor<4xf32>",
    """
    %0 = stablehlo.composite "my.op" %x {composite_attributes = {k = 1 : i64, s = "t"},
      decomposition = @inner, version = 2 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>""",
    """
  func.func private @inner(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.tanh %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }""",
)
add(
    "quantized",
    "%x: tensor<4xf32>, %y: tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 0.25:3, 2.0:-1}>>",
    "tensor<4xf32>, tensor<2x3xf32>",
    """
    %0 = stablehlo.uniform_quantize %x : (tensor<4xf32>)
      -> tensor<4x!quant.uniform<i8<-100:100>:f32, 0.5:-3>>
    %1 = stablehlo.uniform_dequantize %0
      : (tensor<4x!quant.uniform<i8<-100:100>:f32, 0.5:-3>>) -> tensor<4xf32>
    %2 = stablehlo.uniform_dequantize %y
      : (tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 0.25:3, 2.0:-1}>>) -> tensor<2x3xf32>
    return %1, %2 : tensor<4xf32>, tensor<2x3xf32>""",
)
add(
    "old_ops",
    "%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %i: tensor<2xi32>",
    "tensor<2x4xf32>, tensor<2x4xf32>, tensor<7x2x3xf32>, tensor<2x2xf32>, tensor<f32>, "
    "tensor<3x2xf32>",
    """
    %0 = stablehlo.dot %a, %b, precision = [HIGH, DEFAULT]
      : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %1 = "stablehlo.einsum"(%a, %b) <{einsum_config = "ab,bc->ac"}>
      : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %2 = stablehlo.broadcast %a, sizes = [7] : (tensor<2x3xf32>) -> tensor<7x2x3xf32>
    %3 = "stablehlo.torch_index_select"(%a, %i) <{batch_dims = 0 : i64, dim = 1 : i64}>
      : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x2xf32>
    %4 = stablehlo.constant dense<1.0> : tensor<f32>
    %5 = "stablehlo.unary_einsum"(%a) <{einsum_config = "ab->ba"}>
      : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %0, %1, %2, %3, %4, %5 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<7x2x3xf32>,
      tensor<2x2xf32>, tensor<f32>, tensor<3x2xf32>""",
)
add(
    "triangles",
    "%a: tensor<3x3xf32>, %b: tensor<3x2xf32>",
    "tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x2xf32>, tensor<3x2xf32>",
    """
    %0 = stablehlo.cholesky %a, lower = true : tensor<3x3xf32>
    %1 = stablehlo.cholesky %a : tensor<3x3xf32>
    %2 = "stablehlo.triangular_solve"(%0, %b) <{left_side = true, lower = false,
      transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}>
      : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %3 = "stablehlo.triangular_solve"(%0, %b) <{left_side = true, lower = true,
      transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = true}>
      : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    return %0, %1, %2, %3 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x2xf32>, tensor<3x2xf32>""",
)
add(
    "norms",
    "%x: tensor<2x3xf32>, %s: tensor<3xf32>",
    "tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>",
    """
    %0 = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s) <{epsilon = 1.0e-3 : f32,
      feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>,
      tensor<3xf32>) -> tensor<2x3xf32>
    %1:3 = "stablehlo.batch_norm_training"(%x, %s, %s) <{epsilon = 1.0e-3 : f32,
      feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
      -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
    %2:3 = "stablehlo.batch_norm_grad"(%x, %s, %s, %s, %x) <{epsilon = 1.0e-3 : f32,
      feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>,
      tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
    return %0, %1#0, %2#0 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>""",
)
add(
    "regions",
    "%x: tensor<4x6xf32>, %s: tensor<2x3xf32>, %i: tensor<i32>",
    "tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<2x3xf32>, tensor<4x6xf32>",
    """
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.select_and_scatter"(%x, %s, %c) <{window_dimensions = array<i64: 2, 2>,
      window_strides = array<i64: 2, 2>, padding = dense<0> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %p : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<2x3xf32>, tensor<f32>) -> tensor<4x6xf32>
    %1 = "stablehlo.map"(%x) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%a: tensor<f32>):
      %p = stablehlo.add %a, %c : tensor<f32>
      stablehlo.return %p : tensor<f32>
    }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %2 = "stablehlo.case"(%i) ({
      %k = stablehlo.add %x, %1 : tensor<4x6xf32>
      stablehlo.return %k : tensor<4x6xf32>
    }, {
      %k = "stablehlo.case"(%i) ({
        %m = stablehlo.multiply %x, %0 : tensor<4x6xf32>
        stablehlo.return %m : tensor<4x6xf32>
      }, {
        stablehlo.return %1 : tensor<4x6xf32>
      }) : (tensor<i32>) -> tensor<4x6xf32>
      stablehlo.return %k : tensor<4x6xf32>
    }) : (tensor<i32>) -> tensor<4x6xf32>
    %3 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 2, 2>,
      window_strides = array<i64: 2, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %p : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x3xf32>
    %4:2 = stablehlo.optimization_barrier %2, %3 : tensor<4x6xf32>, tensor<2x3xf32>
    return %0, %1, %4#0, %4#1, %2 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>,
      tensor<2x3xf32>, tensor<4x6xf32>""",
)
add(
    "tuples_and_rng",
    "%x: tensor<4xf32>, %k: tensor<2xui64>",
    "tensor<4xf32>, tensor<2x2xui32>, tensor<3xf32>, tensor<3xf32>",
    """
    %0 = stablehlo.tuple %x, %k : tuple<tensor<4xf32>, tensor<2xui64>>
    %1 = stablehlo.get_tuple_element %0[0]
      : (tuple<tensor<4xf32>, tensor<2xui64>>) -> tensor<4xf32>
    %2, %3 = stablehlo.rng_bit_generator %k, algorithm = PHILOX
      : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x2xui32>)
    %c = stablehlo.constant dense<1.0> : tensor<f32>
    %n = stablehlo.constant dense<3> : tensor<1xi64>
    %4 = stablehlo.rng %c, %c, %n, distribution = NORMAL
      : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
    %5 = stablehlo.exponential %4 {result_accuracy = #stablehlo.result_accuracy<ulps = 2,
      mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<3xf32>
    return %1, %3, %4, %5 : tensor<4xf32>, tensor<2x2xui32>, tensor<3xf32>, tensor<3xf32>""",
)
add(
    "attributes",
    "%x: tensor<4xf32> {jax.buffer_donor = true, tf.aliasing_output = 0 : i32, "
    'mhlo.sharding = "{replicated}", mhlo.layout_mode = "{0}"}, %y: tensor<4xf32>',
    'tensor<4xf32> {jax.result_info = "r"}',
    """
    %0 = stablehlo.add %x, %y {mhlo.frontend_attributes = {a = "b"}, mhlo.sharding = "{replicated}"}
      : tensor<4xf32>
    return %0 : tensor<4xf32>""",
)
PROGRAMS["attributes"] = PROGRAMS["attributes"].replace(
    "module @attributes",
    "module @attributes attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32,"
    " jax.uses_shape_polymorphism = false}",
)
for _name, _axis in {
    "mesh_axes": '<name = "x">',
    "part_of_a_mesh_axis": '<name = "y", sub_axis_info = (2)2>',
}.items():
    PROGRAMS[_name] = f"""
module @{_name} {{
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%x: tensor<2x3xf32>) -> tensor<4x3xf32> {{
    %0 = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, use_global_device_ids,
      replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh,
        axes = [#stablehlo.axis_ref{_axis}]>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}}>
      : (tensor<2x3xf32>) -> tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }}
}}"""
