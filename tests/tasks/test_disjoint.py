"""No example in two splits, where examples are so few that all streams repeat themselves."""

import numpy as np
import pytest

from lra.core.dataset import SPLITS
from tasks.generators.counter import below, bits
from tasks.generators.disjoint import Drawn, _quarter, disjoint_split


def draw_few(inputs):
    """Rows of `inputs` sequences of two tokens out of five; the label is the first token's."""

    def draw(keys_R):
        drawn = [below(bits(keys_R, i)[:, None], [0, 1], 5) for i in range(inputs)]
        tokens_RIN = np.stack(drawn, 1).astype(np.uint8)
        return Drawn(tokens_RIN, np.ones_like(tokens_RIN, dtype=np.bool_), drawn[0][:, 0])

    return draw


def examples(split):
    return [tuple(map(tuple, e)) for e in split.tokens.reshape(len(split), -1, 2).tolist()]


@pytest.mark.parametrize(("inputs", "every"), [(1, 25), (2, 325)])
def test_splits_share_no_example_nor_its_swap(inputs, every):
    found = [examples(disjoint_split(draw_few(inputs), 1, split, 3000)) for split in SPLITS]
    assert all(len(set(held)) < 3000 for held in found)
    unordered = [{tuple(sorted(example)) for example in held} for held in found]
    # Every example there is stands in one of them.
    assert sum(map(len, unordered)) == len(set.union(*unordered)) == every


def test_an_example_and_its_swap_have_the_same_fingerprint():
    pairs = below(np.arange(400, dtype=np.uint64)[:, None], np.arange(24), 94).reshape(-1, 2, 12)
    quarters = _quarter(pairs)
    assert np.array_equal(quarters, _quarter(pairs[:, ::-1]))
    assert np.bincount(quarters, minlength=4).min() > 60
    assert not np.array_equal(quarters, _quarter(pairs[:, :, ::-1])), "order within one counts"
