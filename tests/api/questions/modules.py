"""Shapes, layouts, modules and computations."""

# ruff: noqa: E501  # a question is a line of code

RED = """HloModule red

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  p0 = f32[10,20]{1,0} parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[10]{0} reduce(p0, z), dimensions={1}, to_apply=add
}
"""
MODULE = f"m = hlo_module_from_text({RED!r})\n"
COMPUTATION = MODULE + "c = XlaComputation(m.as_serialized_hlo_module_proto())\n"
BIG = "HloModule big\nENTRY e { ROOT c = f32[12] constant({1,2,3,4,5,6,7,8,9,10,11,12}) }"

SHAPES = (
    "f32[2,3]{1,0}",
    "f32[2,3]{0,1}",
    "f32[2,3]",
    "f32[]",
    "pred[4]",
    "(f32[2], s32[])",
    "token[]",
    "()",
    "bf16[<=2,3]",
    "s4[8]",
    "f8e4m3fn[2]",
    "c64[3]",
    "u64[0]",
    "((f32[1]), (s8[2], pred[]))",
)
METHODS = (
    "dimensions",
    "rank",
    "layout",
    "numpy_dtype",
    "xla_element_type",
    "is_tuple",
    "is_array",
    "is_token",
    "is_static",
    "is_dynamic",
    "leaf_count",
)

CALLS = """HloModule calls

inner {
  a = f32[] parameter(0)
  ROOT n = f32[] negate(a)
}

outer {
  b = f32[] parameter(0)
  y = f32[] call(b), to_apply=inner
  ROOT t = (f32[], f32[]) tuple(b, y)
}

ENTRY e {
  q = f32[] parameter(0)
  w = (f32[], f32[]) call(q), to_apply=outer, metadata={op_name="w"}
  ROOT g = f32[] get-tuple-element(w), index=1, backend_config="x"
}
"""
NESTED = f"m = hlo_module_from_text({CALLS!r})\n"

