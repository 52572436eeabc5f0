"""The oracles of fixed patterns against sets written out by hand, and weights that are fractions.

Which side of a window is inclusive, where blocks end, and what causal queries at the end of longer
keys see: read off the papers' definitions, not off any mask of ours.

Sparse Transformer (Child et al. 2019, section 4.2), strided: A1 = {t, ..., i} for
t = max(0, i - l), A2 = {j : (i - j) mod l = 0}; fixed: A1 = {j : floor(j / l) = floor(i / l)},
A2 = {j : j mod l in {l - c, ..., l - 1}}. Checked against the authors' openai/sparse_attention,
attention.py: its band of l counts the query itself, so it ends at i - l + 1, which changes nothing
in the union, where i - l is a multiple of l away.
"""

from __future__ import annotations

import pytest
import torch
from plain import powers, same, shares

from attention_impls.contract import Context

WINDOW = [[0, 1], [0, 1, 2], [0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5]]
"""Two keys before a query, one after."""

WINDOW_CAUSAL = [[0], [0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]
BLOCKS = [[0, 1], [0, 1], [2, 3], [2, 3], [4]]
"""Blocks of two; the last is short."""

BLOCKS_CAUSAL = [[0], [0, 1], [2], [2, 3], [4]]
STRIDED = [
    [0, 1, 2, 3, 6],
    [0, 1, 2, 3, 4, 7],
    [0, 1, 2, 3, 4, 5],
    [0, 1, 2, 3, 4, 5, 6],
    [1, 2, 3, 4, 5, 6, 7],
    [2, 3, 4, 5, 6, 7],
    [0, 3, 4, 5, 6, 7],
    [1, 4, 5, 6, 7],
]
"""A stride of 3: the two next to a query on either side, and 0, 3, 6 or 1, 4, 7 or 2, 5."""

STRIDED_CAUSAL = [[j for j in row if j <= i] for i, row in enumerate(STRIDED)]
FIXED = [
    [0, 1, 2, 3, 6, 7],
    [0, 1, 2, 3, 6, 7],
    [0, 1, 2, 3, 6, 7],
    [0, 1, 2, 3, 6, 7],
    [2, 3, 4, 5, 6, 7],
    [2, 3, 4, 5, 6, 7],
    [2, 3, 4, 5, 6, 7],
    [2, 3, 4, 5, 6, 7],
    [2, 3, 6, 7, 8],
]
"""Blocks of 4, whose last two positions all read."""

FIXED_CAUSAL = [[j for j in row if j <= i] for i, row in enumerate(FIXED)]

CASES = [
    ("sliding_window", {"left": 2, "right": 1}, WINDOW, WINDOW_CAUSAL),
    ("block_local", {"block": 2}, BLOCKS, BLOCKS_CAUSAL),
    ("sparse_strided", {"stride": 3}, STRIDED, STRIDED_CAUSAL),
    ("sparse_fixed", {"stride": 4, "summary": 2}, FIXED, FIXED_CAUSAL),
]


@pytest.mark.parametrize(("name", "config", "both", "earlier"), CASES)
@pytest.mark.parametrize("causal", [False, True])
def test_the_sets_by_hand(name, config, both, earlier, causal, build) -> None:
    reads = earlier if causal else both
    exponents = [1 + i % 2 for i in range(len(reads))]
    qkv = powers(exponents, len(reads))
    out, weights = build((name, config)).oracle(*qkv, Context(causal))
    same(out, shares(exponents, reads)[:, None].expand_as(out))
    assert [row.nonzero().flatten().tolist() for row in weights[0, 0]] == reads


@pytest.mark.parametrize(("name", "config", "both", "earlier"), CASES)
def test_fewer_causal_queries_are_the_last(name, config, both, earlier, build) -> None:
    q, k, v = powers([1] * len(earlier), len(earlier))
    out, _ = build((name, config)).oracle(q[:, :, -2:], k, v, Context(causal=True))
    same(out, shares([1, 1], earlier[-2:])[:, None].expand_as(out))


@pytest.mark.parametrize(("name", "config", "both", "earlier"), CASES)
def test_a_masked_key_is_left_out_of_its_sets(name, config, both, earlier, build) -> None:
    qkv = powers([1] * len(both), len(both))
    mask = torch.arange(len(both)) != 1
    out, _ = build((name, config)).oracle(*qkv, Context(key_mask_BM=mask[None]))
    reads = [[j for j in row if j != 1] for row in both]
    same(out, shares([1] * len(both), reads)[:, None].expand_as(out))


def test_bigbird_row_by_row(build) -> None:
    """Zaheer et al. 2020, section 2, ITC: window of three blocks, first and last block global.

    The rows are those of google-research/bigbird, bigbird/core/attention.py,
    bigbird_block_sparse_attention: the first and the last block read everything, the second reads
    blocks 0, 1, 2, the last and its random ones; the last but one the mirror image; any other the
    first, three in the middle, the last and its random ones. Random blocks are the layer's own
    draws; that none of them is read anyway is checked here.
    """
    layer = build(("bigbird", {"block": 2, "random": 1}))
    n, last = 13, 6  # seven blocks, of which the last holds one position
    exponents = [1 + i % 2 for i in range(n)]
    out, _ = layer.oracle(*powers(exponents, n), Context())
    for number in range(2):
        reads = []
        for i in range(n):
            block = i // 2
            if block in (0, last):
                blocks = list(range(last + 1))
            else:
                blocks = {1: [0, 1, 2, last], last - 1: [0, last - 2, last - 1, last]}.get(
                    block, [0, block - 1, block, block + 1, last]
                )
                random = layer._graph.drawn(last + 1)[number, block - 1].tolist()
                assert len(random) == 1 and not set(random) & set(blocks)
                blocks = blocks + random
            reads.append([j for b in sorted(blocks) for j in (2 * b, 2 * b + 1) if j < n])
        same(out[0, number, :, 0], shares(exponents, reads))
