# What the documents of jaxlib.xla_client describe, with the signatures they give.
#
# @tests: where it is used, first choice first. @jaxlib: how jaxlib 0.7.1 itself names parameters
# that the documents name otherwise (a string; both must work), or its default. @later: what is
# missing; until then it raises UnimplementedError.

# --- Clients

@tests("test_xla_client.py", "runtime/test_many_devices.py")
def make_cpu_client(
    asynchronous: bool = True,
    distributed_client: DistributedRuntimeClient | None = None,
    node_id: int = 0,
    num_nodes: int = 1,
    collectives: CpuCollectives | None = None,
    num_devices: int | None = None,
    get_local_topology_timeout_minutes: int | None = None,
    get_global_topology_timeout_minutes: int | None = None,
    transfer_server_factory: TransferServerInterfaceFactory | None = None,
) -> Client: ...
@tests("api/test_documents.py", "api/test_later.py")
def make_gpu_client(
    distributed_client: DistributedRuntimeClient | None = None,
    node_id: int = 0,
    num_nodes: int = 1,
    platform_name: str | None = None,
    allowed_devices: set[int] | None = None,
    mock: bool | None = None,
    mock_gpu_topology: str | None = None,
) -> Client: ...
@tests("pjrt", "api/test_later.py")
def make_c_api_client(
    plugin_name: str,
    options: dict[str, str | int | list[int] | float | bool] | None = None,
    distributed_client: DistributedRuntimeClient | None = None,
    transfer_server_factory: TransferServerInterfaceFactory | None = None,
) -> Client: ...

@tests(
    "test_xla_client.py",
    "runtime/test_executable.py",
    "runtime/test_buffer_from_pyval.py",
    "runtime/test_memory_reports.py",
    "runtime/test_array.py",
    "runtime/test_serialization.py",
    "runtime/test_many_devices.py",
    "api/questions/devices.py",
)
class Client:
    platform: str
    platform_version: str
    runtime_type: str
    def device_count(self) -> int: ...
    def local_device_count(self) -> int: ...
    def devices(self) -> list[Device]: ...
    def local_devices(self) -> list[Device]: ...
    def host_id(self) -> int: ...
    def process_index(self) -> int: ...
    def buffer_from_pyval(
        self,
        argument: Any,
        device: Device | None = None,
        force_copy: bool = False,
        host_buffer_semantics: HostBufferSemantics = ...,
    ) -> ArrayImpl: ...
    def live_buffers(self) -> list[Any]: ...
    def live_arrays(self) -> list[ArrayImpl]: ...
    def live_executables(self) -> list[LoadedExecutable]: ...
    def heap_profile(self) -> bytes: ...
    def compile(
        self,
        computation: str | bytes,
        executable_devices: DeviceList | Sequence[Device],
        compile_options: CompileOptions = ...,
    ) -> Executable: ...
    def compile_and_load(
        self,
        computation: str | bytes,
        executable_devices: DeviceList | Sequence[Device],
        compile_options: CompileOptions = ...,
        host_callbacks: Sequence[Any] = ...,
    ) -> LoadedExecutable: ...
    def serialize_executable(self, executable: LoadedExecutable) -> bytes: ...
    @jaxlib(options="compile_options")
    def deserialize_executable(
        self,
        serialized: bytes,
        executable_devices: DeviceList | Sequence[Device],
        options: CompileOptions | None,
        host_callbacks: Sequence[Any] = ...,
    ) -> LoadedExecutable: ...
    def defragment(self) -> None: ...
    def get_default_layout(
        self, dtype: dtype, shard_shape: Sequence[int], device: Device
    ) -> PjRtLayout: ...

# --- Options

@tests("runtime/test_options.py", "runtime/test_option_protos.py", "test_xla_client.py")
class CompileOptions:
    @staticmethod
    def ParseFromString(s: bytes) -> CompileOptions: ...
    def __init__(self) -> None: ...
    def SerializeAsString(self) -> bytes: ...
    argument_layouts: list[Shape] | None
    parameter_is_tupled_arguments: bool
    executable_build_options: ExecutableBuildOptions
    tuple_arguments: bool
    num_replicas: int
    num_partitions: int
    profile_version: int
    device_assignment: DeviceAssignment | None
    compile_portable_executable: bool
    env_option_overrides: list[tuple[str, str]]

