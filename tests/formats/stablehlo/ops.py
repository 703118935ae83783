"""Every op of StableHLO and chlo, in generic form, inside a function with the values it uses."""

from __future__ import annotations

from pathlib import Path

LINES = (Path(__file__).parent / "ops.mlir").read_text().splitlines()

_HEAD = """
func.func public @main(%a: tensor<4x4xf32>, %v: tensor<4xf32>, %s: tensor<f32>, %i: tensor<i32>,
    %p: tensor<i1>, %c: tensor<4xcomplex<f32>>, %n: tensor<4xi32>, %b3: tensor<2x3x4xf32>,
    %img: tensor<1x4x4x3xf32>, %ker: tensor<2x2x3x5xf32>, %idx: tensor<2x1xi32>,
    %upd: tensor<2x4xf32>, %sm: tensor<2x2xf32>, %st: tensor<2xui64>, %n2: tensor<2x5xi32>,
    %b3r: tensor<2x4x5xf32>, %gs: tensor<2xi32>) -> (RESULTS) {
  %tok = "stablehlo.create_token"() : () -> !stablehlo.token
  %tup = "stablehlo.tuple"(%a, %i) : (tensor<4x4xf32>, tensor<i32>)
      -> tuple<tensor<4x4xf32>, tensor<i32>>
  %sh2 = "stablehlo.constant"() <{value = dense<[2,4]> : tensor<2xi64>}> : () -> tensor<2xi64>
  %sh2b = "stablehlo.constant"() <{value = dense<[2,2]> : tensor<2xi64>}> : () -> tensor<2xi64>
  %one = "stablehlo.constant"() <{value = dense<1> : tensor<1xi64>}> : () -> tensor<1xi64>
  %three = "stablehlo.constant"() <{value = dense<3> : tensor<1xi64>}> : () -> tensor<1xi64>
  %pad = "stablehlo.constant"() <{value = dense<1> : tensor<2x2xi64>}> : () -> tensor<2x2xi64>
"""
_OTHER = """
func.func private @other(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  return %a : tensor<4x4xf32>
}
"""


def module_of(line: str) -> str:
    """A module that returns the results of one op."""
    result_types = split(line.rsplit("->", 1)[1].strip())
    count = len(result_types)
    name = "%r" if count == 1 else f"%r:{count}"
    uses = ["%r"] if count == 1 else [f"%r#{i}" for i in range(count)]
    types = ", ".join(result_types)
    end = f'  "func.return"({", ".join(uses)}) : ({types}) -> ()\n}}\n'
    return f"module {{{_HEAD.replace('RESULTS', types)}  {name} = {line}\n{end}{_OTHER}}}\n"


def split(types: str) -> list[str]:
    """`(a, b)` or `a` at its commas outside brackets."""
    if types.startswith("("):
        types = types[1:-1]
    parts, depth, start = [], 0, 0
    for at, character in enumerate(types):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(types[start:at].strip())
            start = at + 1
    return [*parts, types[start:].strip()]
