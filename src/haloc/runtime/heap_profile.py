"""What a client's arrays and executables take, as a profile that the `pprof` tool opens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from haloc.analysis.memory import packed_size_bytes
from haloc.formats.proto import encode
from haloc.runtime.traceback import Frame, Traceback

if TYPE_CHECKING:
    from haloc.runtime.array import ArrayImpl
    from haloc.runtime.loaded_executable import LoadedExecutable

_Key = tuple["Traceback | None", int, str]
"""Where it was made, bytes, device ("" for executables)."""


def heap_profile(arrays: Iterable[ArrayImpl], executables: Iterable[LoadedExecutable]) -> bytes:
    """An uncompressed pprof `Profile` of (number, bytes), by where things were made, size and
    device. Memory that several arrays share counts once."""
    profile = _Profile()
    seen: set[int] = set()
    buffers: Counter[_Key] = Counter()
    for array in arrays:
        for shard in array._arrays or ():
            block = shard._block
            if block is not None and block.pointer not in seen:
                seen.add(block.pointer)
                spec = shard._spec  # another thread may delete the array meanwhile
                size_bytes = packed_size_bytes(spec.dtype, spec.shape.element_count)
                buffers[array.traceback, size_bytes, str(spec.device)] += 1
    programs: Counter[_Key] = Counter()
    for executable in executables:
        size_bytes = executable.size_of_generated_code_in_bytes()
        programs[executable.traceback, size_bytes, ""] += 1
    profile.add("buffer", buffers)
    profile.add("executable", programs)
    return profile.serialized()


_FIRST_STRINGS = (
    *("", "allocations", "count", "space", "bytes"),
    *("kind", "buffer", "executable", "device"),
)


class _Profile:
    """A profile under construction: texts, functions and places are numbered as they come."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {}
        for text in _FIRST_STRINGS:
            self._string(text)
        self._functions: dict[tuple[str, str, int], int] = {}
        self._locations: dict[Frame, int] = {}
        self._samples: list[dict[str, Any]] = []

    def add(self, kind: str, counts: Counter[_Key]) -> None:
        for (traceback, size_bytes, device), count in counts.items():
            labels = [{"key": self._string("kind"), "str": self._string(kind)}]
            if device:
                labels.append({"key": self._string("device"), "str": self._string(device)})
            frames = traceback.frames if traceback is not None else ()
            self._samples.append(
                {
                    "location_id": [self._location(frame) for frame in frames],
                    "value": [count, count * size_bytes],
                    "label": labels,
                }
            )

    def serialized(self) -> bytes:
        units = (("allocations", "count"), ("space", "bytes"))
        strings = self._strings
        message = {
            "sample_type": [{"type": strings[t], "unit": strings[u]} for t, u in units],
            "sample": self._samples,
            "location": [
                {"id": id, "line": [{"function_id": self._function(f), "line": f.line_num}]}
                for f, id in self._locations.items()
            ],
            "function": [
                {
                    "id": id,
                    "name": strings[name],
                    "system_name": strings[name],
                    "filename": strings[file],
                    "start_line": line,
                }
                for (file, name, line), id in self._functions.items()
            ],
            "string_table": list(strings),
        }
        return encode("Profile", message)

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _location(self, frame: Frame) -> int:
        self._function(frame)
        return self._locations.setdefault(frame, len(self._locations) + 1)

    def _function(self, frame: Frame) -> int:
        key = (frame.file_name, frame.function_name, frame.function_start_line)
        for text in key[:2]:
            self._string(text)
        return self._functions.setdefault(key, len(self._functions) + 1)
