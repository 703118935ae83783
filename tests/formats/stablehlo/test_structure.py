"""What surrounds the ops in text: aliases, locations, constants, attributes, regions, bounds."""

import time

import numpy as np
import pytest

from haloc.formats.stablehlo import parse_mlir, parse_stablehlo
from haloc.formats.stablehlo.mlir import (
    CallLocation,
    DenseElements,
    Enum,
    FileLocation,
    Float,
    FusedLocation,
    Integer,
    NameLocation,
    Quantized,
    RankedTensor,
    SdyAxis,
    SdyDim,
    SdySharding,
    Struct,
    SymbolRef,
    Token,
    Tuple,
)
from tests.formats.stablehlo.trees import only


def attribute(text: str, before: str = ""):
    module = parse_mlir(
        f'{before}\nfunc.func @main() {{\n  "test.op"() {{a = {text}}} : () -> ()\n  return\n}}\n'
    )
    return only(module, "test.op").attributes["a"]


def location(text: str, before: str = ""):
    module = parse_mlir(
        f'{before}\nfunc.func @main() {{\n  "test.op"() : () -> () loc({text})\n  return\n}}\n'
    )
    return only(module, "test.op").location


ATTRIBUTES = {
    "1": Integer(1, "i64"),
    "-1 : i32": Integer(-1, "i32"),
    "255 : i8": Integer(-1, "i8"),
    "255 : ui8": Integer(255, "ui8"),
    "0x10 : i16": Integer(16, "i16"),
    "1.5": Float(1.5, "f64"),
    "-2.5e-3 : f32": Float(-2.5e-3, "f32"),
    "0x7F800000 : f32": Float(float("inf"), "f32"),
    "true": True,
    '"a\\22b\\0A\\\\c\\C3\\A9"': 'a"b\n\\cé',
    "[1 : i32, @f, [true]]": (Integer(1, "i32"), SymbolRef("f"), (True,)),
    "@a::@b": SymbolRef("a", ("b",)),
    '{x = 1 : i32, "y z" = "t"}': {"x": Integer(1, "i32"), "y z": "t"},
    "#stablehlo<precision HIGH>": Enum("precision", "HIGH"),
    "#stablehlo.channel_handle<handle = 3, type = 1>": Struct(
        "stablehlo.channel_handle", {"handle": 3, "type": 1}
    ),
    "tensor<2x?xf32>": RankedTensor((2, None), "f32"),
    "tensor<?x4xui8, #stablehlo.bounds<5, ?>>": RankedTensor((None, 4), "ui8", (5, None)),
    "tuple<tensor<f32>, !stablehlo.token>": Tuple((RankedTensor((), "f32"), Token())),
    "tensor<4x!quant.uniform<i8<-127:127>:f32:0, {0.5:1,0.25}>>": RankedTensor(
        (4,), Quantized("i8", "f32", (0.5, 0.25), (1, 0), 0, -127, 127)
    ),
    '#sdy.sharding<@mesh, [{"x", "y":(2)4}, {?}p1], replicated={"z"}>': SdySharding(
        SymbolRef("mesh"),
        (SdyDim((SdyAxis("x"), SdyAxis("y", 2, 4))), SdyDim((), True, 1)),
        (SdyAxis("z"),),
    ),
}


@pytest.mark.parametrize("text", ATTRIBUTES)
def test_attribute(text):
    assert attribute(text) == ATTRIBUTES[text]


ARRAYS = {
    "dense<5> : tensor<2x2xi32>": np.full((2, 2), 5, np.int32),
    "dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>": np.array([[1, -2], [3, 4]], np.int8),
    "dense<[1, 255]> : tensor<2xi8>": np.array([1, -1], np.int8),
    "dense<0xFF> : tensor<ui8>": np.array(255, np.uint8),
    "dense<[1, 0x10]> : tensor<2xi32>": np.array([1, 16], np.int32),
    "dense<[true, false]> : tensor<2xi1>": np.array([True, False]),
    "dense<[1.5, -0.0, 1.e+00]> : tensor<3xf32>": np.array([1.5, -0.0, 1], np.float32),
    "dense<0x7FC00001> : tensor<f32>": np.array(0x7FC00001, np.uint32).view(np.float32),
    "dense<[(1.0, 2.0), (0.5, -0.0)]> : tensor<2xcomplex<f32>>": np.array(
        [1 + 2j, complex(0.5, -0.0)], np.complex64
    ),
    "dense<(1.0, 2.0)> : tensor<complex<f64>>": np.array(1 + 2j),
    'dense<"0x01000200"> : tensor<2xi16>': np.array([1, 2], np.int16),
    'dense<"0x05"> : tensor<8xi1>': np.array([1, 0, 1, 0, 0, 0, 0, 0], bool),
    'dense<"0xFF"> : tensor<20xi1>': np.ones(20, bool),
    'dense<"0x0300"> : tensor<9xi1>': np.array([1, 1, 0, 0, 0, 0, 0, 0, 0], bool),
    'dense<"0x0000803F"> : tensor<3xf32>': np.ones(3, np.float32),
    "dense<> : tensor<0x3xf32>": np.zeros((0, 3), np.float32),
    "dense<1.0> : tensor<0xf32>": np.zeros(0, np.float32),
    "dense<18446744073709551615> : tensor<ui64>": np.array(2**64 - 1, np.uint64),
    "array<i64: 1, -2>": np.array([1, -2]),
    "array<i1: true, false>": np.array([True, False]),
    "array<i32>": np.zeros(0, np.int32),
    "array<f32: 0.5>": np.array([0.5], np.float32),
}


