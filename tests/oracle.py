"""jaxlib as an oracle: runs HLO text on XLA:CPU, in a process of its own.

jaxlib takes no HLO, so the text goes HLO text -> HloModule -> StableHLO -> compile. Some modules do
not survive that route, and some abort the process: the worker is then started anew and the caller
gets an `OracleError`. Only tests use this file; haloc itself never calls jaxlib.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

TIMEOUT_S = 60
"""After this a run is taken to hang, and its process is killed."""


class OracleError(Exception):
    """jaxlib refused the module, failed to run it, or died of it. The text says which."""


def run_in_jaxlib(hlo_text: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a module in jaxlib, a tuple flattened into its leaves.

    inputs: one array a parameter, of exactly its dtype and dims. Raises OracleError.
    """
    return _worker().run(hlo_text, list(inputs))


def oracle_version() -> str:
    """jaxlib's version, for messages."""
    return _worker().version


class _Worker:
    def __init__(self) -> None:
        # Errors go to a file: a pipe that nobody reads would fill up and stop the worker.
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the worker)
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
        environment.pop("XLA_FLAGS", None)
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=environment,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.to, self.from_ = self.process.stdin, self.process.stdout
        self.version = str(_receive(self.from_))

    def run(self, hlo_text: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
        timer = threading.Timer(TIMEOUT_S, self.process.kill)
        timer.start()
        try:
            _send(self.to, (hlo_text, inputs))
            status, answer = _receive(self.from_)
        except (EOFError, BrokenPipeError) as error:
            self.close()
            self.errors.seek(0)
            tail = self.errors.read().decode(errors="replace")[-2000:]
            raise OracleError(f"jaxlib died (exit {self.process.returncode}):\n{tail}") from error
        finally:
            timer.cancel()
        if status != "ok":
            raise OracleError(answer)
        return answer

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.to.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.from_.close()


_WORKERS: list[_Worker] = []


def _worker() -> _Worker:
    if not _WORKERS or not _WORKERS[0].is_alive:
        _close_all()
        _WORKERS.append(_Worker())
    return _WORKERS[0]


@atexit.register
def _close_all() -> None:
    while _WORKERS:
        worker = _WORKERS.pop()
        worker.close()
        worker.errors.close()


def _send(stream: BinaryIO, message: Any) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def _receive(stream: BinaryIO) -> Any:
    header = stream.read(8)
    if len(header) < 8:
        raise EOFError
    size = struct.unpack("<Q", header)[0]
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


# --- The other side: what the process of its own runs --------------------------------------------


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    # Imported here only: the test process stays free of jax, and starts faster.
    import jax  # noqa: PLC0415
    import jaxlib  # noqa: PLC0415
    from jaxlib import _hlo, _jax, xla_client  # noqa: PLC0415

    device = jax.devices("cpu")[0]
    devices = xla_client.DeviceList((device,))
    _send(answers, jaxlib.__version__)

    def run(hlo_text: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
        module = _hlo.hlo_module_from_text(hlo_text)
        stablehlo = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
        executable = device.client.compile_and_load(stablehlo, devices, xla_client.CompileOptions())
        arrays = [jax.device_put(x, device) for x in inputs]
        for given, put in zip(inputs, arrays):
            assert given.dtype == put.dtype and given.shape == put.shape, (given.dtype, put.dtype)
        return [np.array(x) for x in executable.execute(arrays)]

    while True:
        try:
            hlo_text, inputs = _receive(requests)
        except EOFError:
            return
        try:
            answer: tuple[str, Any] = ("ok", run(hlo_text, inputs))
        except Exception as error:  # Whatever jaxlib raises is the answer.
            answer = ("error", f"{type(error).__name__}: {error}")
        _send(answers, answer)


if __name__ == "__main__":
    _answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What libraries print must not mix with the answers.
    _serve(sys.stdin.buffer, _answers)
