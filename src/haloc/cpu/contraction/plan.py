"""The numbers of a blocked product: tile shape, blocks, units, and what is packed where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from haloc.codegen.target import Target
from haloc.cpu.contraction import amx, elements
from haloc.cpu.contraction.amx import AmxForm
from haloc.cpu.contraction.finish import IDENTITY, Epilogue
from haloc.cpu.contraction.micro import TileShape
from haloc.cpu.contraction.pack import run_group
from haloc.cpu.contraction.view import View

L1_BYTES = 32 << 10
"""What a packed panel of the right-hand side may fill of the first-level cache."""
BLOCK_BYTES = 128 << 10
"""What a packed block of the left-hand side may fill of the second-level cache."""
SUMS_BYTES = 224 << 10
"""What a unit's unfinished sums may take, on the stack."""
LOCAL_BYTES = 160 << 10
"""How much of the right-hand side a unit packs for itself at a time, on the stack."""
UNIT_BYTES = 256 << 10
"""What a unit that works at memory's speed reads of its larger operand."""
STREAM_COLUMNS = 2048
"""Columns of a unit that reads the right-hand side once."""
INNER_ROWS = 8
"""Up to so many rows or columns are summed along k in vector lanes."""
NS_PER_FLOP = 0.01
NS_PER_AMX_FLOP = 0.0015
NS_PER_BYTE = 0.05
NS_PER_PACKED = 0.3


@dataclass(frozen=True, slots=True)
class Product:
    """out[g, m, n] = sum over k of lhs[g, m, k] * rhs[g, k, n].

    In lhs "x" is m, in rhs "x" is n; in out "x" is m and "k" is n. buffers: argument numbers of
    lhs, rhs and out. Of complex products lhs and out are component views (k and n count
    components), rhs is the complex view. is_strict: sums by the arithmetic of `type` only.
    """

    lhs: View
    rhs: View
    out: View
    type: str
    buffers: tuple[int, int, int]
    is_complex: bool = False
    is_strict: bool = False
    epilogue: Epilogue = IDENTITY

    @property
    def pair(self) -> int:
        return 2 if self.is_complex else 1

    @property
    def batch(self) -> int:
        return self.out.extent("g")

    @property
    def m(self) -> int:
        return self.lhs.extent("x")

    @property
    def n(self) -> int:
        return self.rhs.extent("x") * self.pair

    @property
    def k(self) -> int:
        return self.lhs.extent("k")

    @property
    def flops(self) -> float:
        return 2.0 * self.batch * self.m * self.n * self.k


@dataclass(frozen=True, slots=True)
class Plan:
    """tile: the micro-kernel's. k_block: values of k summed at a time. m_block, n_block: rows and
    columns of a unit's block. lhs_packed, rhs_packed: read through panels, or straight from memory.
    rhs_local: each unit packs the right-hand side it needs, else a phase of its own does.
    is_inner: `inner_kernel`, whose tile's vectors are columns, instead of `micro_kernel`.
    amx: sums are made in AMX tiles, of this form."""

    tile: TileShape
    k_block: int
    m_block: int
    n_block: int
    lhs_packed: bool
    rhs_packed: bool
    rhs_local: bool
    m_units: int
    n_units: int
    is_inner: bool = False
    amx: AmxForm | None = None

    @property
    def panel_type(self) -> str:
        return self.tile.type if self.amx is None else self.amx.element

    @property
    def units_per_batch(self) -> int:
        return self.m_units * self.n_units


def tile_shape(product: Product, target: Target) -> TileShape:
    """The shape that needs the fewest cycles: two multiply-adds and two loads a cycle, and at
    least four cycles between uses of one sum."""
    size = elements.type_bytes(product.type)
    lanes = target.lanes(size)
    registers = 32 if target.vector_bytes == 64 else 16
    best: tuple[float, int, TileShape] | None = None
    for rows in range(1, 15):
        for vectors in range(1, 9 if rows > 1 else 17):
            if rows * vectors + vectors + 1 > registers:
                continue
            cycles = max(rows * vectors / 2, (rows + vectors) / 2, 4)
            tiles = ceil(product.m / rows) * ceil(product.n / (vectors * lanes))
            cost = tiles * (cycles + 0.25)
            key = (cost, abs(rows - 8), TileShape(product.type, rows, vectors, lanes))
            if best is None or key[:2] < best[:2]:
                best = key
    assert best is not None
    return best[2]


