"""What a split may hold: rows that follow each other, tokens and labels that the set knows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lra.core.dataset import UNASKED, Dataset, Split


def misfit(data: Dataset, split: Split) -> str:
    """Return in words what a split holds that no model of its set can take; empty if nothing.

    Out of bounds, a row would ask for memory that no machine has, and a token or a label would
    read beside a table.
    """
    starts = split.starts
    if len(starts) and (starts[0] or np.any(np.diff(starts) < 0)):
        return "has rows that do not follow each other"
    if len(split) and int(split.lengths.max()) > data.length:
        return (
            f"has a row of {split.lengths.max()} tokens, longer than the {data.length} of the set"
        )
    token = _outside(split.tokens, 0, data.vocabulary)
    if token is not None:
        return f"has the token {token}, outside 0 to {data.vocabulary - 1}"
    label = _outside(split.labels, UNASKED if split.by_token else 0, data.classes)
    if label is not None:
        return f"has the label {label}, outside 0 to {data.classes - 1}"
    return ""


def _outside(values: npt.NDArray[np.integer], lowest: int, end: int) -> int | None:
    """The lowest or highest value that is below `lowest` or not below `end`; None if none is."""
    if not len(values):
        return None
    # Nothing to read where the type has no such values.
    kind = np.iinfo(values.dtype)
    if kind.min < lowest and (least := int(values.min())) < lowest:
        return least
    if kind.max >= end and (most := int(values.max())) >= end:
        return most
    return None
