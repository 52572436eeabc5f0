"""Ctrl-C and SIGTERM as a request that is looked at between two steps, not an exception."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


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
