"""The whole module: the entry to `main`, the header to attributes."""

from __future__ import annotations

from haloc.errors import InvalidArgumentError
from haloc.formats.stablehlo.export import (
    collectives,
    contraction,
    custom_call,
    elementwise,
    regions,
    shaping,
    structure,
)
from haloc.formats.stablehlo.export.annotations import annotations
from haloc.formats.stablehlo.export.context import EXPORTERS, Program, Scope, Tree, fill
from haloc.formats.stablehlo.export.types import type_of
from haloc.formats.stablehlo.mlir import (
    Attribute,
    Function,
    Integer,
    MlirBlock,
    MlirModule,
    MlirOp,
    MlirRegion,
    MlirValue,
    NameLocation,
)
from haloc.ir.module import HloInstruction, HloModule
from haloc.ir.shape import Shape, default_layout
from haloc.ir.sharding import HloSharding
from haloc.ops.table import OPS, Expand, attr

_FAMILIES = (collectives, contraction, custom_call, elementwise, regions, shaping, structure)
assert EXPORTERS and _FAMILIES  # imported for the exporters they enter


def from_hlo(module: HloModule, *, portable: bool = False) -> MlirModule:
    """The StableHLO of an HLO module; its entry becomes the function `main`.

    A root that is a tuple becomes as many results, but for a tuple of one, which stays one. Ops
    StableHLO lacks are written with chlo, or expanded as haloc's own rows expand them; portable:
    only with those of chlo that portable artifacts have a form for. Layouts other than row-major
    are kept at the entry's parameters and results only; control dependencies and aliases of parts
    of tuple parameters have no form there. The module is left as it is. Raises UnimplementedError
    naming the op, attribute or type for what StableHLO does not have.
    """
    module = _expanded(module, portable)
    made = MlirModule(module.name, _attributes(module), [])
    try:
        main = _main(Program(module, made))
    except RecursionError:
        raise InvalidArgumentError("the module's computations are nested too deep") from None
    made.operations.insert(0, main)
    return made


_ONLY_CHLO = {"mulhi", "ragged-dot", "scan"}
"""Ops of chlo that portable artifacts have no form for."""


def _expanded(module: HloModule, portable: bool) -> HloModule:
    """The module without ops that cannot be written but that haloc's rows expand."""
    refused = _ONLY_CHLO if portable else set()

    def expandable() -> list[HloInstruction]:
        found = [
            i
            for i in module.instructions()
            if i.opcode not in EXPORTERS or i.opcode in refused or _is_bottom_k(i)
        ]
        return [i for i in found if isinstance(OPS[i.opcode].lower, Expand)]

    if not expandable():
        return module
    module = module.clone()
    while todo := expandable():
        for instruction in todo:
            lower = OPS[instruction.opcode].lower
            assert isinstance(lower, Expand)
            instruction.replace_uses_with(lower.fn(instruction))
            instruction.computation.remove(instruction)
        module.sort()
    return module


def _is_bottom_k(instruction: HloInstruction) -> bool:
    """chlo.top_k gives the largest elements only."""
    return instruction.opcode == "topk" and not attr(instruction, "largest")


# --- The entry -----------------------------------------------------------------------------------


def _main(program: Program) -> MlirOp:
    entry = program.source.entry
    block = MlirBlock()
    scope = Scope(program, block)
    for parameter in entry.parameters:
        location = program.locations.of(parameter) or NameLocation(parameter.name)
        block.arguments.append(MlirValue(type_of(parameter.shape), location=location))
    root = fill(scope, entry, block.arguments)
    results = _results(scope, entry.root.shape, root)
    scope.op("func.return", results, [])
    inputs = tuple(a.type for a in block.arguments)
    attributes: dict[str, Attribute] = {
        "function_type": Function(inputs, tuple(r.type for r in results)),
        "sym_name": "main",
        "sym_visibility": "public",
    }
    layouts = _Layouts(program.source)
    listed = {
        "arg_attrs": _argument_attributes(program.source, layouts),
        "res_attrs": _result_attributes(program.source, len(results), layouts),
    }
    attributes |= {name: tuple(each) for name, each in listed.items() if any(each)}
    return MlirOp("func.func", [], attributes, [MlirRegion([block])])


