"""Structs of the PJRT C API that are not arguments of one function. Notation: see `calls`."""

STRUCTS = """
Api_Version(major_version:i32, minor_version:i32)
Extension_Base#(type:u32, next)
NamedValue(name, name_size#, type:u32, value:i64, value_size#)
Program(code, code_size#, format, format_size#)
ExecuteOptions(send_callbacks, recv_callbacks, num_send_ops#, num_recv_ops#, launch_id:i32,
    non_donatable_input_indices, num_non_donatable_input_indices#, context, call_location,
    num_tasks#, task_ids, incarnation_ids, multi_slice_config,
    use_major_to_minor_data_layout_for_callbacks:bool)
LoadOptions#(computation_origin, computation_origin_size#, multi_slice_config)
Buffer_MemoryLayout_Tiled(minor_to_major, minor_to_major_size#, tile_dims, tile_dim_sizes,
    num_tiles#)
Buffer_MemoryLayout_Strides(byte_strides, num_byte_strides#)
Buffer_MemoryLayout(tiled:Buffer_MemoryLayout_Tiled, type:u32)
ShapeSpec(dims, num_dims#, element_type:u32)
Memory_FunctionTable(instance_struct_size#, get_user_data, set_user_data)
ProcessInfo#(task_id:i32, incarnation_id#, state:u32, error_code:i32, error_message,
    error_message_size#)
"""

EXTENSION_CALLS = """
Layouts_MemoryLayout_Destroy(layout)
Layouts_MemoryLayout_Serialize(layout, serialized_bytes, serialized_bytes_size#,
    serialized_layout, serialized_layout_deleter)
Layouts_PJRT_Client_GetDefaultLayout(client, type:u32, dims, num_dims#, layout)
Layouts_PJRT_Buffer_MemoryLayout(buffer, layout)
Layouts_PJRT_Topology_GetDefaultLayout(topology_description, type:u32, dims, num_dims#, layout)
Layouts_PJRT_Executable_GetOutputLayouts(executable, num_outputs#, layouts)
Layouts_PJRT_Executable_GetParameterLayouts(executable, num_parameters#, layouts)
Shardings_PJRT_Executable_ParameterShardings(executable, num_parameters#, shardings,
    sharding_sizes)
Shardings_PJRT_Executable_OutputShardings(executable, num_outputs#, shardings, sharding_sizes)
DeviceDescription_MemoryDescriptions(device_description, memory_descriptions,
    num_memory_descriptions#, default_memory_index#)
MemoryDescription_Kind(memory_description, kind, kind_size#, kind_id:i32)
FFI_Type_Register(type_name, type_name_size#, type_id:i64, type_info)
FFI_UserData_Add(context, type_id:i64, data)
FFI_Register_Handler#(target_name, target_name_size#, handler, platform_name, platform_name_size#,
    traits:u32)
"""
"""Functions of extensions, in the order of their tables."""

EXTENSIONS = {"Layouts": 4, "FFI": 5, "MemoryDescriptions": 6, "Shardings": 19}
"""Name of an extension -> its PJRT_Extension_Type."""

CALLBACKS = """
KeyValueGetCallback(key, key_size#, timeout_in_ms:i32, callback_error, user_arg, value, value_size#,
    value_deleter_callback)
KeyValueTryGetCallback(key, key_size#, callback_error, user_arg, value, value_size#,
    value_deleter_callback)
KeyValuePutCallback(key, key_size#, value, value_size#, callback_error, user_arg)
"""
"""Functions that a client gives to a plugin."""