@tests("runtime/test_options.py", "runtime/test_option_protos.py", "api/questions/options.py")
class ExecutableBuildOptions:
    def __init__(self) -> None: ...
    result_layout: Shape | None
    fdo_profile: bytes | None
    num_replicas: int
    num_partitions: int
    debug_options: DebugOptions
    device_assignment: DeviceAssignment | None
    use_spmd_partitioning: bool
    use_auto_spmd_partitioning: bool
    auto_spmd_partitioning_mesh_shape: list[int]
    auto_spmd_partitioning_mesh_ids: list[int]
    use_shardy_partitioner: bool
    def compilation_environments_from_serialized_proto(self, serialized_proto: bytes) -> None: ...

@tests("runtime/test_options.py", "runtime/test_dump.py", "api/questions/options.py")
class DebugOptions:
    xla_cpu_enable_fast_math: bool
    xla_gpu_enable_fast_min_max: bool
    xla_backend_optimization_level: int
    xla_cpu_enable_xprof_traceme: bool
    xla_force_host_platform_device_count: int
    xla_dump_to: str
    xla_dump_hlo_module_re: str
    xla_dump_hlo_as_text: bool
    xla_dump_hlo_as_proto: bool
    xla_detailed_logging: bool
    xla_enable_dumping: bool

# --- Executables

@tests("runtime/test_executable.py", "runtime/test_many_devices.py", "api/questions/execution.py")
class Executable:
    def hlo_modules(self) -> list[HloModule]: ...
    def get_output_memory_kinds(self) -> list[list[str]]: ...
    def get_output_shardings(self) -> list[OpSharding] | None: ...
    def get_parameter_shardings(self) -> list[OpSharding] | None: ...
    def get_parameter_layouts(self) -> list[Layout]: ...
    def get_output_layouts(self) -> list[Layout]: ...
    def get_compiled_memory_stats(self) -> CompiledMemoryStats: ...
    def serialize(self) -> str: ...
    def cost_analysis(self) -> dict[str, Any]: ...

@tests("runtime/test_executable.py", "runtime/test_many_devices.py", "api/questions/execution.py")
class LoadedExecutable:
    client: Client
    traceback: Traceback
    fingerprint: bytes | None
    def local_devices(self) -> list[Device]: ...
    def size_of_generated_code_in_bytes(self) -> int: ...
    def execute(self, arguments: Sequence[ArrayImpl]) -> list[ArrayImpl]: ...
    def execute_with_token(
        self, arguments: Sequence[ArrayImpl]
    ) -> tuple[list[ArrayImpl], Token]: ...
    def execute_sharded(
        self, arguments: Sequence[list[ArrayImpl]], with_tokens: bool = False
    ) -> ExecuteResults: ...
    def hlo_modules(self) -> list[HloModule]: ...
    def get_output_memory_kinds(self) -> list[list[str]]: ...
    def get_compiled_memory_stats(self) -> CompiledMemoryStats: ...
    def get_output_shardings(self) -> list[OpSharding] | None: ...
    def get_parameter_shardings(self) -> list[OpSharding] | None: ...
    def get_parameter_layouts(self) -> list[Layout]: ...
    def get_output_layouts(self) -> list[Layout]: ...
    def keep_alive(self) -> None: ...
    def cost_analysis(self) -> dict[str, Any]: ...

@tests("runtime/test_executable.py", "runtime/test_many_devices.py", "api/questions/execution.py")
class ExecuteResults:
    def __len__(self) -> int: ...
    def disassemble_into_single_device_arrays(self) -> list[list[ArrayImpl]]: ...
    def disassemble_prefix_into_single_device_arrays(self, n: int) -> list[list[ArrayImpl]]: ...
    def consume_with_handlers(self, handlers: list[Callable]) -> list[Any]: ...
    def consume_token(self) -> ShardedToken: ...

@tests("runtime/test_executable.py", "runtime/test_asynchronous.py")
class Token:
    def block_until_ready(self): ...

