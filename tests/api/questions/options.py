"""Options of compilation: defaults, setters, protos, and what compile_and_load says of wrong ones."""

# ruff: noqa: E501  # a question is a line of code

NEW = "o = CompileOptions(); b = o.executable_build_options; d = b.debug_options\n"
TEXT = """MODULE = '''module @m {
  func.func public @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.add %a, %b : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}'''
"""
COMPILE = NEW + TEXT
LOAD = "\nclient.compile_and_load(MODULE, devices[:1], o)"
RUN = "\nex = client.compile_and_load(MODULE, devices[:1], o); x = put(np.ones((2, 3), 'f4')); np.asarray(ex.execute([x, x])[0]).tolist()"
BYTES = "\no.SerializeAsString().hex()"
COPY = "\nc = CompileOptions.ParseFromString(o.SerializeAsString())\n"
CALL = """
def call(target, attributes=''):
    text = f'''module @m {{
      func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {{
        %0 = stablehlo.custom_call @{target}(%a) {{{attributes}}} : (tensor<3xf32>) -> tensor<3xf32>
        return %0 : tensor<3xf32>
      }}
    }}'''
    return client.compile_and_load(text, DeviceList(tuple(devices[:1])), CompileOptions(), callbacks)
callbacks = []
"""
CALLBACK = (
    CALL
    + """
seen = []
def run(callback, attributes='api_version = 4 : i32, backend_config = {index = 0 : ui64}'):
    callbacks.append(callback)
    ex = call('xla_ffi_python_cpu_callback', attributes)
    return np.asarray(ex.execute([put(np.arange(3, dtype='f4'))])[0]).tolist()
"""
)

OPTION_FIELDS = (
    "argument_layouts", "compile_portable_executable", "device_assignment",
    "env_option_overrides", "num_partitions", "num_replicas", "parameter_is_tupled_arguments",
    "profile_version", "tuple_arguments",
)  # fmt: skip
BUILD_FIELDS = (
    "allow_spmd_sharding_propagation_to_output", "allow_spmd_sharding_propagation_to_parameters",
    "auto_spmd_partitioning_mesh_ids", "auto_spmd_partitioning_mesh_shape", "device_assignment",
    "exec_time_optimization_effort", "fdo_profile", "memory_fitting_effort", "num_partitions",
    "num_replicas", "result_layout", "use_auto_spmd_partitioning", "use_shardy_partitioner",
    "use_spmd_partitioning",
)  # fmt: skip
DEBUG_FIELDS = (
    "xla_backend_optimization_level", "xla_cpu_enable_fast_math", "xla_cpu_enable_xprof_traceme",
    "xla_cpu_fast_math_honor_division", "xla_cpu_fast_math_honor_functions",
    "xla_cpu_fast_math_honor_infs", "xla_cpu_fast_math_honor_nans", "xla_detailed_logging",
    "xla_disable_hlo_passes", "xla_dump_compress_protos", "xla_dump_disable_metadata",
    "xla_dump_fusion_visualization", "xla_dump_hlo_as_dot", "xla_dump_hlo_as_html",
    "xla_dump_hlo_as_long_text", "xla_dump_hlo_as_proto", "xla_dump_hlo_as_text",
    "xla_dump_hlo_as_url", "xla_dump_hlo_module_re", "xla_dump_hlo_pass_re",
    "xla_dump_hlo_pipeline_re", "xla_dump_hlo_snapshots", "xla_dump_max_hlo_modules",
    "xla_dump_module_metadata", "xla_dump_to", "xla_enable_dumping", "xla_enable_hlo_passes_only",
    "xla_gpu_cuda_data_dir", "xla_gpu_enable_fast_min_max", "xla_llvm_disable_expensive_passes",
    "xla_test_all_input_layouts",
)  # fmt: skip

