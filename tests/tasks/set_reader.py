"""Whole real sets, read as a run reads them, and the defects that their readers report."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from lra.core.errors import DataError
from lra.core.protocol import DataSpec, Rows
from tasks.sources.opening import open_or_prepare
from tasks.text import Text, TextConfig

ALL = Rows(train=10_000, validation=10_000, test=10_000)


def read_set(task, source, rows=ALL):
    """At most `rows` of each split of a source, cut to the task's length."""
    spec = DataSpec(task=task.name, length=task.length, rows=rows, rules=task.rules)
    with TemporaryDirectory() as cache:
        return open_or_prepare(task, spec, str(source), Path(cache) / "set")


def refused(says, read, *arguments):
    """A `DataError` of one line that names the fault comes of reading."""
    with pytest.raises(DataError, match=says) as caught:
        read(*arguments)
    assert "\n" not in str(caught.value)


def noted(task, source):
    """The defects of a source after which its reader goes on, and the examples without one."""
    defects, examples = [], []
    for part in task.parts(str(source)):
        examples += part.examples(lambda defect: defects.append(str(defect)))
    return defects, examples


def texts(split):
    """The texts of a split of documents."""
    sequences = map(split.sequence, range(len(split) * split.inputs))
    return [(sequence - 1).astype(np.uint8).tobytes() for sequence in sequences]


def read_labelled_text(source, rows=ALL, rules="fixed"):
    """Texts and labels of each split."""
    data = read_set(Text(TextConfig(), length=10**6, rules=rules), source, rows)
    return {name: (texts(split), split.labels) for name, split in data}


def arrays(split):
    return split.tokens, split.starts, split.labels


def same(one, other):
    """Whether two splits hold the same, types included."""
    return one.inputs == other.inputs and all(
        mine.dtype == theirs.dtype and np.array_equal(mine, theirs)
        for mine, theirs in zip(arrays(one), arrays(other), strict=True)
    )