@tests("runtime/test_executable.py", "api/questions/execution.py")
class ShardedToken:
    def block_until_ready(self): ...
    def get_token(self, device_id: int): ...

@tests("runtime/test_executable.py", "runtime/test_memory_stats.py")
class CompiledMemoryStats:
    generated_code_size_in_bytes: int
    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    host_generated_code_size_in_bytes: int
    host_argument_size_in_bytes: int
    host_output_size_in_bytes: int
    host_alias_size_in_bytes: int
    host_temp_size_in_bytes: int
    serialized_buffer_assignment_proto: bytes
    def __str__(self) -> str: ...

@tests("runtime/test_execution_stream.py")
def execution_stream_id(new_id: int): ...

# --- Arrays

@tests("runtime/test_array.py", "runtime/test_sharded_array.py", "api/questions/arrays.py")
class ArrayImpl:
    def block_until_ready(self) -> ArrayImpl: ...
    def is_deleted(self) -> bool: ...
    def is_ready(self) -> bool: ...
    def delete(self): ...
    def clone(self) -> ArrayImpl: ...
    def on_device_size_in_bytes(self) -> int: ...
    dtype: dtype
    shape: tuple[int, ...]
    _arrays: Any
    traceback: Traceback

@jaxlib(shards="xs", committed=True)
@tests("runtime/test_placement.py")
def batched_device_put(
    aval: Any,
    sharding: Any,
    shards: Sequence[Any],
    devices: list[Device],
    committed: bool = False,
    force_copy: bool = False,
    host_buffer_semantics: Any = ...,
) -> ArrayImpl: ...
@tests("runtime/test_placement.py")
def array_result_handler(
    aval: Any, sharding: Any, committed: bool, _skip_checks: bool = False
) -> Callable: ...
@tests("runtime/test_placement.py")
def batched_copy_array_to_devices_with_sharding(
    arrays: Sequence[ArrayImpl],
    devices: Sequence[DeviceList],
    sharding: Sequence[Any],
    array_copy_semantics: Sequence[ArrayCopySemantics],
) -> Sequence[ArrayImpl]: ...
@tests("runtime/test_placement.py")
def reorder_shards(
    x: ArrayImpl, dst_sharding: Any, array_copy_semantics: ArrayCopySemantics
) -> ArrayImpl: ...
@tests("runtime/test_array.py", "api/questions/arrays.py")
def batched_block_until_ready(x: Sequence[ArrayImpl]) -> None: ...

@tests("runtime/test_placement.py")
class ArrayCopySemantics:
    ALWAYS_COPY: int
    REUSE_INPUT: int
    DONATE_INPUT: int

@tests("runtime/test_buffer_from_pyval.py", "api/questions/arrays.py")
class HostBufferSemantics:
    IMMUTABLE_ONLY_DURING_CALL: int
    IMMUTABLE_UNTIL_TRANSFER_COMPLETES: int
    ZERO_COPY: int

# --- Devices

@tests("test_xla_client.py", "runtime/test_array.py", "api/questions/devices.py")
class Device:
    id: int
    host_id: int
    process_index: int
    task_id: int
    platform: str
    device_kind: str
    client: Client
    local_hardware_id: int | None
    def memory(self, kind: str) -> Memory: ...
    def default_memory(self) -> Memory: ...
    def addressable_memories(self) -> list[Memory]: ...
    def live_buffers(self) -> list[Any]: ...
    def memory_stats(self) -> dict[str, int] | None: ...
    def get_stream_for_external_ready_events(self) -> int: ...

@tests("test_xla_client.py", "api/questions/devices.py")
class Memory:
    kind: str
    platform: str
    process_index: int
    def addressable_by_devices(self) -> list[Device]: ...

@tests("test_xla_client.py", "api/questions/devices.py")
class DeviceList:
    is_fully_addressable: bool
    addressable_device_list: DeviceList
    process_indices: set[int]
    default_memory_kind: str | None
    memory_kinds: tuple[str, ...]
    device_kind: str

@tests("api/questions/devices.py")
class DeviceAssignment:
    @staticmethod
    def create(assignment: ndarray, /) -> DeviceAssignment: ...
    def replica_count(self) -> int: ...
    def computation_count(self) -> int: ...
    def serialize(self) -> bytes: ...