SETTERS = {
    "num_replicas": "2", "num_partitions": "3", "profile_version": "7",
    "compile_portable_executable": "True", "parameter_is_tupled_arguments": "True",
    "tuple_arguments": "True", "argument_layouts": "[Shape('f32[2,3]{0,1}'), Shape('s32[]')]",
    "device_assignment": "DeviceAssignment.create(np.array([[0, 1], [2, 3]]))",
    "env_option_overrides": "[('xla_dump_to', 'x'), ('xla_embed_ir_in_executable', True), ('a', 3), ('b', 1.5)]",
}  # fmt: skip
BUILD_SETTERS = {
    "result_layout": "Shape('f32[4,5]{0,1}')", "fdo_profile": "b'abc'", "num_replicas": "4",
    "use_spmd_partitioning": "True", "use_auto_spmd_partitioning": "True",
    "auto_spmd_partitioning_mesh_shape": "[2, 2]", "auto_spmd_partitioning_mesh_ids": "[0, 1, 2, 3]",
    "use_shardy_partitioner": "True", "allow_spmd_sharding_propagation_to_output": "[True, False]",
    "allow_spmd_sharding_propagation_to_parameters": "[True]",
    "exec_time_optimization_effort": "0.5", "memory_fitting_effort": "-0.25",
    "optimization_level": "1", "memory_fitting_level": "2",
}  # fmt: skip
DEBUG_SETTERS = {
    "xla_backend_optimization_level": "1", "xla_cpu_enable_fast_math": "True",
    "xla_cpu_fast_math_honor_nans": "False", "xla_disable_hlo_passes": "'cse,dce'",
    "xla_dump_to": "'/tmp/x'", "xla_dump_hlo_as_proto": "True", "xla_dump_hlo_pass_re": "'.*'",
    "xla_enable_hlo_passes_only": "'cse'", "xla_detailed_logging": "False",
    "xla_enable_dumping": "False", "xla_dump_max_hlo_modules": "3",
}  # fmt: skip

