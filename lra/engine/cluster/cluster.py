"""The cluster of a run: its workers, and which of them may take a cell."""

from __future__ import annotations

import os
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

import msgspec
from distributed import Client

from lra.core.cells import Device
from lra.core.errors import LraError
from lra.core.protocol import Machine
from lra.engine.cluster.handshake import Handshake, introduce, software, why_unfit
from lra.engine.cluster.shared_folder import SharedFolder
from lra.engine.cluster.worker import release
from lra.engine.jobs import Job
from lra.engine.machine import offline
from lra.engine.machine.provenance import library_version
from lra.engine.process.error_text import named_line
from lra.engine.process.signals import Terminated

_BETWEEN = 0.5
"""Seconds between two queries for workers."""


class ClusterLost(LraError):  # noqa: N818  what became of it
    """The scheduler no longer answers, or no worker is left."""


@dataclass(eq=False)
class Worker:
    """A worker that may run cells."""

    address: str
    name: str
    handshake: Handshake
    gpu: str = ""
    """GPU of its own, as in CUDA_VISIBLE_DEVICES; empty where it has none."""
    job: Job | None = None
    """Job that it runs; None while it is free."""

    @property
    def host(self) -> str:
        """Name of its machine."""
        return self.handshake.host

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of its cells."""
        found = {name: os.environ[name] for name in offline.VARIABLES if name in os.environ}
        return found | ({"CUDA_VISIBLE_DEVICES": self.gpu} if self.gpu else {})


class Cluster:
    """The client's side of a cluster.

    `name` is the value of `--cluster`. With `pins` each worker gets a GPU of its own, on machines
    with any. `patience` is how many seconds a run without workers waits for one.
    """

    def __init__(
        self, name: str, client: Client, folder: SharedFolder, *, pins: bool, patience: float
    ) -> None:
        self.name, self.client, self.folder = name, client, folder
        self.patience = patience
        self.run = f"lra-{uuid.uuid4().hex}"
        """Name of the run, and of the topic of its workers' events."""
        self.workers: dict[str, Worker] = {}
        """Workers that may run cells, by address."""
        self.machines: dict[str, Machine] = {}
        """Workers' class of machine, by device; {} before the first has joined."""
        self._pins = pins
        self._software = software()
        self._refused: set[str] = set()
        self.refusals: list[str] = []
        """Reasons why workers may not run cells, a line each; the run prints and clears them."""
        self._updated = 0.0

    @property
    def device(self) -> Device:
        """Device of the cells: cuda where workers have GPUs and torch is a build that can use
        them."""
        has = "cuda" in self.machines and "+cpu" not in library_version("torch")
        return "cuda" if has else "cpu"

    @property
    def size(self) -> int:
        """Number of workers at present."""
        return len(self.workers)

    def update(self) -> None:
        """Update the workers that have joined or left, every few seconds at most.

        Raises `ClusterLost` where the scheduler does not answer.
        """
        if self.client.status != "running":
            raise self.lost()
        if time.monotonic() - self._updated < _BETWEEN:
            return
        try:
            # Not `scheduler_info`: it does not report a scheduler that does not answer, and the
            # client overwrites it, without any worker, every two seconds.
            found = self.client.sync(self.client.scheduler.identity, n_workers=-1)["workers"]
            for address in self.workers.keys() - found.keys():
                del self.workers[address]
            self._refused &= found.keys()
            new = [one for one in found if one not in self.workers and one not in self._refused]
            answers = self.client.run(introduce, self.folder, workers=new, on_error="return")
        except (AttributeError, OSError) as error:
            raise self.lost() from error
        for address, answer in answers.items():
            self._admit(address, str(found[address]["name"]), answer)
        self._updated = time.monotonic()

    def refuse(self, address: str, name: str, why: str) -> None:
        """Let a worker run no more cells, for a reason that follows its name."""
        self.workers.pop(address, None)
        self._refused.add(address)
        self.refusals.append(f"worker {name} {why}")

    def free(self, closed: set[str]) -> list[Worker]:
        """Return the workers without a cell on machines not in `closed`."""
        return [one for one in self.workers.values() if one.job is None and one.host not in closed]

    def place(self, job: Job, closed: set[str]) -> Worker | None:
        """Return a free worker that may run a job now; None where there is none.

        A timing has a machine to itself: where none is free of our cells, the one with the fewest
        is added to `closed`, the machines that take no more cells. Cells on the CPU, of workers on
        the same processors, compute with no more threads than there are processors.
        """
        for worker in self.free(closed):
            if self._fits(worker, job):
                return worker
        if job.alone:
            cells = Counter(
                {one.host: 0 for one in self.workers.values() if one.host not in closed}
            )
            cells.update(one.host for one in self.workers.values() if one.job and one.host in cells)
            closed.update(sorted(cells, key=lambda host: cells[host])[:1])
        return None

    def lost(self) -> ClusterLost:
        """Return the error for a scheduler that no longer answers."""
        return ClusterLost(
            f"the cluster {self.name} no longer answers; finished cells are stored: see that its "
            "scheduler runs, and run the same command again"
        )

    def release(self) -> None:
        """Let workers that outlive the run release what they keep for it."""
        with suppress(OSError):
            self.client.run(release, self.run, workers=list(self.workers), on_error="ignore")

    def _admit(self, address: str, name: str, answer: bytes | Exception) -> None:
        """Let a worker run cells, or refuse it for good."""
        try:
            if isinstance(answer, Exception):
                raise answer
            handshake = msgspec.msgpack.decode(answer, type=Handshake)
        except Terminated:
            raise
        except Exception as error:
            # Whatever the error is, it is the worker's, and this run has to go on without it.
            why = (
                f"cannot say what it is ({named_line(error)}); "
                "start it from the environment of the run"
            )
            self.refuse(address, name, why)
            return
        why, gpu = why_unfit(handshake, self._software, self.machines), ""
        if handshake.gpus and self._pins and not why:
            taken = {one.gpu for one in self.workers.values() if one.host == handshake.host}
            gpu = next((gpu for gpu in handshake.gpus if gpu not in taken), "")
            if not gpu:
                why = (
                    f"has no GPU of its own: all {len(handshake.gpus)} that it sees have workers; "
                    "start one for each GPU"
                )
        if why:
            self.refuse(address, name, why)
            return
        self.machines = self.machines or handshake.machines
        self.workers[address] = Worker(address, name, handshake, gpu)

    def _fits(self, worker: Worker, job: Job) -> bool:
        others = [
            (other, other.job)
            for other in self.workers.values()
            if other.job is not None and other.host == worker.host
        ]
        if job.alone or any(running.alone for _, running in others):
            return not others
        if getattr(job.cell, "device", "cpu") == "cuda":
            return True
        cpus, cores = worker.handshake.cpus, worker.handshake.machines["cpu"].cores
        taken = sum(run.cell.threads for other, run in others if other.handshake.cpus == cpus)
        return not taken or taken + job.cell.threads <= cores
