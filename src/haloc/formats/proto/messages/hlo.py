"""HLO modules, HloProto and HloSnapshot. Field tables: see `table.py`."""

from __future__ import annotations

from haloc.formats.proto.table import define

define(
    """
BufferAllocationProto
1 index int64
2 size int64
3 is_thread_local bool
5 is_entry_computation_parameter bool
6 parameter_number int64
7 maybe_live_out bool
8 color int64
9 assigned BufferAllocationProto.Assigned*
10 parameter_shape_index int64*
11 is_tuple bool
12 is_constant bool
13 is_parameter_aliased_with_output bool

BufferAllocationProto.Assigned
1 logical_buffer_id int64
2 offset int64
3 size int64
4 element_type enum:PrimitiveType

BufferAssignmentProto
1 logical_buffers LogicalBufferProto*
2 buffer_aliases BufferAssignmentProto.BufferAlias*
3 buffer_allocations BufferAllocationProto*
4 heap_simulator_traces HeapSimulatorTrace*
5 peak_buffers BufferAssignmentProto.PeakBuffers*

BufferAssignmentProto.BufferAlias
1 source_buffer_id int64
2 location LogicalBufferProto.Location

BufferAssignmentProto.PeakBuffers
1 index int64
2 logical_buffer_ids int64*

CrossProgramPrefetch
1 parameter int64
2 index int64*
3 offset int64

HeapSimulatorTrace
1 events HeapSimulatorTrace.Event*
2 whole_module_simulation bool
3 buffer_allocation_index int64

HeapSimulatorTrace.Event
1 kind enum:HeapSimulatorTrace.Event.Kind
2 buffer_id int64
3 computation_name string
4 instruction_name string
5 share_with_canonical_id int64

HloBufferDonorProto
1 entries HloBufferDonorProto.BufferDonorEntryProto*

HloBufferDonorProto.BufferDonorEntryProto
1 parameter_number int64
2 parameter_shape_index int64*

HloComputationProto
1 name string
2 instructions HloInstructionProto*
4 program_shape ProgramShapeProto
5 id int64
6 root_id int64
7 is_fusion_computation bool
8 execution_thread string

HloInputOutputAliasProto
1 entries HloInputOutputAliasProto.AliasEntryProto*

HloInputOutputAliasProto.AliasEntryProto
1 output_shape_index int64*
2 parameter_number int64
3 parameter_shape_index int64*
4 kind enum:Kind

HloInputs
1 arguments LiteralProto*
2 arguments_descriptors HloInputs.LiteralDescriptor*

HloInputs.LiteralDescriptor
1 version int32
2 argument_size_bytes uint64

HloInstructionProto
1 name string
2 opcode string
3 shape ShapeProto
7 metadata OpMetadata
8 literal LiteralProto
9 parameter_number int64
11 fusion_kind string
13 tuple_index int64
14 dimensions int64*
15 window Window
16 convolution_dimension_numbers ConvolutionDimensionNumbers
17 slice_dimensions HloInstructionProto.SliceDimensions*
18 exponent_bits int32
19 mantissa_bits int32
20 dynamic_slice_sizes int64*
21 padding_config PaddingConfig
22 outfeed_config bytes
23 distribution enum:RandomDistribution
24 epsilon float
25 feature_index int64
26 channel_id int64
27 infeed_config bytes
28 custom_call_target string
29 outfeed_shape ShapeProto
30 dot_dimension_numbers DotDimensionNumbers
31 fft_type enum:FftType
32 fft_length int64*
33 gather_dimension_numbers GatherDimensionNumbers
34 gather_slice_sizes int64*
35 id int64
36 operand_ids int64*
37 control_predecessor_ids int64*
38 called_computation_ids int64*
40 sharding OpSharding
43 backend_config bytes
45 all_reduce_id int64
47 is_host_transfer bool
48 scatter_dimension_numbers ScatterDimensionNumbers
49 replica_groups ReplicaGroup*
50 feature_group_count int64
51 precision_config PrecisionConfig
52 source_target_pairs SourceTarget*
54 domain_entry_sharding OpSharding
55 domain_exit_sharding OpSharding
56 constrain_layout bool
57 operand_shapes_with_layout ShapeProto*
58 batch_group_count int64
59 triangular_solve_options TriangularSolveOptions
60 is_stable bool
61 parameter_replication ParameterReplication
62 cholesky_options CholeskyOptions
63 comparison_direction string
65 custom_call_has_side_effect bool
66 delta int64
67 indices_are_sorted bool
68 frontend_attributes FrontendAttributes
69 unique_indices bool
70 rng_algorithm enum:RandomAlgorithm
71 use_global_device_ids bool
72 comparison_type string
73 is_cross_program_prefetch bool
74 output_operand_aliasing OutputOperandAliasing*
75 padding_type enum:PaddingType
76 custom_call_schedule enum:CustomCallSchedule
77 custom_call_api_version enum:CustomCallApiVersion
79 async_execution_thread string
80 cross_program_prefetch_index int32?
81 k int64
82 statistics_viz StatisticsViz
85 largest bool
87 collective_device_list CollectiveDeviceListProto
88 original_value OriginalValueProto
89 is_composite bool
90 ragged_dot_dimension_numbers RaggedDotDimensionNumbers
91 result_accuracy ResultAccuracy
92 iota_collective_device_list IotaReplicaGroupListProto
93 mesh_axes_replica_group_list MeshAxesReplicaGroupListProto
94 is_reverse bool
95 num_carries int64
96 is_associative enum:TriState
97 conv_kind enum:ConvolutionKind
98 sparsity_config SparsityConfig
99 backend_config_payload Payload

HloInstructionProto.SliceDimensions
1 start int64
2 limit int64
3 stride int64

HloModuleProto
1 name string
2 entry_computation_name string
3 computations HloComputationProto*
4 host_program_shape ProgramShapeProto
5 id int64
6 entry_computation_id int64
7 schedule HloScheduleProto
8 input_output_alias HloInputOutputAliasProto
10 cross_program_prefetches CrossProgramPrefetch*
11 is_dynamic bool
12 spmd_output_sharding OpSharding
13 profile_info HloModuleProto.ProfileInfo*
14 spmd_parameters_shardings OpSharding*
15 device_assignment DeviceAssignmentProto
16 use_auto_spmd_partitioning bool
17 stack_frame_index StackFrameIndexProto
18 buffer_donor HloBufferDonorProto
19 frontend_attributes FrontendAttributes
20 original_value_recovery_table OriginalValueRecoveryTableProto
21 device_type string
22 payloads bytes*
23 pjrt_id int64?

HloModuleProto.ProfileInfo
1 profile_type enum:HloModuleProto.ProfileType
2 relative_speedup double
3 profile_source enum:ProfileSource
4 compilation_event enum:CompilationEvent
5 fingerprint string
6 profile_generation_strategy enum:ProfileGenerationStrategy
7 original_changelist int64
8 changelist int64

HloProto
1 hlo_module HloModuleProto
3 buffer_assignment BufferAssignmentProto

HloScheduleProto
1 sequences map<int64,HloScheduleProto.InstructionSequence>

HloScheduleProto.InstructionSequence
1 instruction_ids int64*

HloSnapshot
1 hlo HloProto
2 arguments LiteralProto*
3 result LiteralProto
4 execution_platform string

HloUnoptimizedSnapshot
1 hlo_module HloModuleProto
2 partitions HloInputs*
3 version int32

LogicalBufferProto
1 id int64
2 size int64
3 defined_at LogicalBufferProto.Location
4 color int64

LogicalBufferProto.Location
2 instruction_name string
3 shape_index int64*
4 instruction_id int64

OriginalArrayProto
1 instruction_name string
2 shape_index int64*

OriginalValueElementProto
1 shape_index int64*
2 original_array OriginalArrayProto

OriginalValueProto
1 elements OriginalValueElementProto*
2 is_synthetic_call bool

OriginalValueRecoveryTableProto
1 entries OriginalValueRecoveryTableProto.Entry*

OriginalValueRecoveryTableProto.Entry
1 old_original_array OriginalArrayProto
2 new_original_array OriginalArrayProto
3 recovery_module HloModuleProto

StackFrameIndexProto
1 file_names string*
2 function_names string*
3 file_locations StackFrameIndexProto.FileLocation*
4 stack_frames StackFrameIndexProto.StackFrame*

StackFrameIndexProto.FileLocation
1 file_name_id int32
2 function_name_id int32
3 line int32
4 column int32
5 end_line int32
6 end_column int32

StackFrameIndexProto.StackFrame
1 file_location_id int32
2 parent_frame_id int32
"""
)
