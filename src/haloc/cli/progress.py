"""A progress line on stderr for compilations that take longer than a second."""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from types import TracebackType
from typing import TextIO

from haloc.flags import Flags

_DELAY_S = 1.0
_REFRESH_S = 0.2


class ProgressLine:
    """Call it as the compiler's `on_progress`; the line shows inside a `with` block.

    It appears after a second, on a terminal only; HALOC_PROGRESS=1 shows it at once and anywhere,
    HALOC_PROGRESS=0 never. With `rich` installed it has a spinner.
    """

    def __init__(self, title: str, stream: TextIO | None = None, mode: str | None = None):
        self.title = title
        self.stream = sys.stderr if stream is None else stream
        self.mode = Flags.from_environment().progress if mode is None else mode
        self.delay_s = 0.0 if self.mode == "1" else _DELAY_S
        self._state = ("", 0, 0)
        self._started = time.perf_counter()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        self._state = (stage, done, total)

    def text(self) -> str:
        """ "add_module: native code 3/12, 4.2 s"."""
        stage, done, total = self._state
        count = f" {done}/{total}" if total > 1 else ""
        return f"{self.title}: {stage}{count}, {time.perf_counter() - self._started:.1f} s"

    def __enter__(self) -> ProgressLine:
        self._started = time.perf_counter()
        if self.mode == "1" or (self.mode != "0" and self.stream.isatty()):
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        if self._done.wait(self.delay_s):
            return
        has_rich = importlib.util.find_spec("rich") is not None
        if has_rich and self.stream.isatty():
            self._show_rich()
        else:
            self._show_plain()

    def _show_plain(self) -> None:
        while True:
            self.stream.write(f"\r\x1b[K{self.text()}")
            self.stream.flush()
            if self._done.wait(_REFRESH_S):
                break
        self.stream.write("\r\x1b[K")
        self.stream.flush()

    def _show_rich(self) -> None:
        # Imported when first shown: most compilations end before the line would appear.
        from rich.console import Console  # noqa: PLC0415
        from rich.markup import escape  # noqa: PLC0415

        with Console(file=self.stream).status(escape(self.text())) as status:
            while not self._done.wait(_REFRESH_S):
                status.update(escape(self.text()))
