"""Executors: the cells of a run on this machine, or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, Unpack

if TYPE_CHECKING:
    from lra.core.cells import Device
    from lra.engine.cluster.cluster import Cluster
    from lra.engine.jobs import Job
    from lra.engine.plan.spec import ExecutionSpec, RunSpec
    from lra.engine.process.launch import ForkServer
    from lra.engine.process.runner import Runner, RunnerOptions
    from lra.store import Store


class Executor(Protocol):
    """A place where cells run."""

    def spec(self, spec: RunSpec) -> RunSpec:
        """Return the specification with the machines of this executor."""

    def slots(self, jobs: list[Job]) -> int:
        """Return how many cells of a plan run side by side."""

    def runner(self, store: Store, slots: int, **more: Unpack[RunnerOptions]) -> Runner:
        """Return a runner of jobs on this executor; `more` are `Runner`'s own arguments."""


class Local:
    """This machine: worker processes of one fork server."""

    def __init__(self, server: ForkServer, jobs_asked: int | None) -> None:
        self._server, self._jobs_asked = server, jobs_asked

    def spec(self, spec: RunSpec) -> RunSpec:
        """Return the specification unchanged."""
        return spec

    def slots(self, jobs: list[Job]) -> int:
        """Return `--jobs`, or as many as the cores allow."""
        from lra.engine.process.pool import default_slots

        return self._jobs_asked or default_slots(jobs)

    def runner(self, store: Store, slots: int, **more: Unpack[RunnerOptions]) -> Runner:
        """Return a pool."""
        from lra.engine.process.pool import Pool

        return Pool(store, self._server, slots=slots, **more)


class Remote:
    """The workers of a cluster; `device` is the one asked for."""

    def __init__(self, cluster: Cluster, device: Device | None) -> None:
        self._cluster, self._device = cluster, device

    def spec(self, spec: RunSpec) -> RunSpec:
        """Set the workers' class of machine, and their device unless one was asked for."""
        from msgspec.structs import replace

        from lra.core.errors import UsageError

        device = self._device or self._cluster.device
        if device not in self._cluster.machines:
            raise UsageError(
                f"--device {device}: no worker of {self._cluster.name} sees a GPU; leave it out"
            )
        return replace(spec, device=device, machines=self._cluster.machines)

    def slots(self, jobs: list[Job]) -> int:
        """Return the number of workers that are there now."""
        return self._cluster.size

    def runner(self, store: Store, slots: int, **more: Unpack[RunnerOptions]) -> Runner:
        """Return a grid."""
        from lra.engine.cluster.grid import Grid

        return Grid(store, self._cluster, **more)


def _check_before_waiting(spec: RunSpec, how: ExecutionSpec) -> None:
    """Check before waiting for workers that the cells can be planned and the store is free.

    Raises `LraError`. Their device is not known yet unless one was asked for; without it a plan for
    a CPU or for GPUs passes.
    """
    from msgspec.structs import replace

    from lra.core.errors import UsageError
    from lra.engine.machine import host
    from lra.engine.plan.suite import plan_suite
    from lra.store import Store

    either: tuple[Device, ...] = ("cpu", "cuda")
    refused: list[UsageError] = []
    for on in either if how.device is None else (how.device,):
        machines = dict.fromkeys(either, host.machine("cpu"))
        try:
            plan_suite(replace(spec, device=on, machines=machines))
            break
        except UsageError as error:
            refused.append(error)
    else:
        raise refused[0]
    with Store(how.store).locked():
        pass


@contextmanager
def open_executor(
    spec: RunSpec, how: ExecutionSpec, *, left: Callable[[], float]
) -> Iterator[Executor]:
    """Open the executor that `--cluster` names, this machine where it names none.

    A dry run connects to nothing, but refuses a name of no cluster: its cells are of this machine's
    class. `left` returns the seconds that remain. Raises `LraError` where a cluster cannot be had,
    or cannot do the run.
    """
    from lra.cli.echo import on_stderr
    from lra.core.errors import UsageError
    from lra.engine.process.launch import ForkServer

    if how.cluster is None:
        with ForkServer() as server:
            yield Local(server, how.jobs)
        return
    if how.jobs is not None:
        raise UsageError(
            "--jobs is for this machine; a cluster has as many slots as workers: leave --jobs out"
        )
    try:
        from lra.engine.cluster.connect import open_cluster, workers_asked
        from lra.engine.cluster.local import PREFIX
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--cluster needs the package '{error.name}'; "
            'pip install -c constraints.txt ".[cluster]"'
        ) from error
    workers = workers_asked(how.cluster, how.device)
    log = on_stderr(quiet=False)
    if how.dry_run:
        if not how.cluster.startswith(PREFIX):
            log("cell names assume this machine's class; the workers' may differ")
        if workers is None:
            log(
                "the number of workers is unknown in a dry run; times assume as many as this "
                "machine runs at once"
            )
        with ForkServer() as server:
            yield Local(server, workers)
        return
    _check_before_waiting(spec, how)
    with open_cluster(how.cluster, how.store, device=how.device, echo=log, left=left) as cluster:
        yield Remote(cluster, how.device)
