"""Options of compilations and of modules. Field tables: see `table.py`."""

from __future__ import annotations

from haloc.formats.proto.table import define

define(
    """
Any
1 type_url string
2 value bytes

CompilationEnvironmentsProto
1 environments Any*

CompileOptionsProto
1 argument_layouts ShapeProto*
2 parameter_is_tupled_arguments bool
3 executable_build_options ExecutableBuildOptionsProto
4 compile_portable_executable bool
5 profile_version int64
6 serialized_multi_slice_config bytes
7 env_option_overrides map<string,OptionOverrideProto>
8 target_config bytes
9 allow_in_place_mlir_modification bool
10 matrix_unit_operand_precision enum:PrecisionConfig.Precision
11 compiler_variant string?

ExecutableAndOptionsProto
1 serialized_executable bytes
2 compile_options CompileOptionsProto
3 pjrt_client_name string

ExecutableBuildOptionsProto
1 device_ordinal int64
2 result_layout ShapeProto
3 debug_options DebugOptions
4 num_replicas int64
5 num_partitions int64
6 use_spmd_partitioning bool
7 use_auto_spmd_partitioning bool
8 deduplicate_hlo bool
9 device_assignment DeviceAssignmentProto
10 alias_passthrough_params bool
11 run_backend_only bool
12 allow_spmd_sharding_propagation_to_output bool*
13 comp_envs CompilationEnvironmentsProto
14 fdo_profile bytes
15 device_memory_size int64
16 auto_spmd_partitioning_mesh_shape int64*
17 auto_spmd_partitioning_mesh_ids int64*
18 allow_spmd_sharding_propagation_to_parameters bool*
19 use_shardy_partitioner bool
20 exec_time_optimization_effort float
21 memory_fitting_effort float
22 process_index int64
23 process_count int64
24 optimization_level enum:ExecutionOptions.EffortLevel
25 memory_fitting_level enum:ExecutionOptions.EffortLevel
26 slice_size int64

HloModuleConfigProto
1 entry_computation_layout ProgramShapeProto
2 seed uint64
3 launch_id int32
4 replica_count int64
5 num_partitions int64
6 param_requires_broadcast_via_collectives bool*
7 use_spmd_partitioning bool
8 use_auto_spmd_partitioning bool
9 auto_spmd_partitioning_mesh_shape int64*
10 auto_spmd_partitioning_mesh_ids int64*
11 deduplicate_hlo bool
12 intra_op_parallelism_threads int64
13 device_type string
14 debug_options DebugOptions
15 static_device_assignment DeviceAssignmentProto
16 shardable_value_update_pairs ShardableValueUpdatePairProto*
17 alias_passthrough_params bool
18 content_aware_computation_sorting bool
19 fusion_config_collection enum:HloModuleConfigProto.FusionConfigCollection
20 fusion_config HloModuleConfigProto.BoolList*
21 dot_config map<string,HloModuleConfigProto.Int64List>
22 layout_config HloModuleConfigProto.Int64ListList*
23 memory_space_assignment_config uint64*
24 phase_ordering_config HloModuleConfigProto.BoolList*
25 phase_index int32
27 allow_spmd_sharding_propagation_to_output bool*
28 analysis_allowance_map map<string,int64>
29 matrix_unit_operand_precision enum:PrecisionConfig.Precision
30 allow_separate_sharding_programs bool
31 fdo_profile bytes
32 device_memory_size int64
33 allow_spmd_sharding_propagation_to_parameters bool*
34 use_shardy_partitioner bool
35 pre_simulation_device_assignment DeviceAssignmentProto
36 exec_time_optimization_effort float
37 memory_fitting_effort float
38 sharding_config ShardingConfigProto
39 optimization_level enum:ExecutionOptions.EffortLevel
40 memory_fitting_level enum:ExecutionOptions.EffortLevel
41 schedule_config ScheduleConfigProto
42 partition_size int64

HloModuleConfigProto.BoolList
1 vals bool*

HloModuleConfigProto.Int64List
1 vals int64*

HloModuleConfigProto.Int64ListList
1 lists HloModuleConfigProto.Int64List*

HloModuleProtoWithConfig
1 hlo_module HloModuleProto
2 config HloModuleConfigProto

NodeShardingConfigProto
1 sharding OpSharding
2 nodes NodeShardingConfigProto*

OptionOverrideProto
1 string_field string?
2 bool_field bool?
3 int_field int64?
4 double_field double?

ScheduleConfigProto
1 sequence ScheduleConfigProto.Instruction*

ScheduleConfigProto.Instruction
1 name string

ShardableValueUpdatePairProto
1 input_parameter_number int64
2 parameter_shape_index int64*
3 output_shape_index int64*

ShardingConfigProto
1 nodes NodeShardingConfigProto*
"""
)
