"""`--cluster FILE.toml`: workers as jobs of Slurm and its like, by dask-jobqueue."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from lra.core.errors import UsageError, ensure_readable
from lra.core.paths import opened
from lra.core.protocol import Frozen, Positive
from lra.core.scales import convert, read_toml
from lra.engine.cluster.shared_folder import SharedFolder
from lra.engine.process.error_text import one_line
from lra.engine.process.launch import environment

_ctrl_c = signal.getsignal(signal.SIGINT)

import dask_jobqueue  # noqa: E402

# The import makes every Ctrl-C an exit without a word.
signal.signal(signal.SIGINT, _ctrl_c)

WORKER_CONFIG = {
    # Dask's profiler would look at the threads a hundred times a second, beside what is timed.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "1s",
    # The worker computes nothing; cells have processes of their own.
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
}
_NOT_OF_JOB = ("scheduler_options", "security", "shared_temp_directory")
_LOOPBACK = "127.0.0.1:0"


class JobArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of dask-jobqueue's classes that are read or added to here."""

    processes: Positive = 1
    job_script_prologue: tuple[Any, ...] = ()
    worker_extra_args: tuple[Any, ...] = ()
    scheduler_options: dict[str, Any] = {}


class Batch(Frozen, frozen=True, kw_only=True):
    """Content of a cluster's file."""

    system: Literal["slurm", "pbs", "sge", "lsf", "oar", "moab", "htcondor"]
    jobs: Positive
    """Number of jobs, with one worker each unless `job.processes` says more."""
    job: dict[str, Any] = {}
    """Arguments of dask-jobqueue's class for the system, passed on as they are."""

    @property
    def workers(self) -> int:
        """Number of workers once all jobs run."""
        return self.jobs * msgspec.convert(self.job, JobArguments).processes


def read_batch(file: Path) -> Batch:
    """Return a cluster's file; raises `UsageError` naming what does not fit."""
    where = f"--cluster '{file}'"
    with ensure_readable(where), opened(file) as stream:
        content = stream.read()
    try:
        batch = convert(read_toml(content, where), Batch, where)
        convert(batch.job, JobArguments, f"{where}, [job]")
    except UsageError as error:
        raise UsageError(f"{error}; docs/cluster.md has an example") from error
    return batch


def make(batch: Batch, folder: SharedFolder, name: str) -> dask_jobqueue.JobQueueCluster:
    """Return the cluster of a file, with its scheduler running here and no job submitted yet.

    Raises `UsageError` for arguments that dask-jobqueue does not take.
    """
    classes = {name.lower(): found for name, found in vars(dask_jobqueue).items()}
    kind = classes[f"{batch.system}cluster"]
    given = {"job_name": "lra", "log_directory": str(folder.log("").parent), **_arguments(batch)}
    try:
        # One job alone: a cluster that cannot be made is never closed.
        kind.job_cls("", name=name, **{k: v for k, v in given.items() if k not in _NOT_OF_JOB})
        return kind(**given, silence_logs=False)
    except (TypeError, ValueError, KeyError, OSError) as error:
        raise UsageError(
            f"--cluster '{name}': [job] {one_line(error)}; see the arguments of dask-jobqueue's "
            f"{kind.__name__}"
        ) from error


@contextmanager
def batch_cluster(
    batch: Batch, folder: SharedFolder, name: str
) -> Iterator[dask_jobqueue.JobQueueCluster]:
    """Keep as many jobs in the queue as the file asks for, while the context lasts; a job that ends
    at its time limit is submitted again."""
    with make(batch, folder, name) as cluster:
        cluster.adapt(minimum_jobs=batch.jobs, maximum_jobs=batch.jobs)
        yield cluster


def _arguments(batch: Batch) -> dict[str, Any]:
    """Arguments of dask-jobqueue's class: the file's, with our own."""
    own = msgspec.convert(batch.job, JobArguments)
    exports = {
        "PYTHONPATH": environment()["PYTHONPATH"],
        "PYTHONSAFEPATH": "1",
        # Environment variables that set Dask's configuration.
        **{
            "DASK_" + name.upper().replace(".", "__").replace("-", "_"): str(value)
            for name, value in WORKER_CONFIG.items()
        },
    }
    return {
        **batch.job,
        "processes": own.processes,
        "job_script_prologue": [
            *own.job_script_prologue,
            *(f"export {name}={shlex.quote(value)}" for name, value in exports.items()),
        ],
        # A worker without a dashboard still serves a page of its state.
        "worker_extra_args": [
            "--no-dashboard",
            "--dashboard-address",
            _LOOPBACK,
            *own.worker_extra_args,
        ],
        "scheduler_options": {"dashboard_address": _LOOPBACK, **own.scheduler_options},
    }
