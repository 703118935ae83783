"""Compiling, executables, execution and its results, tokens, streams."""

# ruff: noqa: E501  # a question is a line of code

ADD = """ADD = '''module @adds {
  func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.add %a, %b : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}'''
x = put(np.arange(3, dtype='f4')); y = put(np.ones(3, 'f4'))
def load(text, *options, devices=devices[:1]):
    return client.compile_and_load(text, devices, *options)
def replicas(n):
    o = CompileOptions(); o.num_replicas = n; return o
"""
EX = ADD + "ex = load(ADD)\n"
PAIR = """PAIR = '''module @pair {
  func.func public @main(%a: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
    %0 = stablehlo.negate %a : tensor<3xf32>
    return %0, %a : tensor<3xf32>, tensor<3xf32>
  }
}'''
"""
TWO = ADD + PAIR + "ex = load(PAIR)\n"
NONE = "NONE = '''module @none { func.func public @main() { return } }'''\n"
DONATED = """DONATED = '''module @donated {
  func.func public @main(%a: tensor<3xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.add %a, %b : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}'''
"""
DONATE = ADD + DONATED + "ex = load(DONATED)\n"
SUM = """SUM = '''module @sums attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}'''
"""
REPLICAS = (
    ADD + SUM + "ex = load(SUM, replicas(2), devices=devices[:2])\n"
    "xs = [put(np.full(2, i + 1, 'f4'), i) for i in range(2)]\n"
)
SPMD = """SPMD = '''module @spread attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%a: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> (tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}'''
o = CompileOptions(); o.num_partitions = 2; o.executable_build_options.use_spmd_partitioning = True
"""
SPREAD = ADD + SPMD + "ex = load(SPMD, o, devices=devices[:2])\n"

CALLS = {
    "too few": "ex.{0}([x])",
    "too many": "ex.{0}([x, x, x])",
    "numpy": "ex.{0}([np.zeros(3, 'f4')] * 2)",
    "None": "ex.{0}([None, x])",
    "no sequence": "ex.{0}(x)",
    "no arguments": "ex.{0}()",
    "another size": "ex.{0}([x, put(np.zeros(4, 'f4'))])",
    "another dtype": "ex.{0}([x, put(np.ones(3, 'i4'))])",
    "another rank": "ex.{0}([x, put(np.ones((1, 3), 'f4'))])",
    "another device": "ex.{0}([x, put(np.zeros(3, 'f4'), 1)])",
    "a deleted array": "y.delete(); ex.{0}([x, y])",
    "a list of one": "ex.{0}([[x], [y]])",
    "lists of two": "ex.{0}([[x, x], [y, y]])",
    "a tuple": "ex.{0}((x, y))",
}
RESULTS = "r = ex.execute_sharded([x])\n"

