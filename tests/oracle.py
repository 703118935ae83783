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

DEVICES = 8
"""What `run_on_devices` has."""

Request = tuple[str, list[list[np.ndarray]], int, int]
"""(HLO text, arguments of each participant, replicas, partitions)"""

TIMEOUT_S = 60
"""After this a run is taken to hang, and its process is killed."""


class OracleError(Exception):
    """jaxlib refused the module, failed to run it, or died of it. The text says which."""


def run_in_jaxlib(hlo_text: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a module in jaxlib, a tuple flattened into its leaves.

    inputs: one array a parameter, of exactly its dtype and dims. Raises OracleError.
    """
    return _worker(1).run((hlo_text, [list(inputs)], 1, 1))[0]


def run_on_devices(
    hlo_text: str,
    arguments: Sequence[Sequence[np.ndarray]],
    num_replicas: int,
    num_partitions: int,
) -> list[list[np.ndarray]]:
    """The results of num_replicas x num_partitions participants, at most DEVICES, in the order of
    flattened logical ids (replica * num_partitions + partition).

    arguments: those of each participant, in that order. Raises OracleError.
    """
    given = [list(one) for one in arguments]
    text = all_manual(hlo_text) if num_partitions > 1 else hlo_text
    return _worker(DEVICES).run((text, given, num_replicas, num_partitions))


def all_manual(hlo_text: str) -> str:
    """The text with `sharding={manual}` on all that the entry runs: jaxlib, which divides what it
    compiles among the partitions, then leaves it as it stands."""
    from haloc.formats.hlo_text import parse_module, to_text  # noqa: PLC0415  (not in the worker)
    from haloc.ir.sharding import parse_sharding, tuple_sharding  # noqa: PLC0415
    from haloc.ops.table import Structure, op  # noqa: PLC0415

    module, manual = parse_module(hlo_text), parse_sharding("{manual}")
    computations = [module.entry]
    for computation in computations:
        for instruction in computation.instructions:
            shape = instruction.shape
            leaves = [manual for _ in shape.leaves()]
            instruction.sharding = tuple_sharding(*leaves) if shape.is_tuple else manual
            if op(instruction).lower is Structure.CONTROL:
                computations += instruction.called_computations
    return to_text(module)


def oracle_version() -> str:
    """jaxlib's version, for messages."""
    return _worker(1).version


class _Worker:
    def __init__(self, devices: int) -> None:
        # Errors go to a file: a pipe that nobody reads would fill up and stop the worker.
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the worker)
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
        environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
        self.process = subprocess.Popen(
            # Without its folder on the path, where tests/jax hides jax.
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=environment,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.to, self.from_ = self.process.stdin, self.process.stdout
        self.version = str(_receive(self.from_))

    def run(self, request: Request) -> list[list[np.ndarray]]:
        timer = threading.Timer(TIMEOUT_S, self.process.kill)
        timer.start()
        try:
            _send(self.to, request)
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


_WORKERS: dict[int, _Worker] = {}
"""By number of devices."""


def _worker(devices: int) -> _Worker:
    worker = _WORKERS.get(devices)
    if worker is None or not worker.is_alive:
        if worker is not None:
            _close(worker)
        worker = _WORKERS[devices] = _Worker(devices)
    return worker


def _close(worker: _Worker) -> None:
    worker.close()
    worker.errors.close()


@atexit.register
def _close_all() -> None:
    while _WORKERS:
        _close(_WORKERS.popitem()[1])


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

    devices = jax.devices("cpu")
    _send(answers, jaxlib.__version__)

    def run(
        hlo_text: str, arguments: list[list[np.ndarray]], replicas: int, partitions: int
    ) -> list[list[np.ndarray]]:
        module = _hlo.hlo_module_from_text(hlo_text)
        stablehlo = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
        used = devices[: replicas * partitions]
        options = xla_client.CompileOptions()
        options.num_replicas, options.num_partitions = replicas, partitions
        build = options.executable_build_options
        build.use_spmd_partitioning = partitions > 1
        ids = np.arange(len(used)).reshape(replicas, partitions)
        build.device_assignment = xla_client.DeviceAssignment.create(ids)
        executable = used[0].client.compile_and_load(
            stablehlo, xla_client.DeviceList(tuple(used)), options
        )
        if len(used) == 1:
            return [[np.array(x) for x in executable.execute(_put(used[0], arguments[0]))]]
        shards = [_put(device, one) for device, one in zip(used, arguments, strict=True)]
        results = executable.execute_sharded([_joined(column) for column in zip(*shards)])
        columns = results.disassemble_into_single_device_arrays()
        return [[np.array(x) for x in row] for row in zip(*columns)]

    def _put(device: Any, inputs: list[np.ndarray]) -> list[Any]:
        arrays = [jax.device_put(x, device) for x in inputs]
        for given, put in zip(inputs, arrays):
            assert given.dtype == put.dtype and given.shape == put.shape, (given.dtype, put.dtype)
        return arrays

    def _joined(shards: tuple[Any, ...]) -> Any:
        """One array of all shards, along a new mesh; only their order counts."""
        mesh = jax.sharding.Mesh(np.array([next(iter(x.devices())) for x in shards]), "d")
        shape = shards[0].shape
        spec = jax.sharding.PartitionSpec("d")
        if not shape:
            shards, shape = tuple(x.reshape(1) for x in shards), (1,)
        whole = (shape[0] * len(shards), *shape[1:])
        sharding = jax.sharding.NamedSharding(mesh, spec)
        return jax.make_array_from_single_device_arrays(whole, sharding, list(shards))

    while True:
        try:
            request = _receive(requests)
        except EOFError:
            return
        try:
            answer: tuple[str, Any] = ("ok", run(*request))
        except Exception as error:  # Whatever jaxlib raises is the answer.
            answer = ("error", f"{type(error).__name__}: {error}")
        _send(answers, answer)


if __name__ == "__main__":
    _answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What libraries print must not mix with the answers.
    _serve(sys.stdin.buffer, _answers)
