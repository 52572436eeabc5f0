"""`--cluster FILE.toml`: workers as jobs of Slurm and its like, by dask-jobqueue."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from lra.core.errors import UsageError, ensure_readable
from lra.core.paths import opened
from lra.core.protocol import Frozen, Positive
from lra.core.scales import convert, read_toml
from lra.engine.cluster.jobqueue import dask_jobqueue
from lra.engine.cluster.local import quiet
from lra.engine.cluster.local_worker import CONFIG
from lra.engine.cluster.shared_folder import Shared
from lra.engine.process.error_text import one_line
from lra.engine.process.launch import environment

System = Literal["slurm", "pbs", "sge", "lsf", "oar", "moab", "htcondor"]
_CLASSES: dict[System, str] = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "lsf": "LSFCluster",
    "oar": "OARCluster",
    "moab": "MoabCluster",
    "htcondor": "HTCondorCluster",
}
_OF_CLUSTER = ("scheduler_options", "security", "shared_temp_directory")
"""Arguments that are no job's."""
_LOOPBACK = "127.0.0.1:0"
_UNKNOWN = re.compile(r"unexpected keyword argument '(\w+)'")


class Shaped(Frozen, frozen=True, kw_only=True):
    """The arguments of dask-jobqueue's classes that are read or added to here."""

    processes: Positive = 1
    job_script_prologue: tuple[Any, ...] = ()
    worker_extra_args: tuple[Any, ...] = ()
    scheduler_options: dict[str, Any] = {}


class Batch(Frozen, frozen=True, kw_only=True):
    """What a cluster's file says."""

    system: System
    jobs: Positive
    """How many jobs are asked for, a worker each unless `job.processes` says more."""
    job: dict[str, Any] = {}
    """Arguments of dask-jobqueue's class for the system, passed on as they are."""

    @property
    def shaped(self) -> Shaped:
        """Those of the arguments that we shape; raises `msgspec.ValidationError` for misfits."""
        return msgspec.convert(_shaped(self.job), Shaped)

    @property
    def workers(self) -> int:
        """How many workers there are once all jobs run."""
        return self.jobs * self.shaped.processes


def read_batch(file: Path) -> Batch:
    """Return what a cluster's file says; raises `UsageError` naming what does not fit."""
    where = f"--cluster '{file}'"
    with ensure_readable(where), opened(file) as stream:
        content = stream.read() or b""
    given = read_toml(content, where)
    try:
        batch = convert(given, Batch, where)
        convert(_shaped(batch.job), Shaped, f"{where}, [job]")
    except UsageError as error:
        raise UsageError(f"{error}; docs/cluster.md has an example") from error
    return batch


def arguments(batch: Batch, shared: Shared) -> dict[str, Any]:
    """Return the arguments of dask-jobqueue's class: the file's, and what it leaves to us."""
    shaped = batch.shaped
    exports = {
        "PYTHONPATH": environment()["PYTHONPATH"],
        "PYTHONSAFEPATH": "1",
        **{_variable(name): str(value) for name, value in CONFIG.items()},
    }
    ours = [f"export {name}={shlex.quote(value)}" for name, value in exports.items()]
    return {
        "job_name": "lra",
        "log_directory": str(shared.log("").parent),
        **batch.job,
        "processes": shaped.processes,
        "job_script_prologue": [*shaped.job_script_prologue, *ours],
        # A worker without a dashboard has a page of its state all the same.
        "worker_extra_args": [
            "--no-dashboard",
            "--dashboard-address",
            _LOOPBACK,
            *shaped.worker_extra_args,
        ],
        "scheduler_options": {"dashboard_address": _LOOPBACK, **shaped.scheduler_options},
    }


def make(batch: Batch, shared: Shared, name: str) -> dask_jobqueue.JobQueueCluster:
    """Return the cluster of a file, its scheduler running here and no job asked for yet.

    Raises `UsageError` for arguments that dask-jobqueue does not take.
    """
    kind = getattr(dask_jobqueue, _CLASSES[batch.system])
    given = arguments(batch, shared)
    try:
        # One job alone: a cluster that cannot be made is never closed.
        kind.job_cls("", name=name, **{k: v for k, v in given.items() if k not in _OF_CLUSTER})
        return kind(**given, silence_logs=False)
    except (TypeError, ValueError, KeyError, OSError) as error:
        unknown = _UNKNOWN.search(str(error))
        why = f"unknown argument '{unknown[1]}'" if unknown else one_line(error)
        raise UsageError(
            f"--cluster '{name}': [job] {why}; see the arguments of dask-jobqueue's {kind.__name__}"
        ) from error


@contextmanager
def batch_jobs(batch: Batch, shared: Shared, name: str) -> Iterator[dask_jobqueue.JobQueueCluster]:
    """Keep as many jobs in the queue as a file asks for, while the context lasts; one that ends
    at its time limit is asked for again."""
    with quiet(shared), make(batch, shared, name) as cluster:
        cluster.adapt(minimum_jobs=batch.jobs, maximum_jobs=batch.jobs)
        yield cluster


def _shaped(job: dict[str, Any]) -> dict[str, Any]:
    return {name: job[name] for name in Shaped.__struct_fields__ if name in job}


def _variable(name: str) -> str:
    """The environment variable that sets a key of Dask's configuration."""
    return "DASK_" + name.upper().replace(".", "__").replace("-", "_")
