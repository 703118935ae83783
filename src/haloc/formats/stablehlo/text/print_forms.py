"""What each op prints in pretty form; the reverse of what forms.py and its siblings read.

A form gives the op's text without results and location, or "" for generic form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from haloc.formats.stablehlo.mlir import (
    Attribute,
    DenseElements,
    Enum,
    Integer,
    MlirOp,
    MlirRegion,
    MlirType,
    MlirValue,
    SdyManualAxes,
    SdyPerValue,
    SdySharding,
    Struct,
    SymbolRef,
)
from haloc.formats.stablehlo.text.attribute_text import (
    attribute_text,
    axis_names_text,
    conv_text,
    fields_text,
    quoted,
    sharding_text,
    shardings_text,
    symbol_text,
)
from haloc.formats.stablehlo.text.element_text import dense_text
from haloc.formats.stablehlo.text.forms import KEYWORDS
from haloc.formats.stablehlo.text.forms_contraction import WINDOW
from haloc.formats.stablehlo.text.type_styles import (
    ARROW,
    OPERANDS,
    RESULT,
    SAME,
    SELECT,
    TYPE_STYLES,
)


class PrinterParts(Protocol):
    """What forms use of the printer."""

    def operand(self, value: MlirValue) -> str: ...
    def operands(self, values: list[MlirValue]) -> str: ...
    def typed_argument(self, value: MlirValue) -> str: ...
    def type(self, type_: MlirType) -> str: ...
    def type_list(self, values: list[MlirValue]) -> str: ...
    def signature(self, op: MlirOp) -> str: ...
    def attributes(self, op: MlirOp, *shown: str) -> str: ...
    def body(self, region: MlirRegion, indent: str, argument_name: str = ...) -> str: ...

    next_argument: int


Form = Callable[[PrinterParts, MlirOp, str], str]


# --- The common pattern --------------------------------------------------------------------------


def pattern(p: PrinterParts, op: MlirOp) -> str:
    """Operands, `keyword = value`, attributes, types."""
    style = TYPE_STYLES.get(op.name)
    if style is None:
        return ""
    words, shown = [p.operands(op.operands)] if op.operands else [], []
    for keyword, (name, _) in KEYWORDS.get(op.name, {}).items():
        if name in op.attributes:
            words.append(f"{keyword} = {value_text(op.attributes[name])}")
            shown.append(name)
    head = " ".join([op.name, ", ".join(words)]).rstrip()
    types = _types(p, op, style)
    return f"{head}{p.attributes(op, *shown)}" + (f" : {types}" if types else "")


def value_text(value: Attribute) -> str:
    """A value behind a keyword: `[1, 2]`, `0`, `FFT`, `[DEFAULT, HIGH]`."""
    if isinstance(value, DenseElements):
        return str(value.array.tolist())
    if isinstance(value, Integer):
        return str(value.value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return attribute_text(value)


def _types(p: PrinterParts, op: MlirOp, style: str) -> str:
    if style == RESULT:
        return p.type_list(op.results)
    if style == OPERANDS:
        return p.type_list(op.operands)
    if style == ARROW:
        return f"{p.type_list(op.operands)} -> {p.type_list(op.results)}"
    types = [v.type for v in (*op.operands, *op.results)]
    if style == SAME and all(t == types[0] for t in types):
        return p.type(types[0])
    if style == SELECT and types[1] == types[2] == types[3]:
        return f"{p.type(types[0])}, {p.type(types[1])}"
    return p.signature(op)


# --- Ops of their own form -----------------------------------------------------------------------


def _constant(p: PrinterParts, op: MlirOp, indent: str) -> str:
    value = op.attributes["value"]
    text = dense_text(value) if isinstance(value, DenseElements) else attribute_text(value)
    return f"{op.name}{p.attributes(op, 'value')} {text}"


def _compare(p: PrinterParts, op: MlirOp, indent: str) -> str:
    direction, kind = op.attributes["comparison_direction"], op.attributes.get("compare_type")
    words = [value_text(direction), p.operands(op.operands)]
    if kind is not None:
        words.append(value_text(kind))
    others = p.attributes(op, "comparison_direction", "compare_type")
    return f"{op.name} {', '.join(words)}{others} : {p.signature(op)}"


def _slice(p: PrinterParts, op: MlirOp, indent: str) -> str:
    names = ("start_indices", "limit_indices", "strides")
    starts, limits, strides = (_ints(op, name) for name in names)
    ranges = [
        f"{a}:{b}" + (f":{s}" if s != 1 else "")
        for a, b, s in zip(starts, limits, strides, strict=True)
    ]
    listed = ", ".join(ranges)
    others = p.attributes(op, *names)
    return f"{op.name} {p.operands(op.operands)} [{listed}]{others} : {p.signature(op)}"


def _ints(op: MlirOp, name: str) -> Any:
    value = op.attributes[name]
    assert isinstance(value, DenseElements), name
    return value.array.tolist()


def _get_tuple_element(p: PrinterParts, op: MlirOp, indent: str) -> str:
    index = value_text(op.attributes["index"])
    others = p.attributes(op, "index")
    return f"{op.name} {p.operands(op.operands)}[{index}]{others} : {p.signature(op)}"


def _reduce_precision(p: PrinterParts, op: MlirOp, indent: str) -> str:
    exponent, mantissa = (op.attributes[f"{n}_bits"] for n in ("exponent", "mantissa"))
    text = f"format = e{value_text(exponent)}m{value_text(mantissa)}"
    others = p.attributes(op, "exponent_bits", "mantissa_bits")
    return f"{op.name} {p.operands(op.operands)}, {text}{others} : {_types(p, op, SAME)}"


def _call(p: PrinterParts, op: MlirOp, indent: str) -> str:
    key = "callee" if op.name == "func.call" else "call_target_name"
    target = op.attributes[key]
    name = target.name if isinstance(target, SymbolRef) else str(target)
    others = p.attributes(op, key)
    return f"{op.name} {symbol_text(name)}({p.operands(op.operands)}){others} : {p.signature(op)}"


def _composite(p: PrinterParts, op: MlirOp, indent: str) -> str:
    name = attribute_text(op.attributes["name"])
    others = p.attributes(op, "name")
    operands = f" {p.operands(op.operands)}" if op.operands else ""
    return f"{op.name} {name}{operands}{others} : {p.signature(op)}"


def _top_k(p: PrinterParts, op: MlirOp, indent: str) -> str:
    words = [p.operands(op.operands), f"k = {value_text(op.attributes['k'])}"]
    if "largest" in op.attributes:
        words.append(f"largest = {attribute_text(op.attributes['largest'])}")
    others = p.attributes(op, "k", "largest")
    types = f"{p.type_list(op.operands)} -> ({p.type_list(op.results)})"
    return f"{op.name}({', '.join(words)}){others} : {types}"


def _cast(p: PrinterParts, op: MlirOp, indent: str) -> str:
    types = f"{p.type_list(op.operands)} to {p.type_list(op.results)}"
    return f"{op.name} {p.operands(op.operands)}{p.attributes(op)} : {types}"


# --- Contractions --------------------------------------------------------------------------------


def _dot_general(p: PrinterParts, op: MlirOp, indent: str) -> str:
    numbers = op.attributes["dot_dimension_numbers"]
    assert isinstance(numbers, Struct)
    words = [p.operands(op.operands)]
    for kind in ("batching", "contracting"):
        left, right = (
            list(numbers.fields.get(f"{side}_{kind}_dimensions", ()))  # type: ignore[call-overload]
            for side in ("lhs", "rhs")
        )
        if left or right or kind == "contracting":
            words.append(f"{kind}_dims = {left} x {right}")
    if "precision_config" in op.attributes:
        words.append(f"precision = {value_text(op.attributes['precision_config'])}")
    algorithm = op.attributes.get("algorithm")
    if isinstance(algorithm, Struct):
        words.append(f"algorithm = {fields_text(algorithm)}")
    others = p.attributes(op, "dot_dimension_numbers", "precision_config", "algorithm")
    return f"{op.name} {', '.join(words)}{others} : {p.signature(op)}"


def _convolution(p: PrinterParts, op: MlirOp, indent: str) -> str:
    numbers = op.attributes["dimension_numbers"]
    assert isinstance(numbers, Struct)
    fields = {word: name for word, (name, _) in WINDOW.items()}
    fields = {"stride": fields.pop("stride"), "pad": "padding", **fields}
    window = []
    for word, name in fields.items():
        if name in op.attributes:
            window.append(f"{word} = {str(_ints(op, name)).lower()}")
    others = p.attributes(op, "dimension_numbers", *fields.values())
    return (
        f"{op.name}({p.operands(op.operands)}) dim_numbers = {conv_text(numbers)}, "
        f"window = {{{', '.join(window)}}}{others} : {p.signature(op)}"
    )


# --- Regions -------------------------------------------------------------------------------------


def _while(p: PrinterParts, op: MlirOp, indent: str) -> str:
    condition, body = [p.body(r, indent, "iterArg") for r in op.regions]
    names = [p.operand(a) for a in op.regions[0].blocks[0].arguments]
    pairs = zip(names, map(p.operand, op.operands), strict=True)
    arguments = ", ".join(f"{name} = {operand}" for name, operand in pairs)
    types = f" : {p.type_list(op.operands)}" if op.operands else ""
    others = p.attributes(op)
    attributes = f" attributes{others}" if others else ""
    return f"{op.name}({arguments}){types}{attributes}\n{indent}cond {condition} do {body}"


def _reduce(p: PrinterParts, op: MlirOp, indent: str) -> str:
    count = len(op.operands) // 2
    inputs, inits = op.operands[:count], op.operands[count:]
    pairs = [f"({p.operand(a)} init: {p.operand(b)})" for a, b in zip(inputs, inits, strict=True)]
    across = f"across dimensions = {_ints(op, 'dimensions')}"
    end = f"{p.attributes(op, 'dimensions')} : {p.signature(op)}"
    applied = _applied(op)
    if applied:
        return f"{op.name}{', '.join(pairs)} applies {applied} {across}{end}"
    block = op.regions[0].blocks[0]
    outer = p.next_argument
    typed = [p.typed_argument(a) for a in block.arguments]  # numbered in the block's order
    groups = [f"({a}, {b})" for a, b in zip(typed[:count], typed[count:], strict=True)]
    body = p.body(op.regions[0], indent)
    p.next_argument = outer
    return f"{op.name}{', '.join(pairs)} {across}{end}\n{indent} reducer{' '.join(groups)}  {body}"


def _applied(op: MlirOp) -> str:
    """The one op that the region applies to its two arguments, "" if it does anything else."""
    block = op.regions[0].blocks[0]
    if (
        len(op.operands) != 2
        or len(block.operations) != 2
        or op.attributes.keys() != {"dimensions"}
    ):
        return ""
    inner, last = block.operations
    plain = inner.operands == block.arguments and last.operands == inner.results
    scalar = op.operands[1].type
    types = [v.type for v in (*block.arguments, *inner.results)]
    if not plain or inner.attributes or any(t != scalar for t in types):
        return ""
    return inner.name if TYPE_STYLES.get(inner.name) == SAME else ""


# --- Shardy --------------------------------------------------------------------------------------


def _constraint(p: PrinterParts, op: MlirOp, indent: str) -> str:
    sharding = op.attributes["sharding"]
    assert isinstance(sharding, SdySharding)
    text = f"{p.operands(op.operands)} {sharding_text(sharding)}"
    return f"{op.name} {text}{p.attributes(op, 'sharding')} : {p.type_list(op.operands)}"


def _group(p: PrinterParts, op: MlirOp, indent: str) -> str:
    text = f"{p.operands(op.operands)} group_id={value_text(op.attributes['group_id'])}"
    return f"{op.name} {text}{p.attributes(op, 'group_id')} : {p.type_list(op.operands)}"


_DIRECTIONS = ("NONE", "FORWARD", "BACKWARD", "BOTH")


def _barrier(p: PrinterParts, op: MlirOp, indent: str) -> str:
    direction = op.attributes["allowed_direction"]
    assert isinstance(direction, Integer)
    text = f"{p.operands(op.operands)} allowed_direction={_DIRECTIONS[direction.value]}"
    others = p.attributes(op, "allowed_direction")
    return f"{op.name} {text}{others} : {p.type_list(op.operands)}"


def _edge(p: PrinterParts, op: MlirOp, indent: str) -> str:
    text = p.operands(op.operands)
    sharding = op.attributes.get("sharding")
    if isinstance(sharding, SdySharding):
        text += f" sharding={sharding_text(sharding)}"
    return f"{op.name} {text}{p.attributes(op, 'sharding')} : {p.type_list(op.operands)}"


def _manual_computation(p: PrinterParts, op: MlirOp, indent: str) -> str:
    manual = op.attributes["manual_axes"]
    assert isinstance(manual, SdyManualAxes)
    axes = f" manual_axes={axis_names_text(manual)}"
    shown = ("in_shardings", "out_shardings", "manual_axes")
    return (
        f"{op.name}({p.operands(op.operands)}){_shardings(op)}{axes}{_body(p, op, indent, shown)}"
    )


def _named_computation(p: PrinterParts, op: MlirOp, indent: str) -> str:
    name = quoted(str(op.attributes["name"]))
    shown = ("in_shardings", "out_shardings", "name")
    head = f"{op.name}<{name}>({p.operands(op.operands)})"
    return f"{head}{_shardings(op)}{_body(p, op, indent, shown)}"


def _shardings(op: MlirOp) -> str:
    text = ""
    for key in ("in_shardings", "out_shardings"):
        value = op.attributes.get(key)
        if isinstance(value, SdyPerValue):
            text += f" {key}={shardings_text(value)}"
    return text


def _body(p: PrinterParts, op: MlirOp, indent: str, shown: tuple[str, ...]) -> str:
    outer = p.next_argument
    block = op.regions[0].blocks[0]
    arguments = ", ".join(p.typed_argument(a) for a in block.arguments)
    text = f" ({arguments}) {p.body(op.regions[0], indent)}"
    p.next_argument = outer
    return f"{text}{p.attributes(op, *shown)} : {p.signature(op)}"


PRINTED: dict[str, Form] = {
    "arith.constant": _constant,
    "builtin.unrealized_conversion_cast": _cast,
    "chlo.constant": _constant,
    "chlo.top_k": _top_k,
    "func.call": _call,
    "sdy.constant": _constant,
    "sdy.data_flow_edge": _edge,
    "sdy.manual_computation": _manual_computation,
    "sdy.named_computation": _named_computation,
    "sdy.propagation_barrier": _barrier,
    "sdy.reshard": _constraint,
    "sdy.sharding_constraint": _constraint,
    "sdy.sharding_group": _group,
    "stablehlo.compare": _compare,
    "stablehlo.composite": _composite,
    "stablehlo.constant": _constant,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _call,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.get_tuple_element": _get_tuple_element,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.slice": _slice,
    "stablehlo.while": _while,
    "tensor.cast": _cast,
}
"""Forms by op; other ops follow the pattern, or have generic form."""
