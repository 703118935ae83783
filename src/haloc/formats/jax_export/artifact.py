"""What `jax.export` wrote: a flatbuffer around a StableHLO portable artifact."""

from __future__ import annotations

from dataclasses import dataclass

from haloc.errors import HloParseError
from haloc.formats.jax_export.flatbuffer import Table, root_table
from haloc.formats.jax_export.pytree import PyTree, read_pytree
from haloc.formats.stablehlo.bytecode.container import MAGIC
from haloc.ir.dtype import DType, dtype_from_name

OLDEST_SCHEMA, NEWEST_SCHEMA = 1, 11

_NAMES = (
    "pred s8 s16 s32 s64 u8 u16 u32 u64 f16 f32 f64 c64 c128 bf16 s4 u4 f8e4m3b11fnuz f8e4m3fn"
    " f8e4m3fnuz f8e5m2 f8e5m2fnuz float0 f8e4m3 f8e3m4 f8e8m0fnu f4e2m1fn"
    " key<fry> key<rbg> key<urbg>"
)
_DTYPES = _NAMES.split()

# Field numbers of the root table.
(
    _SCHEMA, _NAME, _IN_TREE, _IN_AVALS, _OUT_TREE, _OUT_AVALS, _DEVICES_SHORT, _IN_SHARDINGS,
    _OUT_SHARDINGS, _PLATFORMS, _ORDERED, _UNORDERED, _CHECKS, _MODULE, _CONVENTION, _KEPT_SHORT,
    _USES_CONSTANTS, _VJP, _DEVICES, _AVAL_POOL, _MESH_POOL, _SHARDING_POOL, _KEPT,
) = range(23)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Aval:
    """The type of one argument or result.

    shape: sizes, and for a symbolic dimension its expression ("b", "2*b + 1").
    dtype: its HLO spelling ("f32"); "float0" and "key<fry>" are JAX's own.
    """

    shape: tuple[int | str, ...]
    dtype: str
    is_token: bool = False

    @property
    def element_type(self) -> DType:
        """HLO's element type; InvalidArgumentError for float0 and keys."""
        return dtype_from_name(self.dtype)

    def __str__(self) -> str:
        return "token" if self.is_token else f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class NamedSharding:
    """mesh: its axes and their sizes. spec: for each dimension, the axes it is split over."""

    mesh: tuple[tuple[str, int], ...]
    spec: tuple[tuple[str, ...], ...]
    memory_kind: str = ""


@dataclass(frozen=True, slots=True)
class DisabledCheck:
    """A safety check that the exporter switched off: that of the platform, or of a custom call."""

    custom_call_target: str

    @property
    def is_platform(self) -> bool:
        return not self.custom_call_target


@dataclass(frozen=True, slots=True)
class Artifact:
    """The fields of an artifact.

    module: the portable artifact. module_kept_variables: numbers of the flat arguments that the
    module takes, the others being unused. in_shardings, out_shardings: for each flat value None
    (not specified), a NamedSharding, or the bytes of an OpSharding proto.
    """

    schema_version: int
    calling_convention_version: int
    function_name: str
    in_tree: PyTree
    in_avals: tuple[Aval, ...]
    out_tree: PyTree
    out_avals: tuple[Aval, ...]
    nr_devices: int
    in_shardings: tuple[NamedSharding | bytes | None, ...]
    out_shardings: tuple[NamedSharding | bytes | None, ...]
    platforms: tuple[str, ...]
    ordered_effects: tuple[str, ...]
    unordered_effects: tuple[str, ...]
    disabled_checks: tuple[DisabledCheck, ...]
    module: bytes
    module_kept_variables: tuple[int, ...]
    uses_global_constants: bool
    vjp: Artifact | None
    """The derivative, when it was exported too."""

    @property
    def has_vjp(self) -> bool:
        return self.vjp is not None


def is_artifact(data: bytes) -> bool:
    """Whether the bytes are an artifact; flatbuffers carry no mark, so its module must."""
    try:
        root = root_table(data)
        in_range = OLDEST_SCHEMA <= root.number(_SCHEMA, "<H") <= NEWEST_SCHEMA + 16
        return in_range and root.bytes(_MODULE).startswith(MAGIC)
    except HloParseError:
        return False


