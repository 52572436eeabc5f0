"""`--cluster local:N`: a scheduler and N workers on this machine, ended with the run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from multiprocessing import resource_tracker
from typing import Any

import dask
from distributed import Nanny, Scheduler, SpecCluster, Worker

from lra.core.cells import Device
from lra.core.errors import UsageError
from lra.engine.cluster.shared_folder import SharedFolder
from lra.engine.machine import host
from lra.engine.process.temporary import TemporaryFolder, sweep

PREFIX = "local:"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that a terminal or a queue sends to all processes of a run: the run tells its workers
itself."""
_LOOPBACK = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
"""Address that keeps others out: whoever reaches a port of Dask's runs code as this user."""


def number_of_workers(value: str, device: Device) -> int:
    """Return N of `local:N`: one worker for each GPU or, on the CPU, for each core at most.

    Raises `UsageError` for any other value.
    """
    most = len(host.gpus()) if device == "cuda" else host.cores_allowed()
    if not most:
        # Raises the error that no GPU is visible.
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
    """A Dask worker with a log of its own; it leaves signals to the run."""

    def __init__(self, *args: Any, name: str, folder: SharedFolder, **options: Any) -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        # But not in the processes that it starts: a cell saves itself at a signal.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        file = os.open(folder.log(name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(file, 1)
        os.dup2(file, 2)
        super().__init__(*args, name=name, **options)


class LocalCluster(SpecCluster):  # type: ignore[misc]
    """A scheduler here, and workers with nannies, in a thread, that replace a dead one."""

    def _new_worker_name(self, number: int) -> str:
        return f"local-{number}"


@contextmanager
def local_cluster(number: int, folder: SharedFolder) -> Iterator[LocalCluster]:
    """Keep a scheduler and that many workers while the context lasts, or this process."""
    sweep()
    with closing(TemporaryFolder("lra-cluster-")) as scratch, ExitStack() as stack:
        options = {
            **_LOOPBACK,
            "worker_class": LocalWorker,
            "folder": folder,
            "nthreads": 1,
            "memory_limit": 0,
            "dashboard": False,
            "local_directory": str(scratch.path),
        }
        # A nanny may take long to restart a worker, and there is no queue to wait in.
        stack.enter_context(dask.config.set({"distributed.deploy.lost-worker-timeout": "1d"}))
        # Dask's threads, and the workers that they start, leave signals to the main thread;
        # Python's resource tracker would unblock them where it starts.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            cluster = LocalCluster(
                worker={"cls": Nanny, "options": options},
                scheduler={"cls": Scheduler, "options": _LOOPBACK},
                silence_logs=False,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        stack.enter_context(cluster)
        cluster.scale(number)
        yield cluster
