"""Labelled texts as a person would compare them: the task's real sets, turned back to bytes."""

import numpy as np
from set_reader import read_set

from tasks.text import Text, TextConfig


def read_labelled_text(source, rows, *, rules="fixed"):
    """Texts and labels of each split."""
    data = read_set(Text(TextConfig(), length=10**6, rules=rules), source, rows)
    return {
        name: (
            [(split.sequence(i) - 1).astype(np.uint8).tobytes() for i in range(len(split))],
            split.labels,
        )
        for name, split in data
    }
