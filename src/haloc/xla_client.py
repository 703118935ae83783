"""jaxlib's `xla_client` surface, on haloc: `from haloc import xla_client`.

A superset of jaxlib's: `compile_and_load` takes HLO text, `ExecutableBuildOptions` and the other
classes of the documents have a home here, option setters exist.
"""

from __future__ import annotations

from typing import Any

from haloc.distributed.coordination import (
    DistributedRuntimeClient,
    DistributedRuntimeService,
    get_distributed_runtime_client,
    get_distributed_runtime_service,
    make_gloo_tcp_collectives,
    make_mpi_collectives,
)
from haloc.errors import HloError as XlaRuntimeError
from haloc.errors import UnimplementedError
from haloc.ffi.by_platform import xla_platform_names
from haloc.ffi.partitioners import (
    encode_inspect_sharding_callback,
    register_custom_call_as_batch_partitionable,
    register_custom_call_partitioner,
)
from haloc.ffi.registration import (
    CustomCallTargetTraits,
    custom_call_targets,
    register_custom_call_handler,
    register_custom_call_target,
    register_custom_type,
    register_custom_type_id,
    register_custom_type_id_handler,
    unregister_custom_call_target,
)
from haloc.flags import Flags
from haloc.frontend import ops
from haloc.frontend.builder import XlaBuilder, XlaOp
from haloc.frontend.messages import (
    ChannelHandle,
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    FftType,
    FrontendAttributes,
    GatherDimensionNumbers,
    OpMetadata,
    PaddingConfig,
    PaddingConfigDimension,
    PaddingType,
    PrecisionConfig,
    ReplicaGroup,
    ResultAccuracy,
    ResultAccuracyMode,
    ScatterDimensionNumbers,
    ShapeIndex,
    make_convolution_dimension_numbers,
    make_dot_dimension_numbers,
    make_padding_config,
    make_replica_groups,
    window_padding_type_to_pad_values,
)
from haloc.pjrt.client import (
    generate_pjrt_gpu_plugin_options,
    get_topology_for_devices,
    initialize_pjrt_plugin,
    load_pjrt_plugin_dynamically,
    load_pjrt_plugin_with_c_api,
    make_c_api_client,
    make_c_api_device_topology,
    make_gpu_client,
    make_tfrt_tpu_c_api_device_topology,
    pjrt_plugin_initialized,
    pjrt_plugin_loaded,
)
from haloc.runtime import hlo_sharding_util, profiler
from haloc.runtime.array import ArrayImpl
from haloc.runtime.array import ArrayImpl as Array
from haloc.runtime.aval import ShapedArray
from haloc.runtime.backend import CpuBackend, InterpreterBackend
from haloc.runtime.client import Client
from haloc.runtime.compile_options import CompileOptions, ExecutableBuildOptions
from haloc.runtime.debug_options import DebugOptions
from haloc.runtime.device import Device, Memory
from haloc.runtime.device_assignment import (
    DeviceAssignment,
    DeviceList,
    check_and_canonicalize_memory_kind,
)
from haloc.runtime.dlpack_arrays import (
    buffer_to_dlpack_managed_tensor,
    cuda_array_interface_to_buffer,
    dlpack_managed_tensor_to_buffer,
)
from haloc.runtime.executable import Executable
from haloc.runtime.execution_stream import (
    execution_stream_id,
    get_execution_stream_id,
    set_execution_stream_id,
)
from haloc.runtime.hlo_module import XlaHloComputation as HloComputation
from haloc.runtime.hlo_module import XlaHloModule as HloModule
from haloc.runtime.hlo_module import (
    hlo_module_cost_analysis,
    hlo_module_from_text,
    hlo_module_to_dot_graph,
)
from haloc.runtime.hlo_print_options import HloPrintOptions
from haloc.runtime.host_buffer import HostBufferSemantics
from haloc.runtime.loaded_executable import LoadedExecutable
from haloc.runtime.memory_stats import CompiledMemoryStats
from haloc.runtime.op_sharding import OpSharding
from haloc.runtime.op_sharding import XlaHloSharding as HloSharding
from haloc.runtime.placement import (
    ArrayCopySemantics,
    batched_block_until_ready,
    batched_copy_array_to_devices_with_sharding,
    batched_device_put,
    reorder_shards,
)
from haloc.runtime.pprof_json import json_to_pprof_profile, pprof_profile_to_json
from haloc.runtime.result_handler import ResultHandler, array_result_handler
from haloc.runtime.results import ExecuteResults, ShardedToken, Token
from haloc.runtime.shard import Shard
from haloc.runtime.sharding import (
    Chunked,
    GSPMDSharding,
    Mesh,
    NamedSharding,
    NoSharding,
    PartitionSpec,
    PmapSharding,
    Replicated,
    ShardedAxis,
    Sharding,
    ShardingSpec,
    SingleDeviceSharding,
    Unstacked,
)
from haloc.runtime.topology import DeviceTopology
from haloc.runtime.traceback import (
    Frame,
    Traceback,
    set_tracebacks_enabled,
    tracebacks_enabled,
)
from haloc.runtime.xla_computation import XlaComputation
from haloc.runtime.xla_shape import (
    DTYPE_TO_XLA_ELEMENT_TYPE,
    XLA_ELEMENT_TYPE_TO_DTYPE,
    PjRtLayout,
    PrimitiveType,
    dtype_to_etype,
    shape_from_pyval,
)
from haloc.runtime.xla_shape import XlaLayout as Layout
from haloc.runtime.xla_shape import XlaProgramShape as ProgramShape
from haloc.runtime.xla_shape import XlaShape as Shape

