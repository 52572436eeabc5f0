"""`--cluster local:N`: a scheduler and N workers on this machine, which end with the run."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from distributed import LocalCluster

from lra.core.cells import Device
from lra.core.errors import LraError, UsageError
from lra.engine.cluster.shared_folder import Shared
from lra.engine.machine import host
from lra.engine.process.launch import environment
from lra.engine.process.temporary import TemporaryFolder, sweep

PREFIX = "local:"
MOST_FALLS = 3
"""Of one worker in a row, each before it has joined; then it is given up."""


def size(value: str, device: Device) -> int:
    """Return N of `local:N`: one worker for each GPU or, on the CPU, for each core at most.

    Raises `UsageError` for what is no such number.
    """
    most = len(host.gpus()) if device == "cuda" else host.cores_allowed()
    what = "GPUs" if device == "cuda" else "cores"
    told = value.removeprefix(PREFIX)
    number = int(told) if told.isdecimal() else 0
    if not most:
        # Of no GPU it says so.
        host.machine(device)
    if number < 1:
        raise UsageError(
            f"--cluster '{value}' names no number of workers from 1 on; write e.g. local:{most}"
        )
    if number > most:
        raise UsageError(
            f"--cluster '{value}': this machine has {most} {what}, one for each worker; write "
            f"local:{most}"
        )
    return number


class LocalWorkers:
    """Worker processes of this machine, each with a log; a dead one is started again by `tend`."""

    def __init__(self, scheduler: str, number: int, shared: Shared) -> None:
        self._scheduler, self._shared = scheduler, shared
        sweep()
        self._scratch = TemporaryFolder("lra-cluster-")
        self._falls = [0] * number
        self._processes = [self._start(place) for place in range(number)]

    def tend(self, joined: Collection[str]) -> None:
        """Start workers again that have died; raises `LraError` for one that never joins.

        `joined` are the names of those that have: what one of them dies of may be its cell.
        """
        for place, process in enumerate(self._processes):
            if _name(place) in joined:
                self._falls[place] = 0
            if process.poll() is None:
                continue
            self._falls[place] += 1
            if self._falls[place] > MOST_FALLS:
                raise LraError(
                    f"worker {_name(place)} ends as soon as it starts; see "
                    f"{self._shared.log(_name(place))}"
                )
            _close(process)
            self._processes[place] = self._start(place)

    def close(self) -> None:
        """End all workers and what they run."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            _close(process)
        self._scratch.close()

    def _start(self, place: int) -> subprocess.Popen[bytes]:
        name = _name(place)
        with self._shared.log(name).open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.local_worker", self._scheduler, name],
                env=environment(),
                cwd=self._scratch.path,
                # It reads to the end of this pipe, which comes with the end of this process.
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # A terminal's Ctrl-C is for the run, which tells its workers.
                start_new_session=True,
            )


@contextmanager
def local(number: int, shared: Shared) -> Iterator[tuple[LocalCluster, LocalWorkers]]:
    """Keep a scheduler and so many workers while the context lasts."""
    with (
        quiet(shared),
        LocalCluster(
            n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=False
        ) as scheduler,
    ):
        workers = LocalWorkers(scheduler.scheduler_address, number, shared)
        try:
            yield scheduler, workers
        finally:
            workers.close()


@contextmanager
def quiet(shared: Shared) -> Iterator[None]:
    """Send what Dask logs in this process to a file beside the workers' logs."""
    names = ("distributed", "tornado", "asyncio")
    handler = logging.FileHandler(shared.log("scheduler"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    loggers = [logging.getLogger(name) for name in names]
    before = [(one.handlers[:], one.propagate) for one in loggers]
    for one in loggers:
        one.handlers, one.propagate = [handler], False
    try:
        yield
    finally:
        for one, (handlers, propagate) in zip(loggers, before, strict=True):
            one.handlers, one.propagate = handlers, propagate
        handler.close()


def _name(place: int) -> str:
    return f"local-{place}"


def _close(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
