"""LLVM text of the plugin file: `GetPjrtApi` finds Python or starts it, and asks it for the table.

Nothing here may fail hard. Where Python cannot be had, the table is one of functions that all
return the same error, which says why.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from haloc.pjrt.abi import API_VERSION, ARGS, STRUCT, Api
from haloc.pjrt.native.events import ERRORS
from haloc.pjrt.native.heap import HEAP

_RTLD_NOW_GLOBAL = 0x102
_FILE_INPUT = 257  # Py_file_input: what PyRun_String is given is a sequence of statements.
_FAILED_PRECONDITION = 9
_MESSAGE_BYTES = 16384

_PYTHON = {
    "Py_IsInitialized": "i32 ()",
    "Py_GetVersion": "ptr ()",
    "Py_SetProgramName": "void (ptr)",
    "Py_InitializeEx": "void (i32)",
    "PyEval_SaveThread": "ptr ()",
    "PyEval_RestoreThread": "void (ptr)",
    "PyGILState_Check": "i32 ()",
    "PyGILState_Ensure": "i32 ()",
    "PyGILState_Release": "void (i32)",
    "PyDict_New": "ptr ()",
    "PyDict_GetItemString": "ptr (ptr, ptr)",
    "PyRun_String": "ptr (ptr, i32, ptr, ptr)",
    "PyLong_AsVoidPtr": "ptr (ptr)",
    "PyUnicode_AsUTF8": "ptr (ptr)",
    "PyErr_Clear": "void ()",
}
"""What is called of libpython, with its type."""

_CODE = """
def find():
    import ctypes, sys
    sys.path.extend(place for place in {places!r} if place not in sys.path)
    from haloc.pjrt.plugin.api import pjrt_api
    return ctypes.addressof(pjrt_api())

try:
    address, failure = find(), ""
except BaseException as error:
    import traceback
    address, failure = 0, "".join(traceback.format_exception(error)).strip()
"""


def bootstrap(libpython: str, executable: str, version: str, places: Sequence[str]) -> str:
    """The module's text. libpython: file to load where the process has no Python; executable: the
    Python whose environment is used then. version: "3.11", which a Python that is there must have.
    places: folders of haloc and what it needs, for a Python of another environment."""
    program_name = executable.encode("utf-32-le") + bytes(4)
    return "\n".join(
        [
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
            HEAP,
            ERRORS,
            _text("libpython", libpython),
            _text("version", f"{version}."),
            _text("code", _CODE.format(places=list(places))),
            _text("no_library", "haloc's PJRT plugin cannot load libpython: %s"),
            _text("no_symbol", "haloc's PJRT plugin: the process's Python has no %s"),
            _text(
                "other_version",
                f"haloc's PJRT plugin is made for Python {version} ({executable}), and this "
                "process runs Python %s",
            ),
            _text("no_haloc", "haloc's PJRT plugin cannot start in Python: %s"),
            _text("name_address", "address"),
            _text("name_failure", "failure"),
            _text("unknown", "the interpreter gave no reason"),
            _constant("program_name", program_name, align=4),
            *(_text(f"symbol.{name}", name) for name in _PYTHON),
            *(f"@at.{name} = global ptr null" for name in _PYTHON),
            _unavailable(),
            _RESOLVE_HEAD,
            *map(_resolve, _PYTHON),
            "  ret i1 true\n}",
            _START,
            _GET_PJRT_API,
        ]
    )


def _constant(name: str, data: bytes, align: int = 1) -> str:
    escaped = "".join(f"\\{b:02x}" for b in data)
    return f'@{name} = constant [{len(data)} x i8] c"{escaped}", align {align}'


def _text(name: str, text: str) -> str:
    return _constant(name, text.encode() + b"\0")


def _call(result: str, name: str, arguments: str = "") -> str:
    """A call of libpython. result: the LLVM name for what it returns, or nothing."""
    to = f"  %{result} = " if result else "  "
    return (
        f"  %f.{name}{result} = load ptr, ptr @at.{name}\n"
        f"{to}call {_PYTHON[name].split(' ')[0]} %f.{name}{result}({arguments})"
    )


def _unavailable() -> str:
    """A PJRT_Api whose functions all return the error with @message."""
    header, version = ctypes.sizeof(Api) - 8 * len(ARGS), ctypes.sizeof(STRUCT["Api_Version"])
    own = ("Error_Destroy", "Error_Message", "Error_GetCode", "Error_ForEachPayload")
    members = [
        f"i64 {ctypes.sizeof(Api)}",
        "ptr null",
        f"i64 {version}",
        "ptr null",
        f"i32 {API_VERSION[0]}",
        f"i32 {API_VERSION[1]}",
        *(f"ptr @{name if name in own else 'refuse'}" for name in ARGS),
    ]
    types = ", ".join(m.split(" ")[0] for m in members)
    assert header == 40
    return f"""
