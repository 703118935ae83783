"stablehlo.after_all"(%tok, %tok) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token
"stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.all_to_all"(%a) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0,1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<2x8xf32>
"stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0,1],[2,-1]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%z) : (tensor<f32>) -> ()}) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.reduce_scatter"(%a) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0,1]]> : tensor<1x2xi64>}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%z) : (tensor<f32>) -> ()}) : (tensor<4x4xf32>) -> tensor<2x4xf32>
"stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0,1],[1,0]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.collective_broadcast"(%a) <{replica_groups = dense<[[0,1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.all_to_all"(%a, %b3) <{split_dimension = 1 : i64, concat_dimension = 1 : i64, split_count = 1 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>}> : (tensor<4x4xf32>, tensor<2x3x4xf32>) -> (tensor<4x4xf32>, tensor<2x3x4xf32>)
"stablehlo.send"(%a, %tok) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0,1],[1,0]]> : tensor<2x2xi64>}> : (tensor<4x4xf32>, !stablehlo.token) -> !stablehlo.token
"stablehlo.recv"(%tok) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0,1],[1,0]]> : tensor<2x2xi64>}> : (!stablehlo.token) -> (tensor<4x4xf32>, !stablehlo.token)
"stablehlo.replica_id"() : () -> tensor<ui32>
"stablehlo.partition_id"() : () -> tensor<ui32>
"stablehlo.create_token"() : () -> !stablehlo.token
"stablehlo.batch_norm_training"(%a, %v, %v) <{epsilon = 1.0e-03 : f32, feature_index = 1 : i64}> : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>)
"stablehlo.batch_norm_inference"(%a, %v, %v, %v, %v) <{epsilon = 1.0e-03 : f32, feature_index = 1 : i64}> : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
"stablehlo.batch_norm_grad"(%a, %v, %v, %v, %a) <{epsilon = 1.0e-03 : f32, feature_index = 1 : i64}> : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>)
"stablehlo.bitcast_convert"(%a) : (tensor<4x4xf32>) -> tensor<4x4xi32>
"stablehlo.broadcast"(%v) <{broadcast_sizes = array<i64: 2, 3>}> : (tensor<4xf32>) -> tensor<2x3x4xf32>
"stablehlo.broadcast_in_dim"(%v) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>) -> tensor<2x4xf32>
"stablehlo.case"(%i) ({"stablehlo.return"(%a) : (tensor<4x4xf32>) -> ()}, {"stablehlo.return"(%a) : (tensor<4x4xf32>) -> ()}) : (tensor<i32>) -> tensor<4x4xf32>
"stablehlo.if"(%p) ({"stablehlo.return"(%a, %v) : (tensor<4x4xf32>, tensor<4xf32>) -> ()}, {"stablehlo.return"(%a, %v) : (tensor<4x4xf32>, tensor<4xf32>) -> ()}) : (tensor<i1>) -> (tensor<4x4xf32>, tensor<4xf32>)
"stablehlo.cbrt"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.cholesky"(%a) <{lower = true}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.clamp"(%s, %a, %s) : (tensor<f32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
"stablehlo.clamp"(%a, %a, %a) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.compare"(%a, %a) <{comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
"stablehlo.compare"(%a, %a) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
"stablehlo.complex"(%a, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xcomplex<f32>>
"stablehlo.real"(%c) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
"stablehlo.imag"(%c) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
"stablehlo.abs"(%c) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
"stablehlo.concatenate"(%v, %v) <{dimension = 0 : i64}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
"stablehlo.convert"(%a) : (tensor<4x4xf32>) -> tensor<4x4xbf16>
"stablehlo.convolution"(%img, %ker) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 2>, padding = dense<[[0, 1], [0, 1]]> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, true>, window_strides = array<i64: 1, 1>}> : (tensor<1x4x4x3xf32>, tensor<2x2x3x5xf32>) -> tensor<1x4x7x5xf32>
"stablehlo.convolution"(%img, %ker) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<1x4x4x3xf32>, tensor<2x2x3x5xf32>) -> tensor<1x3x3x5xf32>
"stablehlo.count_leading_zeros"(%n) : (tensor<4xi32>) -> tensor<4xi32>
"stablehlo.custom_call"(%a) <{call_target_name = "foo", has_side_effect = true, backend_config = "bar", api_version = 2 : i32, called_computations = [@other], operand_layouts = [dense<[0,1]> : tensor<2xindex>], result_layouts = [dense<[0,1]> : tensor<2xindex>]}> {mhlo.sharding = "{replicated}"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.custom_call"(%a) <{call_target_name = "foo", api_version = 4 : i32, backend_config = {a = 1 : i32, b = "x"}}> : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>)
"stablehlo.custom_call"(%a) <{call_target_name = "foo"}> : (tensor<4x4xf32>) -> tuple<tensor<4x4xf32>, tensor<i32>>
"stablehlo.composite"(%a) <{name = "my.op", decomposition = @other, composite_attributes = {k = 2 : i64}, version = 1 : i32}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.dot"(%a, %a) <{precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGHEST>]}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.dot"(%a, %v) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
"stablehlo.dot_general"(%b3, %b3) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>}> : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
"stablehlo.dot_general"(%a, %a) <{dot_dimension_numbers = #stablehlo.dot<>}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4x4x4xf32>
"stablehlo.dynamic_broadcast_in_dim"(%v, %sh2) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
"stablehlo.dynamic_iota"(%sh2) <{iota_dimension = 0 : i64}> : (tensor<2xi64>) -> tensor<2x4xf32>
"stablehlo.dynamic_reshape"(%v, %sh2b) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
"stablehlo.dynamic_pad"(%v, %s, %one, %one, %one) : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<9xf32>
"stablehlo.real_dynamic_slice"(%v, %one, %three, %one) : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>
"stablehlo.dynamic_gather"(%v, %n, %one) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<4xf32>, tensor<4xi32>, tensor<1xi64>) -> tensor<4xf32>
"stablehlo.dynamic_conv"(%img, %ker, %pad) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<1x4x4x3xf32>, tensor<2x2x3x5xf32>, tensor<2x2xi64>) -> tensor<1x5x5x5xf32>
"stablehlo.dynamic_slice"(%v, %i) <{slice_sizes = array<i64: 2>}> : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
"stablehlo.dynamic_update_slice"(%v, %v, %i) : (tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
"stablehlo.einsum"(%a, %a) <{einsum_config = "ij,jk->ik"}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.exponential"(%a) <{result_accuracy = #stablehlo.result_accuracy<atol = 0.0, rtol = 0.0, ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.fft"(%c) <{fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 4>}> : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
"stablehlo.gather"(%a, %idx) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = true}> : (tensor<4x4xf32>, tensor<2x1xi32>) -> tensor<2x4xf32>
"stablehlo.scatter"(%a, %idx, %upd) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>): "stablehlo.return"(%y) : (tensor<f32>) -> ()}) : (tensor<4x4xf32>, tensor<2x1xi32>, tensor<2x4xf32>) -> tensor<4x4xf32>
"stablehlo.get_dimension_size"(%a) <{dimension = 1 : i64}> : (tensor<4x4xf32>) -> tensor<i32>
"stablehlo.set_dimension_size"(%v, %i) <{dimension = 0 : i64}> : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
"stablehlo.tuple"(%a, %i) : (tensor<4x4xf32>, tensor<i32>) -> tuple<tensor<4x4xf32>, tensor<i32>>
"stablehlo.get_tuple_element"(%tup) <{index = 1 : i32}> : (tuple<tensor<4x4xf32>, tensor<i32>>) -> tensor<i32>
"stablehlo.infeed"(%tok) <{infeed_config = "x", layout = [[0, 1]]}> : (!stablehlo.token) -> (tensor<4x4xf32>, !stablehlo.token)
"stablehlo.outfeed"(%a, %tok) <{outfeed_config = "x"}> : (tensor<4x4xf32>, !stablehlo.token) -> !stablehlo.token
"stablehlo.send"(%a, %tok) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}> : (tensor<4x4xf32>, !stablehlo.token) -> !stablehlo.token
"stablehlo.recv"(%tok) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<4x4xf32>, !stablehlo.token)
"stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<2x4xi32>
"stablehlo.is_finite"(%a) : (tensor<4x4xf32>) -> tensor<4x4xi1>
"stablehlo.map"(%a, %a) <{dimensions = array<i64: 0, 1>}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%z) : (tensor<f32>) -> ()}) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.optimization_barrier"(%a, %v) : (tensor<4x4xf32>, tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
"stablehlo.optimization_barrier"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.pad"(%a, %s) <{edge_padding_low = array<i64: 1, -1>, edge_padding_high = array<i64: 0, 0>, interior_padding = array<i64: 0, 2>}> : (tensor<4x4xf32>, tensor<f32>) -> tensor<5x9xf32>
"stablehlo.reduce"(%a, %s) <{dimensions = array<i64: 0>}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%z) : (tensor<f32>) -> ()}) : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
"stablehlo.reduce"(%a, %s) <{dimensions = array<i64: 0, 1>}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = "stablehlo.add"(%y, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%z) : (tensor<f32>) -> ()}) {my.attr = "x"} : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
"stablehlo.reduce"(%a, %a, %s, %s) <{dimensions = array<i64: 0, 1>}> ({^bb0(%x: tensor<f32>, %x2: tensor<f32>, %y: tensor<f32>, %y2: tensor<f32>): %z = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%z, %y2) : (tensor<f32>, tensor<f32>) -> ()}) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
"stablehlo.reduce_precision"(%a) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.reduce_window"(%a, %s) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>, padding = dense<0> : tensor<2x2xi64>}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = "stablehlo.maximum"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%z) : (tensor<f32>) -> ()}) : (tensor<4x4xf32>, tensor<f32>) -> tensor<2x2xf32>
"stablehlo.select_and_scatter"(%a, %sm, %s) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1> "stablehlo.return"(%z) : (tensor<i1>) -> ()}, {^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%z) : (tensor<f32>) -> ()}) : (tensor<4x4xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<4x4xf32>
"stablehlo.reshape"(%a) : (tensor<4x4xf32>) -> tensor<2x8xf32>
"stablehlo.reverse"(%a) <{dimensions = array<i64: 0>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.rng"(%s, %s, %sh2) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x4xf32>
"stablehlo.rng_bit_generator"(%st) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
"stablehlo.select"(%p, %a, %a) : (tensor<i1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.slice"(%a) <{start_indices = array<i64: 0, 1>, limit_indices = array<i64: 4, 3>, strides = array<i64: 2, 1>}> : (tensor<4x4xf32>) -> tensor<2x2xf32>
"stablehlo.sort"(%v, %n) <{dimension = -1 : i64, is_stable = true}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>, %x2: tensor<i32>, %y2: tensor<i32>): %z = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1> "stablehlo.return"(%z) : (tensor<i1>) -> ()}) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
"stablehlo.tan"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.torch_index_select"(%a, %n) <{dim = 1 : i64, batch_dims = 0 : i64}> : (tensor<4x4xf32>, tensor<4xi32>) -> tensor<4x4xf32>
"stablehlo.torch_index_select"(%b3, %n2) <{dim = 1 : i64, batch_dims = 1 : i64}> : (tensor<2x3x4xf32>, tensor<2x5xi32>) -> tensor<2x5x4xf32>
"stablehlo.transpose"(%a) <{permutation = array<i64: 1, 0>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.triangular_solve"(%a, %a) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
"stablehlo.while"(%a, %i) ({^bb0(%x: tensor<4x4xf32>, %y: tensor<i32>): "stablehlo.return"(%p) : (tensor<i1>) -> ()}, {^bb0(%x: tensor<4x4xf32>, %y: tensor<i32>): %z = "stablehlo.add"(%x, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> "stablehlo.return"(%z, %i) : (tensor<4x4xf32>, tensor<i32>) -> ()}) : (tensor<4x4xf32>, tensor<i32>) -> (tensor<4x4xf32>, tensor<i32>)
"stablehlo.constant"() <{value = dense<[true, false, true]> : tensor<3xi1>}> : () -> tensor<3xi1>
"stablehlo.constant"() <{value = dense<(1.0, 2.0)> : tensor<3xcomplex<f32>>}> : () -> tensor<3xcomplex<f32>>
"stablehlo.constant"() <{value = dense<[[1, -2], [3, 4]]> : tensor<2x2xi4>}> : () -> tensor<2x2xi4>
"stablehlo.constant"() <{value = dense<> : tensor<0x3xf32>}> : () -> tensor<0x3xf32>
"stablehlo.constant"() <{value = dense<1.0> : tensor<0xf32>}> : () -> tensor<0xf32>
"stablehlo.constant"() <{value = dense<[1.5, 0x7F80, 0xFF80]> : tensor<3xbf16>}> : () -> tensor<3xbf16>
"stablehlo.constant"() <{value = dense<"0x0000803F00000040"> : tensor<2xf32>}> : () -> tensor<2xf32>
"stablehlo.constant"() <{value = dense<[0.5, -448.0]> : tensor<2xf8E4M3FN>}> : () -> tensor<2xf8E4M3FN>
"stablehlo.constant"() <{value = dense<18446744073709551615> : tensor<ui64>}> : () -> tensor<ui64>
"chlo.top_k"(%a) <{k = 2 : i64}> : (tensor<4x4xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
"chlo.erf"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"chlo.erfc"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"chlo.erf_inv"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"chlo.lgamma"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"chlo.digamma"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"chlo.bessel_i1e"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"chlo.next_after"(%a, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
"chlo.polygamma"(%a, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
"chlo.zeta"(%a, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
"chlo.is_inf"(%a) : (tensor<4x4xf32>) -> tensor<4x4xi1>
"chlo.is_pos_inf"(%a) : (tensor<4x4xf32>) -> tensor<4x4xi1>
"chlo.is_neg_inf"(%a) : (tensor<4x4xf32>) -> tensor<4x4xi1>
"chlo.conj"(%c) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
"chlo.acos"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"chlo.asinh"(%c) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
"chlo.atan"(%c) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
"chlo.atan"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"chlo.square"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"chlo.mulhi"(%n, %n) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
"chlo.broadcast_add"(%a, %v) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
"chlo.broadcast_add"(%a, %v) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
"chlo.broadcast_compare"(%a, %s) <{comparison_direction = #chlo<comparison_direction LT>}> : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xi1>
"chlo.broadcast_select"(%p, %a, %s) : (tensor<i1>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
"chlo.broadcast_polygamma"(%s, %v) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
"chlo.constant"() <{value = dense<1.0> : tensor<3xf32>}> : () -> tensor<3xf32>
"chlo.constant_like"(%a) <{value = 2.0 : f32}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
"chlo.ragged_dot"(%a, %b3r, %gs) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x4xf32>, tensor<2x4x5xf32>, tensor<2xi32>) -> tensor<4x5xf32>
"chlo.scan"(%a, %v, %v) <{dimension = 0 : i64, is_reverse = true, is_associative = false, operandSegmentSizes = array<i32: 2, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({^bb0(%x: tensor<4xf32>, %y: tensor<f32>, %z: tensor<4xf32>): %w = "stablehlo.add"(%x, %z) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> "stablehlo.return"(%y, %w) : (tensor<f32>, tensor<4xf32>) -> ()}) : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
"chlo.scan"(%a, %v) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0, 1>}> ({^bb0(%x: tensor<4xf32>, %z: tensor<4xf32>): %w = "stablehlo.add"(%x, %z) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> "stablehlo.return"(%w) : (tensor<4xf32>) -> ()}) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
"stablehlo.unary_einsum"(%b3) <{einsum_config = "ijk->ki"}> : (tensor<2x3x4xf32>) -> tensor<4x2xf32>
"stablehlo.cross-replica-sum"(%a) <{replica_groups = dense<[[0]]> : tensor<1x1xi64>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
