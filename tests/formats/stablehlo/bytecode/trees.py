"""Compares two trees of the same program: one read from text, one from bytecode."""

from __future__ import annotations

import io

import numpy as np
from jax._src.interpreters import mlir as jax_mlir
from jaxlib import _jax
from jaxlib.mlir import ir

from haloc.formats.stablehlo.bytecode import parse_bytecode
from haloc.formats.stablehlo.mlir import Float, MlirModule, MlirOp, OtherAttribute, Struct
from haloc.formats.stablehlo.text import parse_mlir

CURRENT = "1.17.0"


def artifact(module: object, version: str = CURRENT) -> bytes:
    """jaxlib's portable artifact of a module (ir.Module or text)."""
    return _jax.mlir.serialize_portable_artifact(module, version)


def plain_bytecode(module: ir.Module) -> bytes:
    """MLIR's own bytecode of a module, in the dialects it has."""
    file = io.BytesIO()
    module.operation.write_bytecode(file)
    return file.getvalue()


def assert_same_plain(module: object) -> None:
    """The tree of MLIR's own bytecode of a module (ir.Module or text) equals that of its text."""
    if isinstance(module, str):
        with jax_mlir.make_ir_context():
            module = ir.Module.parse(module)
    assert isinstance(module, ir.Module)
    text = module.operation.get_asm(print_generic_op_form=True)
    from_bytes, from_text = parse_bytecode(plain_bytecode(module)), parse_mlir(text)
    assert from_bytes.name == from_text.name
    assert normal(from_bytes.attributes) == normal(from_text.attributes)
    compare(from_bytes.operations, from_text.operations, {})


def text_of(data: bytes) -> str:
    """What jaxlib reads an artifact as."""
    context = jax_mlir.make_ir_context()
    module = _jax.mlir.deserialize_portable_artifact(data, context)
    return module.operation.get_asm(enable_debug_info=False)


def assert_same(data: bytes) -> MlirModule:
    """The tree of an artifact equals the tree of jaxlib's text of it."""
    from_bytes, from_text = parse_bytecode(data), parse_mlir(text_of(data))
    assert from_bytes.name == from_text.name
    assert normal(from_bytes.attributes) == normal(from_text.attributes)
    compare(from_bytes.operations, from_text.operations, {})
    return from_bytes


def compare(first: list[MlirOp], second: list[MlirOp], same: dict) -> None:
    assert [op.name for op in first] == [op.name for op in second]
    for a, b in zip(first, second, strict=True):
        assert [same[v] for v in a.operands] == b.operands, a.name
        assert normal(a.attributes) == normal(b.attributes), a.name
        assert [v.type for v in a.results] == [v.type for v in b.results], a.name
        same.update(zip(a.results, b.results, strict=True))
        assert len(a.regions) == len(b.regions), a.name
        for region, other in zip(a.regions, b.regions, strict=True):
            assert len(region.blocks) == len(other.blocks), a.name
            for block, match in zip(region.blocks, other.blocks, strict=True):
                assert [v.type for v in block.arguments] == [v.type for v in match.arguments]
                same.update(zip(block.arguments, match.arguments, strict=True))
                compare(block.operations, match.operations, same)


def normal(value: object) -> object:
    """An attribute without what is only spelling: empty fields, digits that f32 does not have."""
    if isinstance(value, Float) and value.type == "f32":
        return Float(float(np.float32(value.value)), "f32")
    if isinstance(value, OtherAttribute):
        return OtherAttribute(value.text.partition("<")[0])
    if isinstance(value, Struct):
        fields = {k: normal(v) for k, v in value.fields.items() if v not in ((), 0, False)}
        return (value.name, fields)
    if isinstance(value, dict):
        return {k: normal(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(map(normal, value))
    return value
