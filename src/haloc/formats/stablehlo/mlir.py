"""The tree that both StableHLO readers, text and bytecode, produce: MLIR as plain data.

Names are StableHLO's own ("stablehlo.add", "func.func", "sdy.sharding_constraint"); a reader of
VHLO bytecode renames ops and regroups flattened attributes to these forms.

Attributes are Python values where Python has the kind, and the classes below for the rest:

    boolean            bool                      string             str
    array              tuple of attributes       dictionary         dict of str to attribute
    integer            Integer                   float              Float
    unit               UNIT                      type               an MlirType
    dense<...>         DenseElements             array<i64: ...>    DenseElements of rank 1
    @name              SymbolRef                 enum               Enum
    #stablehlo.dot<>   Struct("stablehlo.dot")   #sdy.sharding<>    SdySharding and its parts

Fields of a Struct hold Python ints, bools and tuples of ints (not Integer). The Structs are those
of the StableHLO dialect:

    dot                  lhs_batching_dimensions rhs_batching_dimensions
                         lhs_contracting_dimensions rhs_contracting_dimensions
    ragged_dot           the four of dot, then lhs_ragged_dimensions rhs_group_dimensions
    dot_algorithm        lhs_precision_type rhs_precision_type accumulation_type (types)
                         lhs_component_count rhs_component_count num_primitive_operations
                         allow_imprecise_accumulation
    conv                 {input,kernel,output}_spatial_dimensions input_batch_dimension
                         input_feature_dimension kernel_input_feature_dimension
                         kernel_output_feature_dimension output_batch_dimension
                         output_feature_dimension
    gather               offset_dims collapsed_slice_dims operand_batching_dims
                         start_indices_batching_dims start_index_map index_vector_dim
    scatter              update_window_dims inserted_window_dims input_batching_dims
                         scatter_indices_batching_dims scatter_dims_to_operand_dims
                         index_vector_dim
    channel_handle       handle type
    output_operand_alias output_tuple_indices operand_index operand_tuple_indices
    result_accuracy      atol rtol ulps mode (an Enum)
    replica_group_mesh_axes  mesh (SymbolRef or SdyMesh) axes (tuple of SdyAxis)

An absent field is its default: () for lists, 0 for index_vector_dim. An absent optional attribute
of an op has no key in `attributes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

# --- Types -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scalar:
    """An element type outside a tensor: "f32", "i1", "ui8", "index", "complex<f32>"."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Quantized:
    """!quant.uniform<storage:expressed, scale:zero_point>; per axis when `axis` is not None.

    storage: "i8" or "ui8" style. storage_min, storage_max: None for the storage type's own range.
    """

    storage: str
    expressed: str
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None
    storage_min: int | None = None
    storage_max: int | None = None

    def __str__(self) -> str:
        storage = self.storage.replace("ui", "u", 1)
        if self.storage_min is not None:
            storage += f"<{self.storage_min}:{self.storage_max}>"
        pairs = zip(self.scales, self.zero_points, strict=True)
        values = [repr(s) + (f":{z}" if z else "") for s, z in pairs]
        if self.axis is None:
            return f"!quant.uniform<{storage}:{self.expressed}, {values[0]}>"
        listed = "{" + ",".join(values) + "}"
        return f"!quant.uniform<{storage}:{self.expressed}:{self.axis}, {listed}>"


@dataclass(frozen=True, slots=True)
class RankedTensor:
    """tensor<2x?xf32, #stablehlo.bounds<?, 4>>.

    dims: None for a dynamic size. element: a scalar type's name as MLIR spells it ("f32", "ui8",
    "complex<f32>", "f8E4M3FN"), or a Quantized. bounds: () when no dimension is bounded, else one
    entry a dimension, None where there is no bound. encoding: any other encoding attribute.
    """

    dims: tuple[int | None, ...]
    element: str | Quantized
    bounds: tuple[int | None, ...] = ()
    encoding: Attribute | None = None

    def __str__(self) -> str:
        sizes = "".join(("?" if d is None else str(d)) + "x" for d in self.dims)
        bounds = ""
        if self.bounds:
            listed = ", ".join("?" if b is None else str(b) for b in self.bounds)
            bounds = f", #stablehlo.bounds<{listed}>"
        return f"tensor<{sizes}{self.element}{bounds}>"


