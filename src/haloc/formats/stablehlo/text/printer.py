"""`MlirModule` to MLIR text: pretty form as MLIR itself prints it, generic form for other ops."""

from __future__ import annotations

from haloc.formats.stablehlo.mlir import (
    Attribute,
    Function,
    Location,
    MlirModule,
    MlirOp,
    MlirRegion,
    MlirType,
    MlirValue,
    RankedTensor,
    SdyMesh,
)
from haloc.formats.stablehlo.text.attribute_text import (
    attribute_text,
    chlo_attributes,
    dictionary_text,
    mesh_text,
    quoted,
    symbol_text,
)
from haloc.formats.stablehlo.text.location_text import LocationTable
from haloc.formats.stablehlo.text.print_forms import PRINTED, pattern

_STEP = "  "
_BODY = 2 * _STEP
"""How far the ops of a function stand in."""

_RESULT_NAMES = {
    "chlo.top_k": ("values", "indices"),
    "stablehlo.batch_norm_grad": ("grad_operand", "grad_scale", "grad_offset"),
    "stablehlo.batch_norm_training": ("output", "batch_mean", "batch_var"),
    "stablehlo.rng_bit_generator": ("output_state", "output"),
}
"""Ops whose results have names of their own."""


def print_mlir(module: MlirModule, *, locations: bool = False) -> str:
    """The module in MLIR text, which MLIR's parser and `parse_mlir` read.

    locations: whether to write where ops come from, `loc(...)`.
    """
    return _Printer(LocationTable() if locations else None).module(module)


