"""Ctrl-C, SIGTERM and SIGHUP as a request that is checked between two steps; the last two also as
an exception."""

from __future__ import annotations

import errno
import os
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
        # Python names only the first and the last signal for real-time use.
        return f"signal {number}"


class Terminated(LraError):  # noqa: N818  an ending, not a fault
    """SIGTERM, as a time limit or a cancelled job sends, or SIGHUP of a terminal that closes."""

    exit_code = 130


@contextmanager
def raise_terminated() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise `Terminated` while the context lasts, so that clean-up runs.

    Outside the main thread Python allows no handlers; there it does nothing.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            _detach_from_terminal()
        raise Terminated(f"stopped by {signal_name(number)}")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in _stop_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class StopSignals:
    """SIGINT, SIGTERM and SIGHUP received while the context lasts.

    Outside the main thread Python allows no handlers; there it notes nothing.
    """

    def __init__(self) -> None:
        self.received = ""
        """First signal, in words; empty while there was none."""
        self.count = 0
        """Number of signals; a second one says that the person is in a hurry."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, *_stop_signals()):
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
        if number == signal.SIGHUP:
            _detach_from_terminal()
            if self.count:
                # The shell and the kernel may each send one: nobody is in a hurry.
                return
        self.count += 1
        self.received = self.received or (
            "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        )


def _stop_signals() -> list[signal.Signals]:
    """Signals that ask for an end; not SIGHUP where it is ignored, as under nohup."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM] if ignored else [signal.SIGTERM, signal.SIGHUP]


def _detach_from_terminal() -> None:
    """Discard output to a terminal that is gone: a failing line would get in the way of saving."""
    for descriptor in (1, 2):
        try:
            os.write(descriptor, b"")
        except OSError as error:
            if error.errno == errno.EIO:
                nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
