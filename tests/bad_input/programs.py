"""Programs that are wrong, by name: (text, error class, a part of the message)."""

from __future__ import annotations

from haloc.errors import (
    HloError,
    HloParseError,
    InvalidArgumentError,
    UnimplementedError,
    VerificationError,
)


def entry(*lines: str, before: str = "", header: str = "HloModule m") -> str:
    """A module with these lines in its entry, between x = f32[2,3] and nothing."""
    body = "\n".join(f"  {line}" for line in ("x = f32[2,3] parameter(0)", *lines))
    return f"{header}\n\n{before}\nENTRY e {{\n{body}\n}}\n"


ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"

Case = tuple[str | bytes, type[HloError], str]

SYNTAX: dict[str, Case] = {
    "empty": (
        "",
        InvalidArgumentError,
        "the program is empty; expected HLO text, HloModuleProto, ",
    ),
    "blank": (" \n\t\n", InvalidArgumentError, "the program is empty"),
    "only a header": ("HloModule m\n", HloParseError, "found end of text, expected a computation"),
    "prose": (
        "hello world\n",
        HloParseError,
        "found 'hello', expected a computation: [ENTRY] name [(parameters) -> shape] {",
    ),
    "null bytes": (b"\x00\x01\x02\x00", InvalidArgumentError, "data of an unknown format, 4 bytes"),
    "bytes that are not UTF-8": (
        b"HloModule \xff\xfe",
        HloParseError,
        "byte 10 of the text is no UTF-8",
    ),
    "half an HLO proto": (b"\x0a\x01m\x12\x01e\x00\xff", InvalidArgumentError, "unknown format"),
    "StableHLO text": (
        "module @m {\n func.func @main() { return %0 }\n}",
        HloParseError,
        "value %0 is not defined here",
    ),
    "StableHLO bytecode": (b"ML\xefR\x01\x02", HloParseError, "MLIR bytecode, byte 5, header"),
    "two entries": (
        "HloModule m\nENTRY a {\n ROOT x = f32[] parameter(0)\n}\n"
        "ENTRY b {\n ROOT y = f32[] parameter(0)\n}\n",
        HloParseError,
        "the module already has an ENTRY, 'a'",
    ),
    "unclosed computation": (
        "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n",
        HloParseError,
        "the body of computation 'e' is not closed, expected '}'",
    ),
    "empty computation": (
        "HloModule m\nENTRY e {\n}\n",
        HloParseError,
        "computation 'e' has no instructions",
    ),
    "two roots": (
        entry("ROOT a = f32[2,3] negate(x)", "ROOT b = f32[2,3] negate(x)"),
        HloParseError,
        "computation 'e' already has a ROOT, 'a'",
    ),
    "two of one name": (
        entry("a = f32[2,3] negate(x)", "a = f32[2,3] negate(x)"),
        HloParseError,
        "instruction 'a' is already defined in this computation as negate",
    ),
    "two computations of one name": (
        entry("ROOT a = f32[2,3] negate(x)", before=ADD + ADD),
        HloParseError,
        "computation 'add' is already defined",
    ),
    "undefined name": (entry("ROOT a = f32[2,3] add(x, yy)"), HloParseError, "yy"),
    "undefined computation": (
        entry(
            "z = f32[] constant(0)", "ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=sum"
        ),
        HloParseError,
        "sum",
    ),
    "unknown opcode": (entry("ROOT a = f32[2,3] negat(x)"), HloParseError, "did you mean 'negate'"),
    "unknown element type": (entry("ROOT a = f33[2,3] negate(x)"), HloParseError, "f33"),
    "missing parenthesis": (
        entry("ROOT a = f32[2,3] negate(x"),
        HloParseError,
        "found '}', expected ',' or ')'",
    ),
    "stray attribute": (
        entry("ROOT a = f32[2,3] negate(x), dimensions={1}"),
        HloParseError,
        "dimensions",
    ),
    "unknown attribute": (entry("ROOT a = f32[2,3] negate(x), frob=1"), HloParseError, "frob"),
    "attribute twice": (
        entry("ROOT a = f32[3,2] transpose(x), dimensions={1,0}, dimensions={1,0}"),
        HloParseError,
        "dimensions",
    ),
    "missing attribute": (entry("ROOT a = f32[3,2] transpose(x)"), HloError, "dimensions"),
    "attribute of the wrong kind": (
        entry("ROOT a = f32[3,2] transpose(x), dimensions=up"),
        HloParseError,
        "found 'up', expected a list of integers such as {0,1}",
    ),
    "bad direction": (entry("ROOT a = pred[2,3] compare(x, x), direction=XX"), HloParseError, "XX"),
    "unclosed string": (
        entry('ROOT a = f32[2,3] custom-call(x), custom_call_target="f'),
        HloParseError,
        "this string is not closed",
    ),
    "unclosed comment": (
        "HloModule m /* and so on",
        HloParseError,
        "this comment is not closed, expected */",
    ),
    "bad literal": (entry("ROOT a = f32[2] constant({1, two})"), HloParseError, "two"),
    "literal too short": (
        entry("ROOT a = f32[3] constant({1, 2})"),
        HloParseError,
        "expected 3 elements in dimension 0 of f32[3], found only 2",
    ),
    "literal out of range": (entry("ROOT a = s8[] constant(300)"), HloParseError, "300"),
    "negative unsigned": (entry("ROOT a = u8[] constant(-1)"), HloParseError, "-1"),
    "bad layout": (
        entry("ROOT a = f32[2,3]{0,0} negate(x)"),
        HloError,
        "layout {0,0} is not a permutation of the 2 dimensions (row-major is {1,0})",
    ),
    "layout of another rank": (
        entry("ROOT a = f32[2,3]{0} negate(x)"),
        HloError,
        "layout {0} is not a permutation of the 2 dimensions (row-major is {1,0})",
    ),
    "negative dimension": (
        entry("ROOT a = f32[-2,3] negate(x)"),
        HloParseError,
        "found dimension '-2', expected a size such as 4, <=4 or ?",
    ),
    "huge dimension": (
        entry("ROOT a = f32[99999999999999999999999] negate(x)"),
        HloError,
        "dimension 99999999999999999999999 does not fit in 64 bits",
    ),
    "deep nesting": (
        "HloModule m\nENTRY e { ROOT p = " + "(" * 5000 + "f32[]" + ")" * 5000 + " parameter(0) }",
        HloError,
        "tuple shapes nested more than 100 deep",
    ),
    "text after the end": (
        entry("ROOT a = f32[2,3] negate(x)") + "\n}}}",
        HloParseError,
        "found '}', expected a computation: [ENTRY] name [(parameters) -> shape] {",
    ),
}

