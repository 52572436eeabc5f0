"""Signals become a request; what was there before is there again afterwards."""

from __future__ import annotations

import os
import pty
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from lra.engine.process.signals import StopSignals, Terminated, raise_terminated, signal_name


def test_signals_are_noted_and_handlers_restored() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with StopSignals() as signals:
        assert (signals.received, signals.count) == ("", 0)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert (signals.received, signals.count) == ("SIGTERM", 2)
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.usefixtures("no_nohup")
def test_a_closed_terminal_is_a_request_and_its_second_signal_no_hurry() -> None:
    with StopSignals() as signals:
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
        assert (signals.received, signals.count) == ("SIGHUP", 1)
        os.kill(os.getpid(), signal.SIGTERM)
        assert (signals.received, signals.count) == ("SIGHUP", 2)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL


@pytest.mark.usefixtures("no_nohup")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_end_is_an_exception(number: signal.Signals) -> None:
    with pytest.raises(Terminated, match=f"stopped by {number.name}"), raise_terminated():
        os.kill(os.getpid(), number)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL


@pytest.mark.usefixtures("no_nohup")
@pytest.mark.parametrize("context", [StopSignals, raise_terminated])
def test_under_nohup_a_closed_terminal_is_nothing(context: Any) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with context():
        os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


SAVES = """
import sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from lra.engine.process.signals import StopSignals, Terminated, raise_terminated
saved = Path(sys.argv[3])
try:
    if sys.argv[2] == "terminable":
        with raise_terminated():
            print("ready", flush=True)
            time.sleep(60)
    else:
        with StopSignals() as signals:
            print("ready", flush=True)
            while not signals.received:
                time.sleep(0.01)
        raise Terminated(signals.received)
except Terminated as stopped:
    print("a line", file=sys.stderr, flush=True)
    print("another", flush=True)
    saved.write_text(str(stopped))
    sys.exit(stopped.exit_code)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="tried on Linux alone")
@pytest.mark.parametrize("how", ["terminable", "StopSignals"])
def test_lines_for_a_terminal_that_is_gone_are_in_nobodys_way(tmp_path: Path, how: str) -> None:
    saved, root = tmp_path / "saved", str(Path(__file__).parents[2])
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.execv(sys.executable, [sys.executable, "-c", SAVES, root, how, str(saved)])
    assert os.read(terminal, 100).strip() == b"ready"
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert saved.read_text().endswith("SIGHUP")


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
