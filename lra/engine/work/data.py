"""A cell's task, with its data prepared."""

from __future__ import annotations

from pathlib import Path

from lra.core import catalogue
from lra.core.dataset import Dataset
from lra.core.protocol import DataSpec
from lra.engine.jobs import Job
from tasks.contract import Task
from tasks.sources.data_hash import prepared_name
from tasks.sources.opening import built, open_or_prepare


def load(spec: DataSpec, job: Job) -> tuple[Task, Dataset]:
    """Return the task and its data, made or read where the cache has none."""
    reference = job.task or spec.task
    folder = Path(job.cache) / prepared_name(catalogue.find("task", reference).file, spec)
    task = built(reference, spec)
    data = open_or_prepare(task, spec, job.source, folder)
    return task, data.shuffled() if spec.order == "shuffled" else data
