"""What devices are to do, in order: a queue for each, and threads that work them off.

A task belongs to one device or to several, and runs once it is first in the queue of each; a
device does one task at a time. A task enters all its queues under one lock, so that any two tasks
stand in the same order in every queue that has both: no task can wait for another in a circle.
Every task that may run has a thread at once.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Any

from haloc.runtime.device import Device
from haloc.runtime.pending import Pending

MAX_QUEUED = 32
"""Tasks that a device may have waiting: who adds more waits. Their results have memory already."""

_IDLE_S = 10.0
"""A thread without work ends after this many seconds."""

_EXIT_S = 10.0
"""Work still going on when Python ends is waited for this long."""


class Task:
    """run() is called once, on some thread. pending ends when it has; it is told the error if
    there is one. held: lists of the blocks that the task uses until then: all its references."""

    __slots__ = ("ahead", "devices", "held", "pending", "run")

    def __init__(
        self,
        devices: Sequence[Device],
        run: Callable[[], None],
        held: Sequence[Sequence[Any]],
        pending: Pending,
    ):
        self.devices = devices
        self.run = run
        self.held = held
        self.pending = pending
        self.ahead = 0
        """In how many queues another task is before this one."""


class DeviceQueues:
    """The queues of a client's devices; each is `Device.queue`, first come first."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """Held while a task is made out and enters its queues, and when one leaves them."""
        self._holds: dict[int, int] = {}

    def are_idle(self, devices: Iterable[Device]) -> bool:
        for device in devices:  # noqa: SIM110  # on the way of every launch
            if device.queue:
                return False
        return True

    def make_room(self, devices: Iterable[Device]) -> None:
        """Wait until the devices' queues are not full. Not to be called with the lock."""
        for device in devices:
            while len(device.queue) >= MAX_QUEUED:
                try:
                    device.queue[0].pending.wait()
                except Exception:  # the task's own, for those who read its results; or it has gone
                    continue

    def add(self, task: Task) -> None:
        """With the lock held."""
        for block in chain.from_iterable(task.held):
            self._holds[id(block)] = self._holds.get(id(block), 0) + 1
        for device in task.devices:
            task.ahead += bool(device.queue)
            device.queue.append(task)
        if not task.ahead:
            _start(self, task)

    def holds(self, block: Any) -> int:
        """How many references to a block the tasks have. With the lock held."""
        return self._holds.get(id(block), 0)

    def perform(self, task: Task) -> None:
        """Run a task whose turn it is, and those that nothing stands before any more."""
        following: Task | None = task
        while following is not None:
            error = None
            try:
                following.run()
            except BaseException as raised:
                error = raised
            done, following = following, self._leave(following)
            if error is None:
                done.pending.finish()
            else:
                done.pending.fail(error)
            del done, error

    def _leave(self, task: Task) -> Task | None:
        """Take a task off its queues, start the ones that may run now, but for one, the answer."""
        ready = []
        with self.lock:
            for block in chain.from_iterable(task.held):
                count = self._holds[id(block)] - 1
                if count:
                    self._holds[id(block)] = count
                else:
                    del self._holds[id(block)]
            task.held, task.run = (), _nothing
            for device in task.devices:
                device.queue.popleft()
                if device.queue:
                    device.queue[0].ahead -= 1
                    if not device.queue[0].ahead:
                        ready.append(device.queue[0])
        for other in ready[1:]:
            _start(self, other)
        return ready[0] if ready else None


def _nothing() -> None:
    """What a task that has ended does."""


class _Threads:
    """The threads of the process: as many as there are tasks that may run."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.idle: list[SimpleQueue[tuple[DeviceQueues, Task]]] = []
        self.busy = 0


_threads = _Threads()


def _start(queues: DeviceQueues, task: Task) -> None:
    with _threads.lock:
        _threads.busy += 1
        inbox = _threads.idle.pop() if _threads.idle else None
    if inbox is None:
        inbox = SimpleQueue()
        threading.Thread(target=_work, args=(inbox,), name="haloc device", daemon=True).start()
    inbox.put((queues, task))


def _work(inbox: SimpleQueue[tuple[DeviceQueues, Task]]) -> None:
    while True:
        try:
            queues, task = inbox.get(timeout=_IDLE_S)
        except Empty:
            with _threads.lock:
                if inbox in _threads.idle:
                    _threads.idle.remove(inbox)
                    return
            continue
        queues.perform(task)
        del queues, task
        with _threads.lock:
            _threads.busy -= 1
            _threads.idle.append(inbox)


def _wait_at_exit() -> None:
    """Programs should not be torn from the memory they write to."""
    waited = threading.Event()
    for _ in range(int(_EXIT_S / 0.01)):
        if not _threads.busy:
            return
        waited.wait(0.01)


def _after_fork_in_child() -> None:
    global _threads  # noqa: PLW0603  # the parent's threads do not exist here
    _threads = _Threads()


atexit.register(_wait_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