QUESTIONS = {
    **{
        f"nested text, {preset}": NESTED + f"m.to_string(HloPrintOptions{preset}())"
        for preset in ("", ".short_parsable", ".canonical", ".fingerprint")
    },
    **{
        f"nested text with {option}={value}": NESTED
        + f"o = HloPrintOptions(); o.{option} = {value}; m.to_string(o)"
        for option, value in (
            ("print_metadata", False),
            ("print_backend_config", False),
            ("print_percent", False),
            ("print_program_shape", False),
            ("print_operand_shape", True),
            ("include_layout_in_shapes", False),
            ("canonicalize_instruction_names", True),
            ("print_result_shape", False),
            ("print_extra_attributes", False),
        )
    },
    **{f"shape {text}": f"Shape({text!r})" for text in SHAPES},
    **{
        f"{method} of {text}": f"x = Shape({text!r}).{method}(); repr(x).replace('np.', '')"
        for text in ("f32[2,3]{1,0}", "(f32[2], s32[])", "token[]", "bf16[<=2,3]", "f32[]")
        for method in METHODS
        if not (method in ("layout", "dimensions", "rank") and text[0] in "(t")
    },
    "dimensions of a tuple": "Shape('(f32[2], s32[])').dimensions()",
    "layout of a tuple": "Shape('(f32[2], s32[])').layout()",
    "rank of a tuple": "Shape('(f32[2], s32[])').rank()",
    "element type": "Shape('bf16[2]').element_type()",
    "element type of a tuple": "Shape('(f32[2], s32[])').element_type()",
    "tuple shapes": "Shape('(f32[2], s32[])').tuple_shapes()",
    "tuple shapes of an array": "Shape('f32[2]').tuple_shapes()",
    "array shape": "Shape.array_shape(np.dtype('float32'), (2, 3))",
    "array shape of a type": "Shape.array_shape(PrimitiveType.BF16, (2, 3), (0, 1))",
    "array shape, dynamic": "Shape.array_shape(PrimitiveType.BF16, (2, 3), (0, 1), [True, False])",
    "array shape, negative": "Shape.array_shape(np.dtype('float32'), (-2, 4))",
    "array shape, wrong layout": "Shape.array_shape(np.dtype('float32'), (2, 4), (0, 5))",
    "array shape of objects": "Shape.array_shape(np.dtype('O'), (2, 4))",
    "scalar shape": "Shape.scalar_shape(np.dtype('int8'))",
    "scalar shape of a type": "Shape.scalar_shape(PrimitiveType.S4)",
    "token shape": "Shape.token_shape()",
    "tuple shape": "Shape.tuple_shape([Shape('f32[2]'), Shape('s32[]')])",
    "dynamic dimension": "s = Shape('f32[2,3]'); s.set_dynamic_dimension(1, True); (s, s.is_dynamic_dimension(1), s.is_dynamic())",
    "dynamic dimension out of range": "Shape('f32[2,3]').set_dynamic_dimension(5, True)",
    "layout if absent": "Shape('f32[2,3]').with_major_to_minor_layout_if_absent()",
    "layout that is there": "Shape('f32[2,3]{0,1}').with_major_to_minor_layout_if_absent()",
    "shape bytes": "Shape('f32[2]').to_serialized_proto().hex()",
    "shape bytes of a tuple": "Shape('(f32[2], s32[])').to_serialized_proto().hex()",
    "shape equality": "(Shape('f32[2]') == Shape('f32[2]{0}'), Shape('f32[2,3]{0,1}') == Shape('f32[2,3]'), Shape('f32[2]') != Shape('s32[2]'))",
    "shape hash": "hash(Shape('f32[2]')) == hash(Shape('f32[2]{0}'))",
    "shape of no text": "Shape('bogus')",
    "shape of trailing text": "Shape('f32[2] x')",
    "shape of negative size": "Shape('f32[-2]')",
    "shape pickling": "pickle.loads(pickle.dumps(Shape('f32[2]')))",
    "program shape": "ProgramShape([Shape('f32[2]')], Shape('f32[]'))",
    "program shape of nothing": "ProgramShape([], Shape('f32[]'))",
    "program shape parts": "s = ProgramShape([Shape('f32[2]')], Shape('f32[]')); (s.parameter_shapes(), s.result_shape())",
    "layout": "Layout((1, 0))",
    "layout of a list": "Layout([1, 0]).minor_to_major()",
    "layout text": "Layout((1, 0)).to_string()",
    "layout tiled": "Layout((1, 0), [(8, 128)], 4)",
    "layout tiled twice": "Layout((1, 0), [(8, 128), (2, 1)], 0)",
    "layout parts": "x = Layout((1, 0), [(8, 128)], 4); (x.minor_to_major(), x.tiling(), x.element_size_in_bits())",
    "layout plain parts": "x = Layout((1, 0)); (x.tiling(), x.element_size_in_bits())",
    "layout equality": "(Layout((1, 0)) == Layout((1, 0)), Layout((1, 0)) == Layout((0, 1)), Layout((1, 0)) == Layout((1, 0), [(8, 128)], 0))",
    "layout hash": "hash(Layout((1, 0))) == hash(Layout((1, 0)))",
    "layout pickling": "pickle.loads(pickle.dumps(Layout((1, 0), [(8, 128)], 4)))",
    "layout with duplicates": "Layout((1, 1))",
    "layout of no numbers": "Layout('a')",
    "runtime layout": "x = client.get_default_layout(np.dtype('f4'), (2, 3), devices[0]); (str(x), x._xla_layout(), x == client.get_default_layout(np.dtype('f4'), (2, 3), devices[1]))",
    "runtime layout pickling": "str(pickle.loads(pickle.dumps(client.get_default_layout(np.dtype('f4'), (2, 3), devices[0]))))",
    "default layout of a type": "client.get_default_layout(np.float32, (2, 3), devices[0])",
    "primitive types": "[(n, getattr(PrimitiveType, n).value) for n in ('PRED', 'S8', 'S64', 'U4', 'F16', 'F32', 'BF16', 'C128', 'TUPLE', 'OPAQUE_TYPE', 'TOKEN', 'F8E4M3FN', 'F8E8M0FNU', 'F4E2M1FN')]",
    "primitive type repr": "PrimitiveType.F32",
    "module name": MODULE + "m.name",
    "module text": MODULE + "m.to_string()",
    "module text, short": MODULE + "m.to_string(HloPrintOptions.short_parsable())",
    "module text, canonical": MODULE + "m.to_string(HloPrintOptions.canonical())",
    "module text, fingerprint": MODULE + "m.to_string(HloPrintOptions.fingerprint())",
    "module computations": MODULE + "[c.name for c in m.computations()]",
    "module round trip": MODULE
    + "HloModule.from_serialized_hlo_module_proto(m.as_serialized_hlo_module_proto()).name",
    "module of garbage": "HloModule.from_serialized_hlo_module_proto(b'garbage')",
    "module shardings": MODULE + "(m.spmd_output_sharding, m.spmd_parameters_shardings)",
    "module of no text": "hlo_module_from_text('')",
    "module of an unknown op": "hlo_module_from_text('HloModule m\\nENTRY e { ROOT x = f32[] frob() }')",
    "print options": "o = HloPrintOptions(); [(n, getattr(o, n)) for n in sorted(dir(o)) if n.startswith(('print_', 'include', 'canonicalize', 'compact', 'indent', 'is_in'))]",
    "print options, short": "o = HloPrintOptions.short_parsable(); [(n, getattr(o, n)) for n in sorted(dir(o)) if n.startswith(('print_', 'include', 'canonicalize', 'compact', 'indent', 'is_in'))]",
    "print options, canonical": "o = HloPrintOptions.canonical(); [(n, getattr(o, n)) for n in sorted(dir(o)) if n.startswith(('print_', 'include', 'canonicalize', 'compact', 'indent', 'is_in'))]",
    "print options, fingerprint": "o = HloPrintOptions.fingerprint(); [(n, getattr(o, n)) for n in sorted(dir(o)) if n.startswith(('print_', 'include', 'canonicalize', 'compact', 'indent', 'is_in'))]",
    "print options set": "o = HloPrintOptions(); o.print_metadata = False; o.print_metadata",
    "print options unknown": "o = HloPrintOptions(); o.bogus = False",
    "computation name": COMPUTATION + "c.name()",
    "computation text": COMPUTATION + "c.as_hlo_text()",
    "computation text, constants": f"m = hlo_module_from_text({BIG!r}); c = XlaComputation(m.as_serialized_hlo_module_proto()); (c.as_hlo_text(), c.as_hlo_text(True))",
    "computation shape": COMPUTATION + "c.program_shape()",
    "computation shape parts": COMPUTATION
    + "s = c.program_shape(); (s.parameter_shapes(), s.result_shape())",
    "computation hash": COMPUTATION
    + "c.hash() == XlaComputation(c.as_serialized_hlo_module_proto()).hash()",
    "computation hash type": COMPUTATION + "type(c.hash()).__name__",
    "computation bytes": COMPUTATION
    + "c.as_serialized_hlo_module_proto() == m.as_serialized_hlo_module_proto()",
    "computation module": COMPUTATION + "(c.as_hlo_module().name, c.get_hlo_module().name)",
    "computation graph": COMPUTATION + "c.as_hlo_dot_graph()[:20]",
    "computation of garbage": "XlaComputation(b'garbage').as_hlo_text()",
    "computation of text": "XlaComputation('text')",
    "cost analysis": MODULE + "sorted(hlo_module_cost_analysis(client, m).items())",
    "module graph": MODULE + "hlo_module_to_dot_graph(m)[:20]",
    "profile of nothing": "make_cpu_client().heap_profile()",
    "profile as JSON": "pprof_profile_to_json(make_cpu_client().heap_profile())",
    "profile from JSON": "p = make_cpu_client().heap_profile(); json_to_pprof_profile(pprof_profile_to_json(p)) == p",
    "profile from no JSON": "json_to_pprof_profile('{')",
    "tracebacks are enabled": "tracebacks_enabled()",
    "traceback": "t = Traceback.get_traceback(); (type(t).__name__, t.frames[0].file_name, t.frames[0].function_name)",
    "traceback text": "str(Traceback.get_traceback()).splitlines()[0]",
    "traceback off": "set_tracebacks_enabled(False); t = Traceback.get_traceback(); set_tracebacks_enabled(True); t",
    "frame": "f = Frame('a.py', 'f', 3, 4); (f.file_name, f.function_name, f.function_start_line, f.line_num, repr(f))",
    "traceback of frames": "str(Traceback.traceback_from_frames([Frame('a.py', 'f', 3, 4), Frame('b.py', 'g', 5, 6)]))",
    "traceback of frames in Python": "t = Traceback.traceback_from_frames([Frame('a.py', 'f', 3, 4), Frame('b.py', 'g', 5, 6)]).as_python_traceback(); (t.tb_frame.f_code.co_filename, t.tb_lineno, t.tb_next.tb_lineno)",
    "code line": "Traceback.code_addr2line((lambda: 0).__code__, 0)",
}
