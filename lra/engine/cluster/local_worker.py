"""A worker of `local:N`: a process of its own, which ends with the run that started it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading

import dask
from distributed import Worker

CONFIG = {
    # It would look at the threads a hundred times a second, beside what is timed.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "1s",
    # The worker computes nothing; cells have processes of their own.
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
}


def main(scheduler: str, name: str) -> None:
    """Serve a scheduler until it is gone, or the run is."""
    # A signal to all processes of a job is for the run, which lets cells save themselves.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_run, daemon=True).start()
    with dask.config.set(CONFIG):
        asyncio.run(_serve(scheduler, name))


async def _serve(scheduler: str, name: str) -> None:
    worker = Worker(
        scheduler,
        name=name,
        # Whoever reaches it runs code here.
        host="127.0.0.1",
        nthreads=1,
        memory_limit=0,
        dashboard=False,
        local_directory=os.getcwd(),  # noqa: PTH109  it is the run's temporary folder
    )
    async with worker:
        await worker.finished()


def _end_with_run() -> None:
    # The descriptor itself: a buffered reader's lock would be in the way of an exit.
    while os.read(0, 4096):
        pass
    # Its fork server, and with it the cell, see its socket close.
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
