"""Judges programs where that may end a process: `Isolated`.

As a program (python -m haloc.triage.worker) this is a server that has everything loaded: for each
pickled request on stdin it forks a child to judge, watches that, and answers on stdout.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO

import haloc.runtime.cpu_backend  # noqa: F401  (loaded once, for all children)
from haloc.errors import InternalError
from haloc.formats.hlo_text import parse_module, to_text
from haloc.ir.literal import Value
from haloc.ir.module import HloModule
from haloc.triage.failures import Crash, Mismatch

_LENGTH = struct.Struct("<Q")
_CHUNK_BYTES = 1 << 16


class Isolated:
    """A failure found in another process: that this dies, or takes longer than timeout_s, is a
    fault of its own ("died of SIGSEGV", "no answer in 60 s") unless deaths_count is False.

    Use it in a `with` block.
    """

    def __init__(
        self, failure: Mismatch | Crash, *, timeout_s: float = 60.0, deaths_count: bool = True
    ):
        self.failure = failure
        self.timeout_s = timeout_s
        self.deaths_count = deaths_count
        self._server: subprocess.Popen[bytes] | None = None

    def __call__(self, module: HloModule, arguments: Sequence[Value]) -> str:
        server = self._server or self._start()
        assert server.stdin is not None and server.stdout is not None
        request = (self.failure, to_text(module), list(arguments), self.timeout_s)
        try:
            _send(server.stdin, request)
            answer = _receive(server.stdout)
        except BrokenPipeError:
            answer = None
        except KeyboardInterrupt:
            self._stop()  # else the next question would get this one's answer
            raise
        if answer is None:
            raise InternalError("the process that judges programs has gone")
        judged, told = answer
        return told if judged or self.deaths_count else ""

    def __enter__(self) -> Isolated:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.kill()
            server.wait()
            for pipe in (server.stdin, server.stdout):
                with suppress(BrokenPipeError):  # what was not written has nobody to read it
                    pipe.close()  # type: ignore[union-attr]  # both were asked for

    def _start(self) -> subprocess.Popen[bytes]:
        self._server = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for who asks
        )
        return self._server


def _send(pipe: IO[bytes], message: object) -> None:
    data = pickle.dumps(message)
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> tuple | None:
    """The next message; None at the end of the pipe."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = pipe.read(length)
    return pickle.loads(data) if len(data) == length else None


# --- The server --------------------------------------------------------------------------------


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a program or a library prints is no answer
    while (request := _receive(sys.stdin.buffer)) is not None:
        failure, text, arguments, timeout_s = request
        _send(answers, _judged(failure, text, arguments, timeout_s))


def _judged(
    failure: Mismatch | Crash, text: str, arguments: list[Value], timeout_s: float
) -> tuple[bool, str]:
    """(True, what the failure says) or (False, how the child that should say it ended)."""
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(tell, b"=" + failure(parse_module(text), arguments).encode())
        finally:
            os._exit(0)  # nothing of the server's is to be written or closed twice
    os.close(tell)
    try:
        if not select.select([told], [], [], timeout_s)[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False, f"no answer in {timeout_s:g} s"
        answer = os.read(told, _CHUNK_BYTES).decode()
    finally:
        os.close(told)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if answer:
        return True, answer[1:]
    return False, f"died of {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"


if __name__ == "__main__":
    main()
