"""A blocked product as a `Kernel`: pack the right-hand side, then do blocks of the result."""

from __future__ import annotations

from math import ceil

from haloc.codegen.kernel import PREFIX, Kernel, Phase
from haloc.codegen.target import Target
from haloc.cpu.contraction import amx, elements
from haloc.cpu.contraction.finish import finish_function
from haloc.cpu.contraction.inner import inner_kernel
from haloc.cpu.contraction.micro import Side, micro_kernel
from haloc.cpu.contraction.pack import Panels, pack_function, run_group
from haloc.cpu.contraction.plan import NS_PER_PACKED, Plan, Product, compute_ns, make_plan
from haloc.cpu.contraction.text import I64, Code
from haloc.cpu.contraction.view import View

INTERNAL = "internal"


def attributes(target: Target) -> str:
    """The text after a function's parameters: without it LLVM avoids 512-bit registers."""
    if target.vector_bytes < 64:
        return "nounwind"
    return 'nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512"'


def product_kernel(product: Product, target: Target) -> Kernel:
    """The kernel of a product with no dimension of size 0."""
    plan = make_plan(product, target)
    return _Emitter(product, plan, target).kernel()


class _Emitter:
    def __init__(self, product: Product, plan: Plan, target: Target):
        self.product = product
        self.plan = plan
        self.target = target
        self.declares: dict[str, None] = {}
        self.internal = f"internal|{attributes(target)}"
        tile = plan.tile
        self.type = plan.panel_type
        self.size = elements.type_bytes(self.type)
        whole_k, k_block, lanes = product.k, plan.k_block, tile.lanes
        if plan.amx is not None:
            lanes, step = lanes * plan.amx.group, plan.amx.k_step
            whole_k, k_block = (ceil(k / step) * step for k in (whole_k, k_block))
        if run_group(product.lhs, "k") == "k" or plan.amx is not None:
            # The line more keeps rows off the same cache sets.
            x_step, k_step = k_block + 64 // self.size, 1
        else:
            x_step, k_step = 1, tile.rows
        panel = tile.rows * (x_step if k_step == 1 else k_block)
        self.lhs_panels = Panels(self.type, lanes, tile.rows, x_step, k_step, panel)
        panel = tile.columns * (k_block if plan.rhs_local else whole_k)
        self.rhs_panels = Panels(
            self.type, lanes, tile.columns, 1, tile.columns, panel, product.is_complex, "x"
        )
        self.rhs_panel_count = ceil(product.n / tile.columns)
        # Rows of a unit: whole tiles.
        rows = product.m if plan.m_units == 1 else plan.m_block
        self.unit_rows = ceil(rows / tile.rows) * tile.rows
        # Long rows of several panels at a time read memory better, as long as units remain.
        many = self.rhs_panel_count * product.batch // 16
        self.unit_panels = max(1, min(many, 8, self.rhs_panel_count))
        self.pack_units = ceil(self.rhs_panel_count / self.unit_panels)
        self.rhs_elements = self.rhs_panel_count * panel

    def kernel(self) -> Kernel:
        product, plan = self.product, self.plan
        parts = [self._compute(), *self._functions()]
        phases = []
        scratch_bytes = 0
        if plan.rhs_packed and not plan.rhs_local:
            parts.insert(0, self._pack_phase())
            extent = product.batch * self.pack_units
            cost = self.rhs_panels.panel_step * self.unit_panels * NS_PER_PACKED
            phases.append(Phase(f"{PREFIX}_pack", extent, cost))
            scratch_bytes = product.batch * self.rhs_elements * self.size
        extent = product.batch * plan.units_per_batch
        phases.append(Phase(f"{PREFIX}_compute", extent, compute_ns(product, plan) / extent))
        read_types = {product.lhs.dtype, product.rhs.dtype}
        text = elements.tables(read_types, product.out.dtype) + "\n".join(parts)
        return Kernel(text, tuple(phases), tuple(self.declares), scratch_bytes=scratch_bytes)

    # --- Functions ----------------------------------------------------------------------------

    def _functions(self) -> list[str]:
        """The micro-kernel and what stands around it."""
        product, plan = self.product, self.plan
        lhs = (
            Side(self.lhs_panels.x_step, self.lhs_panels.k_step)
            if plan.lhs_packed
            else _memory_side(product.lhs)
        )
        rhs = Side(1, self.rhs_panels.k_step) if plan.rhs_packed else _memory_side(product.rhs)
        tile_kernel = inner_kernel if plan.is_inner else micro_kernel
        declares, internal = self.declares, self.internal
        parts = [
            amx.tile_kernel(f"{PREFIX}_tile", plan.amx, lhs.x_step, declares, internal)
            if plan.amx is not None
            else tile_kernel(
                f"{PREFIX}_tile", plan.tile, lhs, rhs, self.target, declares, internal
            ),
            finish_function(
                f"{PREFIX}_finish", plan.tile, product.out, product.epilogue, declares, internal
            ),
        ]
        sides = (
            ("lhs", plan.lhs_packed, product.lhs, self.lhs_panels),
            ("rhs", plan.rhs_packed, product.rhs, self.rhs_panels),
        )
        parts += [
            pack_function(f"{PREFIX}_pack_{name}", view, panels, declares, internal)
            for name, is_packed, view, panels in sides
            if is_packed
        ]
        if plan.amx is not None:
            steps = self.lhs_panels.x_step, self.rhs_panels.panel_step
            packers = amx.pack_functions(plan.amx, *steps, declares, internal)
            parts.append(amx.tile_configuration() + packers)
        return parts

    def _phase(self, code: Code, symbol: str) -> str:
        pointers = [f"ptr %b{i}" for i in range(len(self.product.buffers))]
        return code.function(
            symbol,
            [*pointers, "ptr %scratch", "i64 %begin", "i64 %end"],
            f"|{attributes(self.target)}",
        )

    def _pack_phase(self) -> str:
        """Unit u packs group u % units of panels of batch u // units into scratch."""
        code, units = Code(self.declares), self.pack_units
        with code.loop("%begin", "%end") as (unit, _):
            batch, group = code.div(unit, units), code.mod(unit, units)
            panel = code.add(
                code.mul(batch, self.rhs_panel_count), code.mul(group, self.unit_panels)
            )
            at = code.mul(panel, self.rhs_panels.panel_step)
            to = code.offset(self.type, "%scratch", at)
            columns = self.plan.tile.columns * self.unit_panels
            first = code.mul(group, columns)
            last = code.min(code.add(first, columns), self.product.n)
            count = code.sub(last, first)
            self._pack_rhs(code, batch, (first, count), (0, self.product.k), to)
        return self._phase(code, f"{PREFIX}_pack")

    def _pack_rhs(
        self, code: Code, batch: I64, n: tuple[I64, I64], k: tuple[I64, I64], to: str
    ) -> None:
        """Some columns of some k: n, k are (first, count)."""
        arguments = (batch, *(code.div(a, self.product.pair) for a in (*n, *k)))
        listed = ", ".join(f"i64 {a}" for a in arguments)
        src = f"%b{self.product.buffers[1]}"
        function = "rhs" if self.plan.amx is None else "groups"
        code.do(f"call void @{PREFIX}_pack_{function}(ptr {src}, {listed}, ptr {to})")

    def _compute(self) -> str:
        """Unit u does block u % units_per_batch of batch u // units_per_batch."""
        product, plan = self.product, self.plan
        code = Code(self.declares)
        blocks = {}
        if plan.lhs_packed:
            panels = ceil(min(product.m, plan.m_block) / plan.tile.rows)
            blocks["%lhs_block"] = panels * self.lhs_panels.panel_step
        if plan.rhs_packed and plan.rhs_local:
            panels = ceil(min(product.n, plan.n_block) / plan.tile.columns)
            blocks["%rhs_block"] = panels * self.rhs_panels.panel_step
        unit_n = ceil(min(product.n, plan.n_block) / plan.tile.columns) * plan.tile.columns
        blocks["%sums"] = (
            plan.tile.elements if plan.k_block >= product.k else self.unit_rows * unit_n
        )
        for name, count in blocks.items():
            type = plan.tile.type if name == "%sums" else self.type
            code.do(f"{name} = alloca [{count} x {type}], align 64")
        if plan.amx is not None:
            amx.begin(code)
        with code.loop("%begin", "%end") as (unit, _):
            batch = code.div(unit, plan.units_per_batch)
            block = code.mod(unit, plan.units_per_batch)
            n_low = code.mul(code.mod(block, plan.n_units), plan.n_block)
            n_high = code.min(code.add(n_low, plan.n_block), product.n)
            m_low = code.mul(code.div(block, plan.n_units), self.unit_rows)
            m_high = code.min(code.add(m_low, self.unit_rows), product.m)
            self._unit(code, batch, (m_low, m_high), (n_low, n_high))
        if plan.amx is not None:
            amx.end(code)
        return self._phase(code, f"{PREFIX}_compute")

    def _unit(self, code: Code, batch: I64, m: tuple[I64, I64], n: tuple[I64, I64]) -> None:
        """Rows m[0] to m[1], columns n[0] to n[1] of the result, over all k."""
        product, plan = self.product, self.plan
        with code.loop(0, product.k, plan.k_block) as (k, _):
            k_high = code.min(code.add(k, plan.k_block), product.k)
            k_part = (k, code.sub(k_high, k))
            if plan.rhs_packed and plan.rhs_local:
                self._pack_rhs(code, batch, (n[0], code.sub(n[1], n[0])), k_part, "%rhs_block")
            with code.loop(m[0], m[1], plan.m_block) as (m_block, _):
                m_end = code.min(code.add(m_block, plan.m_block), m[1])
                if plan.lhs_packed:
                    arguments = (batch, m_block, code.sub(m_end, m_block), *k_part)
                    listed = ", ".join(f"i64 {a}" for a in arguments)
                    src = f"%b{product.buffers[0]}"
                    function = "lhs" if plan.amx is None else "rows"
                    call = f"call void @{PREFIX}_pack_{function}"
                    code.do(f"{call}(ptr {src}, {listed}, ptr %lhs_block)")
                with (
                    code.loop(n[0], n[1], plan.tile.columns) as (n_at, _),
                    code.loop(m_block, m_end, plan.tile.rows) as (m_at, _),
                ):
                    self._tile(code, batch, (m_at, m_block, *m), (n_at, *n), k_part)

    def _tile(
        self,
        code: Code,
        batch: I64,
        m: tuple[I64, I64, I64, I64],
        n: tuple[I64, I64, I64],
        k: tuple[I64, I64],
    ) -> None:
        """One tile over one block of k. m: (where it begins, its block's begin, its unit's begin
        and end); n: (where it begins, its unit's begin and end).

        Read straight from memory, the last tile begins earlier so as to end at the edge; what the
        one before it has done is computed twice and stored once.
        """
        product, plan = self.product, self.plan
        type, tile = plan.tile.type, plan.tile
        m_at = m[0] if plan.lhs_packed else code.min(m[0], product.m - tile.rows)
        n_at = n[0] if plan.rhs_packed else code.min(n[0], product.n - tile.columns)
        n_tile = code.div(code.sub(n[0], n[1]), tile.columns)
        if plan.lhs_packed:
            m_tile = code.div(code.sub(m[0], m[1]), tile.rows)
            a = code.offset(self.type, "%lhs_block", code.mul(m_tile, self.lhs_panels.panel_step))
        else:
            a = _corner(code, product.lhs, product.buffers[0], batch, m_at, k[0])
        if plan.rhs_packed:
            b = self._rhs_panel(code, batch, n, n_tile, k[0])
        else:
            b = _corner(code, product.rhs, product.buffers[1], batch, n_at, k[0])
        sums, first = "%sums", "true"
        if plan.k_block < product.k:
            m_tile = code.div(code.sub(m[0], m[2]), tile.rows)
            number = code.add(code.mul(n_tile, self.unit_rows // tile.rows), m_tile)
            sums = code.offset(type, "%sums", code.mul(number, tile.elements))
            first = code.ins(f"icmp eq i64 {k[0]}, 0")
        code.do(f"call void @{PREFIX}_tile(ptr {a}, ptr {b}, i64 {k[1]}, ptr {sums}, i1 {first})")
        with code.when(code.ins(f"icmp eq i64 {code.add(*k)}, {product.k}")):
            skipped_rows, skipped_columns = code.sub(m[0], m_at), code.sub(n[0], n_at)
            rows = code.min(code.sub(m[3], m[0]), tile.rows)
            columns = code.min(code.sub(n[2], n[0]), tile.columns)
            skip = code.add(code.mul(skipped_rows, tile.columns), skipped_columns)
            listed = ", ".join(f"i64 {a}" for a in (batch, m[0], n[0], rows, columns))
            corner = code.offset(type, sums, skip)
            out = f"%b{product.buffers[2]}"
            code.do(f"call void @{PREFIX}_finish(ptr {corner}, ptr {out}, {listed})")

    def _rhs_panel(
        self, code: Code, batch: I64, n: tuple[I64, I64, I64], n_tile: I64, k: I64
    ) -> str:
        plan, panel_step = self.plan, self.rhs_panels.panel_step
        if plan.rhs_local:
            return code.offset(self.type, "%rhs_block", code.mul(n_tile, panel_step))
        inside = code.mul(k, self.rhs_panels.k_step)
        panel = code.div(n[0], plan.tile.columns)
        panel = code.add(code.mul(batch, self.rhs_panel_count), panel)
        at = code.add(code.mul(panel, panel_step), inside)
        return code.offset(self.type, "%scratch", at)


def _memory_side(view: View) -> Side:
    x_step, k_step = view.stride("x"), view.stride("k")
    assert x_step is not None and k_step is not None
    return Side(x_step, k_step, view.dtype)


def _corner(code: Code, view: View, buffer: int, batch: I64, x: I64, k: I64) -> str:
    """The address of element (batch, x, k) of a view without bounds."""
    x_step, k_step = view.stride("x"), view.stride("k")
    assert x_step is not None and k_step is not None
    offset = view.plain_offset(code, view.flat_sums(code, "g", batch))
    offset = code.add(offset, sum(c.start for c in view.coordinates))
    offset = code.add(offset, code.mul(x, x_step), code.mul(k, k_step))
    return code.offset(elements.storage_type(view.dtype), f"%b{buffer}", offset)
