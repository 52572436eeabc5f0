"""One job in a worker process: its messages while it runs, and its end.

A worker ends with its job. In a series it stays after a job that did not fail, and may take the
next one, to spare the start of a process and of a GPU's context.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from multiprocessing.connection import wait

import msgspec

from lra.engine.jobs import Job, Message, Outcome, Progress, Stopped, stays_after
from lra.engine.machine import host
from lra.engine.process.exit_status import Ending
from lra.engine.process.launch import Worker

TICK = 0.25
"""Seconds between looks at clocks and signals while nothing else happens."""


class Supervisor:
    """A job and the worker process of a fork server that runs it, from request to end.

    `timeout` is in seconds from the fork, or from the end of the job before in the same worker;
    `on_progress` gets the worker's progress; `written` is the number of bytes that it wrote before.
    """

    def __init__(
        self,
        job: Job,
        worker: Worker,
        *,
        timeout: float | None,
        on_progress: Callable[[Progress], None],
        written: int = 0,
    ) -> None:
        self.job, self.worker = job, worker
        self.started_at = utc()
        self.outcome: Outcome | None = None
        self.stopped = False
        """Whether the worker reports that it has saved its checkpoint and ends for that."""
        self.asked_to_stop = False
        self._phase = "start"
        self._timeout, self._on_progress = timeout, on_progress
        self._timed_out = False
        self._memory_kills = host.oom_kills()
        self._began: float | None = None if worker.pid is None else time.monotonic()
        """Start of a job after another one; None where the fork is the start."""
        self._outcome_at = 0.0
        self._written_before = written

    @property
    def sources(self) -> list[int]:
        """Descriptors that are ready to read when there is news for `receive`."""
        connection = self.worker.connection
        own = [self.worker.fileno()]
        return own if connection.closed else [*own, connection.fileno()]

    def receive(self, source: int) -> None:
        """Read the news on one of the descriptors."""
        if source == self.worker.fileno():
            self.worker.poll()
        else:
            self._receive()

    def enforce_timeout(self) -> None:
        """Kill the worker once its time is over."""
        if self._timeout is None or self.worker.pid is None:
            return
        if time.monotonic() - self._start > self._timeout:
            self._timed_out = True
            self.worker.kill()

    def drain(self) -> None:
        """Read the messages that an ended worker had still sent."""
        connection = self.worker.connection
        with suppress(OSError):
            while not connection.closed and connection.poll():
                self._receive()

    def ending(self) -> Ending:
        """Return all that is known of a worker that was forked and has ended."""
        return Ending(
            outcome=self.outcome,
            exit_code=self.worker.exit_code,
            phase=self._phase,
            timeout=self._timeout if self._timed_out else None,
            out_of_memory=host.oom_kills() > self._memory_kills,
            tail=self.worker.tail(after=self._written_before),
        )

    @property
    def is_idle(self) -> bool:
        """Whether its job has ended and the worker waits for another."""
        return self.outcome is not None and stays_after(self.outcome, self.job)

    @property
    def seconds(self) -> float:
        """Seconds from fork to end; for a job in a series, to its outcome."""
        return (self._outcome_at if self.is_idle else self.worker.ended_at) - self._start

    @property
    def _start(self) -> float:
        return self.worker.forked_at if self._began is None else self._began

    def _receive(self) -> None:
        connection = self.worker.connection
        try:
            message = msgspec.msgpack.decode(connection.recv_bytes(), type=Message)
        except (OSError, EOFError):
            # The worker has closed its end; its exit status comes over the status pipe.
            connection.close()
            return
        match message:
            case Progress():
                self._phase = message.phase
                self._on_progress(message)
            case Stopped():
                self.stopped = True
            case Outcome():
                self.outcome, self._outcome_at = message, time.monotonic()


def listen(to: Sequence[Supervisor]) -> list[Supervisor]:
    """Wait for news, a tick at most, read them, and return the supervisors whose jobs have
    ended."""
    by_source = {source: running for running in to for source in running.sources}
    for source in wait(list(by_source), timeout=TICK):
        assert isinstance(source, int)
        by_source[source].receive(source)
    for running in to:
        running.enforce_timeout()
    return [running for running in to if running.worker.ended or running.is_idle]


def utc() -> str:
    """Return the time of day as records have it: UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