QUESTIONS = {
    **{f"default: {n}": f"{NEW}o.{n}" for n in OPTION_FIELDS},
    **{f"build default: {n}": f"{NEW}b.{n}" for n in BUILD_FIELDS},
    **{f"debug default: {n}": f"{NEW}d.{n}" for n in DEBUG_FIELDS},
    **{f"set {n}: bytes": f"{NEW}o.{n} = {v}{BYTES}" for n, v in SETTERS.items()},
    **{f"set build {n}: bytes": f"{NEW}b.{n} = {v}{BYTES}" for n, v in BUILD_SETTERS.items()},
    **{f"set debug {n}: bytes": f"{NEW}d.{n} = {v}{BYTES}" for n, v in DEBUG_SETTERS.items()},
    **{
        f"set {n}: read back": f"{NEW}o.{n} = {v}{COPY}str(c.{n})"
        for n, v in SETTERS.items()
        if n not in ("argument_layouts", "env_option_overrides")
    },
    "layouts: read back": f"{NEW}o.argument_layouts = [Shape('f32[2,3]{{0,1}}')]{COPY}[str(s) for s in c.argument_layouts]",
    "overrides: read back": f"{NEW}o.env_option_overrides = [('a', 3), ('b', 1.5), ('c', 'x'), ('d', True)]{COPY}sorted(c.env_option_overrides)",
    "repr of the build options": f"{NEW}b",
    "repr of the build options, set": f"{NEW}b.num_replicas = 3; b.result_layout = Shape('f32[2]')\nb",
    "bytes of the defaults": NEW + BYTES,
    "options of no bytes": "c = CompileOptions.ParseFromString(b''); (c.num_replicas, c.num_partitions, c.profile_version)",
    "options of garbage": "type(CompileOptions.ParseFromString(b'garbage')).__name__",
    "options of text": "CompileOptions.ParseFromString('x')",
    "pickled": f"{NEW}o.num_replicas = 5\npickle.loads(pickle.dumps(o)).num_replicas",
    "unknown attribute": f"{NEW}o.bogus = 3",
    "unknown build attribute": f"{NEW}b.bogus = 3",
    "unknown debug attribute": f"{NEW}d.bogus = 3",
    "a number of text": f"{NEW}o.num_replicas = 'a'",
    "a negative number": f"{NEW}o.num_replicas = -1\no.num_replicas",
    "a flag of text": f"{NEW}d.xla_cpu_enable_fast_math = 'yes'",
    "no device assignment": f"{NEW}o.device_assignment = None",
    "debug options on their own": "DebugOptions()",
    "build options are live": f"{NEW}o.executable_build_options.num_replicas = 2\no.num_replicas",
    "runs": COMPILE + RUN,
    "tupled": f"{COMPILE}o.parameter_is_tupled_arguments = True{RUN}",
    "tupled: number of parameters": f"{COMPILE}o.parameter_is_tupled_arguments = True\nlen(client.compile_and_load(MODULE, devices[:1], o).get_parameter_layouts())",
    "row-major layouts": f"{COMPILE}o.argument_layouts = [Shape('f32[2,3]{{1,0}}')] * 2; b.result_layout = Shape('f32[2,3]{{1,0}}'){RUN}",
    "too few layouts": f"{COMPILE}o.argument_layouts = [Shape('f32[2,3]')]{LOAD}",
    "3 replicas on too few devices": f"{COMPILE}o.num_replicas = 9{LOAD}",
    "partitions without spmd": f"{COMPILE}o.num_partitions = 2{LOAD}",
    "an unknown override": f"{COMPILE}o.env_option_overrides = [('xla_bogus', 'x')]{LOAD}",
    "an override of a wrong value": f"{COMPILE}o.env_option_overrides = [('xla_backend_optimization_level', 'a')]{LOAD}",
    "a bool as text": f"{COMPILE}o.env_option_overrides = [('xla_cpu_enable_fast_math', 'true')]{LOAD}",
    "a bool of text": f"{COMPILE}o.env_option_overrides = [('xla_cpu_enable_fast_math', 'maybe')]{LOAD}",
    "an int as text": f"{COMPILE}o.env_option_overrides = [('xla_backend_optimization_level', '1')]{RUN}",
    "an int": f"{COMPILE}o.env_option_overrides = [('xla_backend_optimization_level', 1)]{RUN}",
    "a bool": f"{COMPILE}o.env_option_overrides = [('xla_cpu_enable_fast_math', True)]{RUN}",
    "fast math": f"{COMPILE}d.xla_cpu_enable_fast_math = True{RUN}",
    **{f"level {n}": f"{COMPILE}d.xla_backend_optimization_level = {n}{RUN}" for n in range(4)},
    "an untyped custom call to nothing": f"{CALL}call('nope')",
    "a typed custom call to nothing": f"{CALL}call('nope', 'api_version = 4 : i32')",
    "a callback": f"{CALLBACK}run(lambda a: (a * 2,))",
    "a callback sees": f"{CALLBACK}run(lambda a: seen.append((type(a).__name__, str(a.dtype), a.shape, a.flags.writeable)) or (a,))\nseen",
    "a callback's list": f"{CALLBACK}run(lambda a: [a])",
    "a callback that returns an array": f"{CALLBACK}run(lambda a: a)",
    "a callback that returns nothing": f"{CALLBACK}run(lambda a: None)",
    "a callback that returns too many": f"{CALLBACK}run(lambda a: (a, a))",
    "a callback that returns too few elements": f"{CALLBACK}run(lambda a: (a[:2],))",
    "a callback without index": f"{CALLBACK}run(lambda a: (a,), 'api_version = 4 : i32')",
    "what is no callback": f"{CALLBACK}run(5)",
    "registering no function": "register_custom_call_target('test_x', 'text')",
    "registering for an api version": "register_custom_call_target('test_x', 'text', 'cpu', 7)",
    "registering for a platform": "register_custom_call_target('test_x', 'text', 'nowhere')",
    "targets of nowhere": "custom_call_targets('elsewhere')",
    "callbacks among the targets": "'xla_ffi_python_cpu_callback' in custom_call_targets('cpu')",
    "traits": "[(t.name, t.value) for t in CustomCallTargetTraits]",
}
