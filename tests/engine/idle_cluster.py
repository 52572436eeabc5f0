"""A client whose scheduler runs no task, and its workers' handshakes: stand-ins for Dask."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec

from lra.core.protocol import Machine
from lra.core.records import Failure, Record
from lra.engine.cluster.cluster import Cluster
from lra.engine.cluster.handshake import Handshake, introduce, software
from lra.engine.cluster.worker import Ended, Order, TaskEvent
from lra.engine.jobs import Job

OURS = software()


def handshake(**changes: Any) -> Handshake:
    values: dict[str, Any] = {
        "software": OURS,
        "machines": {"cpu": Machine(processor="toy", cores=4)},
        "host": "one",
        "cpus": (0, 1, 2, 3),
        "gpus": (),
        "provenance": {},
        "problem": "",
    }
    return msgspec.convert(values | changes, Handshake)


class Future:
    """A task that nobody runs."""

    status = "pending"

    def __init__(self, key: str) -> None:
        self.key = key
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Any], None]] = []

    def exception(self) -> BaseException | None:
        return self._error

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        self._callbacks.append(call)

    def release(self) -> None:
        """Forget the task, as a client does: what it came to is then unknown."""
        self.status, self._error = "cancelled", None

    def end(self, status: str, error: BaseException | None = None) -> None:
        self.status, self._error = status, error
        for call in self._callbacks:
            call(self)


class Client:
    """A scheduler that has the workers of `handshakes`."""

    status, scheduler = "running", SimpleNamespace(identity=None)

    def __init__(self) -> None:
        self.handshakes: dict[str, Handshake | Exception] = {}
        self.tasks: list[Future] = []

    def sync(self, function: object, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1
        return {"workers": {name: {"name": name} for name in self.handshakes}}

    def run(
        self, function: object, folder: object, workers: list[str], on_error: str
    ) -> dict[str, bytes | Exception]:
        assert function is introduce and on_error == "return"
        found = {name: self.handshakes[name] for name in workers}
        encode = msgspec.msgpack.encode
        return {n: one if isinstance(one, Exception) else encode(one) for n, one in found.items()}

    def submit(
        self, function: object, order: Order, key: str, workers: list[str], pure: bool
    ) -> Future:
        assert workers == ["w0"] and not pure
        self.tasks.append(Future(key))
        return self.tasks[-1]

    def subscribe_topic(self, topic: str, handler: Callable[[Any], None]) -> None:
        self.handler = handler

    def cancel(self, futures: list[Future]) -> None:
        pass

    def send(self, task: Future, content: Any) -> None:
        self.handler((0.0, msgspec.msgpack.encode(TaskEvent(task.key, content))))


def join(cluster: Cluster, **handshakes: Handshake | Exception) -> None:
    cluster.client.handshakes |= handshakes
    cluster.update()


def failed(job: Job, seconds: float) -> Ended:
    return Ended(
        Record(
            id=job.cell.id,
            cell=job.cell,
            status="error",
            started_at="2026-01-01T00:00:00+00:00",
            seconds=seconds,
            failure=Failure(type="E", message="m", phase="train"),
        )
    )