QUESTIONS = {
    # Compiling
    "compile nothing": ADD + "load('')",
    "compile a number": ADD + "load(5)",
    "compile for no devices": ADD + "load(ADD, devices=[])",
    "compile for numbers": ADD + "load(ADD, devices=[0])",
    "compile for a device": ADD + "load(ADD, devices=devices[0])",
    "compile for a text": ADD + "load(ADD, devices='cpu')",
    "compile without devices": ADD + "client.compile_and_load(ADD)",
    "compile with options None": ADD + "load(ADD, None)",
    "compile with options of text": ADD + "load(ADD, 'options')",
    "compile with an unknown keyword": ADD + "client.compile_and_load(ADD, devices[:1], bogus=1)",
    "compile without main": ADD + "load('module @m { func.func public @f() { return } }')",
    "compile a type error": ADD + "load(ADD.replace('%a, %b :', '%a, %b : tensor<4xf32> //'))",
    "compile an unknown op": ADD + "load(ADD.replace('stablehlo.add', 'stablehlo.bogus'))",
    "compile for two devices": ADD + "load(ADD, devices=devices[:2]).local_devices()",
    "compile for a list": ADD + "load(ADD, devices=DeviceList(tuple(devices[:1]))).local_devices()",
    "compile for the second device": ADD + "load(ADD, devices=devices[1:2]).local_devices()",
    "compile two replicas": ADD + "load(ADD, replicas(2), devices=devices[:2]).local_devices()",
    "compile two replicas for one device": ADD + "load(ADD, replicas(2)).local_devices()",
    "compile too many replicas": ADD + "load(ADD, replicas(5))",
    "compile for an assignment": ADD
    + "o = CompileOptions(); o.device_assignment = DeviceAssignment.create(np.array([[2]])); load(ADD, o, devices=devices[2:3]).local_devices()",
    "compile for an unknown device": ADD
    + "o = CompileOptions(); o.device_assignment = DeviceAssignment.create(np.array([[7]])); load(ADD, o)",
    "compile for an assignment of two": ADD
    + "o = CompileOptions(); o.device_assignment = DeviceAssignment.create(np.array([[0], [1]])); load(ADD, o)",
    "compile, not loaded": ADD
    + "type(client.compile(ADD, DeviceList(tuple(devices[:1])))).__name__",
    "deserialize garbage": "client.deserialize_executable(b'garbage', devices[:1])",
    "deserialize nothing": "client.deserialize_executable(b'', devices[:1])",
    "deserialize text": "client.deserialize_executable('text', devices[:1])",
    "deserialize": EX
    + "e = client.deserialize_executable(client.serialize_executable(ex), devices[:1]); (np.asarray(e.execute([x, y])[0]).tolist(), e.fingerprint == ex.fingerprint, e.local_devices())",
    "deserialize half": EX
    + "b = client.serialize_executable(ex); client.deserialize_executable(b[:len(b) // 2], devices[:1])",
    "serialize None": "client.serialize_executable(None)",
    # What executables say
    "fingerprint": EX
    + "(type(ex.fingerprint).__name__, ex.fingerprint.isdigit(), ex.fingerprint == load(ADD).fingerprint)",
    "fingerprint of another": TWO + "ex.fingerprint == load(ADD).fingerprint",
    "client": EX + "ex.client is client",
    "local devices": EX + "ex.local_devices()",
    "traceback": EX
    + "[(f.file_name, f.function_name, f.line_num) for f in ex.traceback.frames[:2]]",
    "module name": EX + "[m.name for m in ex.hlo_modules()]",
    "layouts": EX
    + "([str(x) for x in ex.get_parameter_layouts()], [str(x) for x in ex.get_output_layouts()])",
    "layouts of two outputs": TWO
    + "([str(x) for x in ex.get_parameter_layouts()], [str(x) for x in ex.get_output_layouts()])",
    "layout's layout": EX + "ex.get_parameter_layouts()[0]._xla_layout()",
    "shardings": EX + "(ex.get_parameter_shardings(), ex.get_output_shardings())",
    "shardings, spread": SPREAD
    + "[HloSharding.from_proto(s) for s in (*ex.get_parameter_shardings(), *ex.get_output_shardings())]",
    "memory kinds": EX + "ex.get_output_memory_kinds()",
    "memory kinds of two": TWO + "ex.get_output_memory_kinds()",
    "memory stats": EX
    + "s = ex.get_compiled_memory_stats(); (s.argument_size_in_bytes, s.output_size_in_bytes, s.alias_size_in_bytes, s.temp_size_in_bytes, s.peak_memory_in_bytes)",
    "memory stats of a tuple": TWO
    + "s = ex.get_compiled_memory_stats(); (s.argument_size_in_bytes, s.output_size_in_bytes, s.alias_size_in_bytes)",
    "memory stats of a donation": DONATE
    + "s = ex.get_compiled_memory_stats(); (s.argument_size_in_bytes, s.output_size_in_bytes, s.alias_size_in_bytes)",
    "memory stats on the host": EX
    + "s = ex.get_compiled_memory_stats(); [v for n, v in ((n, getattr(s, n)) for n in sorted(dir(s)) if n.startswith('host_'))]",
    "memory stats text": EX
    + "str(ex.get_compiled_memory_stats()).replace(f'generated_code_size_in_bytes={ex.size_of_generated_code_in_bytes()}', 'generated_code_size_in_bytes=0', 1)",
    "memory stats repr": EX + "repr(ex.get_compiled_memory_stats()).startswith('<')",
    "memory stats are set": EX
    + "s = ex.get_compiled_memory_stats(); s.temp_size_in_bytes = 5; s.temp_size_in_bytes",
    "memory stats of no executable": "CompiledMemoryStats()",
    "buffer assignment": EX
    + "type(ex.get_compiled_memory_stats().serialized_buffer_assignment_proto).__name__",
    "buffer assignment is not set": EX
    + "ex.get_compiled_memory_stats().serialized_buffer_assignment_proto = b''",
    "cost": EX + "sorted(ex.cost_analysis().items())",
    "keep alive": EX + "ex.keep_alive(x)",
    "live": EX + "ex in client.live_executables()",
    "newest first": EX
    + "e = load(ADD); live = client.live_executables(); live.index(e) < live.index(ex)",
    "executable constructor": "LoadedExecutable()",
    # Calls
    **{f"execute {n}": EX + c.format("execute") for n, c in CALLS.items()},
    **{
        f"execute_sharded {n}": EX
        + c.format("execute_sharded")
        + ".disassemble_into_single_device_arrays()"
        for n, c in CALLS.items()
    },
    "execute": EX + "ex.execute([x, y])",
    "execute on a device": EX + "ex.execute([x, y], devices[0])",
    "execute two outputs": TWO + "ex.execute([x])",
    "execute no outputs": ADD + NONE + "load(NONE).execute([])",
    "output sharding": EX + "o = ex.execute([x, y])[0]; (o.sharding, o._committed, o.device)",
    "output memory": ADD
    + PAIR
    + "ex = load(PAIR); ex.execute([x])[1].unsafe_buffer_pointer() == x.unsafe_buffer_pointer()",
    "output layout": EX + "str(ex.execute([x, y])[0]._pjrt_layout)",
    "argument twice": EX + "ex.execute([x, x])",
    "execute_with_token": EX
    + "o, t = ex.execute_with_token([x, y]); (o, type(t).__name__, t.block_until_ready(), t.block_until_ready())",
    "execute_with_token, wrong": EX + "ex.execute_with_token([x])",
    # Donation
    "donation": DONATE + "o = ex.execute([x, y]); (o, x.is_deleted(), y.is_deleted())",
    "donation takes the memory": DONATE
    + "p = x.unsafe_buffer_pointer(); ex.execute([x, y])[0].unsafe_buffer_pointer() == p",
    "donation leaves views": DONATE
    + "v = np.asarray(x); ex.execute([x, y]); (v.tolist(), x.is_deleted())",
    "donated twice": DONATE + "ex.execute([x, y]); ex.execute([x, y])",
    "donated and used": DONATE + "ex.execute([x, x])",
    "donated, then read": DONATE + "ex.execute([x, y]); np.asarray(x)",
    "donated, then waited for": DONATE + "ex.execute([x, y]); x.block_until_ready()",
    "donated, the rest stays": DONATE + "ex.execute([x, y]); np.asarray(y).tolist()",
    # Results
    "length": TWO + RESULTS + "len(r)",
    "disassembled": TWO + RESULTS + "r.disassemble_into_single_device_arrays()",
    "disassembled twice": TWO
    + RESULTS
    + "r.disassemble_into_single_device_arrays(); r.disassemble_into_single_device_arrays()",
    "length of the disassembled": TWO
    + RESULTS
    + "r.disassemble_into_single_device_arrays(); len(r)",
    "prefix": TWO
    + RESULTS
    + "(r.disassemble_prefix_into_single_device_arrays(1), len(r), r.disassemble_into_single_device_arrays())",
    "prefix of none": TWO + RESULTS + "(r.disassemble_prefix_into_single_device_arrays(0), len(r))",
    "prefix of all": TWO + RESULTS + "(r.disassemble_prefix_into_single_device_arrays(2), len(r))",
    "prefix too long": TWO + RESULTS + "r.disassemble_prefix_into_single_device_arrays(5)",
    "handlers": TWO
    + RESULTS
    + "r.consume_with_handlers([lambda a: ('first', a), lambda a: len(a)])",
    "handlers made": TWO
    + RESULTS
    + "h = array_result_handler(aval(3), SingleDeviceSharding(devices[0]), True); r.consume_with_handlers([h, h])",
    "too few handlers": TWO + RESULTS + "r.consume_with_handlers([])",
    "too many handlers": TWO + RESULTS + "r.consume_with_handlers([len] * 3)",
    "handlers that raise": TWO + RESULTS + "r.consume_with_handlers([len, lambda a: 1 // 0])",
    "handlers used twice": TWO
    + RESULTS
    + "r.consume_with_handlers([len, len]); r.consume_with_handlers([len, len])",
    "results constructor": "ExecuteResults()",
    "token": TWO
    + "r = ex.execute_sharded([x], with_tokens=True); t = r.consume_token(); (type(t).__name__, t.block_until_ready())",
    "token of the first": TWO
    + "t = ex.execute_sharded([x], with_tokens=True).consume_token().get_token(0); (type(t).__name__, t.block_until_ready(), t.block_until_ready())",
    "token not asked for": TWO + "ex.execute_sharded([x]).consume_token().block_until_ready()",
    "token taken twice": TWO
    + "r = ex.execute_sharded([x], True); r.consume_token(); r.consume_token()",
    "token and results": TWO + "r = ex.execute_sharded([x], True); r.consume_token(); len(r)",
    "token constructors": "Token()",
    "sharded token constructor": "ShardedToken()",
    # Several devices
    "replicas": REPLICAS + "ex.execute_sharded([xs]).disassemble_into_single_device_arrays()",
    "replicas of an array": REPLICAS
    + "a = ArrayImpl(aval(4), NamedSharding(mesh(x=2), PartitionSpec('x')), xs, True)\nex.execute_sharded([a]).disassemble_into_single_device_arrays()",
    "replicas' local devices": REPLICAS + "ex.local_devices()",
    "replicas' outputs": REPLICAS
    + "r = ex.execute_sharded([xs]); (len(r), [[o.device for o in column] for column in r.disassemble_into_single_device_arrays()])",
    "replicas with tokens": REPLICAS
    + "t = ex.execute_sharded([xs], True).consume_token(); (t.block_until_ready(), t.get_token(1).block_until_ready())",
    "replicas, the first's outputs": REPLICAS + "ex.execute([xs])",
    "replicas, too few shards": REPLICAS + "ex.execute_sharded([xs[:1]])",
    "replicas, a deleted shard": REPLICAS + "xs[1].delete(); ex.execute_sharded([xs])",
    "replicas, one array": REPLICAS + "ex.execute_sharded([xs[0]])",
    "partitions": SPREAD
    + "a = batched_device_put(aval(4), NamedSharding(mesh(x=2), PartitionSpec('x')), [np.arange(2, dtype='f4'), np.arange(2, 4, dtype='f4')], devices[:2])\nex.execute_sharded([a]).disassemble_into_single_device_arrays()",
    "partitions' stats": SPREAD
    + "s = ex.get_compiled_memory_stats(); (s.argument_size_in_bytes, s.output_size_in_bytes)",
    "partitions without options": ADD + SPMD + "load(SPMD, devices=devices[:2]).local_devices()",
    # Streams
    "stream": "from contextlib import ExitStack\nwith execution_stream_id(42) as given: inside = get_execution_stream_id()\n(given, inside, get_execution_stream_id())",
    "stream, negative": "with execution_stream_id(-1): inside = get_execution_stream_id()\ninside",
    "stream of text": "with execution_stream_id('a'): pass",
    "stream after an error": "try:\n    with execution_stream_id(7): 1 // 0\nexcept ZeroDivisionError: pass\nget_execution_stream_id()",
}
