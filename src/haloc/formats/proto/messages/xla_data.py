"""Shapes, literals, shardings, attributes of ops. Field tables: see `table.py`."""

from __future__ import annotations

from haloc.formats.proto.table import define

define(
    """
AxisRefProto
1 mesh_axis_index int64
2 sub_axis_info AxisRefProto.SubAxis?

AxisRefProto.SubAxis
1 pre_size int64
2 size int64

CholeskyOptions
1 lower bool

CollectiveDeviceListProto
1 replica_groups ReplicaGroup*

ConvolutionDimensionNumbers
3 kernel_input_feature_dimension int64
4 kernel_output_feature_dimension int64
6 kernel_spatial_dimensions int64*
7 input_batch_dimension int64
8 input_feature_dimension int64
9 output_batch_dimension int64
10 output_feature_dimension int64
11 input_spatial_dimensions int64*
12 output_spatial_dimensions int64*

DeviceAssignmentProto
1 replica_count int32
2 computation_count int32
3 computation_devices DeviceAssignmentProto.ComputationDevice*

DeviceAssignmentProto.ComputationDevice
1 replica_device_ids int64*

DotDimensionNumbers
1 lhs_contracting_dimensions int64*
2 rhs_contracting_dimensions int64*
3 lhs_batch_dimensions int64*
4 rhs_batch_dimensions int64*

FrontendAttributes
1 map map<string,string>

GatherDimensionNumbers
1 offset_dims int64*
2 collapsed_slice_dims int64*
3 start_index_map int64*
4 index_vector_dim int64
5 operand_batching_dims int64*
6 start_indices_batching_dims int64*

IotaReplicaGroupListProto
1 num_replica_groups int64
2 num_devices_per_group int64
3 iota_reshape_dims int64*
4 iota_transpose_perm int32*

LayoutProto
1 minor_to_major int64*
6 tiles TileProto*
7 element_size_in_bits int64
8 memory_space int64
9 dim_level_types enum:DimLevelType*
10 physical_shape ShapeProto
11 index_primitive_type enum:PrimitiveType
12 pointer_primitive_type enum:PrimitiveType
13 dim_unique bool*
14 dim_ordered bool*
15 dynamic_shape_metadata_prefix_bytes int64
16 tail_padding_alignment_in_elements int64
17 split_configs SplitConfigProto*

LiteralProto
1 shape ShapeProto
2 preds bool[]
3 u8s bytes
4 s32s int32[]
5 s64s int64[]
6 u32s uint32[]
7 u64s uint64[]
8 f32s float[]
9 f64s double[]
10 tuple_literals LiteralProto*
11 f16s bytes
12 c64s float[]
13 bf16s bytes
14 sparse_indices int64*
15 s8s bytes
16 u16s bytes
17 s16s bytes
18 c128s double[]
19 f8e5m2s bytes
20 f8e4m3fns bytes
21 s4s bytes
22 u4s bytes
23 f8e4m3b11fnuzs bytes
24 f8e5m2fnuzs bytes
25 f8e4m3fnuzs bytes
26 s2s bytes
27 u2s bytes
28 f8e4m3s bytes
29 f8e3m4s bytes
30 s1s bytes
31 u1s bytes
32 f4e2m1fns bytes
33 f8e8m0fnus bytes
34 dynamic_sizes int32*
35 f6e3m2fns bytes
36 f6e2m3fns bytes

MeshAxesReplicaGroupListProto
1 mesh MeshProto
2 axes AxisRefProto*

MeshProto
1 axes MeshProto.MeshAxis*
2 device_ids int64*
3 iota_transform MeshProto.IotaTransform?

MeshProto.IotaTransform
1 reshape_dims int64*
2 transpose_perm int64*

MeshProto.MeshAxis
1 name string
2 size int64

NamedShardingProto
2 mesh MeshProto
3 dim_shardings NamedShardingProto.DimensionSharding*
4 replicated_axes AxisRefProto*
5 unreduced_axes AxisRefProto*
6 metadata OpMetadata*
7 manual_axes AxisRefProto*

NamedShardingProto.DimensionSharding
1 axes AxisRefProto*
2 is_closed bool

OpMetadata
1 op_type string
2 op_name string
3 source_file string
4 source_line int32
5 profile_type enum:ProfileType*
8 size_of_generated_code_in_bytes int64
9 size_of_memory_working_set_in_bytes int64
10 profile_info OpMetadata.ProfileInfo
12 deduplicated_name string
15 stack_frame_id int32
16 scheduling_name string
17 source_end_line int32
18 source_column int32
19 source_end_column int32
20 metadata_payload Payload

OpMetadata.ProfileInfo
1 profile_type enum:ProfileType*
2 relative_speedup double
3 profile_source enum:ProfileSource
4 compilation_event enum:CompilationEvent
5 profile_generation_strategy enum:ProfileGenerationStrategy

OpSharding
1 type enum:OpSharding.Type
2 tile_shape ShapeProto
3 tile_assignment_dimensions int64*
4 tile_assignment_devices int64*
5 tuple_shardings OpSharding*
6 replicate_on_last_tile_dim bool
7 metadata OpMetadata*
8 last_tile_dims enum:OpSharding.Type*
9 iota_reshape_dims int64*
10 iota_transpose_perm int32*
11 is_shard_group bool
12 shard_group_id int64
13 shard_group_type enum:OpSharding.ShardGroupType
14 named_sharding NamedShardingProto?

OutputOperandAliasing
1 output_shape_index int64*
2 operand_index int64
3 operand_shape_index int64*

PaddingConfig
1 dimensions PaddingConfig.PaddingConfigDimension*

PaddingConfig.PaddingConfigDimension
1 edge_padding_low int64
2 edge_padding_high int64
3 interior_padding int64

ParameterReplication
1 replicated_at_leaf_buffers bool*

Payload
1 value bytes
2 id int64

PrecisionConfig
1 operand_precision enum:PrecisionConfig.Precision*
2 algorithm enum:PrecisionConfig.Algorithm

ProgramShapeProto
1 parameters ShapeProto*
2 result ShapeProto
3 parameter_names string*

RaggedDotDimensionNumbers
1 dot_dimension_numbers DotDimensionNumbers
2 lhs_ragged_dimensions int64*
3 rhs_group_dimensions int64*

ReplicaGroup
1 replica_ids int64*

ResultAccuracy
1 mode enum:ResultAccuracy.Mode?
2 tolerance ResultAccuracy.Tolerance

ResultAccuracy.Tolerance
1 atol double
2 rtol double
3 ulps int64

ScatterDimensionNumbers
1 update_window_dims int64*
2 inserted_window_dims int64*
3 scatter_dims_to_operand_dims int64*
4 index_vector_dim int64
5 input_batching_dims int64*
6 scatter_indices_batching_dims int64*

ShapeProto
2 element_type enum:PrimitiveType
3 dimensions int64*
4 tuple_shapes ShapeProto*
5 layout LayoutProto
6 is_dynamic_dimension bool*

SourceTarget
1 source int64
2 target int64

SparsityConfig
1 lhs SparsityConfig.TensorSparsityConfig
2 rhs SparsityConfig.TensorSparsityConfig

SparsityConfig.TensorSparsityConfig
1 num_non_zero int64
2 block_size int64
3 dimension int64
4 stride int64

SplitConfigProto
1 dimension int64
2 split_indices int64*

Statistic
1 stat_name string
2 stat_val double

StatisticsViz
1 stat_index_to_visualize int64
2 statistics Statistic*

TileProto
1 dimensions int64*

TriangularSolveOptions
1 left_side bool
2 lower bool
3 unit_diagonal bool
4 transpose_a enum:TriangularSolveOptions.Transpose

Window
1 dimensions WindowDimension*

WindowDimension
1 size int64
2 stride int64
3 padding_low int64
4 padding_high int64
5 window_dilation int64
6 base_dilation int64
7 window_reversal bool
"""
)