@dataclass(frozen=True, slots=True)
class UnrankedTensor:
    element: str | Quantized

    def __str__(self) -> str:
        return f"tensor<*x{self.element}>"


@dataclass(frozen=True, slots=True)
class Buffer:
    """memref<2xf32>: StableHLO's buffer type."""

    dims: tuple[int | None, ...]
    element: str

    def __str__(self) -> str:
        sizes = "".join(("?" if d is None else str(d)) + "x" for d in self.dims)
        return f"memref<{sizes}{self.element}>"


@dataclass(frozen=True, slots=True)
class Token:
    def __str__(self) -> str:
        return "!stablehlo.token"


@dataclass(frozen=True, slots=True)
class Tuple:
    members: tuple[MlirType, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.members))}>"


@dataclass(frozen=True, slots=True)
class Future:
    """!stablehlo.future<...>: the result of async_start."""

    members: tuple[MlirType, ...]

    def __str__(self) -> str:
        return f"!stablehlo.future<{', '.join(map(str, self.members))}>"


@dataclass(frozen=True, slots=True)
class Function:
    inputs: tuple[MlirType, ...]
    results: tuple[MlirType, ...]

    def __str__(self) -> str:
        results = ", ".join(map(str, self.results))
        if len(self.results) != 1 or isinstance(self.results[0], Function):
            results = f"({results})"
        return f"({', '.join(map(str, self.inputs))}) -> {results}"


@dataclass(frozen=True, slots=True)
class OtherType:
    """A type haloc keeps as text only: "none", "!shape.witness"."""

    text: str

    def __str__(self) -> str:
        return self.text


MlirType: TypeAlias = (
    "Scalar | RankedTensor | UnrankedTensor | Buffer | Token | Tuple | Future | Function"
    " | Quantized | OtherType"
)

# --- Attributes --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Integer:
    """1 : i64. `value` is in the type's range: negative for a signless type's set top bit."""

    value: int
    type: str = "i64"


@dataclass(frozen=True, slots=True)
class Float:
    """1.5 : f32."""

    value: float
    type: str = "f64"


@dataclass(frozen=True, slots=True, eq=False)
class DenseElements:
    """dense<...> : tensor<...>, or array<i64: ...> as a tensor of rank 1.

    array: read-only, of the type's dims and the NumPy type of the element (np.bool_ for i1, int32
    for i32, uint8 for ui8, ml_dtypes' int4 for i4, int64 for index). A splat may be a
    broadcast view (strides 0).
    """

    type: RankedTensor
    array: np.ndarray

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DenseElements):
            return NotImplemented
        return self.type == other.type and self.array.tobytes() == other.array.tobytes()

    def __hash__(self) -> int:
        return hash((self.type, self.array.tobytes()))


@dataclass(frozen=True, slots=True)
class DenseStrings:
    """dense<["a", "b"]>: a tensor of strings, flat."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    def __repr__(self) -> str:
        return "UNIT"


UNIT: Final = Unit()


@dataclass(frozen=True, slots=True)
class SymbolRef:
    """@a::@b is SymbolRef("a", ("b",))."""

    name: str
    nested: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Enum:
    """#stablehlo<comparison_direction EQ> is Enum("comparison_direction", "EQ").

    kind: comparison_direction, comparison_type, precision, fft_type, rng_algorithm,
    rng_distribution, transpose, custom_call_api_version (values ORIGINAL, TYPED_FFI, ...),
    result_accuracy_mode. custom_call's api_version is an Integer in text; both are read.
    """

    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class Struct:
    """An attribute with named fields: Struct("stablehlo.dot", {...}), see above."""

    name: str
    fields: dict[str, Attribute]

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.fields)))


@dataclass(frozen=True, slots=True)
class OtherAttribute:
    """An attribute haloc keeps as text only."""

    text: str


# --- Attributes of Shardy ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SdyAxis:
    """ "x", or "x":(pre_size)size, a part of an axis. size is 0 for the whole axis."""

    name: str
    pre_size: int = 1
    size: int = 0


@dataclass(frozen=True, slots=True)
class SdyMesh:
    """#sdy.mesh<["x"=2, "y"=4], device_ids=[...]>; device_ids () for 0, 1, 2, ..."""

    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SdyDim:
    """{"x", "y", ?}p1. priority None when not written."""

    axes: tuple[SdyAxis, ...] = ()
    is_open: bool = False
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class SdySharding:
    """#sdy.sharding<@mesh, [{"x"}, {?}], replicated={"y"}, unreduced={"z"}>."""

    mesh: SymbolRef | SdyMesh
    dims: tuple[SdyDim, ...]
    replicated: tuple[SdyAxis, ...] = ()
    unreduced: tuple[SdyAxis, ...] = ()


