"""Simple baselines of tasks with a label for each token: from the labels alone, and from the token
itself without any other; where examples have a source, from what is in it too."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lra.core.cards import TaskMetric
from lra.core.dataset import UNASKED, Dataset, Split

Counts = npt.NDArray[np.float64]


def baselines_by_token(dataset: Dataset, metric: TaskMetric) -> dict[str, float]:
    """Return each baseline's score on the test split: a share of 1, bits per byte, or nat.

    `majority` answers the most frequent training label, `current_token` the most frequent one at
    the same token: all that a model without mixing can know, positions aside. For a loss, both
    predict the frequencies of the training split, each plus one. Accuracies with a source come with
    those of `baselines_by_source`.
    """
    tokens, labels = _asked(dataset.train)
    test_tokens, test_labels = _asked(dataset.test)
    # Tokens of several parts have many possible ids, of which few occur.
    known, numbers = np.unique(np.concatenate([tokens, test_tokens]), return_inverse=True)
    tokens, test_tokens = np.split(numbers, [len(tokens)])
    counted_VC = np.zeros((len(known), dataset.classes))
    np.add.at(counted_VC, (tokens, labels), 1.0)
    seen_VC, of_labels_1C = counted_VC + 1.0, counted_VC.sum(axis=0, keepdims=True) + 1.0
    found = {
        "majority": _score(of_labels_1C, np.zeros_like(test_tokens), test_labels, metric),
        "current_token": _score(seen_VC, test_tokens, test_labels, metric),
    }
    if dataset.test.has_source and metric == "accuracy":
        # scikit-learn takes a second to import, and other tasks do without.
        from lra.measure.baselines_by_source import baselines_by_source

        found |= baselines_by_source(dataset)
    return found


def _asked(split: Split) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    asked = split.labels != UNASKED
    return split.tokens[asked].astype(np.int64), split.labels[asked].astype(np.int64)


def _score(
    seen_VC: Counts,
    tokens: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int64],
    metric: TaskMetric,
) -> float:
    if metric == "accuracy":
        return float(np.mean(seen_VC.argmax(axis=1)[tokens] == labels))
    shares_VC = seen_VC / seen_VC.sum(axis=1, keepdims=True)
    lost = -np.log(shares_VC[tokens, labels]).mean()
    return float(lost if metric == "nat" else lost / np.log(2))
