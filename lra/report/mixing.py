"""Means over the tasks that ask for attention: where exact attention stays clear of every shortcut.

A task that a convolution of a few positions, counts or a rule of thumb solve as well as exact
attention does tests local structure. A mean over it would rank attention by something else.
"""

from __future__ import annotations

import msgspec

from lra.core.catalogue import EXACT
from lra.report.accuracy import Accuracies, Column, means_over
from lra.report.baselines import shortcut
from lra.report.load.select import Evidence

MARGIN = 0.10
"""Least accuracy of exact attention above the best shortcut for a task to count in a mean."""


def mean_over_mixing(evidence: Evidence, scores: Accuracies) -> Accuracies:
    """Return scores whose mean leaves out the tasks that test local structure, and names them.

    A task without exact attention or without any shortcut is not judged, and stays. Where fewer
    than two tasks would stay, the mean is over all.
    """
    local = tuple(one for one in scores.averaged if _is_local(evidence, scores, one))
    kept = tuple(one for one in scores.averaged if one not in local)
    if not local:
        return scores
    if len(kept) < 2:
        return msgspec.structs.replace(scores, local=local)
    means = means_over(scores.pooled, kept)
    return msgspec.structs.replace(scores, local=local, averaged=kept, means=means)


def _is_local(evidence: Evidence, scores: Accuracies, column: Column) -> bool:
    best = shortcut(evidence, scores, column)
    own = scores.pooled
    own = own[(own["protocol"] == column.protocol) & (own["mechanism"] == EXACT)]
    own = own[own["mean"].notna()]
    if best is None or own.empty:
        return False
    # The run's stands before the reference's.
    exact = own.sort_values("origin", ascending=False).iloc[0]["mean"]
    return bool(exact < best.value + MARGIN)