@dataclass(frozen=True, slots=True)
class SdyPerValue:
    """#sdy.sharding_per_value<[...]>: one sharding per operand or result."""

    shardings: tuple[SdySharding, ...]


@dataclass(frozen=True, slots=True)
class SdyManualAxes:
    """#sdy<manual_axes{"x", "y"}>."""

    names: tuple[str, ...]


Attribute: TypeAlias = (
    "bool | str | tuple[Attribute, ...] | dict[str, Attribute] | Integer | Float | DenseElements"
    " | DenseStrings | Unit | SymbolRef | Enum | Struct | OtherAttribute | MlirType | SdyAxis"
    " | SdyMesh | SdyDim | SdySharding | SdyPerValue | SdyManualAxes | int | Location"
)

# --- Locations -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileLocation:
    """file:line:column, to end_line:end_column where they are not 0."""

    file: str
    line: int
    column: int
    end_line: int = 0
    end_column: int = 0


@dataclass(frozen=True, slots=True)
class NameLocation:
    """loc("name"(child)); child None when unknown."""

    name: str
    child: Location | None = None


@dataclass(frozen=True, slots=True)
class CallLocation:
    """loc(callsite(callee at caller))."""

    callee: Location | None
    caller: Location | None


@dataclass(frozen=True, slots=True)
class FusedLocation:
    """loc(fused<metadata>[...])."""

    parts: tuple[Location | None, ...]
    metadata: Attribute | None = None


Location: TypeAlias = "FileLocation | NameLocation | CallLocation | FusedLocation"
"""Where an op comes from; None stands for loc(unknown)."""

# --- Operations ----------------------------------------------------------------------------------


class MlirValue:
    """An SSA value: the result of an op or the argument of a block. Compared by identity."""

    __slots__ = ("location", "name", "type")

    def __init__(self, type: MlirType, name: str = "", location: Location | None = None):
        self.type = type
        self.name = name
        self.location = location

    def __repr__(self) -> str:
        return f"<%{self.name}: {self.type}>"


class MlirOp:
    """One operation. attributes holds properties and discardable attributes together.

    position: character offset in the module's text, -1 when there is none.
    """

    __slots__ = ("attributes", "location", "name", "operands", "position", "regions", "results")

    def __init__(
        self,
        name: str,
        operands: list[MlirValue] | None = None,
        attributes: dict[str, Attribute] | None = None,
        regions: list[MlirRegion] | None = None,
        results: list[MlirValue] | None = None,
        location: Location | None = None,
        position: int = -1,
    ):
        self.name = name
        self.operands = operands if operands is not None else []
        self.attributes = attributes if attributes is not None else {}
        self.regions = regions if regions is not None else []
        self.results = results if results is not None else []
        self.location = location
        self.position = position

    def __repr__(self) -> str:
        return f"<{self.name}, {len(self.operands)} operands, {len(self.results)} results>"


@dataclass(slots=True, eq=False)
class MlirBlock:
    arguments: list[MlirValue] = field(default_factory=list)
    operations: list[MlirOp] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class MlirRegion:
    """StableHLO's regions have one block, or none (a function that is only declared)."""

    blocks: list[MlirBlock] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class MlirModule:
    """A whole program: the builtin.module, opened up.

    name: of the module symbol, without "@"; "" when it has none. operations: func.func, sdy.mesh.
    A func.func has attributes sym_name (str), function_type (Function), sym_visibility (str,
    absent when public by default), arg_attrs and res_attrs (tuples of dict, absent when all
    empty) and one region. source: the text, "" for bytecode; filename: for messages.
    """

    name: str
    attributes: dict[str, Attribute]
    operations: list[MlirOp]
    location: Location | None = None
    source: str = ""
    filename: str = "<string>"
