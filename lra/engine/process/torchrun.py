"""One training on several devices: a process for each, started by torchrun's own engine.

They train as one (`lra.training.ranks`), and each sends the worker over a socket the messages that
a worker sends its run. Where one of them dies or falls silent, all are ended and start again from
the checkpoint.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

import msgspec
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from lra.core.errors import LraError
from lra.engine.jobs import LOST, Job, Message, Outcome, Progress, Report, Stopped
from lra.engine.machine.host import oom_kills
from lra.engine.process import rendezvous
from lra.engine.process.signals import signal_name
from lra.training.outcome import Interrupted

ENTRY = "lra.engine.process.rank"
"""Module that each process runs."""
TRIES = 3
"""Starts of all processes before a training that loses one each time is given up."""
LOOK_EVERY = 0.1
"""Seconds between looks at whether a process has ended."""
_STOPPED = "stopped"
_LONGEST = 70
"""Longest name of a temporary folder, in bytes, that leaves room for the address of a socket."""
_CLEARED_AFTER = 10
"""Seconds after the first failure from which on endings count as its consequence; torchrun kills
the other processes after 30 s."""


def run(job: Job, report: Report) -> Outcome:
    """Run a training cell on `job.devices` devices and return how it ended.

    Raises `lra.training.outcome.Interrupted` after SIGTERM, `MemoryError` where the kernel has
    killed a process for memory, and `LraError` where processes die without a word at every start.
    """
    heard, kills = _RankMessages(), oom_kills()
    signal.signal(signal.SIGTERM, _stop_once)
    try:
        how = _run_with_retries(job, heard, report)
    except SignalException:
        # Between two starts, or after the last.
        how = _STOPPED
    if heard.outcome is not None:
        return heard.outcome
    if heard.stopped or how == _STOPPED:
        raise Interrupted(heard.last.step, heard.last.steps)
    if oom_kills() > kills:
        raise MemoryError(f"{how}: the kernel killed for memory, which ran out")
    raise LraError(
        f"{how}, {TRIES} times of {TRIES}; what was reached stands in the checkpoint: "
        "run again with --rerun failed, or with fewer --devices"
    )


class _RankMessages:
    """Messages of the processes so far."""

    def __init__(self) -> None:
        self.outcome: Outcome | None = None
        self.stopped = False
        self.last = Progress(phase="start")


def _run_with_retries(job: Job, heard: _RankMessages, report: Report) -> str:
    """Start all processes until they end with a result, `TRIES` times at most; return how the last
    ones ended."""
    how = ""
    with tempfile.TemporaryDirectory(prefix="lra-ranks-", dir=_socket_folder()) as name:
        folder = Path(name)
        (folder / "job").write_bytes(msgspec.msgpack.encode(job))
        for _ in range(TRIES):
            with _listening(folder / "socket", heard, report):
                how = _launch(job.devices, folder)
            if heard.outcome is not None or heard.stopped or how == _STOPPED:
                break
    return how


def _socket_folder() -> str:
    """A folder short enough for the address of a socket, about a hundred characters."""
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) <= _LONGEST else "/tmp"


@contextmanager
def _listening(address: Path, heard: _RankMessages, report: Report) -> Iterator[None]:
    """Listen to the processes in a separate thread, until they have ended and all messages are
    read."""
    ended = threading.Event()
    address.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(str(address))
        listener.listen()
        selector.register(listener, selectors.EVENT_READ)

        def listen() -> None:
            while True:
                over = ended.is_set()
                ready = selector.select(0 if over else LOOK_EVERY)
                if over and not ready:
                    return
                for key, _ in ready:
                    speaker = key.fileobj
                    if not isinstance(speaker, Connection):
                        connection = Connection(listener.accept()[0].detach())
                        selector.register(connection, selectors.EVENT_READ)
                    elif not _take(speaker, heard, report):
                        selector.unregister(speaker)
                        speaker.close()

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _take(connection: Connection, heard: _RankMessages, report: Report) -> bool:
    """Read one message; False where the other end is closed."""
    try:
        message = msgspec.msgpack.decode(connection.recv_bytes(), type=Message)
    except (OSError, EOFError):
        return False
    match message:
        case Progress():
            heard.last = message
            report(message)
        case Stopped():
            heard.stopped = True
        case Outcome():
            # The first of several failures is the reason, the others are its consequences.
            heard.outcome = heard.outcome or message
    return True


def _launch(devices: int, folder: Path) -> str:
    """Start the processes, wait for their end, and return in a few words how they ended."""
    rendezvous.register_loopback()
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=devices,
        run_id=uuid.uuid4().hex,
        rdzv_backend=rendezvous.BACKEND,
        local_addr="localhost",
        # Started anew here, and not by the engine: its processes would meet at their old addresses.
        max_restarts=0,
        monitor_interval=LOOK_EVERY,
        logs_specs=DefaultLogsSpecs(log_dir=str(folder)),
        # SIGTERM is ours, see `_stop_once`; Ctrl-C is the run's.
        signals_to_handle="SIGHUP",
    )
    if sys.platform == "linux":
        # All are on this machine, whatever its name resolves to, and no other machine may reach
        # them.
        for backend in ("GLOO", "NCCL"):
            os.environ.setdefault(f"{backend}_SOCKET_IFNAME", "lo")
    command = ["-m", ENTRY, str(os.getpid()), str(folder / "job"), str(folder / "socket")]
    try:
        elastic_launch(config, sys.executable)(*command)
    except ChildFailedError as error:
        return _describe_failures(error.failures, devices)
    except SignalException:
        return _STOPPED
    return f"{devices} processes ended without a result"


def _describe_failures(failures: Mapping[int, ProcessFailure], devices: int) -> str:
    """Failures of the processes in words: among several the one that caused the others."""
    first = min(failure.timestamp for failure in failures.values())
    causes = {
        rank: failure.exitcode
        for rank, failure in failures.items()
        if failure.exitcode not in (LOST, -signal.SIGTERM)
        and failure.timestamp < first + _CLEARED_AFTER
    }
    if not causes:
        return f"one of {devices} processes fell silent"
    rank, code = min(causes.items())
    ending = signal_name(-code) if code < 0 else f"exit code {code}"
    return f"process {rank} of {devices} ended with {ending}"


def _stop_once(number: int, frame: FrameType | None) -> None:
    """End the launched processes, with time to save; a run repeats its SIGTERM, and a second one
    would cut that short."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SignalException("stopped by SIGTERM", signal.SIGTERM)