def _balanced(total: int, limit: int, multiple: int) -> int:
    """A block size, a multiple of `multiple` near or under `limit`, that splits total evenly."""
    limit = max(limit // multiple, 1) * multiple
    blocks = ceil(total / limit)
    return ceil(ceil(total / blocks) / multiple) * multiple


def make_plan(product: Product, target: Target) -> Plan:
    if _is_inner(product, target):
        return _inner_plan(product, target)
    form = amx.amx_form(product.lhs.dtype, product.rhs.dtype, product.type)
    if form is not None and _suits_amx(product, form) and amx.is_available(target, form):
        return replace(_outer_plan(product, form.tile, form.size), amx=form)
    tile = tile_shape(product, target)
    return _outer_plan(product, tile, elements.type_bytes(tile.type))


def _suits_amx(product: Product, form: AmxForm) -> bool:
    return (
        not product.is_strict
        and product.m > form.tile.rows // 2
        and product.n > form.tile.columns // 2
        and product.k >= form.k_step // 2
    )


def compute_ns(product: Product, plan: Plan) -> float:
    """Estimated time of all units on one thread: arithmetic's or memory's, whichever is longer."""
    elements_moved = product.m * product.k, product.k * product.n, product.m * product.n
    views = (product.lhs, product.rhs, product.out)
    moved = sum(n * v.dtype.real.byte_size for n, v in zip(elements_moved, views, strict=True))
    per_flop = NS_PER_FLOP if plan.amx is None else NS_PER_AMX_FLOP
    return max(product.flops * per_flop, product.batch * moved * NS_PER_BYTE)


def _is_inner(product: Product, target: Target) -> bool:
    """Whether k is contiguous in both operands and one is too small to repay packing the other."""
    views = (product.lhs, product.rhs)
    if product.is_complex or any(elements.is_tabled(v.dtype) for v in views):
        return False
    if any(v.stride("k") != 1 or v.stride("x") is None for v in views):
        return False
    return product.k >= target.lanes(elements.type_bytes(product.type)) and (
        min(product.m, product.n) <= INNER_ROWS
    )


def _inner_plan(product: Product, target: Target) -> Plan:
    """The tile with the fewest loads and multiply-adds; units read about UNIT_BYTES."""
    registers = 32 if target.vector_bytes == 64 else 16
    shapes = [
        (rows, columns)
        for rows in range(1, min(product.m, 8) + 1)
        for columns in range(1, min(product.n, 8) + 1)
        if rows * columns + rows + columns <= registers
    ]

    def cycles(shape: tuple[int, int]) -> float:
        rows, columns = shape
        tiles = ceil(product.m / rows) * ceil(product.n / columns)
        return tiles * max(rows * columns, rows + columns, 2)

    rows, columns = min(shapes, key=lambda s: (cycles(s), -s[0] * s[1]))
    tile = TileShape(product.type, rows, columns, 1)
    size = product.lhs.dtype.byte_size
    limit = max(1, UNIT_BYTES // (product.k * size))
    m_block = _balanced(product.m, max(limit, 8), rows)
    n_block = _balanced(product.n, max(limit, 8), columns)
    m_units, n_units = ceil(product.m / m_block), ceil(product.n / n_block)
    return Plan(
        tile, product.k, m_block, n_block, False, False, False, m_units, n_units, is_inner=True
    )


def _outer_plan(product: Product, tile: TileShape, size: int) -> Plan:
    """size: bytes of a packed element."""
    sum_size = elements.type_bytes(tile.type)
    k_limit = max(64, L1_BYTES // (tile.columns * size))
    k_block = product.k if product.k <= k_limit * 3 // 2 else _balanced(product.k, k_limit, 64)
    m_limit = BLOCK_BYTES // ((k_block + 16) * size)
    if k_block < product.k:
        m_limit = min(m_limit, SUMS_BYTES // (tile.columns * sum_size))
    m_block = _balanced(product.m, m_limit, tile.rows)
    n_limit = 1024 if k_block == product.k else SUMS_BYTES // (m_block * sum_size)
    n_block = _balanced(product.n, n_limit, tile.columns)
    rhs_packed = size != sum_size or not _reads_rhs(product, tile)
    if not rhs_packed and product.m <= tile.rows:
        return _streaming_plan(product, tile, k_block)
    local = _local_columns(product, tile, k_block, m_block)
    if local:
        n_block = _balanced(product.n, local, tile.columns)
        lhs_packed = size != sum_size or not _reads_lhs(product, tile, n_block)
        n_units = ceil(product.n / n_block)
        return Plan(tile, k_block, m_block, n_block, lhs_packed, rhs_packed, True, 1, n_units)
    # Enough units for many threads, as long as a unit is worth dealing out (20 us).
    while (
        product.batch * ceil(product.m / m_block) * ceil(product.n / n_block) < 32
        and m_block * n_block * product.k * 2 > 4e6
    ):
        if n_block >= max(2 * m_block, 4 * tile.columns):
            n_block = _balanced(n_block, n_block // 2, tile.columns)
        elif m_block >= 4 * tile.rows:
            m_block = _balanced(m_block, m_block // 2, tile.rows)
        else:
            break
    lhs_packed = size != sum_size or not _reads_lhs(product, tile, n_block)
    m_units, n_units = ceil(product.m / m_block), ceil(product.n / n_block)
    return Plan(tile, k_block, m_block, n_block, lhs_packed, rhs_packed, False, m_units, n_units)


def _streaming_plan(product: Product, tile: TileShape, k_block: int) -> Plan:
    """Few rows times a matrix read once, as it lies: wide units, so that rows are read in runs."""
    n_block = _balanced(product.n, STREAM_COLUMNS, tile.columns)
    lhs_packed = not _reads_lhs(product, tile, n_block)
    n_units = ceil(product.n / n_block)
    return Plan(tile, k_block, tile.rows, n_block, lhs_packed, False, False, 1, n_units)


def _local_columns(product: Product, tile: TileShape, k_block: int, m_block: int) -> int:
    """How many columns a unit that does all rows of them should have; 0: share rows out too.

    Such a unit packs its part of the right-hand side for itself. That is right when no other unit
    needs that part, when the whole is small, or when the part is much larger packed than in memory.
    """
    size = elements.type_bytes(tile.type)
    columns = LOCAL_BYTES // (k_block * size)
    if k_block < product.k:
        columns = min(columns, SUMS_BYTES // (ceil(product.m / tile.rows) * tile.rows * size))
    if columns < tile.columns:
        return 0
    if product.flops / product.batch < 4e6 and product.n <= columns:
        return columns
    is_image = any(c.size is not None for c in product.rhs.coordinates)
    if (is_image and product.n >= product.m) or product.m <= m_block:
        # Units enough for many threads, each worth dealing out.
        units = ceil(product.flops / product.batch / 2e6)
        wanted = max(units, ceil(32 / product.batch) if units >= 32 else 1)
        return max(min(columns, product.n // wanted), tile.columns)
    return 0


def _reads_lhs(product: Product, tile: TileShape, n_block: int) -> bool:
    """Whether a unit uses rows too rarely to repay packing them."""
    view = product.lhs
    if view.stride("x") is None or view.stride("k") is None or elements.is_tabled(view.dtype):
        return False
    if product.m < tile.rows:
        return False
    if run_group(view, "k") == "x" and product.m > tile.rows:
        return product.k * product.m * view.dtype.byte_size <= L1_BYTES
    return n_block <= 2 * tile.columns or product.n * product.m * product.k <= 64**3


def _reads_rhs(product: Product, tile: TileShape) -> bool:
    """Whether columns are used too rarely to be worth packing, or lie as if packed."""
    view = product.rhs
    if view.stride("x") != 1 or view.stride("k") is None or elements.is_tabled(view.dtype):
        return False
    if product.is_complex or product.n < tile.columns:
        return False
    is_native = elements.storage_type(view.dtype) == product.type
    if is_native and product.n == tile.columns:
        return True
    if product.k * product.n * view.dtype.byte_size <= L1_BYTES and is_native:
        return True
    return product.m <= 2 * tile.rows