def _has_several_results(shape: Shape) -> bool:
    return shape.is_tuple and len(shape.elements) != 1


def _results(scope: Scope, shape: Shape, root: Tree) -> list[MlirValue]:
    scope.location = None
    if _has_several_results(shape):
        return [scope.one(member) for member in scope.members(root)]
    return [scope.one(root)]


# --- Attributes ----------------------------------------------------------------------------------


def _attributes(module: HloModule) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {
        "mhlo.num_partitions": Integer(module.header.get("num_partitions", 1), "i32"),
        "mhlo.num_replicas": Integer(module.header.get("replica_count", 1), "i32"),
    }
    frontend = {k: v for k, v in _frontend(module).items() if k not in _PER_VALUE}
    if frontend:
        found["mhlo.frontend_attributes"] = dict(frontend)
    return found


def _frontend(module: HloModule) -> dict[str, str]:
    return module.header.get("frontend_attributes", {})


_PER_VALUE = {
    "arg_layout_modes": ("arg", "mhlo.layout_mode"),
    "out_layout_modes": ("out", "mhlo.layout_mode"),
    "arg_memory_kinds": ("arg", "mhlo.memory_kind"),
    "out_memory_kinds": ("out", "mhlo.memory_kind"),
}
"""Frontend attributes of HLO that list a word for each argument or result, and what they are
called at these."""


class _Layouts:
    """What is said about the memory of each argument and result."""

    def __init__(self, module: HloModule):
        self.words: dict[tuple[str, int], dict[str, Attribute]] = {}
        parameters = [p.shape for p in module.entry.parameters]
        root = module.entry.root.shape
        stated = module.header.get("entry_computation_layout")
        if stated is not None:
            parameters, root = list(stated[0]), stated[1]
        results = list(root.elements) if _has_several_results(root) else [root]
        for kind, shapes in (("arg", parameters), ("out", results)):
            for number, shape in enumerate(shapes):
                if shape.is_array and shape.layout not in (None, default_layout(shape.rank)):
                    assert shape.layout is not None
                    order = "{" + ",".join(map(str, shape.layout.minor_to_major)) + "}"
                    self.words[kind, number] = {"mhlo.layout_mode": order}
        for name, (kind, attribute) in _PER_VALUE.items():
            for number, word in enumerate(_frontend(module).get(name, "").split(";")):
                if word and word != "default":
                    self.words.setdefault((kind, number), {})[attribute] = word

    def of(self, kind: str, number: int) -> dict[str, Attribute]:
        return self.words.get((kind, number), {})


def _argument_attributes(module: HloModule, layouts: _Layouts) -> list[dict[str, Attribute]]:
    found = []
    for number, parameter in enumerate(module.entry.parameters):
        found.append(annotations(parameter) | layouts.of("arg", number))
    for output, parameter_number, inside, _ in module.header.get("input_output_alias", ()):
        if not inside and len(output) <= 1:
            index = Integer(output[0] if output else 0, "i32")
            found[parameter_number]["tf.aliasing_output"] = index
    for parameter_number, inside in module.header.get("buffer_donor", ()):
        if not inside:
            found[parameter_number]["jax.buffer_donor"] = True
    return found


def _result_attributes(
    module: HloModule, count: int, layouts: _Layouts
) -> list[dict[str, Attribute]]:
    root = module.entry.root
    found: list[dict[str, Attribute]] = [dict(layouts.of("out", n)) for n in range(count)]
    sharding = root.sharding
    if sharding is None:
        return found
    shardings: tuple[HloSharding, ...] = (sharding,) * count
    if sharding.is_tuple and _has_several_results(root.shape):
        shardings = sharding.elements
    for attributes, one in zip(found, shardings, strict=False):
        attributes["mhlo.sharding"] = str(one)
    return found