__all__ = [
    "DTYPE_TO_XLA_ELEMENT_TYPE",
    "XLA_ELEMENT_TYPE_TO_DTYPE",
    "Array",
    "ArrayCopySemantics",
    "ArrayImpl",
    "ChannelHandle",
    "Chunked",
    "Client",
    "CompileOptions",
    "CompiledMemoryStats",
    "ConvolutionDimensionNumbers",
    "CustomCallTargetTraits",
    "DebugOptions",
    "Device",
    "DeviceAssignment",
    "DeviceList",
    "DeviceTopology",
    "DistributedRuntimeClient",
    "DistributedRuntimeService",
    "DotDimensionNumbers",
    "Executable",
    "ExecutableBuildOptions",
    "ExecuteResults",
    "FftType",
    "Frame",
    "FrontendAttributes",
    "GSPMDSharding",
    "GatherDimensionNumbers",
    "HloComputation",
    "HloModule",
    "HloPrintOptions",
    "HloSharding",
    "HostBufferSemantics",
    "Layout",
    "LoadedExecutable",
    "Memory",
    "Mesh",
    "NamedSharding",
    "NoSharding",
    "OpMetadata",
    "OpSharding",
    "PaddingConfig",
    "PaddingConfigDimension",
    "PaddingType",
    "PartitionSpec",
    "PjRtLayout",
    "PmapSharding",
    "PrecisionConfig",
    "PrimitiveType",
    "ProgramShape",
    "ReplicaGroup",
    "Replicated",
    "ResultAccuracy",
    "ResultAccuracyMode",
    "ResultHandler",
    "ScatterDimensionNumbers",
    "Shape",
    "ShapeIndex",
    "ShapedArray",
    "Shard",
    "ShardedAxis",
    "ShardedToken",
    "Sharding",
    "ShardingSpec",
    "SingleDeviceSharding",
    "Token",
    "Traceback",
    "Unstacked",
    "XlaBuilder",
    "XlaComputation",
    "XlaOp",
    "XlaRuntimeError",
    "array_result_handler",
    "batched_block_until_ready",
    "batched_copy_array_to_devices_with_sharding",
    "batched_device_put",
    "buffer_to_dlpack_managed_tensor",
    "check_and_canonicalize_memory_kind",
    "cuda_array_interface_to_buffer",
    "custom_call_targets",
    "dlpack_managed_tensor_to_buffer",
    "dtype_to_etype",
    "encode_inspect_sharding_callback",
    "execution_stream_id",
    "generate_pjrt_gpu_plugin_options",
    "get_distributed_runtime_client",
    "get_distributed_runtime_service",
    "get_execution_stream_id",
    "get_topology_for_devices",
    "hlo_module_cost_analysis",
    "hlo_module_from_text",
    "hlo_module_to_dot_graph",
    "hlo_sharding_util",
    "initialize_pjrt_plugin",
    "json_to_pprof_profile",
    "load_pjrt_plugin_dynamically",
    "load_pjrt_plugin_with_c_api",
    "make_c_api_client",
    "make_c_api_device_topology",
    "make_convolution_dimension_numbers",
    "make_cpu_client",
    "make_dot_dimension_numbers",
    "make_gloo_tcp_collectives",
    "make_gpu_client",
    "make_interpreter_client",
    "make_mpi_collectives",
    "make_padding_config",
    "make_replica_groups",
    "make_tfrt_tpu_c_api_device_topology",
    "ops",
    "pjrt_plugin_initialized",
    "pjrt_plugin_loaded",
    "pprof_profile_to_json",
    "profiler",
    "register_custom_call_as_batch_partitionable",
    "register_custom_call_handler",
    "register_custom_call_partitioner",
    "register_custom_call_target",
    "register_custom_type",
    "register_custom_type_id",
    "register_custom_type_id_handler",
    "reorder_shards",
    "set_execution_stream_id",
    "set_tracebacks_enabled",
    "shape_from_pyval",
    "tracebacks_enabled",
    "unregister_custom_call_target",
    "window_padding_type_to_pad_values",
    "xla_platform_names",
]


def make_cpu_client(
    asynchronous: bool = True,
    distributed_client: Any = None,
    node_id: int = 0,
    num_nodes: int = 1,
    collectives: Any = None,
    num_devices: int | None = None,
    get_local_topology_timeout_minutes: int | None = None,
    get_global_topology_timeout_minutes: int | None = None,
    transfer_server_factory: Any = None,
) -> Client:
    """A client that compiles to native code for this machine's CPU.

    num_devices: how many devices share the CPU; default --xla_force_host_platform_device_count of
    XLA_FLAGS, else 1. asynchronous: `execute` may return before the program has run; short programs
    on idle devices run at once all the same. Raises UnimplementedError for what concerns several
    processes.
    """
    for name, value, only in (
        ("distributed_client", distributed_client, None),
        ("num_nodes", num_nodes, 1),
        ("collectives", collectives, None),
        ("transfer_server_factory", transfer_server_factory, None),
    ):
        if value != only:
            raise UnimplementedError(
                f"make_cpu_client({name}={value!r}): haloc runs in one process so far"
            )
    return Client(CpuBackend(), _device_count(num_devices), node_id, asynchronous)


def make_interpreter_client(num_devices: int | None = None) -> Client:
    """A client that runs programs by the NumPy meaning of each op: slow, and always right."""
    return Client(InterpreterBackend(), _device_count(num_devices))


def _device_count(asked: int | None) -> int:
    if asked is None:
        return Flags.from_environment().xla_force_host_platform_device_count
    if isinstance(asked, bool) or not isinstance(asked, int):
        raise TypeError(f"num_devices is an int or None, not {type(asked).__name__}")
    return asked
