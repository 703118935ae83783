"""The functions of `PJRT_Api` in their order in the table, with what their argument structs hold.

One signature a function, without the `PJRT_` of its name and of its `_Args` struct. Every struct
begins with `struct_size#` and `extension_start`, which are left out here. A field is a pointer
unless it says otherwise: `#` is size_t, `:i32` and so on are fixed widths, `:u32` also every enum,
`:Name` another struct by value.
"""

FUNCTIONS = """
Error_Destroy(error)
Error_Message(error, message, message_size#)
Error_GetCode(error, code:u32)
Plugin_Initialize()
Plugin_Attributes(attributes, num_attributes#)
Event_Destroy(event)
Event_IsReady(event, is_ready:bool)
Event_Error(event)
Event_Await(event)
Event_OnReady(event, callback, user_arg)
Client_Create(create_options, num_options#, kv_get_callback, kv_get_user_arg, kv_put_callback,
    kv_put_user_arg, client, kv_try_get_callback, kv_try_get_user_arg)
Client_Destroy(client)
Client_PlatformName(client, platform_name, platform_name_size#)
Client_ProcessIndex(client, process_index:i32)
Client_PlatformVersion(client, platform_version, platform_version_size#)
Client_Devices(client, devices, num_devices#)
Client_AddressableDevices(client, addressable_devices, num_addressable_devices#)
Client_LookupDevice(client, id:i32, device)
Client_LookupAddressableDevice(client, local_hardware_id:i32, addressable_device)
Client_AddressableMemories(client, addressable_memories, num_addressable_memories#)
Client_Compile(client, program, compile_options, compile_options_size#, executable)
Client_DefaultDeviceAssignment(client, num_replicas:i32, num_partitions:i32,
    default_assignment_size#, default_assignment)
Client_BufferFromHostBuffer(client, data, type:u32, dims, num_dims#, byte_strides,
    num_byte_strides#, host_buffer_semantics:u32, device, memory, device_layout,
    done_with_host_buffer, buffer)
DeviceDescription_Id(device_description, id:i32)
DeviceDescription_ProcessIndex(device_description, process_index:i32)
DeviceDescription_Attributes(device_description, num_attributes#, attributes)
DeviceDescription_Kind(device_description, device_kind, device_kind_size#)
DeviceDescription_DebugString(device_description, debug_string, debug_string_size#)
DeviceDescription_ToString(device_description, to_string, to_string_size#)
Device_GetDescription(device, device_description)
Device_IsAddressable(device, is_addressable:bool)
Device_LocalHardwareId(device, local_hardware_id:i32)
Device_AddressableMemories(device, memories, num_memories#)
Device_DefaultMemory(device, memory)
Device_MemoryStats(device, bytes_in_use:i64, peak_bytes_in_use:i64,
    peak_bytes_in_use_is_set:bool, num_allocs:i64, num_allocs_is_set:bool,
    largest_alloc_size:i64, largest_alloc_size_is_set:bool, bytes_limit:i64,
    bytes_limit_is_set:bool, bytes_reserved:i64, bytes_reserved_is_set:bool,
    peak_bytes_reserved:i64, peak_bytes_reserved_is_set:bool, bytes_reservable_limit:i64,
    bytes_reservable_limit_is_set:bool, largest_free_block_bytes:i64,
    largest_free_block_bytes_is_set:bool, pool_bytes:i64, pool_bytes_is_set:bool,
    peak_pool_bytes:i64, peak_pool_bytes_is_set:bool, peak_allocated_bytes:i64,
    peak_allocated_bytes_is_set:bool)
Memory_Id(memory, id:i32)
Memory_Kind(memory, kind, kind_size#)
Memory_DebugString(memory, debug_string, debug_string_size#)
Memory_ToString(memory, to_string, to_string_size#)
Memory_AddressableByDevices(memory, devices, num_devices#)
Executable_Destroy(executable)
Executable_Name(executable, executable_name, executable_name_size#)
Executable_NumReplicas(executable, num_replicas#)
Executable_NumPartitions(executable, num_partitions#)
Executable_NumOutputs(executable, num_outputs#)
Executable_SizeOfGeneratedCodeInBytes(executable, size_in_bytes:i64)
Executable_GetCostAnalysis(executable, num_properties#, properties)
Executable_OutputMemoryKinds(executable, num_outputs#, memory_kinds, memory_kind_sizes)
Executable_OptimizedProgram(executable, program)
Executable_Serialize(executable, serialized_bytes, serialized_bytes_size#,
    serialized_executable, serialized_executable_deleter)
LoadedExecutable_Destroy(executable)
LoadedExecutable_GetExecutable(loaded_executable, executable)
LoadedExecutable_AddressableDevices(executable, addressable_devices, num_addressable_devices#)
LoadedExecutable_Delete(executable)
LoadedExecutable_IsDeleted(executable, is_deleted:bool)
LoadedExecutable_Execute(executable, options, argument_lists, num_devices#, num_args#,
    output_lists, device_complete_events, execute_device)
Executable_DeserializeAndLoad(client, serialized_executable, serialized_executable_size#,
    loaded_executable, overridden_serialized_compile_options,
    overridden_serialized_compile_options_size#, load_options)
LoadedExecutable_Fingerprint(executable, executable_fingerprint, executable_fingerprint_size#)
Buffer_Destroy(buffer)
Buffer_ElementType(buffer, type:u32)
Buffer_Dimensions(buffer, dims, num_dims#)
Buffer_UnpaddedDimensions(buffer, unpadded_dims, num_dims#)
Buffer_DynamicDimensionIndices(buffer, dynamic_dim_indices, num_dynamic_dims#)
Buffer_GetMemoryLayout(buffer, layout:Buffer_MemoryLayout)
Buffer_OnDeviceSizeInBytes(buffer, on_device_size_in_bytes#)
Buffer_Device(buffer, device)
Buffer_Memory(buffer, memory)
Buffer_Delete(buffer)
Buffer_IsDeleted(buffer, is_deleted:bool)
Buffer_CopyToDevice(buffer, dst_device, dst_buffer)
Buffer_ToHostBuffer(src, host_layout, dst, dst_size#, event)
Buffer_IsOnCpu(buffer, is_on_cpu:bool)
Buffer_ReadyEvent(buffer, event)
Buffer_UnsafePointer(buffer, buffer_pointer#)
Buffer_IncreaseExternalReferenceCount(buffer)
Buffer_DecreaseExternalReferenceCount(buffer)
Buffer_OpaqueDeviceMemoryDataPointer(buffer, device_memory_ptr)
CopyToDeviceStream_Destroy(stream)
CopyToDeviceStream_AddChunk(stream, chunk, transfer_complete)
CopyToDeviceStream_TotalBytes(stream, total_bytes:i64)
CopyToDeviceStream_GranuleSize(stream, granule_size_in_bytes:i64)
CopyToDeviceStream_CurrentBytes(stream, current_bytes:i64)
TopologyDescription_Create(topology_name, topology_name_size#, create_options, num_options#,
    topology)
TopologyDescription_Destroy(topology)
TopologyDescription_PlatformName(topology, platform_name, platform_name_size#)
TopologyDescription_PlatformVersion(topology, platform_version, platform_version_size#)
TopologyDescription_GetDeviceDescriptions(topology, descriptions, num_descriptions#)
TopologyDescription_Serialize(topology, serialized_bytes, serialized_bytes_size#,
    serialized_topology, serialized_topology_deleter)
TopologyDescription_Attributes(topology, attributes, num_attributes#)
Compile(topology, program, compile_options, compile_options_size#, client, executable)
Executable_OutputElementTypes(executable, output_types, num_output_types#)
Executable_OutputDimensions(executable, num_outputs#, dims, dim_sizes)
Buffer_CopyToMemory(buffer, dst_memory, dst_buffer)
Client_CreateViewOfDeviceBuffer(client, device_buffer_ptr, dims, num_dims#, element_type:u32,
    layout, device, on_delete_callback, on_delete_callback_arg, stream:i64, buffer, memory)
Executable_Fingerprint(executable, executable_fingerprint, executable_fingerprint_size#)
Client_TopologyDescription(client, topology)
Executable_GetCompiledMemoryStats(executable, generated_code_size_in_bytes:i64,
    argument_size_in_bytes:i64, output_size_in_bytes:i64, alias_size_in_bytes:i64,
    temp_size_in_bytes:i64, host_generated_code_size_in_bytes:i64,
    host_argument_size_in_bytes:i64, host_output_size_in_bytes:i64,
    host_alias_size_in_bytes:i64, host_temp_size_in_bytes:i64, peak_memory_in_bytes:i64,
    total_size_in_bytes:i64, total_allocation_bytes:i64, indefinite_allocations:i64,
    peak_unpadded_heap_bytes:i64)
Memory_Kind_Id(memory, kind_id:i32)
ExecuteContext_Create(context)
ExecuteContext_Destroy(context)
Buffer_CopyRawToHost(buffer, dst, offset:i64, transfer_size:i64, event)
AsyncHostToDeviceTransferManager_Destroy(transfer_manager)
AsyncHostToDeviceTransferManager_TransferData(transfer_manager, buffer_index:i32, data,
    offset:i64, transfer_size:i64, is_last_transfer:bool, done_with_h2d_transfer)
Client_CreateBuffersForAsyncHostToDevice(client, shape_specs, num_shape_specs#,
    device_layouts, num_device_layouts#, memory, transfer_manager)
AsyncHostToDeviceTransferManager_RetrieveBuffer(transfer_manager, buffer_index:i32, buffer_out)
AsyncHostToDeviceTransferManager_Device(transfer_manager, device_out)
AsyncHostToDeviceTransferManager_BufferCount(transfer_manager, buffer_count#)
AsyncHostToDeviceTransferManager_BufferSize(transfer_manager, buffer_index:i32, buffer_size#)
AsyncHostToDeviceTransferManager_SetBufferError(transfer_manager, buffer_index:i32,
    error_code:u32, error_message, error_message_size#)
AsyncHostToDeviceTransferManager_AddMetadata(transfer_manager, transfer_metadata, num_metadata#)
Client_DmaMap(client, data, size#)
Client_DmaUnmap(client, data)
Client_CreateUninitializedBuffer(client, shape_dims, shape_num_dims#, shape_element_type:u32,
    shape_layout, device, memory, buffer)
Client_UpdateGlobalProcessInfo(client, process_infos, num_process_infos#)
TopologyDescription_Deserialize(serialized_topology, serialized_topology_size#, topology)
Client_CreateAliasBuffer(client, memory, shape_dims, shape_num_dims#, shape_element_type:u32,
    shape_layout, alias_buffer, fulfill_alias_buffer_cb)
Client_FulfillAliasBuffer(client, buffer, status_code:u32, error_message, error_message_size#,
    fulfill_alias_buffer_cb)
LoadedExecutable_GetDeviceAssignment(executable, serialized_bytes, serialized_bytes_size#,
    serialized_device_assignment, serialized_device_assignment_deleter)
Client_CreateErrorBuffer(client, error_code:u32, error_message, error_message_size#,
    shape_dims, shape_num_dims#, shape_element_type:u32, shape_layout, memory, buffer,
    payload, num_payload#)
AsyncHostToDeviceTransferManager_TransferLiteral(transfer_manager, buffer_index:i32, data,
    shape_dims, shape_num_dims#, shape_element_type:u32, shape_layout, done_with_h2d_transfer)
Buffer_CopyRawToHostFuture(buffer, offset:i64, transfer_size:i64, event, callback_data,
    future_ready_callback)
Device_PoisonExecution(device, launch_id:i32, error_code:u32, error_message,
    error_message_size#, poisoned:bool, payload, num_payload#)
Device_CreateAsyncTrackingEvent(device, description, description_size#, event)
AsyncTrackingEvent_Destroy(event)
Executable_GetCompileOptions(executable, serialized_bytes, serialized_bytes_size#,
    serialized_compile_options, serialized_compile_options_deleter)
Buffer_DonateWithControlDependency(buffer, callback_data, dependency_ready_callback, out_buffer)
Event_Create(event)
Event_Set(event, error_code:u32, error_message, error_message_size#)
Device_GetAttributes(device, attributes, num_attributes#, device_attributes, attributes_deleter)
Client_Load(client, executable, compile_options, compile_options_size#, loaded_executable)
LoadedExecutable_AddressableDeviceLogicalIds(executable, addressable_device_logical_ids,
    num_addressable_device_logical_ids#)
Buffer_Bitcast(buffer, element_type:u32, dims, num_dims#, device_layout, out_buffer)
Error_ForEachPayload(error, visitor, user_arg)
TopologyDescription_Fingerprint(topology, fingerprint#)
Executable_ParameterMemoryKinds(executable, num_parameters#, memory_kinds, memory_kind_sizes)
Device_ClearMemoryStats(device)
TopologyDescription_MakeCanonicalShapeForMemorySpace(topology, memory_space_kind_id:i32, dims,
    num_dims#, element_type:u32, layout, serialized_shape, serialized_shape_size#,
    serialized_shape_deleter)
TopologyDescription_GetMemorySpaceKindIds(topology, memory_space_kind_ids,
    num_memory_space_kind_ids#)
"""