class _Printer:
    """Values are numbered as MLIR does: %0, %1, ... and %arg0, ...; in a region numbers go on
    where the ops around stand, and are free again behind it. Constants are %c and %cst."""

    def __init__(self, locations: LocationTable | None):
        self.locations = locations
        self.names: dict[MlirValue, str] = {}
        self.used: set[str] = set()
        self.types: dict[MlirType, str] = {}
        self.next_value = self.next_argument = self.next_conflict = 0

    # --- The module ------------------------------------------------------------------------

    def module(self, module: MlirModule) -> str:
        name = f" {symbol_text(module.name)}" if module.name else ""
        attributes = ""
        if module.attributes:
            attributes = f" attributes {dictionary_text(module.attributes)}"
        lines = [f"module{name}{attributes} {{\n"]
        lines += [
            f"{_STEP}{self.top(op)}{self.location(op.location)}\n" for op in module.operations
        ]
        lines.append(f"}}{self.location(module.location)}\n")
        if self.locations is not None:
            lines += [f"{definition}\n" for definition in self.locations.definitions]
        return "".join(lines)

    def top(self, op: MlirOp) -> str:
        attributes = op.attributes
        name = symbol_text(str(attributes.get("sym_name", "")))
        if op.name == "sdy.mesh":
            mesh = attributes["mesh"]
            assert isinstance(mesh, SdyMesh)
            return f"sdy.mesh {name} = {mesh_text(mesh)}"
        assert op.name == "func.func", op.name
        self.names, self.used = {}, set()
        self.next_value = self.next_argument = self.next_conflict = 0
        return self.function(op, name)

    def function(self, op: MlirOp, name: str) -> str:
        type_ = op.attributes["function_type"]
        assert isinstance(type_, Function)
        visibility = op.attributes.get("sym_visibility")
        head = f"func.func {visibility + ' ' if isinstance(visibility, str) else ''}{name}"
        blocks = op.regions[0].blocks if op.regions else []
        given = list(blocks[0].arguments) if blocks else []
        listed = _dictionaries(op.attributes.get("arg_attrs"), len(type_.inputs))
        arguments = []
        for number, (input_, attributes) in enumerate(zip(type_.inputs, listed, strict=True)):
            text = f"{self.type(input_)}{attributes}"
            if given:
                text = f"{self.argument(given[number])}: {text}"
                text += self.argument_location(given[number])
            arguments.append(text)
        text = f"{head}({', '.join(arguments)}){self.result_types(op, type_)}"
        others = {k: v for k, v in op.attributes.items() if k not in _SIGNATURE}
        if others:
            text += f" attributes {dictionary_text(others)}"
        if blocks:
            text += f" {self.body(op.regions[0], _STEP)}"
        return text

    def result_types(self, op: MlirOp, type_: Function) -> str:
        if not type_.results:
            return ""
        listed = _dictionaries(op.attributes.get("res_attrs"), len(type_.results))
        texts = [self.type(t) + a for t, a in zip(type_.results, listed, strict=True)]
        if len(texts) == 1 and not listed[0]:
            return f" -> {texts[0]}"
        return f" -> ({', '.join(texts)})"

    # --- Regions ---------------------------------------------------------------------------

    def body(self, region: MlirRegion, indent: str, argument_name: str = "") -> str:
        """`{ ops }`. Ends without a line break.

        argument_name: of the block's arguments; "" when they have names already.
        """
        outer = self.next_value, self.next_argument, self.next_conflict, self.used
        self.used = set(self.used)
        inside = indent + _STEP
        lines = ["{\n"]
        for block in region.blocks:
            for argument in block.arguments if argument_name else ():
                self.names[argument] = self.unique(argument_name)
            # Numbers in nested regions go on behind those of this one.
            heads = [self.results(op) for op in block.operations]
            for head, op in zip(heads, block.operations, strict=True):
                lines.append(f"{inside}{head}{self.operation(op, inside)}\n")
        self.next_value, self.next_argument, self.next_conflict, self.used = outer
        lines.append(f"{indent}}}")
        return "".join(lines)

    def region(self, region: MlirRegion, indent: str) -> str:
        """`{ ^bb0(%arg0: type): ops }`, as in generic form."""
        arguments = region.blocks[0].arguments if region.blocks else []
        if not arguments:
            return self.body(region, indent)
        outer = self.next_argument
        header = ", ".join(self.typed_argument(a) for a in arguments)
        text = self.body(region, indent)
        self.next_argument = outer
        return f"{{\n{indent}^bb0({header}):{text[1:]}"

    # --- Operations ------------------------------------------------------------------------

    def operation(self, op: MlirOp, indent: str) -> str:
        form = PRINTED.get(op.name)
        text = form(self, op, indent) if form is not None else pattern(self, op)
        text = text or self.generic(op, indent)
        if indent == _BODY:
            text = text.removeprefix("func.")  # goes without saying in a function
        return text + self.location(op.location)

    def generic(self, op: MlirOp, indent: str) -> str:
        """Attributes of a dialect other than the op's own stand behind the regions."""
        attributes = _attributes(op)
        properties = {k: v for k, v in attributes.items() if "." not in k}
        others = {k: v for k, v in attributes.items() if "." in k}
        text = f"{quoted(op.name)}({self.operands(op.operands)})"
        if properties:
            text += f" <{dictionary_text(properties)}>"
        if op.regions:
            text += f" ({', '.join(self.region(r, indent) for r in op.regions)})"
        if others:
            text += f" {dictionary_text(others)}"
        return f"{text} : {self.signature(op)}"

    def results(self, op: MlirOp) -> str:
        """`%0 = `, with the names of the results entered."""
        if not op.results:
            return ""
        if op.name in _RESULT_NAMES and len(_RESULT_NAMES[op.name]) == len(op.results):
            for value, name in zip(op.results, _RESULT_NAMES[op.name], strict=True):
                self.names[value] = self.unique(name)
            return ", ".join(self.names[v] for v in op.results) + " = "
        if op.name == "stablehlo.constant":
            name = self.unique("c" if _is_integer(op.results[0].type) else "cst")
        else:
            name = f"%{self.next_value}"
            self.next_value += 1
        if len(op.results) == 1:
            self.names[op.results[0]] = name
            return f"{name} = "
        for number, value in enumerate(op.results):
            self.names[value] = f"{name}#{number}"
        return f"{name}:{len(op.results)} = "

    # --- Parts that forms are made of ------------------------------------------------------

    def unique(self, wanted: str) -> str:
        name = wanted
        while name in self.used:
            name = f"{wanted}_{self.next_conflict}"
            self.next_conflict += 1
        self.used.add(name)
        return f"%{name}"

    def argument(self, value: MlirValue) -> str:
        name = self.names[value] = f"%arg{self.next_argument}"
        self.next_argument += 1
        return name

    def typed_argument(self, value: MlirValue) -> str:
        name = self.argument(value)
        return f"{name}: {self.type(value.type)}{self.argument_location(value)}"

    def operand(self, value: MlirValue) -> str:
        return self.names[value]

    def operands(self, values: list[MlirValue]) -> str:
        return ", ".join([self.names[v] for v in values])

    def type(self, type_: MlirType) -> str:
        text = self.types.get(type_)
        if text is None:
            text = self.types[type_] = str(type_)
            if isinstance(type_, RankedTensor) and type_.encoding is not None:
                text = f"{text[:-1]}, {attribute_text(type_.encoding)}>"
                self.types[type_] = text
        return text

    def type_list(self, values: list[MlirValue]) -> str:
        return ", ".join([self.type(v.type) for v in values])

    def signature(self, op: MlirOp) -> str:
        """`(operands) -> results`."""
        results = self.type_list(op.results)
        if len(op.results) != 1:
            results = f"({results})"
        return f"({self.type_list(op.operands)}) -> {results}"

    def attributes(self, op: MlirOp, *shown: str) -> str:
        """` {...}` of the attributes that are not shown otherwise, if there are any."""
        others = {k: v for k, v in _attributes(op).items() if k not in shown}
        return f" {dictionary_text(others)}" if others else ""

    def location(self, location: Location | None) -> str:
        """` loc(...)` behind an op, where locations are written."""
        return "" if self.locations is None else f" loc({self.locations.reference(location)})"

    def argument_location(self, value: MlirValue) -> str:
        return "" if value.location is None else self.location(value.location)


def _attributes(op: MlirOp) -> dict[str, Attribute]:
    return chlo_attributes(op.attributes) if op.name.startswith("chlo.") else op.attributes


_SIGNATURE = ("sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs")


def _dictionaries(value: Attribute | None, count: int) -> list[str]:
    """The attributes behind each type of a signature, "" where there are none."""
    given = value if isinstance(value, tuple) else ()
    texts = [f" {dictionary_text(v)}" if isinstance(v, dict) and v else "" for v in given]
    return texts + [""] * (count - len(texts))


def _is_integer(type_: MlirType) -> bool:
    return isinstance(type_, RankedTensor) and str(type_.element).startswith(("i", "ui", "si"))
