"""Custom-calls to registered targets: stubs that call native functions by XLA's ABIs.

A stub gets the leaf buffers, puts them into the structures that the target expects (on the stack:
a program may run in several threads) and calls it. All that does not change between calls it finds
in the `NativeSite` that its one external symbol names.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from haloc.codegen.kernel import PREFIX, Kernel, Phase
from haloc.codegen.target import Target
from haloc.cpu.custom_call.relayout import Relayout
from haloc.cpu.writer import Function
from haloc.ffi import c_api, sites
from haloc.ffi.c_api import Stage
from haloc.ffi.sites import NativeSite
from haloc.ffi.status import CustomCallStatus
from haloc.ffi.targets import Abi
from haloc.ffi.targets import Target as CallTarget
from haloc.ir.dtype import TOKEN
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape

_STATUS_BYTES = ctypes.sizeof(CustomCallStatus)
_IS_FAILURE = CustomCallStatus.is_failure.offset


def registered_kernel(
    instruction: HloInstruction, call_target: CallTarget, target: Target
) -> Kernel:
    """The stub for a custom-call to `call_target`."""
    sites.check_native_shapes(instruction, call_target)
    stub = _Stub(instruction, call_target)
    {Abi.FFI: stub.call_ffi, Abi.UNTYPED: stub.call_untyped, Abi.PYTHON: stub.call_python}[
        call_target.abi
    ]()
    return stub.kernel()


class _Stub:
    def __init__(self, instruction: HloInstruction, call_target: CallTarget):
        self.target = call_target
        self.api_version = instruction.attrs.get("api_version", "")
        self.opaque = instruction.backend_config.encode("utf-8", "surrogateescape")
        self.site = sites.symbol(instruction, call_target)
        self.operands = sites.operand_leaves(instruction)
        self.results = instruction.shape.leaves()
        self.aliases = sites.aliases(instruction)
        count = len(self.operands) + len(self.results)
        parameters = ", ".join(f"ptr %b{k}" for k in range(count))
        parameters += ", " if count else ""
        self.f = Function(f"{PREFIX}.call", f"{parameters}ptr %scratch, ptr %run", "i32")
        self.status = self.f.variable("i32", 0)
        # An ExecutionContext.
        self.context = self.f.variable("[2 x ptr]").ref
        self.f.store("ptr", f"@{self.site}", self.context)
        self.f.store("ptr", "%run", self.f.element(self.context, "ptr", 1))
        is_native = call_target.abi is not Abi.PYTHON
        self.relayout = Relayout(self.f, [*self.operands, *self.results], is_native)

    def kernel(self) -> Kernel:
        text = self.f.text(f"i32 {self.f.get(self.status)}")
        return Kernel(
            text,
            (Phase(f"{PREFIX}.call", can_fail=True),),
            (f"@{self.site} = external global i8", _MEMCPY),
            scratch_bytes=self.relayout.scratch_bytes,
        )

    # --- Buffers --------------------------------------------------------------------------------

    def buffers(self) -> list[str]:
        """Pointers for the target: operands, then results; of tokens null. Copies where a result
        begins as an operand, and where the call wants another layout."""
        first_result = len(self.operands)
        for number, source in self.aliases.items():
            self._copy(f"%b{first_result + number}", f"%b{source}", self.results[number])
        places = [f"%b{k}" for k in range(first_result + len(self.results))]
        for number, source in self.aliases.items():
            places[source] = places[first_result + number]
        given = [
            self.relayout.given(k, places[k]) if shape.is_array else "null"
            for k, shape in enumerate(self.operands)
        ]
        for number, shape in enumerate(self.results):
            k = first_result + number
            if not shape.is_array:
                given.append("null")
            elif number in self.aliases:
                given.append(given[self.aliases[number]])
            else:
                given.append(self.relayout.empty(k, places[k]))
        return given

    def _copy(self, to: str, source: str, shape: Shape) -> None:
        with self.f.when(self.f.op(f"icmp ne ptr {to}, {source}")):
            self.f.do(
                f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, "
                f"i64 {shape.byte_size}, i1 false)"
            )

    def finish(self, given: Sequence[str]) -> None:
        """Bring results that the target wrote in another layout to where they belong."""
        first = len(self.operands)
        for number, shape in enumerate(self.results):
            if shape.is_array:
                self.relayout.taken(first + number, given[first + number], f"%b{first + number}")

    def array_of(self, pointers: Sequence[str]) -> str:
        """An array of pointers on the stack."""
        place = self.f.variable(f"[{max(1, len(pointers))} x ptr]").ref
        for k, pointer in enumerate(pointers):
            self.f.store("ptr", pointer, self.f.element(place, "ptr", k))
        return place

    def field(self, name: str) -> str:
        """The address of a field of the site."""
        return self.f.element(f"@{self.site}", "i8", getattr(NativeSite, name).offset)

    def call_back(self, first: str, second: str = "null") -> None:
        """`Site.callback`; what it returns is the stub's status."""
        function = self.f.load("ptr", self.field("callback"))
        arguments = f"ptr {self.context}, ptr {first}, ptr {second}"
        self.f.set(self.status, self.f.op(f"call i32 {function}({arguments})"))

    def function(self, stage: Stage) -> str:
        return self.f.load("ptr", self.f.element(self.field("stages"), "ptr", int(stage)))

    # --- The ABIs -------------------------------------------------------------------------------

    def call_python(self) -> None:
        self.call_back(self.array_of(self.buffers()))

    def call_untyped(self) -> None:
        """void (void* out, const void** in[, const char* opaque, size_t][, status*])"""
        f = self.f
        given = self.buffers()
        results = given[len(self.operands) :]
        out = results[0] if len(results) == 1 else self.array_of(results)
        arguments = [f"ptr {out}", f"ptr {self.array_of(given[: len(self.operands)])}"]
        if self.api_version == "API_VERSION_STATUS_RETURNING_UNIFIED":
            opaque = f.variable(f"[{len(self.opaque) + 1} x i8]").ref
            for k, byte in enumerate(self.opaque + b"\0"):
                f.store("i8", byte, f.element(opaque, "i8", k))
            arguments += [f"ptr {opaque}", f"i64 {len(self.opaque)}"]
        status = ""
        if self.api_version.startswith("API_VERSION_STATUS_RETURNING"):
            status = f.variable(f"[{_STATUS_BYTES} x i8]").ref
            for k in range(_STATUS_BYTES // 8):
                f.store("i64", 0, f.element(status, "i64", k))
            arguments.append(f"ptr {status}")
        f.do(f"call void {self.function(Stage.EXECUTE)}({', '.join(arguments)})")
        if status:
            flag = f.load("i8", f.element(status, "i8", _IS_FAILURE))
            with f.when(f.op(f"icmp ne i8 {flag}, 0")):
                self.call_back(status)
        self.finish(given)

    def call_ffi(self) -> None:
        """XLA_FFI_Error* (XLA_FFI_CallFrame*), for each stage that the handler has."""
        f = self.f
        given = self.buffers()
        frame = self._frame(given)
        stages = sorted(s for s in self.target.stages if s is not Stage.INSTANTIATE)
        future = f.element(frame, "i8", c_api.CallFrame.future.offset)  # type: ignore[attr-defined]
        for stage in stages:
            with f.when(f.op(f"icmp eq i32 {f.get(self.status)}, 0")):
                f.store("i32", int(stage), self._at(frame, c_api.CallFrame, "stage"))
                f.store("ptr", "null", future)
                error = f.op(f"call ptr {self.function(stage)}(ptr {frame})")
                later = f.load("ptr", future)
                is_error = f.op(f"icmp ne ptr {error}, null")
                is_later = f.op(f"icmp ne ptr {later}, null")
                # The end of several stages ends what they kept for each other.
                has_ended = "true" if len(stages) > 1 and stage is stages[-1] else "false"
                goes_back = f.op(f"or i1 {f.op(f'or i1 {is_error}, {is_later}')}, {has_ended}")
                with f.when(goes_back):
                    self.call_back(error, later)
        self.finish(given)

    def _at(self, base: str, structure: type, name: str) -> str:
        return self.f.element(base, "i8", getattr(structure, name).offset)

    def _frame(self, given: Sequence[str]) -> str:
        f, frame_type = self.f, c_api.CallFrame
        frame = f.variable("[22 x i64]").ref
        f.store("i64", frame_type.STRUCT_SIZE, frame)
        f.store("ptr", "null", self._at(frame, frame_type, "extension_start"))
        f.store("ptr", f.load("ptr", self.field("api")), self._at(frame, frame_type, "api"))
        f.store("ptr", self.context, self._at(frame, frame_type, "ctx"))
        count = len(self.operands)
        self._span(self._at(frame, frame_type, "args"), self.operands, given[:count])
        self._span(self._at(frame, frame_type, "rets"), self.results, given[count:])
        attrs = self._at(frame, frame_type, "attrs")
        size = c_api.Attrs.STRUCT_SIZE
        f.do(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {attrs}, ptr {self.field('attrs')}, "
            f"i64 {size}, i1 false)"
        )
        return frame

    def _span(self, place: str, shapes: Sequence[Shape], pointers: Sequence[str]) -> None:
        """Fill an XLA_FFI_Args or XLA_FFI_Rets, which are laid out alike."""
        f = self.f
        count = max(1, len(shapes))
        types = f.variable(f"[{count} x i32]").ref
        for k in range(len(shapes)):
            f.store("i32", c_api.ARG_BUFFER, f.element(types, "i32", k))
        buffers = [self._buffer(s, p) for s, p in zip(shapes, pointers, strict=True)]
        for name, value in (
            ("struct_size", f"i64 {c_api.Args.STRUCT_SIZE}"),
            ("extension_start", "ptr null"),
            ("size", f"i64 {len(shapes)}"),
            ("types", f"ptr {types}"),
            ("args", f"ptr {self.array_of(buffers)}"),
        ):
            f.do(f"store {value}, ptr {self._at(place, c_api.Args, name)}")

    def _buffer(self, shape: Shape, pointer: str) -> str:
        f = self.f
        place = f.variable("[6 x i64]").ref
        rank = shape.rank if shape.is_array else 0
        dims = f.variable(f"[{max(1, rank)} x i64]").ref
        for k in range(rank):
            f.store("i64", shape.dims[k], f.element(dims, "i64", k))
        dtype = shape.dtype.number if shape.is_array else TOKEN.number
        for name, value in (
            ("struct_size", f"i64 {c_api.Buffer.STRUCT_SIZE}"),
            ("extension_start", "ptr null"),
            ("dtype", f"i64 {dtype}"),
            ("data", f"ptr {pointer}"),
            ("rank", f"i64 {rank}"),
            ("dims", f"ptr {dims}"),
        ):
            f.do(f"store {value}, ptr {self._at(place, c_api.Buffer, name)}")
        return place


_MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
