"""No example in two splits, where examples are so few that all streams repeat themselves."""

import numpy as np
import pytest

from lra.core.dataset import SPLITS
from tasks.generators.counter import below, bits
from tasks.generators.disjoint import Drawn, _quarter, disjoint_split


def draw_few(inputs):
    """Rows of `inputs` sequences of two tokens out of five; the label is the first token's."""

    def draw(keys_R):
        tokens_RIN = np.stack(
            [below(bits(keys_R, i)[:, None], [0, 1], 5) for i in range(inputs)], 1
        )
        return Drawn(
            tokens_RIN.astype(np.uint8),
            np.ones(tokens_RIN.shape, dtype=np.bool_),
            tokens_RIN[:, 0, 0],
        )

    return draw


def examples(split):
    return [tuple(map(tuple, e)) for e in split.tokens.reshape(len(split), -1, 2).tolist()]


@pytest.mark.parametrize("inputs", [1, 2])
def test_splits_share_no_example_nor_its_swap(inputs):
    found = {split: examples(disjoint_split(draw_few(inputs), 1, split, 3000)) for split in SPLITS}
    unordered = [{tuple(sorted(example)) for example in found[split]} for split in SPLITS]
    assert all(len(set(found[split])) < 3000 for split in SPLITS)
    # Every example there is stands in one of them.
    assert sum(map(len, unordered)) == len(set.union(*unordered)) == {1: 25, 2: 325}[inputs]


def test_an_example_and_its_swap_have_the_same_fingerprint():
    pairs = below(np.arange(400, dtype=np.uint64)[:, None], np.arange(24), 94).reshape(-1, 2, 12)
    quarters = _quarter(pairs)
    assert np.array_equal(quarters, _quarter(pairs[:, ::-1]))
    assert np.bincount(quarters, minlength=4).min() > 60
    assert not np.array_equal(quarters, _quarter(pairs[:, :, ::-1])), "order within one counts"