@tests("api/questions/devices.py")
def check_and_canonicalize_memory_kind(
    memory_kind: str | None, device_list: DeviceList
) -> str | None: ...

# --- Shardings

@tests("runtime/test_shardings.py", "api/questions/shardings.py")
class SingleDeviceSharding:
    def __init__(self, device: Device, memory_kind: str | None = None): ...

@tests("runtime/test_shardings.py", "api/questions/shardings.py")
class NamedSharding:
    def __init__(
        self,
        mesh: Any,
        spec: PartitionSpec,
        memory_kind: str | None = None,
        _logical_device_ids: tuple[int, ...] | None = None,
    ): ...
    mesh: Any
    spec: PartitionSpec

@tests("runtime/test_shardings.py", "api/questions/shardings.py")
class GSPMDSharding:
    def __init__(
        self,
        devices: DeviceList | Sequence[Device],
        op_sharding: OpSharding | HloSharding,
        memory_kind: str | None = None,
    ): ...

@tests("runtime/test_shardings.py", "api/questions/shardings.py")
class PmapSharding:
    def __init__(self, devices: Sequence[Any], sharding_spec: ShardingSpec): ...
    devices: list[Any]
    sharding_spec: ShardingSpec

@tests("runtime/test_shardings.py", "api/questions/shardings.py")
class PartitionSpec: ...

@tests("api/questions/shardings.py")
class OpSharding:
    type: Any
    replicate_on_last_tile_dim: bool
    last_tile_dims: Sequence[Any]
    tile_assignment_dimensions: Sequence[int]
    tile_assignment_devices: Sequence[int]
    iota_reshape_dims: Sequence[int]
    iota_transpose_perm: Sequence[int]
    tuple_shardings: Sequence[OpSharding]
    is_shard_group: bool
    shard_group_id: int
    shard_group_type: Any
    def ParseFromString(self, data: bytes, /) -> None: ...
    def SerializeToString(self) -> bytes: ...
    def clone(self) -> OpSharding: ...

@tests("api/questions/shardings.py", "runtime/test_shardings.py")
class HloSharding:
    @staticmethod
    def from_proto(proto: OpSharding, /) -> HloSharding: ...
    @staticmethod
    def from_string(text: str, /) -> HloSharding: ...
    @staticmethod
    def tuple_sharding(shape: Shape, shardings: Sequence[HloSharding], /) -> HloSharding: ...
    @staticmethod
    def iota_tile(
        dims: Sequence[int],
        reshape_dims: Sequence[int] = [],
        transpose_perm: Sequence[int] = [],
        subgroup_types: Sequence[Any] = [],
    ) -> HloSharding: ...
    @staticmethod
    def replicate() -> HloSharding: ...
    @staticmethod
    def manual() -> HloSharding: ...
    @staticmethod
    def unknown() -> HloSharding: ...
    @staticmethod
    def subgroup_with_device_ordering(
        tile_assignment: ndarray, subgroup_types: Sequence[Any] = []
    ) -> HloSharding: ...
    def is_replicated(self) -> bool: ...
    def is_manual(self) -> bool: ...
    def is_unknown(self) -> bool: ...
    def is_tiled(self) -> bool: ...
    def is_maximal(self) -> bool: ...
    def tile(self, shape: Shape, /) -> Shape: ...
    def num_devices(self) -> int: ...
    def num_dimensions(self) -> int: ...
    def tile_assignment_dimensions(self) -> Sequence[int]: ...
    def tile_assignment_devices(self) -> Sequence[int]: ...
    def subgroup_types(self) -> Sequence[Any]: ...
    def replicate_on_last_tile_dim(self) -> bool: ...
    def get_axis_sizes(self) -> list[int]: ...
    def tuple_elements(self) -> list[HloSharding]: ...
    def to_proto(self) -> OpSharding: ...

# --- Shapes and modules

