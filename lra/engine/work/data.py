"""A cell's task, with its data prepared."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec

from lra.core import catalogue
from lra.core.dataset import Dataset
from lra.core.errors import UsageError
from lra.core.protocol import DataSpec
from lra.engine.jobs import Job
from tasks.contract import Task
from tasks.sources.opening import open_or_prepare


def load(spec: DataSpec, job: Job) -> tuple[Task, Dataset]:
    """Return the task and its data, made or read where the cache has none."""
    found = cast(type[Task], catalogue.load(catalogue.find("task", job.task or spec.task)))
    try:
        config = msgspec.convert(spec.parameters, found.Config)
    except msgspec.ValidationError as error:
        raise UsageError(f"task '{spec.task}': {error}; fix its parameters") from error
    task = found(config, length=spec.length, rules=spec.rules)
    return task, open_or_prepare(task, spec, job.source, Path(job.cache))
