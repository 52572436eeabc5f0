"""Whole real sets, read as a run reads them."""

from pathlib import Path
from tempfile import TemporaryDirectory

from lra.core.protocol import DataSpec
from tasks.sources.opening import open_or_prepare


def read_set(task, source, rows):
    """At most `rows` of each split of a source, cut to the task's length."""
    spec = DataSpec(task=task.name, length=task.length, rows=rows, rules=task.rules)
    with TemporaryDirectory() as cache:
        return open_or_prepare(task, spec, str(source), Path(cache) / "set")