@tests("test_xla_client.py", "api/questions/modules.py")
class Shape:
    def __init__(self, text: str, /): ...
    @staticmethod
    def tuple_shape(shapes: Sequence[Shape]) -> Shape: ...
    @staticmethod
    def array_shape(
        type: dtype | PrimitiveType,
        dims: Sequence[int],
        layout: Sequence[int] | None = None,
        dynamic_dimensions: Sequence[bool] | None = None,
    ) -> Shape: ...
    @staticmethod
    def token_shape() -> Shape: ...
    @staticmethod
    def scalar_shape(type: dtype | PrimitiveType) -> Shape: ...
    def dimensions(self) -> tuple[int, ...]: ...
    def layout(self) -> Layout: ...
    def xla_element_type(self) -> PrimitiveType: ...
    def element_type(self) -> dtype: ...
    def numpy_dtype(self) -> dtype: ...
    def is_tuple(self) -> bool: ...
    def is_array(self) -> bool: ...
    def is_token(self) -> bool: ...
    def is_static(self) -> bool: ...
    def is_dynamic(self) -> bool: ...
    def is_dynamic_dimension(self, dimension: int) -> bool: ...
    def set_dynamic_dimension(self, dimension: int, is_dynamic: bool) -> None: ...
    def rank(self) -> int: ...
    def to_serialized_proto(self) -> bytes: ...
    def tuple_shapes(self) -> list[Shape]: ...
    def leaf_count(self) -> int: ...
    def with_major_to_minor_layout_if_absent(self) -> Shape: ...

@tests("api/questions/modules.py")
class Layout:
    def __init__(
        self,
        minor_to_major: Sequence[int],
        tiling: Sequence[tuple[int, ...]] = ...,
        element_size_in_bits: int = ...,
        /,
    ): ...
    def minor_to_major(self) -> tuple[int, ...]: ...
    def tiling(self) -> Sequence[tuple[int, ...]]: ...
    def element_size_in_bits(self) -> int: ...
    def to_string(self) -> str: ...

@tests("api/questions/modules.py")
class ProgramShape:
    def __init__(self, parameters: Sequence[Shape], result: Shape, /): ...
    def parameter_shapes(self) -> list[Shape]: ...
    def result_shape(self) -> Shape: ...

@tests("api/questions/modules.py")
class HloModule:
    name: str
    spmd_output_sharding: OpSharding | None
    spmd_parameters_shardings: list[OpSharding] | None
    def to_string(self, options: HloPrintOptions = ...) -> str: ...
    def as_serialized_hlo_module_proto(self) -> bytes: ...
    @staticmethod
    def from_serialized_hlo_module_proto(data: bytes, /) -> HloModule: ...
    def computations(self) -> list[HloComputation]: ...

@tests("api/questions/modules.py", "runtime/test_hlo_module.py")
class HloComputation:
    name: str
    def render_html(self, path: str, /) -> None: ...

@tests("api/questions/modules.py")
class XlaComputation:
    def __init__(self, data: bytes, /) -> None: ...
    def get_hlo_module(self) -> HloModule: ...
    def program_shape(self) -> ProgramShape: ...
    def name(self) -> str: ...
    def as_serialized_hlo_module_proto(self) -> bytes: ...
    def as_hlo_text(self, print_large_constants: bool = False) -> str: ...
    def as_hlo_dot_graph(self) -> str: ...
    def hash(self) -> int: ...
    def as_hlo_module(self) -> HloModule: ...

# --- Tracebacks and profiles

@tests("api/questions/modules.py")
class Frame:
    file_name: str
    function_name: str
    function_start_line: int
    line_num: int

@tests("api/questions/modules.py", "runtime/test_traceback.py")
class Traceback:
    @staticmethod
    def get_traceback() -> Traceback: ...
    frames: Sequence[Frame]
    def as_python_traceback(self) -> Any: ...
    def raw_frames(self) -> tuple[list[Any], list[int]]: ...
    @staticmethod
    def traceback_from_frames(frames: Sequence[Frame], /) -> Any: ...
    @staticmethod
    def code_addr2line(code: Any, lasti: int, /) -> int: ...
    @staticmethod
    def code_addr2location(code: Any, lasti: int, /) -> tuple[int, int, int, int]: ...

@tests("runtime/test_profiler.py")
class profiler:
    class TraceMe: ...
    class ProfilerSession: ...

