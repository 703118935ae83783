"""Programs between XLA's forms: computations, HLO protos, StableHLO text and bytecode.

The functions of jaxlib's `_jax.mlir`, by their names. Modules are MLIR text or bytecode.
"""

from __future__ import annotations

from typing import Any

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.formats.hlo_proto import parse_hlo_module_proto, serialize_hlo_module
from haloc.formats.jax_export.refine import has_dynamic_sizes, is_dynamic, refine
from haloc.formats.stablehlo import (
    from_hlo,
    parse_bytecode,
    parse_mlir,
    print_mlir,
    to_hlo,
)
from haloc.formats.stablehlo import serialize_portable_artifact as write_artifact
from haloc.formats.stablehlo.bytecode import is_bytecode
from haloc.formats.stablehlo.bytecode.to_vhlo import has_portable_form
from haloc.formats.stablehlo.mlir import Function, MlirModule
from haloc.ir.module import HloInstruction, HloModule
from haloc.ir.shape import tuple_shape
from haloc.runtime.xla_computation import XlaComputation


def xla_computation_to_mlir_module(computation: XlaComputation) -> str:
    """StableHLO text of a computation."""
    return print_mlir(from_hlo(computation.as_hlo_module().ir))


def hlo_to_stablehlo(computation: bytes) -> bytes:
    """StableHLO bytecode, a portable artifact, of a serialized HloModuleProto."""
    return write_artifact(from_hlo(parse_hlo_module_proto(computation), portable=True))


def mlir_module_to_xla_computation(
    mlir_module: str | bytes, use_tuple_args: bool = False, return_tuple: bool = False
) -> XlaComputation:
    """The computation of a StableHLO module.

    use_tuple_args: all arguments are members of one parameter, a tuple. return_tuple: one result
    is a tuple of one, too.
    """
    module = to_hlo(_read(mlir_module))
    if return_tuple and not module.entry.root.shape.is_tuple:
        _wrap_root(module)
    if use_tuple_args:
        join_parameters(module)
    return XlaComputation(serialize_hlo_module(module))


def serialize_portable_artifact(
    mlir_module: str | bytes, target: str, use_mixed_serialization: bool = False
) -> bytes:
    """A module as a portable artifact of StableHLO version `target`, "1.0.0" and newer.

    Ops of other dialects that artifacts have no form for become what they mean in StableHLO,
    shardings of Shardy text. UnimplementedError for use_mixed_serialization, which would keep
    Shardy's own ops, and for what `target` does not have.
    """
    if use_mixed_serialization:
        raise UnimplementedError("serialize_portable_artifact: use_mixed_serialization")
    return write_artifact(_portable(_read(mlir_module)), target)


def deserialize_portable_artifact(mlir_module: bytes, context: Any = None) -> str:
    """StableHLO text of a portable artifact. context: None; haloc has no MLIR contexts."""
    if context is not None:
        raise UnimplementedError("deserialize_portable_artifact: context")
    return print_mlir(parse_bytecode(mlir_module), locations=True)


def refine_polymorphic_shapes(
    mlir_module: bytes,
    enable_shape_assertions: bool = True,
    validate_static_shapes: bool = True,
    enable_shardy: bool = False,
) -> bytes:
    """The module with the dynamic shapes inside worked out from the static ones of main's
    arguments; bytecode.

    Assertions about shapes are checked on the way. InvalidArgumentError when an argument of main
    is dynamic, or a shape stays so. UnimplementedError for enable_shape_assertions=False and
    validate_static_shapes=False. enable_shardy changes nothing: shardings are kept either way.
    """
    if not enable_shape_assertions:
        raise UnimplementedError("refine_polymorphic_shapes: enable_shape_assertions=False")
    if not validate_static_shapes:
        raise UnimplementedError("refine_polymorphic_shapes: validate_static_shapes=False")
    module = _read(mlir_module)
    mains = [op for op in module.operations if op.attributes.get("sym_name") == "main"]
    if not mains:
        raise InvalidArgumentError("the module has no function @main")
    signature = mains[0].attributes["function_type"]
    assert isinstance(signature, Function)
    for number, type_ in enumerate(signature.inputs):
        if is_dynamic(type_):
            raise InvalidArgumentError(
                f"argument {number} of @main is {type_}, wanted static sizes"
            )
    if has_dynamic_sizes(module):
        module = refine(module, signature.inputs, {})
    return write_artifact(_portable(module))


def _read(mlir_module: str | bytes) -> MlirModule:
    if isinstance(mlir_module, str):
        return parse_mlir(mlir_module)
    if not isinstance(mlir_module, bytes):
        given = type(mlir_module).__name__
        raise TypeError(f"an MLIR module is text (str) or bytecode (bytes), not {given}")
    if is_bytecode(mlir_module):
        return parse_bytecode(mlir_module)
    return parse_mlir(mlir_module.decode("utf-8", "surrogateescape"))


def _portable(module: MlirModule) -> MlirModule:
    return (
        module if has_portable_form(module.operations) else from_hlo(to_hlo(module), portable=True)
    )


# --- Tuples --------------------------------------------------------------------------------------


def _wrap_root(module: HloModule) -> None:
    root = module.entry.root
    whole = HloInstruction("tuple", tuple_shape(root.shape), (root,))
    module.entry.root = module.entry.add(whole)
    aliases = module.header.get("input_output_alias")
    if aliases:
        moved = [((0, *output), *rest) for output, *rest in aliases]
        module.header["input_output_alias"] = tuple(moved)


def join_parameters(module: HloModule) -> None:
    """Make the entry take one tuple. What is said about parameter n is said about member n then."""
    entry, header = module.entry, module.header
    parameters = entry.parameters
    shape = tuple_shape(*(p.shape for p in parameters))
    whole = HloInstruction("parameter", shape, (), {"parameter_number": 0})
    entry.add(whole, "arg_tuple", before=parameters[0] if parameters else None)
    for number, parameter in enumerate(parameters):
        member = HloInstruction("get-tuple-element", parameter.shape, (whole,), {"index": number})
        entry.add(member, parameter.name, before=parameter)
        member.metadata = parameter.metadata
        member.sharding = parameter.sharding
        parameter.replace_uses_with(member)
        entry.remove(parameter)
    module.sort()
    if "entry_computation_layout" in header:
        layouts, result = header["entry_computation_layout"]
        header["entry_computation_layout"] = ((tuple_shape(*layouts),), result)
    if "input_output_alias" in header:
        header["input_output_alias"] = tuple(
            (output, 0, (number, *inside), kind)
            for output, number, inside, kind in header["input_output_alias"]
        )
    if "buffer_donor" in header:
        donors = header["buffer_donor"]
        header["buffer_donor"] = tuple((0, (number, *inside)) for number, inside in donors)
