"""Signals become a request; what was there before is there again afterwards."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from lra.engine.signals import StopSignals, signal_name


def test_signals_are_noted_and_handlers_restored() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with StopSignals() as signals:
        assert (signals.received, signals.count) == ("", 0)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert (signals.received, signals.count) == ("SIGTERM", 2)
    assert {number: signal.getsignal(number) for number in before} == before


def test_another_thread_may_run_a_pool_too() -> None:
    seen: list[int] = []

    def run() -> None:
        with StopSignals() as signals:
            seen.append(signals.count)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [0]


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (40, "signal 40")])
def test_signals_are_named_where_python_has_a_name(number: int, name: str) -> None:
    assert signal_name(number) == name