# --- Custom calls

@tests("ffi/test_partitioners.py")
class CustomCallTargetTraits:
    DEFAULT: int
    COMMAND_BUFFER_COMPATIBLE: int

@tests("ffi")
def register_custom_call_target(
    name: str,
    fn: Any,
    platform: str = "cpu",
    api_version: int = 0,
    traits: CustomCallTargetTraits = ...,
) -> None: ...
@tests("ffi/test_python_targets.py")
def register_custom_call_handler(platform: str, handler: Any) -> None: ...
@tests("ffi")
def custom_call_targets(platform: str) -> dict[str, Any]: ...
@tests("ffi/test_partitioners.py")
def register_custom_call_partitioner(
    name: str,
    prop_user_sharding: Callable,
    partition: Callable,
    infer_sharding_from_operands: Callable,
    can_side_effecting_have_replicated_sharding: bool = False,
    c_api: Any | None = None,
) -> None: ...
@tests("ffi/test_partitioners.py")
def register_custom_call_as_batch_partitionable(
    target_name: str, c_api: Any | None = None
) -> None: ...
@tests("ffi/test_partitioners.py")
def register_custom_type_id(type_name: str, type_id: Any, platform: str = "cpu") -> None: ...
@tests("ffi/test_partitioners.py")
def register_custom_type_id_handler(platform: str, handler: Any) -> None: ...
@tests("ffi/test_partitioners.py")
def encode_inspect_sharding_callback(handler: Any) -> bytes: ...

# --- Plugins and topologies

@tests("pjrt", "api/test_later.py")
def generate_pjrt_gpu_plugin_options() -> dict[str, str | int | list[int] | float | bool]: ...
@tests("pjrt", "api/test_later.py")
def pjrt_plugin_loaded(plugin_name: str) -> bool: ...
@tests("pjrt", "api/test_later.py")
def load_pjrt_plugin_dynamically(plugin_name: str, library_path: str) -> Any: ...
@tests("pjrt", "api/test_later.py")
def load_pjrt_plugin_with_c_api(plugin_name: str, c_api: Any) -> None: ...
@tests("pjrt", "api/test_later.py")
def pjrt_plugin_initialized(plugin_name: str) -> bool: ...
@tests("pjrt", "api/test_later.py")
def initialize_pjrt_plugin(plugin_name: str) -> None: ...
@tests("pjrt", "api/test_later.py")
def make_tfrt_tpu_c_api_device_topology(
    topology_name: str | None = None, **kwargs
) -> DeviceTopology: ...
@tests("pjrt", "api/test_later.py")
def make_c_api_device_topology(c_api: Any, topology_name: str = "", **kwargs) -> DeviceTopology: ...
@tests("pjrt", "api/test_later.py")
def get_topology_for_devices(devices: list[Device]) -> DeviceTopology: ...

# --- Several processes

@later("one process so far")
@tests("api/test_later.py")
def get_distributed_runtime_service(
    address: str,
    num_nodes: int,
    heartbeat_timeout: int | None = None,
    cluster_register_timeout: int | None = None,
    shutdown_timeout: int | None = None,
) -> DistributedRuntimeService: ...
@later("one process so far")
@tests("api/test_later.py")
def get_distributed_runtime_client(
    address: str,
    node_id: int,
    rpc_timeout: int | None = None,
    init_timeout: int | None = None,
    shutdown_timeout: int | None = None,
    heartbeat_timeout: int | None = None,
    missed_heartbeat_callback: Any | None = None,
    shutdown_on_destruction: bool | None = None,
    use_compression: bool | None = None,
    recoverable: bool | None = None,
) -> DistributedRuntimeClient: ...

@later("one process so far")
@tests("api/test_later.py")
class DistributedRuntimeService:
    def shutdown(self) -> None: ...

@later("one process so far")
@tests("api/test_later.py")
class DistributedRuntimeClient:
    def connect(self) -> Any: ...
    def shutdown(self) -> Any: ...
    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> Any: ...
    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> Any: ...
    def wait_at_barrier(
        self, barrier_id: str, timeout_in_ms: int, process_ids: list[int] | None = None
    ) -> Any: ...
