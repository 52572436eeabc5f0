"""`--cluster local:N`: a scheduler and N workers on this machine, which end with the run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import dask
from distributed import Nanny, Scheduler, SpecCluster, Worker

from lra.core.cells import Device
from lra.core.errors import UsageError
from lra.engine.cluster.shared_folder import SharedFolder
from lra.engine.machine import host
from lra.engine.process.temporary import Scratch, sweep

PREFIX = "local:"
_LOOPBACK = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
"""Whoever reaches a port of Dask's runs code as this user."""


def number_of_workers(value: str, device: Device) -> int:
    """Return N of `local:N`: one worker for each GPU or, on the CPU, for each core at most.

    Raises `UsageError` for what is no such number.
    """
    most = len(host.gpus()) if device == "cuda" else host.cores_allowed()
    if not most:
        # The error that no GPU is visible.
        host.machine(device)
    digits = value.removeprefix(PREFIX)
    number = int(digits) if digits.isdecimal() else 0
    if not 1 <= number <= most:
        raise UsageError(
            f"--cluster '{value}': a worker needs a {'GPU' if device == 'cuda' else 'core'} of its "
            f"own; write {PREFIX}1{f' to {PREFIX}{most}' if most > 1 else ''}"
        )
    return number


class LocalWorker(Worker):  # type: ignore[misc]  # Dask has no types
    """A Dask worker that writes to a log and leaves signals to the run.

    A terminal sends them to all its processes, and the run tells its workers.
    """

    def __init__(self, *args: Any, log: str, **options: Any) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(file, 1)
        os.dup2(file, 2)
        super().__init__(*args, **options)


@contextmanager
def local_cluster(number: int, folder: SharedFolder) -> Iterator[SpecCluster]:
    """Keep a scheduler and so many workers while the context lasts.

    The workers' nannies, threads of this process, start one again that dies, and their end is
    this process's. Raises `RuntimeError` where a worker cannot start.
    """
    sweep()
    with closing(Scratch("lra-cluster-")) as scratch:
        options = {
            **_LOOPBACK,
            "worker_class": LocalWorker,
            "nthreads": 1,
            "memory_limit": 0,
            "dashboard": False,
            "local_directory": str(scratch.path),
        }
        workers = {
            name: {"cls": Nanny, "options": {**options, "log": str(folder.log(name))}}
            for name in (f"local-{place}" for place in range(number))
        }
        # A nanny may take long to start a worker again, and has no queue to ask.
        patient = {"distributed.deploy.lost-worker-timeout": "1d"}
        scheduler = {"cls": Scheduler, "options": _LOOPBACK}
        with dask.config.set(patient), SpecCluster(workers, scheduler, silence_logs=False) as found:
            yield found
