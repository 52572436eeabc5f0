"""Reformer's oracle against the sorted, chunked procedure in plain Python.

Kitaev et al. 2020, section 2 and appendix A: h(x) = argmax([x R; -x R]), k_j = q_j / |q_j|, sort by
bucket and then by position, chunks read themselves and one chunk back, a position itself only at
the cost of 10^5, rounds weighted by e^z. Checked against google/trax,
trax/layers/research/efficient_attention.py (hash_vecs, attend, mask_self_attention,
LSHSelfAttention) and huggingface/transformers, models/reformer/modeling_reformer.py.

Where these differ among themselves, ours is: trax's scale, unit keys and nothing else (trax and the
port normalise keys to the length sqrt(d) before they divide by it); trax's sets, a whole chunk
whatever the bucket, and a pair as often as rounds see it (the paper masks other buckets, equation
4, and takes log N_ij off, equation 16); the ring, which trax and the port close over all rounds and
the paper not at all, is closed in each round.
"""

from __future__ import annotations

import math

import pytest
import torch
from plain import blend, dot, drawn, same

from attention_impls.contract import Context


def one_round(q, v, buckets, size: int, causal: bool) -> list[tuple[list[float], float]]:
    """Return each position's output and the logarithm of its normaliser."""
    order = sorted(range(len(q)), key=lambda i: (buckets[i], i))
    chunks = [order[start : start + size] for start in range(0, len(q), size)]
    unit = [[x / math.sqrt(dot(row, row)) for x in row] for row in q]
    found = {}
    for number, chunk in enumerate(chunks):
        read = chunk + chunks[number - 1]  # the first reads the last
        for i in chunk:
            keys = [j for j in read if j <= i or not causal]
            logits = [dot(q[i], unit[j]) - 1e5 * (i == j) for j in keys]
            top = max(logits)
            shares = [math.exp(x - top) for x in logits]
            weights = [share / sum(shares) for share in shares]
            found[i] = blend(weights, [v[j] for j in keys]), top + math.log(sum(shares))
    return [found[i] for i in range(len(q))]


def merged(rounds) -> list[list[float]]:
    out = []
    for parts in zip(*rounds, strict=True):
        top = max(z for _, z in parts)
        shares = [math.exp(z - top) for _, z in parts]
        out.append(blend([share / sum(shares) for share in shares], [o for o, _ in parts]))
    return out


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "size", "rounds"), [(9, 3, 1), (9, 3, 3), (12, 2, 4), (8, 2, 2)])
def test_rounds_of_sorted_chunks(n, size, rounds, causal, build) -> None:
    """Duplicates over rounds too: with few buckets most pairs are seen more than once."""
    layer = build(("reformer", {"chunk": size, "rounds": rounds}))
    x = drawn(1, n, 12)
    q, k, v, _ = layer.project(x, Context(), None, None)
    generator = torch.Generator().manual_seed(n)
    buckets = torch.randint(4, (1, 2, rounds, n), generator=generator)
    out, _ = layer.oracle(q, k, v, Context(causal), buckets=buckets)
    for number in range(2):
        heads = [y[0, number].tolist() for y in (q, v)]
        parts = [
            one_round(*heads, buckets[0, number, r].tolist(), size, causal) for r in range(rounds)
        ]
        same(out[0, number], merged(parts))


def test_three_positions_in_one_chunk_by_hand(build) -> None:
    """d = 4 and q_0 = (ln 2, 0, 0, 0): over |k| = 1 its logits are ln 2 with a key
    that points the same way and 0 with one at right angles, so weights 2/3 and 1/3, and none for
    itself. Position 0 alone in the causal form reads itself."""
    layer = build(("reformer", {"chunk": 3, "rounds": 1}))
    q = torch.zeros(1, 2, 3, 4).double()
    q[:, :, 0, 0], q[:, :, 1, 0], q[:, :, 2, 1] = math.log(2), 5.0, 7.0
    k = q / q.norm(dim=-1, keepdim=True)
    v = torch.tensor([[100.0], [6.0], [12.0]]).double().expand(1, 2, -1, -1)
    buckets = torch.zeros(1, 2, 1, 3, dtype=torch.int64)
    out, _ = layer.oracle(q, k, v, Context(), buckets=buckets)
    assert out[0, 0, 0, 0].item() == pytest.approx(2 / 3 * 6 + 1 / 3 * 12, rel=1e-12)
    # Position 2 is at right angles to both others: half of each.
    assert out[0, 0, 2, 0].item() == pytest.approx(53.0, rel=1e-12)
    out, _ = layer.oracle(q, k, v, Context(causal=True), buckets=buckets)
    same(out[0, :, :2, 0], [[100.0, 100.0]] * 2)


def test_buckets_are_the_nearest_of_random_directions_and_their_opposites(build) -> None:
    """b = 2 n / m buckets of b / 2 directions (section 2: m = 2 l / n_buckets)."""
    layer = build(("reformer", {"chunk": 4, "rounds": 2}))
    x = drawn(1, 2, 12, 8)
    found = layer.buckets(x, None)
    for number in range(2):
        for r in range(2):
            directions = layer.directions_HRK2T[number, r, :, 0, :3].T.tolist()
            for i, row in enumerate(x[0, number].tolist()):
                along = [dot(row, direction) for direction in directions]
                along += [-value for value in along]
                assert int(found[0, number, r, i]) == along.index(max(along))