@pytest.mark.parametrize("text", ARRAYS)
def test_array(text):
    value = attribute(text)
    assert isinstance(value, DenseElements)
    assert value.array.dtype == ARRAYS[text].dtype and value.array.shape == ARRAYS[text].shape
    assert value.array.tobytes() == ARRAYS[text].tobytes()
    assert not value.array.flags.writeable


def test_resource():
    module = parse_mlir(
        "func.func @main() {\n"
        '  "test.op"() {a = dense_resource<blob> : tensor<2xi32>} : () -> ()\n'
        "  return\n}\n"
        '{-#\n  dialect_resources: {\n    builtin: {\n      blob: "0x040000000100000002000000"\n'
        "    }\n  }\n#-}\n"
    )
    assert only(module, "test.op").attributes["a"].array.tolist() == [1, 2]


def test_aliases_before_and_after():
    before = '#n = 4 : i32\n!t = tensor<2xf32>\n#loc1 = loc("f.py":3:4)'
    assert attribute("#n", before) == Integer(4, "i32")
    assert attribute("!t", before) == RankedTensor((2,), "f32")
    module = parse_mlir(
        'func.func @main() {\n  "test.op"() : () -> () loc(#loc2)\n  return\n}\n'
        '#loc = loc(unknown)\n#loc1 = loc("f.py":3:4 to :9)\n#loc2 = loc("jit(f)/add"(#loc1))\n'
    )
    wanted = NameLocation("jit(f)/add", FileLocation("f.py", 3, 4, 3, 9))
    assert only(module, "test.op").location == wanted


F = FileLocation("f.py", 3, 4)
LOCATIONS = {
    "unknown": None,
    '"f.py":3:4': F,
    '"f.py":3:4 to 5:6': FileLocation("f.py", 3, 4, 5, 6),
    '"x"': NameLocation("x"),
    '"x"("f.py":3:4)': NameLocation("x", F),
    'callsite("f.py":3:4 at unknown)': CallLocation(F, None),
    'fused["f.py":3:4, unknown]': FusedLocation((F, None)),
    'fused<"m">["f.py":3:4]': FusedLocation((F,), "m"),
}


@pytest.mark.parametrize("text", LOCATIONS)
def test_location(text):
    assert location(text) == LOCATIONS[text]


def test_long_call_stacks():
    """Each location names the one before it: 3,000 deep, as a recursive program would have it."""
    lines = ['#loc0 = loc("f.py":1:1)']
    lines += [f"#loc{i} = loc(callsite(#loc0 at #loc{i - 1}))" for i in range(1, 3000)]
    assert isinstance(location("#loc2999", "\n".join(lines)), CallLocation)


def test_names_of_sibling_regions_do_not_meet():
    text = """
    func.func @main(%p: tensor<i1>) -> tensor<f32> {
      %0 = "stablehlo.if"(%p) ({
        %c = stablehlo.constant dense<1.0> : tensor<f32>
        stablehlo.return %c : tensor<f32>
      }, {
        %c = stablehlo.constant dense<2.0> : tensor<f32>
        stablehlo.return %c : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      %c = stablehlo.constant dense<3.0> : tensor<f32>
      return %0 : tensor<f32>
    }
    """
    assert len(parse_stablehlo(text).computations) == 3


def chain(count: int) -> str:
    body = "\n".join(
        f"  %{i + 1} = stablehlo.add %{i}, %arg0 : tensor<8xf32> loc(#loc1)" for i in range(count)
    )
    return (
        '#loc1 = loc("jit(f)/add")\n'
        "func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {\n"
        f"  %0 = stablehlo.negate %arg0 : tensor<8xf32>\n{body}\n"
        f"  return %{count} : tensor<8xf32>\n}}\n"
    )


def test_twenty_thousand_ops_read_fast():
    text = chain(20_000)
    start = time.perf_counter()
    module = parse_stablehlo(text)
    seconds = time.perf_counter() - start
    assert len(module.entry) == 20_002
    # About 1 s on an idle machine; the bound leaves room for a busy one.
    assert seconds < 6, f"{seconds:.1f} s"


def test_large_constants_read_fast():
    array = np.arange(1_000_000, dtype=np.float32)
    dense = f'dense<"0x{array.tobytes().hex().upper()}"> : tensor<1000000xf32>'
    start = time.perf_counter()
    value = attribute(dense)
    assert time.perf_counter() - start < 3
    assert value.array.tobytes() == array.tobytes()


def test_time_is_linear_in_bad_input():
    start = time.perf_counter()
    for end in ("dense<" + "1, " * 20_000, '"' + "\\\\" * 20_000, "[" * 90 + "1 " * 10_000):
        with pytest.raises(Exception, match="INVALID_ARGUMENT"):
            attribute(end)
    assert time.perf_counter() - start < 3
