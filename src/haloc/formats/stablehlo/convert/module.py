"""The whole module: functions to computations, `main` to the entry, attributes to the header."""

from __future__ import annotations

from typing import Any

from haloc.errors import InternalError, InvalidArgumentError
from haloc.formats.stablehlo.convert import (
    calls,
    chlo,
    collectives,
    contraction,
    dynamic,
    elementwise,
    reading,
    regions,
    shaping,
    sharding,
    structure,
)
from haloc.formats.stablehlo.convert.context import CONVERSIONS, Program, Scope, clean_name
from haloc.formats.stablehlo.convert.metadata import location_name
from haloc.formats.stablehlo.convert.shapes import shape_of
from haloc.formats.stablehlo.mlir import (
    Attribute,
    Integer,
    MlirModule,
    MlirOp,
    SdyMesh,
)
from haloc.formats.stablehlo.text.attribute_text import mesh_text
from haloc.ir.module import HloModule

_FAMILIES = (
    calls,
    chlo,
    collectives,
    contraction,
    dynamic,
    elementwise,
    regions,
    shaping,
    sharding,
    structure,
)
assert CONVERSIONS and _FAMILIES  # imported for the rows they enter


def to_hlo(module: MlirModule) -> HloModule:
    """The HLO of a StableHLO module; its function `main` is the entry. Not verified.

    Several results of main become one tuple, a single one stays as it is. Raises
    InvalidArgumentError for ops whose attributes or operands are wrong, and UnimplementedError
    naming the op or type for what HLO or haloc does not have.
    """
    hlo = HloModule(clean_name(module.name) or "module")
    program = Program(module, hlo)
    for op in module.operations:
        name = op.attributes.get("sym_name")
        if op.name == "func.func" and isinstance(name, str):
            program.functions[name] = op
        mesh = op.attributes.get("mesh")
        if op.name == "sdy.mesh" and isinstance(name, str) and isinstance(mesh, SdyMesh):
            program.meshes[name] = mesh
    main = _main(program)
    try:
        _entry(program, main)
    except RecursionError:
        raise InvalidArgumentError("the module's regions or calls are nested too deep") from None
    except (IndexError, KeyError, TypeError, ValueError, AssertionError) as error:
        # Malformed attributes that no reader above names; the op is in the notes.
        raise InternalError(f"converting StableHLO: {type(error).__name__}: {error}") from error
    _header(program, main)
    return hlo


def _main(program: Program) -> MlirOp:
    functions = program.functions
    if "main" in functions:
        return functions["main"]
    public = [f for f in functions.values() if f.attributes.get("sym_visibility") != "private"]
    if len(public) == 1:
        return public[0]
    raise InvalidArgumentError(
        "the module has no function @main, and "
        + (f"{len(public)} public ones: which is the entry?" if public else "no public one")
    )


def _entry(program: Program, main: MlirOp) -> None:
    name = reading.text(main, "sym_name")
    if not main.regions or not main.regions[0].blocks:
        raise InvalidArgumentError(f"function @{name} has no body")
    block = main.regions[0].blocks[0]
    computation = program.hlo.add_computation(clean_name(name), entry=True)
    scope = Scope(program, computation)
    program.active.append(name)
    for number, argument in enumerate(block.arguments):
        label = location_name(argument.location) or f"Arg_{number}"
        parameter = scope.parameter(number, shape_of(argument.type), label)
        if argument.location is not None:
            parameter.metadata = program.metadata.of(argument.location)[0]
        scope.values[argument] = parameter
    regions.fill(scope, main, block)
    program.active.pop()
    # Computations were made before their callers were complete; the entry goes last.
    made = program.hlo.computations
    made[computation.name] = made.pop(computation.name)


# --- Attributes of the module and of main --------------------------------------------------------


def _header(program: Program, main: MlirOp) -> None:
    header = program.hlo.header
    for key, name in (
        ("mhlo.num_replicas", "replica_count"),
        ("mhlo.num_partitions", "num_partitions"),
    ):
        value = program.source.attributes.get(key)
        if isinstance(value, Integer) and value.value != 1:
            header[name] = value.value
    block = main.regions[0].blocks[0]
    count = len(block.arguments)
    arguments = _dictionaries(main, "arg_attrs", count)
    results = _dictionaries(main, "res_attrs", len(block.operations[-1].operands))
    entry = program.hlo.entry
    aliases, donors = [], []
    is_tuple = len(results) != 1
    for number, attributes in enumerate(arguments):
        output = attributes.get("tf.aliasing_output")
        if isinstance(output, Integer):
            if not 0 <= output.value < len(results):
                raise InvalidArgumentError(
                    f"argument {number} of @{entry.name} aliases result {output.value}, but there "
                    f"are {len(results)}"
                )
            index = (output.value,) if is_tuple else ()
            aliases.append((index, number, (), "may-alias"))
        if attributes.get("jax.buffer_donor") is True:
            donors.append((number, ()))
        sharding.annotate_parameter(program, entry.parameters[number], attributes)
    if aliases:
        header["input_output_alias"] = tuple(aliases)
    if donors:
        header["buffer_donor"] = tuple(donors)
    sharding.annotate_results(program, entry, results)
    frontend = _frontend(program, arguments, results)
    if frontend:
        header["frontend_attributes"] = frontend
    result = entry.root.shape
    if result != result.with_default_layout():
        # A custom-call's own layout, which is nothing to those who call main.
        parameters = tuple(p.shape for p in entry.parameters)
        header["entry_computation_layout"] = (parameters, result.with_default_layout())


def _dictionaries(main: MlirOp, name: str, count: int) -> list[dict[str, Attribute]]:
    value = main.attributes.get(name, ())
    given: list[Any] = list(value) if isinstance(value, tuple) else []
    found = [v if isinstance(v, dict) else {} for v in given]
    return found + [{}] * (count - len(found))


def _frontend(
    program: Program, arguments: list[dict[str, Attribute]], results: list[dict[str, Attribute]]
) -> dict[str, str]:
    """Meshes, layout modes and memory kinds: what HLO has no field for."""
    given = program.source.attributes.get("mhlo.frontend_attributes")
    found: dict[str, str] = {}
    if isinstance(given, dict):
        found = {k: v for k, v in given.items() if isinstance(v, str)}
    if program.meshes:
        meshes = [f"{k} = #sdy.mesh{mesh_text(m)}" for k, m in program.meshes.items()]
        found["xla.sdy.meshes"] = "{" + ", ".join(meshes) + "}"
    for attribute, name in (
        ("mhlo.layout_mode", "layout_modes"),
        ("mhlo.memory_kind", "memory_kinds"),
    ):
        for kind, attributes in (("arg", arguments), ("out", results)):
            words = [a.get(attribute) for a in attributes]
            if any(isinstance(w, str) for w in words):
                # XLA's spelling: one word an argument, separated by semicolons.
                text = ";".join(w if isinstance(w, str) else "default" for w in words)
                found[f"{kind}_{name}"] = text
    return found
