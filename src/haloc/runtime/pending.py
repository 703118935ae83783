"""`Pending`: the completion of work that others wait for."""

from __future__ import annotations

from _thread import allocate_lock

from haloc.errors import DeadlineExceededError


class Pending:
    """Work that runs somewhere else and ends once, in success or in an error.

    Made by whoever starts the work; arrays that the work fills refer to it. Any number of threads
    may wait. A held lock is the whole machinery, as one is made for every asynchronous execution.
    """

    __slots__ = ("_error", "_is_done", "_running", "_traceback")

    def __init__(self) -> None:
        self._is_done = False
        self._error: BaseException | None = None
        self._traceback = None
        self._running = allocate_lock()
        self._running.acquire()

    def finish(self) -> None:
        """The work is done. To be called once, or `fail` instead."""
        self._is_done = True
        self._running.release()

    def fail(self, error: BaseException) -> None:
        """The work ended in an error, which everyone who waits will get."""
        self._error = error
        self._traceback = error.__traceback__  # type: ignore[assignment]
        self.finish()

    def done(self) -> bool:
        """Whether the work has ended, in either way."""
        return self._is_done

    def wait(self, timeout_s: float = -1) -> None:
        """Wait for the end of the work; raises the work's error.

        timeout_s: DeadlineExceededError after this many seconds; negative: wait for ever.
        """
        if not self._is_done:
            # The lock is passed from one waiter to the next.
            if not self._running.acquire(timeout=timeout_s):
                raise DeadlineExceededError(f"not ready after {timeout_s} seconds")
            self._running.release()
        if self._error is not None:
            # Its own traceback each time: raising one object again and again would lengthen it.
            raise self._error.with_traceback(self._traceback)

    @property
    def error(self) -> BaseException | None:
        """What `fail` was given; None before the end and after success."""
        return self._error
