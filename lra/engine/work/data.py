"""A cell's task, with its data prepared."""

from __future__ import annotations

from pathlib import Path

from lra.core.dataset import Dataset
from lra.core.protocol import DataSpec
from lra.engine.jobs import Job
from tasks.contract import Task
from tasks.sources.opening import built, open_or_prepare


def load(spec: DataSpec, job: Job) -> tuple[Task, Dataset]:
    """Return the task and its data, made or read where the cache has none."""
    task = built(job.task or spec.task, spec)
    data = open_or_prepare(task, spec, job.source, Path(job.cache))
    return task, data.shuffled() if spec.order == "shuffled" else data