@unavailable = constant {{{types}}} {{{", ".join(members)}}}
@message = global [{_MESSAGE_BYTES} x i8] zeroinitializer

declare i32 @snprintf(ptr, i64, ptr, ...)
declare i64 @strlen(ptr)
declare ptr @dlopen(ptr, i32)
declare ptr @dlsym(ptr, ptr)
declare ptr @dlerror()
declare i32 @strncmp(ptr, ptr, i64)
declare i32 @sched_yield()

define ptr @refuse(ptr %args) {{
  %size = call i64 @strlen(ptr @message)
  %error = call ptr @error_create(i64 {_FAILED_PRECONDITION}, ptr @message, i64 %size)
  ret ptr %error
}}

define internal void @complain(ptr %format, ptr %about) {{
  %n = call i32 (ptr, i64, ptr, ...) @snprintf(ptr @message, i64 {_MESSAGE_BYTES}, \
ptr %format, ptr %about)
  ret void
}}
"""


_RESOLVE_HEAD = f"""
; Whether libpython's functions are at hand: the process's own, or those of the file to load.
define internal i1 @resolve() {{
entry:
  %there = call ptr @dlsym(ptr null, ptr @symbol.Py_IsInitialized)
  %has.python = icmp ne ptr %there, null
  br i1 %has.python, label %look, label %load
load:
  %loaded = call ptr @dlopen(ptr @libpython, i32 {_RTLD_NOW_GLOBAL})
  %failed = icmp eq ptr %loaded, null
  br i1 %failed, label %missing, label %look
missing:
  %reason = call ptr @dlerror()
  call void @complain(ptr @no_library, ptr %reason)
  ret i1 false
look:
  %library = phi ptr [ null, %entry ], [ %loaded, %load ]"""


def _resolve(name: str) -> str:
    return f"""
  %{name} = call ptr @dlsym(ptr %library, ptr @symbol.{name})
  store ptr %{name}, ptr @at.{name}
  %no.{name} = icmp eq ptr %{name}, null
  br i1 %no.{name}, label %none.{name}, label %some.{name}
none.{name}:
  call void @complain(ptr @no_symbol, ptr @symbol.{name})
  ret i1 false
some.{name}:"""


_START = "\n".join(
    [
        """
; haloc's PJRT_Api, or null when @message says why there is none.
define internal ptr @start() {
entry:
  %resolved = call i1 @resolve()
  br i1 %resolved, label %known, label %stop
stop:
  ret ptr null
known:""",
        _call("version.is", "Py_GetVersion"),
        """  %size = call i64 @strlen(ptr @version)
  %differs = call i32 @strncmp(ptr %version.is, ptr @version, i64 %size)
  %same = icmp eq i32 %differs, 0
  br i1 %same, label %begin, label %other
other:
  call void @complain(ptr @other_version, ptr %version.is)
  ret ptr null
begin:""",
        _call("running", "Py_IsInitialized"),
        """  %runs = icmp ne i32 %running, 0
  br i1 %runs, label %join, label %launch
launch:""",
        _call("", "Py_SetProgramName", "ptr @program_name"),
        # Signals stay the host's.
        _call("", "Py_InitializeEx", "i32 0"),
        "  %found.first = call ptr @ask()",
        # The GIL is nobody's from here on; this thread takes it like any other.
        _call("saved", "PyEval_SaveThread"),
        "  ret ptr %found.first\njoin:",
        _call("state", "PyGILState_Ensure"),
        "  %found = call ptr @ask()",
        _call("", "PyGILState_Release", "i32 %state"),
        """  ret ptr %found
}

; Run the Python code, with the GIL.
define internal ptr @ask() {
entry:""",
        _call("names", "PyDict_New"),
        _call("ran", "PyRun_String", f"ptr @code, i32 {_FILE_INPUT}, ptr %names, ptr %names"),
        """  %raised = icmp eq ptr %ran, null
  br i1 %raised, label %silent, label %look
silent:""",
        _call("", "PyErr_Clear"),
        """  call void @complain(ptr @no_haloc, ptr @unknown)
  ret ptr null
look:""",
        _call("number", "PyDict_GetItemString", "ptr %names, ptr @name_address"),
        _call("address", "PyLong_AsVoidPtr", "ptr %number"),
        """  %none = icmp eq ptr %address, null
  br i1 %none, label %failed, label %done
failed:""",
        _call("failure", "PyDict_GetItemString", "ptr %names, ptr @name_failure"),
        _call("reason", "PyUnicode_AsUTF8", "ptr %failure"),
        """  call void @complain(ptr @no_haloc, ptr %reason)
  br label %done
done:
  ret ptr %address
}""",
    ]
)

_GET_PJRT_API = "\n".join(
    [
        """
; 0: nobody has asked; 1: somebody is finding out; 2: @table is it.
@progress = global i64 0
@table = global ptr null

define ptr @GetPjrtApi() {
  %pair = cmpxchg ptr @progress, i64 0, i64 1 acq_rel acquire
  %first = extractvalue {i64, i1} %pair, 1
  br i1 %first, label %find, label %others
find:
  %found = call ptr @start()
  %none = icmp eq ptr %found, null
  %api = select i1 %none, ptr @unavailable, ptr %found
  store ptr %api, ptr @table
  store atomic i64 2, ptr @progress release, align 8
  ret ptr %api
others:
  %seen = extractvalue {i64, i1} %pair, 0
  %over = icmp eq i64 %seen, 2
  br i1 %over, label %known, label %wait
known:
  %table = load ptr, ptr @table
  ret ptr %table
wait:
  ; Who finds out may need the GIL, and this thread may hold it.
  %held = call ptr @let_go()
  br label %again
again:
  %yielded = call i32 @sched_yield()
  %now = load atomic i64, ptr @progress acquire, align 8
  %done = icmp eq i64 %now, 2
  br i1 %done, label %back, label %again
back:
  %had = icmp ne ptr %held, null
  br i1 %had, label %take, label %known
take:""",
        _call("", "PyEval_RestoreThread", "ptr %held"),
        """  br label %known
}

; Give up the GIL: what to take it back with, or null if this thread did not have it.
define internal ptr @let_go() {
  %initialized = load atomic ptr, ptr @at.Py_IsInitialized acquire, align 8
  %last = load atomic ptr, ptr @at.PyErr_Clear acquire, align 8
  %incomplete = icmp eq ptr %last, null
  br i1 %incomplete, label %none, label %ask
ask:
  %running = call i32 %initialized()
  %runs = icmp ne i32 %running, 0
  br i1 %runs, label %check, label %none
check:""",
        _call("holds", "PyGILState_Check"),
        """  %mine = icmp ne i32 %holds, 0
  br i1 %mine, label %save, label %none
save:""",
        _call("state", "PyEval_SaveThread"),
        """  ret ptr %state
none:
  ret ptr null
}""",
    ]
)