def read_artifact(data: bytes) -> Artifact:
    """Read an artifact. HloParseError names the byte that is wrong."""
    return _read(root_table(data))


def _read(root: Table) -> Artifact:
    schema = root.number(_SCHEMA, "<H")
    if not OLDEST_SCHEMA <= schema <= NEWEST_SCHEMA:
        root.fail(
            root.pos,
            f"serialization version {schema}; haloc reads {OLDEST_SCHEMA} to {NEWEST_SCHEMA}",
        )
    module = root.bytes(_MODULE)
    if not module.startswith(MAGIC):
        root.fail(root.pos, f"a module that starts with {module[:4]!r}, expected {MAGIC!r}")
    in_avals = tuple(map(_read_aval, root.tables(_IN_AVALS)))
    out_avals = tuple(map(_read_aval, root.tables(_OUT_AVALS)))
    kept = root.numbers(_KEPT_SHORT, "H")
    if kept is None:
        kept = root.numbers(_KEPT, "I") or ()
    if any(k >= len(in_avals) for k in kept):
        root.fail(root.pos, f"kept arguments {list(kept)} of {len(in_avals)}")
    return Artifact(
        schema_version=schema,
        calling_convention_version=root.number(_CONVENTION, "<H"),
        function_name=root.string(_NAME),
        in_tree=_checked_tree(root, _IN_TREE, len(in_avals)),
        in_avals=in_avals,
        out_tree=_checked_tree(root, _OUT_TREE, len(out_avals)),
        out_avals=out_avals,
        nr_devices=root.number(_DEVICES, "<I") or root.number(_DEVICES_SHORT, "<h", 1),
        in_shardings=tuple(map(_read_sharding, root.tables(_IN_SHARDINGS))),
        out_shardings=tuple(map(_read_sharding, root.tables(_OUT_SHARDINGS))),
        platforms=tuple(root.strings(_PLATFORMS)),
        ordered_effects=tuple([t.string(0) for t in root.tables(_ORDERED)]),
        unordered_effects=tuple([t.string(0) for t in root.tables(_UNORDERED)]),
        disabled_checks=tuple([_read_check(t) for t in root.tables(_CHECKS)]),
        module=module,
        module_kept_variables=kept,
        uses_global_constants=bool(root.number(_USES_CONSTANTS, "<B")),
        vjp=None if (vjp := root.table(_VJP)) is None else _read(vjp),
    )


def _checked_tree(root: Table, field: int, leaves: int) -> PyTree:
    tree = read_pytree(root.table(field))
    if tree.leaves != leaves:
        root.fail(root.pos, f"a pytree of {tree.leaves} leaves for {leaves} values")
    return tree


def _read_aval(table: Table) -> Aval:
    kind = table.number(0, "<b")
    if kind not in (0, 1):
        table.fail(table.pos, f"abstract value kind {kind}, expected 0 or 1")
    number = table.number(2, "<b")
    if not 0 <= number < len(_DTYPES):
        table.fail(table.pos, f"element type {number}, expected 0 to {len(_DTYPES) - 1}")
    dims = [int(d) if d.isdecimal() and len(d) < 20 else d for d in table.strings(1)]
    return Aval(tuple(dims), _DTYPES[number], kind == 1)


def _read_check(table: Table) -> DisabledCheck:
    return DisabledCheck(table.string(1))


def _read_sharding(table: Table) -> NamedSharding | bytes | None:
    named = table.table(2)
    if named is None:
        return table.bytes(1) or None
    mesh = named.table(0)
    axes: tuple[tuple[str, int], ...] = ()
    if mesh is not None:
        axes = tuple(zip(mesh.strings(1), mesh.numbers(0, "I") or (), strict=False))
    spec = named.table(1)
    dims: list[tuple[str, ...]] = []
    if spec is not None:
        dims = [tuple(partition.strings(0)) for partition in spec.tables(0)]
    return NamedSharding(axes, tuple(dims), named.string(2))