CONSTRAINTS: dict[str, Case] = {
    "operands of two shapes": (
        entry("y = f32[3,2] parameter(1)", "ROOT a = f32[2,3] add(x, y)"),
        VerificationError,
        "add: lhs f32[2,3] and rhs f32[3,2] must have the same dimensions",
    ),
    "operands of two types": (
        entry("y = f64[2,3] parameter(1)", "ROOT a = f32[2,3] add(x, y)"),
        VerificationError,
        "add: rhs is of type f64, lhs of type f32; they must be the same",
    ),
    "another result shape": (
        entry("ROOT a = f32[2,4] negate(x)"),
        VerificationError,
        "negate: the shape is f32[2,4], but operands and attributes give f32[2,3]",
    ),
    "another result type": (
        entry("ROOT a = s32[2,3] negate(x)"),
        VerificationError,
        "negate: the shape is s32[2,3], but operands and attributes give f32[2,3]",
    ),
    "too many operands": (
        entry("ROOT a = f32[2,3] negate(x, x)"),
        HloError,
        "negate takes 1 operand (operand), given 2",
    ),
    "too few operands": (
        entry("ROOT a = f32[2,3] add(x)"),
        HloError,
        "add takes 2 operands (lhs, rhs), given 1",
    ),
    "type not supported by the op": (
        entry("ROOT a = f32[2,3] and(x, x)"),
        VerificationError,
        "and: lhs must be of pred, signed integer or unsigned integer type, got f32",
    ),
    "no permutation": (
        entry("ROOT a = f32[2,2] transpose(x), dimensions={0,0}"),
        VerificationError,
        "transpose: dimensions={0,0} is not a permutation of the 2 dimensions of f32[2,3]",
    ),
    "slice out of bounds": (
        entry("ROOT a = f32[2,9] slice(x), slice={[0:2], [0:9]}"),
        VerificationError,
        "slice: [0:9] of dimension 1 is not a range within its size 3",
    ),
    "slice with stride 0": (
        entry("ROOT a = f32[2,3] slice(x), slice={[0:2:0], [0:3]}"),
        HloError,
        "slice: the stride of dimension 0 is 0, wanted at least 1",
    ),
    "reshape to another size": (
        entry("ROOT a = f32[7] reshape(x)"),
        VerificationError,
        "reshape: the operand f32[2,3] has 6 elements, the result f32[7] 7",
    ),
    "broadcast of a missing dimension": (
        entry("ROOT a = f32[2,3,4] broadcast(x), dimensions={0,7}"),
        VerificationError,
        "broadcast: dimensions={0,7} names dimensions outside [0, 3)",
    ),
    "concatenate of unequal": (
        entry("y = f32[3,3] parameter(1)", "ROOT a = f32[2,6] concatenate(x, y), dimensions={1}"),
        VerificationError,
        "concatenate: operand 1 f32[3,3] and operand 0 f32[2,3] differ in a dimension other than 1",
    ),
    "dot of unequal": (
        entry("ROOT a = f32[2,3] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        VerificationError,
        "dot: lhs_contracting_dims={1}, rhs_contracting_dims={0}: "
        "dimension 1 of f32[2,3] and dimension 0 of f32[2,3] differ in size",
    ),
    "reduce with an array to start from": (
        entry("ROOT a = f32[2] reduce(x, x), dimensions={1}, to_apply=add", before=ADD),
        VerificationError,
        "reduce: initial value 0 is f32[2,3], wanted f32[]",
    ),
    "reduce over a missing dimension": (
        entry(
            "z = f32[] constant(0)",
            "ROOT a = f32[2] reduce(x, z), dimensions={5}, to_apply=add",
            before=ADD,
        ),
        VerificationError,
        "reduce: dimensions={5}: dimension 5 is out of range for rank 2",
    ),
    "reduce by a function of three": (
        entry(
            "z = f32[] constant(0)",
            "ROOT a = f32[2] reduce(x, z), dimensions={1}, to_apply=f",
            before="f {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
            " c = f32[] parameter(2)\n ROOT r = f32[] add(a, c)\n}\n",
        ),
        VerificationError,
        "reduce: to_apply f has signature (f32[], f32[], f32[]) -> f32[], wanted "
        "(f32[], f32[]) -> ...",
    ),
    "tuple index out of range": (
        entry("t = (f32[2,3]) tuple(x)", "ROOT a = f32[2,3] get-tuple-element(t), index=1"),
        VerificationError,
        "get-tuple-element: index=1, but the operand (f32[2,3]{1,0}) has 1 elements",
    ),
    "element of an array": (
        entry("ROOT a = f32[2,3] get-tuple-element(x), index=0"),
        VerificationError,
        "get-tuple-element: operand must be a tuple, got f32[2,3]{1,0}",
    ),
    "loop condition that is no pred": (
        entry(
            "ROOT w = f32[2,3] while(x), condition=c, body=c",
            before="c {\n  ROOT p = f32[2,3] parameter(0)\n}\n",
        ),
        VerificationError,
        "while: condition c has signature (f32[2,3]) -> f32[2,3], wanted (f32[2,3]) -> pred[]",
    ),
    "parameter numbers with a gap": (
        entry("y = f32[] parameter(2)", "ROOT a = f32[2,3] negate(x)"),
        HloError,
        "parameter(2) of computation 'e' leaves a gap: there is no parameter(1)",
    ),
    "one parameter number twice": (
        entry("y = f32[] parameter(0)", "ROOT a = f32[2,3] negate(x)"),
        HloError,
        "parameter(0) is already defined as 'x'",
    ),
    "recursion": (
        entry(
            "ROOT a = f32[2,3] call(x), to_apply=f",
            before="f {\n  p = f32[2,3] parameter(0)\n  ROOT r = f32[2,3] call(p), to_apply=f\n}\n",
        ),
        InvalidArgumentError,
        "computations call themselves: f -> f",
    ),
    "use before definition": (
        entry("ROOT a = f32[2,3] negate(b)", "b = f32[2,3] negate(x)"),
        HloError,
        "b",
    ),
    "alias of a missing parameter": (
        entry(
            "ROOT a = f32[2,3] negate(x)",
            header="HloModule m, input_output_alias={ {}: (3, {}, may-alias) }",
        ),
        HloError,
        "input_output_alias names parameter 3 of 1",
    ),
    "alias of another size": (
        entry(
            "ROOT a = f32[2,3,4] broadcast(x), dimensions={0,1}",
            header="HloModule m, input_output_alias={ {}: (0, {}, may-alias) }",
        ),
        HloError,
        "input_output_alias: the result's f32[2,3,4] and parameter 0's f32[2,3] differ in size",
    ),
    "gather with bad dimensions": (
        entry(
            "i = s32[2,1] parameter(1)",
            "ROOT a = f32[2,3] gather(x, i), offset_dims={5}, collapsed_slice_dims={0}, "
            "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
        ),
        VerificationError,
        "gather: offset_dims={5} names dimensions outside [0, 2)",
    ),
    "convolution of the wrong rank": (
        entry("ROOT a = f32[2,3] convolution(x, x), window={size=3}, dim_labels=b0f_0io->b0f"),
        VerificationError,
        "convolution: window has 1 dimensions, wanted 0",
    ),
    "pad of another rank": (
        entry("z = f32[] constant(0)", "ROOT a = f32[2,3] pad(x, z), padding=0_0"),
        VerificationError,
        "pad: padding has 1 entries, wanted 2",
    ),
    "entry layout of another shape": (
        entry(
            "ROOT a = f32[2,3] negate(x)",
            header="HloModule m, entry_computation_layout={(f32[4,4]{1,0})->f32[2,3]{1,0}}",
        ),
        HloError,
        "entry_computation_layout differs from the entry computation, which is "
        "(f32[2,3]) -> f32[2,3]",
    ),
    "bitcast-convert to another size": (
        entry("ROOT a = f64[2,3] bitcast-convert(x)"),
        VerificationError,
        "bitcast-convert: from f32 to f64 the last dimension must be 2, got f32[2,3]",
    ),
    "sort by a function that gives no pred": (
        entry("ROOT a = f32[2,3] sort(x), dimensions={1}, to_apply=add", before=ADD),
        VerificationError,
        "sort: to_apply add has signature (f32[], f32[]) -> f32[], wanted (f32[], f32[]) -> pred[]",
    ),
    "two replicas": (
        entry("ROOT a = f32[2,3] negate(x)", header="HloModule m, replica_count=2"),
        InvalidArgumentError,
        "2 replica(s) of 1 partition(s) take 2 devices",
    ),
    "two partitions": (
        entry("ROOT a = f32[2,3] negate(x)", header="HloModule m, num_partitions=2"),
        InvalidArgumentError,
        "1 replica(s) of 2 partition(s) take 2 devices",
    ),
}

UNSUPPORTED: dict[str, Case] = {
    "a dynamic parameter": (
        "HloModule m\nENTRY e { ROOT x = f32[<=4] parameter(0) }",
        UnimplementedError,
        "only arrays of static shape",
    ),
    "a dynamic result": (
        "HloModule m\nENTRY e { a = f32[4] parameter(0)\n n = s32[] parameter(1)\n"
        " ROOT s = f32[<=4] set-dimension-size(a, n), dimensions={0} }",
        UnimplementedError,
        "the result of the entry is f32[<=4]{0}: only arrays of static shape can be returned",
    ),
}
