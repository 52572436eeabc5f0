"""Ctrl-C and SIGTERM as a request that is looked at between two steps; SIGTERM as an exception."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from lra.core.errors import LraError


def signal_name(number: int) -> str:
    """Return the name of a signal: `SIGKILL`; `signal 40` where Python has none for it."""
    try:
        return signal.Signals(number).name
    except ValueError:
        # Of those for real-time use Python names the first and the last.
        return f"signal {number}"


class Terminated(LraError):  # noqa: N818  an ending, not a fault
    """SIGTERM, which a time limit or a cancelled job sends."""

    exit_code = 130


@contextmanager
def terminable() -> Iterator[None]:
    """While the context lasts SIGTERM raises `Terminated`, so that what is done at an end is done.

    Outside the main thread Python allows no handlers; there it does nothing.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise Terminated("stopped by SIGTERM")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class StopSignals:
    """Notes SIGINT and SIGTERM while the context lasts.

    Outside the main thread Python allows no handlers; there it notes nothing.
    """

    def __init__(self) -> None:
        self.received = ""
        """The first one, in words; empty while there was none."""
        self.count = 0
        """A second one says that the person is in a hurry."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.received = self.received or (
            "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        )
