"""A cluster that a run is connected to, however it came about."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Collection
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path

import msgspec
from distributed import Client

from lra.core.cells import Device
from lra.core.errors import LraError
from lra.core.protocol import Machine
from lra.engine.cluster.messages import Word
from lra.engine.cluster.shared_folder import Shared
from lra.engine.cluster.worker import dismiss
from lra.engine.cluster.workers import Roster
from lra.engine.jobs import Job
from lra.engine.machine.provenance import library_version

_OTHERS = 60.0
"""Seconds that further workers have to come once there is one."""
_PARTING = 5.0
"""Seconds that workers have to give back what they keep."""


class ClusterLost(LraError):  # noqa: N818  what became of it
    """The scheduler no longer answers, or no worker is left."""


class Cluster:
    """The client's side of a cluster.

    `name` is what a person called it. `tend` is called at each tick of a run, with the names of the
    workers that have joined: it keeps up what has to be kept up. `patience` is for how many
    seconds a run waits for a worker while there is none.
    """

    def __init__(
        self,
        name: str,
        client: Client,
        shared: Shared,
        *,
        pins: bool,
        patience: float,
        tend: Callable[[Collection[str]], None] = lambda joined: None,
    ) -> None:
        self.name, self.client, self.shared = name, client, shared
        self.patience, self.tend = patience, tend
        self.run = f"lra-{uuid.uuid4().hex}"
        """Name of the run, under which its workers speak."""
        self.roster = Roster(client, shared, self.run, pins=pins)

    def gather(
        self, number: int, told: Callable[[str], None], left: Callable[[], float] = lambda: math.inf
    ) -> None:
        """Wait for the first workers: until there are so many, or as many as come in time.

        `told` hears that they are waited for; `left` says how many seconds the run still has.
        Raises `LraError` where one may not run cells, or none comes.
        """
        began, first_came = time.monotonic(), math.inf
        said = False
        while True:
            self.tend(self.roster.names)
            if self.client.status != "running":
                raise self.lost()
            try:
                self.roster.look(now=True)
            except OSError as error:
                raise self.lost() from error
            if refused := self.roster.news():
                raise LraError(f"--cluster {self.name}: {refused[0]}")
            now = time.monotonic()
            waited = now - began
            if self.roster.members:
                first_came = min(first_came, now)
                if len(self.roster.members) >= number and not self.roster.is_waiting:
                    return
                if now - first_came > min(self.patience, _OTHERS) or not left():
                    return
            elif waited > self.patience or not left():
                more = "start some" if left() else "give --budget more, start some"
                raise LraError(
                    f"--cluster {self.name}: no worker has come in {waited:.0f} s; {more}, or "
                    f"see {Path(self.shared.folder) / 'logs'}"
                )
            if waited > 10 and not said:
                said = True
                told(f"waiting for workers: {len(self.roster.members)} of {number}")
            time.sleep(0.05)

    @property
    def machines(self) -> dict[str, Machine]:
        """The class of its machines, by device."""
        return self.roster.machines

    @property
    def device(self) -> Device:
        """cuda where its workers have GPUs and torch is a build that can use them."""
        has = "cuda" in self.machines and "+cpu" not in library_version("torch")
        return "cuda" if has else "cpu"

    @property
    def size(self) -> int:
        """How many workers there are now."""
        return len(self.roster.members)

    def listen(self, put: Callable[[Word], None]) -> None:
        """Have `put` called, in a thread of its own, with each word of a worker."""

        def hear(event: tuple[float, bytes]) -> None:
            put(msgspec.msgpack.decode(event[1], type=Word))

        self.client.subscribe_topic(self.run, hear)

    def localised(self, job: Job, checkpoint: Path) -> Job:
        """Return a job whose places are absolute: workers have another current folder."""
        cache = str(Path(job.cache).resolve())
        return msgspec.structs.replace(job, cache=cache, checkpoint=str(checkpoint))

    def lost(self) -> ClusterLost:
        """Return the error for a scheduler that no longer answers."""
        return ClusterLost(
            f"the cluster {self.name} no longer answers; finished cells are stored: see that its "
            "scheduler runs, and run the same command again"
        )

    def part(self) -> None:
        """Let workers that go on living give back what they keep for the run."""
        deadline = time.monotonic() + _PARTING
        with suppress(OSError, TimeoutError, CancelledError):
            futures = [
                self.roster.ask(address, dismiss, self.run) for address in self.roster.members
            ]
            for future in futures:
                future.result(timeout=max(0.1, deadline - time.monotonic()))
