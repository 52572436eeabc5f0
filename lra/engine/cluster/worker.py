"""What a worker of a cluster does with an order: the cell in a process of its own, as everywhere.

The worker computes nothing itself. It has a fork server, so that a cell's crash, its end by memory
or time, is judged here as on one machine, and does not end the worker. What is said goes back as
events of the run's topic, the end too: a result that waits on a worker is lost with it, and done
again by Dask.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from distributed import Status, Worker, get_worker

from lra.core.errors import LraError
from lra.core.records import Provenance
from lra.engine.cluster.messages import Ended, Order, Waits, Word, pack
from lra.engine.jobs import Progress
from lra.engine.machine import host
from lra.engine.machine.provenance import provenance
from lra.engine.machine.timing_lock import TimingLock
from lra.engine.process.exit_status import outcome_of
from lra.engine.process.launch import ForkServer
from lra.engine.process.supervisor import TICK, Supervisor, listen

_ENDS = (Status.closing_gracefully, Status.closing, Status.closed, Status.failed)
_SAID = Progress | Waits | Ended

logger = logging.getLogger("lra.cluster")


def carry(payload: bytes) -> None:
    """Carry out a packed `Order`: the task of a Dask worker. What comes of it is told as events."""
    order = msgspec.msgpack.decode(payload, type=Order)
    worker = get_worker()
    key = str(worker.get_current_task())

    def tell(said: _SAID) -> None:
        worker.log_event(order.run, pack(Word(key, said)))

    _follow(order.shared.log(str(worker.name)))
    tell(_STATION.carry(order, tell, lambda: _is_unwanted(worker, key)))


def prepare(run: str, variables: dict[str, str]) -> None:
    """Have the fork server of a run import what its cells need, before there is one."""
    _STATION.prepare(run, variables)


def dismiss(run: str) -> None:
    """Give back what the worker keeps for a run."""
    _STATION.dismiss(run)


def _is_unwanted(worker: Worker, key: str) -> bool:
    """Whether the run has cancelled the task, or is gone, or the worker itself has to end."""
    task = worker.state.tasks.get(key)
    return worker.status in _ENDS or task is None or task.state == "cancelled"


class Station:
    """Runs cells one after the other, for one run at a time."""

    def __init__(self) -> None:
        self._free = threading.Lock()
        self._server: ForkServer | None = None
        self._run = ""
        self._provenance: Provenance | None = None

    def carry(
        self, order: Order, tell: Callable[[_SAID], None], is_unwanted: Callable[[], bool]
    ) -> Ended:
        """Run the cell of an order and return how it ended; `tell` hears of it meanwhile."""
        while not self._free.acquire(timeout=TICK):
            # Another run that shares the cluster computes here.
            if is_unwanted():
                return Ended()
        lock = TimingLock()
        try:
            problem = order.shared.problem()
            if problem:
                return Ended(unfit=problem)
            while order.job.alone and not lock.acquire():
                if lock.news:
                    tell(Waits(lock.news))
                if is_unwanted():
                    return Ended()
                time.sleep(TICK)
            return self._run_cell(order, tell, is_unwanted)
        except LraError as error:
            return Ended(unfit=f"cannot run cells: {error}")
        finally:
            lock.release()
            self._free.release()

    def prepare(self, run: str, variables: dict[str, str]) -> None:
        """Start the fork server of a run, unless another run computes here."""
        if self._free.acquire(blocking=False):
            try:
                self._serving(run, variables)
            finally:
                self._free.release()

    def dismiss(self, run: str) -> None:
        """End the fork server, where it is this run's and idle."""
        if self._free.acquire(blocking=False):
            try:
                if self._run == run:
                    self._end()
            finally:
                self._free.release()

    def _run_cell(
        self, order: Order, tell: Callable[[_SAID], None], is_unwanted: Callable[[], bool]
    ) -> Ended:
        job, server = order.job, self._serving(order.run, order.variables)
        logger.info("start %s", job.label)
        worker = server.start(msgspec.msgpack.encode(job))
        running = Supervisor(job, worker, timeout=order.timeout, on_progress=tell)
        self._attend(running, order.grace, is_unwanted)
        running.drain()
        if worker.pid is None or (running.outcome is None and worker.exit_code is None):
            # The fork server is gone, by our order or by itself.
            worker.close()
            lost = server.lost()
            self._end()
            return Ended() if running.asked_to_stop else Ended(unfit=f"cannot run cells: {lost}")
        ending = running.ending()
        worker.close()
        if running.outcome is None and (running.stopped or running.asked_to_stop):
            logger.info("stopped %s", job.label)
            return Ended()
        outcome = outcome_of(ending, job)
        logger.info("%s %s  [%.1f s]", outcome.status, job.label, running.seconds)
        if outcome.failure is not None:
            logger.info("%s\n%s", outcome.failure.message, ending.tail)
            # What failed with the folder says nothing of the cell.
            problem = order.shared.problem()
            if problem:
                return Ended(unfit=problem)
        return Ended(
            outcome=outcome,
            started_at=running.started_at,
            seconds=running.seconds,
            provenance=self._provenance,
        )

    def _attend(self, running: Supervisor, grace: float, is_unwanted: Callable[[], bool]) -> None:
        """Wait until a cell has ended, with `grace` seconds once it is no longer wanted."""
        deadline = 0.0
        while not listen([running]):
            if not running.asked_to_stop and is_unwanted():
                running.asked_to_stop, deadline = True, time.monotonic() + grace
            if not running.asked_to_stop:
                continue
            if running.worker.pid is None:
                # Never forked: the fork server still imports.
                self._end()
                return
            if time.monotonic() < deadline:
                running.worker.stop()
            else:
                running.worker.kill()
        if running.worker.exit_code == -signal.SIGTERM and not running.asked_to_stop:
            # A signal to a whole job of the cluster may reach the cell first.
            time.sleep(TICK)
            running.asked_to_stop = is_unwanted()

    def _serving(self, run: str, variables: dict[str, str]) -> ForkServer:
        """The fork server of a run; each has its own, which imports the sources as they are now."""
        if self._server is None or self._run != run:
            self._end()
            # Before anything imports torch: the worker itself never does.
            with _environment(variables):
                self._server, self._run = ForkServer(), run
                self._provenance = provenance(host.machine_facts())
        return self._server

    def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        self._server, self._run = None, ""


_STATION = Station()


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Have these variables while the context lasts; the next run may want others."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Log(logging.FileHandler):
    """The log of this worker in the folder of a run."""


def _follow(file: Path) -> None:
    """Write what this worker does to a file of the shared folder, besides wherever it goes; no
    longer to that of an earlier run."""
    for name in ("lra", "distributed"):
        found = logging.getLogger(name)
        logs = [one for one in found.handlers if isinstance(one, _Log)]
        if any(one.baseFilename == str(file) for one in logs):
            continue
        for one in logs:
            found.removeHandler(one)
            one.close()
        with suppress(OSError):
            handler = _Log(file)
            handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
            found.addHandler(handler)
        found.setLevel(logging.INFO)
