"""What passes between a run and the workers of its cluster; all of it as MessagePack."""

from __future__ import annotations

import msgspec

from lra.core.protocol import Frozen
from lra.core.records import Provenance
from lra.engine.cluster.shared_folder import Shared
from lra.engine.jobs import Job, Outcome, Progress


class Order(Frozen, frozen=True, kw_only=True):
    """A job for one worker, with all that it has to know of the run."""

    job: Job
    run: str
    """Name of the run, and of the topic under which it listens."""
    shared: Shared
    variables: dict[str, str] = {}
    """Of the environment of the cell: the one GPU that it computes on, whether hubs are asked."""
    timeout: float | None = None
    """Of the cell, in seconds."""
    grace: float
    """Seconds that a cell has to save itself once it is no longer wanted."""


class Waits(Frozen, frozen=True, tag="waits"):
    """A timing waits for another run's on its machine."""

    whom: str
    """In words."""


class Ended(Frozen, frozen=True, tag="ended", kw_only=True):
    """The cell has ended, or never started."""

    outcome: Outcome | None = None
    """None where it was stopped before it had one, or `unfit`."""
    started_at: str = ""
    seconds: float = 0.0
    provenance: Provenance | None = None
    unfit: str = ""
    """Why the worker cannot run cells, in words that follow its name; empty where it can."""


class Word(Frozen, frozen=True):
    """What a worker says of one task of the cluster."""

    key: str
    """Of the task."""
    said: Progress | Waits | Ended


def pack(value: msgspec.Struct) -> bytes:
    """Return a value as bytes."""
    return msgspec.msgpack.encode(value)
