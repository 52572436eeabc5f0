"""The oracles of the Sinkhorn Transformer and the Synthesizer against formulas in plain Python.

Sinkhorn (Tay et al. 2020, section 3): R from a block's sum by two layers with a ReLU between,
S = alternate normalisations of rows and columns of e^(R / tau), softmax over a block's own keys and
the block sorted towards it. Checked against lucidrains/sinkhorn-transformer,
sinkhorn_transformer/sinkhorn_transformer.py, SinkhornAttention (its non-causal form keeps the
strongest block only, and scales by the whole width where we scale by a head's), and against
google-research/long-range-arena, lra_benchmarks/models/sinkhorn_transformer/sinkhorn_attention.py.
Ours ends with the rows, theirs with the columns.

Synthesizer (Tay et al. 2021, section 3): softmax(A) V, A trained or of one input alone, unscaled.
"""

from __future__ import annotations

import math

import pytest
import torch
from plain import affine, blend, dot, drawn, head, product, same, softmax, turned

from attention_impls.contract import Context


def balanced(wanted, iterations: int) -> list[list[float]]:
    s = [[math.exp(x) for x in row] for row in wanted]
    for _ in range(iterations):
        s = turned([[x / sum(column) for x in column] for column in turned(s)])
        s = [[x / sum(row) for x in row] for row in s]
    return s


def earlier(wanted) -> list[list[float]]:
    """Rows alone, over strictly earlier blocks; the first has none."""
    count = len(wanted)
    rows = [softmax(wanted[u][:u]) if u else [] for u in range(count)]
    return [row + [0.0] * (count - len(row)) for row in rows]


def in_blocks(q, k, v, s, size: int, causal: bool) -> list[list[float]]:
    """Each query reads its own block and a mixture of blocks, slot by slot."""
    blocks = [range(start, start + size) for start in range(0, len(q), size)]
    out = []
    for i, query in enumerate(q):
        u = i // size
        own = [j for j in blocks[u] if j <= i or not causal]
        keys, values = [k[j] for j in own], [v[j] for j in own]
        if sum(s[u]):
            for slot in range(size):
                keys.append(blend(s[u], [k[block[slot]] for block in blocks]))
                values.append(blend(s[u], [v[block[slot]] for block in blocks]))
        weights = softmax([dot(query, key) / math.sqrt(len(query)) for key in keys])
        out.append(blend(weights, values))
    return out


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("iterations", [1, 4])
def test_sinkhorn(iterations, causal, build) -> None:
    config = {"block": 2, "iterations": iterations, "temperature": 0.5}
    layer = build(("sinkhorn", config))
    x = drawn(1, 6, 12)
    q, k, v, extra = layer.project(x, Context(causal), None, None)
    # A block is sorted by the sum of its inputs; causal, of all inputs up to its first.
    rows = x[0].tolist()
    sums = [
        [sum(column) for column in turned(rows[: 2 * u + 1] if causal else rows[2 * u : 2 * u + 2])]
        for u in range(3)
    ]
    hidden = [[max(0.0, number) for number in row] for row in affine(sums, layer.sort_hidden)]
    wanted = affine(hidden, layer.sort_wanted)
    out, _ = layer.oracle(q, k, v, Context(causal), **extra)
    for number in range(2):
        # The network was built for 24 blocks, of which three are there.
        logits = [[y / 0.5 for y in row[:3]] for row in head(wanted, number, 24)]
        same(extra["wanted"][0, number], logits)
        s = earlier(logits) if causal else balanced(logits, iterations)
        heads = (y[0, number].tolist() for y in (q, k, v))
        same(out[0, number], in_blocks(*heads, s, 2, causal))


def test_a_sort_of_two_blocks_by_hand(build) -> None:
    """e^R = [[1, 3], [1, 1]]: columns over 2 and 4 give [[1/2, 3/4], [1/2, 1/4]]; rows over 5/4 and
    3/4 give [[2/5, 3/5], [2/3, 1/3]]. With q = 0 a query of a block of one weighs its own value and
    the sorted one alike: (v_0 + 2/5 v_0 + 3/5 v_1) / 2 and (v_1 + 2/3 v_0 + 1/3 v_1) / 2."""
    layer = build(("sinkhorn", {"block": 1, "iterations": 1}))
    wanted = torch.tensor([[0.0, math.log(3)], [0.0, 0.0]], dtype=torch.float64)
    q, k = torch.zeros(1, 2, 2, 4).double(), drawn(1, 2, 2, 4)
    v = torch.tensor([[15.0], [30.0]]).double().expand(1, 2, -1, -1)
    out, _ = layer.oracle(q, k, v, Context(), wanted=wanted.expand(1, 2, -1, -1))
    same(out, [[[[(15 + 6 + 18) / 2], [(30 + 10 + 10) / 2]]] * 2])


@pytest.mark.parametrize("causal", [False, True])
def test_a_random_synthesizer_by_hand(causal, build) -> None:
    """A holds ln 1, ln 2, ln 3 in each row; nothing divides it."""
    layer = build(("synthesizer", {"logits": "random"}))
    with torch.no_grad():
        layer.logits_HPP[:, :3, :3] = torch.tensor([math.log(j) for j in (1, 2, 3)]).double()
        layer.logits_HPP[:, :3, 1] = math.log(2)
        layer.logits_HPP[:, :3, 2] = math.log(3)
    v = torch.tensor([[6.0], [12.0], [18.0]]).double().expand(1, 2, -1, -1)
    _, _, _, extra = layer.project(drawn(1, 3, 12), Context(), None, None)
    out, _ = layer.oracle(None, None, v, Context(causal), **extra)
    same(out, [[[[x] for x in ([6.0, 10.0, 14.0] if causal else [14.0] * 3)]] * 2])


@pytest.mark.parametrize("dot_product", [False, True])
@pytest.mark.parametrize("kind", ["factorised", "random", "dense"])
def test_synthesizer(kind, dot_product, build) -> None:
    """Logits of one row come of that row's input alone, or of none; q . k is scaled, A is not."""
    layer = build(("synthesizer", {"logits": kind, "rank": 2, "dot_product": dot_product}))
    x = drawn(1, 3, 12)
    rows = x[0].tolist()
    q, k, v, extra = layer.project(x, Context(), None, None)
    out, _ = layer.oracle(q, k, v, Context(), **extra)
    values = affine(rows, layer.value)
    for number in range(2):
        if kind == "factorised":
            left, right = (y[number, :3].tolist() for y in (layer.left_HPR, layer.right_HPR))
            logits = product(left, turned(right))
        elif kind == "random":
            logits = layer.logits_HPP[number, :3, :3].tolist()
        else:
            hidden = [[max(0.0, y) for y in row] for row in affine(rows, layer.hidden)]
            logits = product(head(hidden, number, 8), layer.rows_HKP[number, :, :3].tolist())
        if dot_product:
            of_q, of_k = (head(affine(rows, p), number, 8) for p in (layer.query, layer.key))
            logits = [
                [a + dot(of_q[i], of_k[j]) / math.sqrt(8) for j, a in enumerate(row)]
                for i, row in enumerate(logits)
            ]
        wanted = [blend(softmax(row), head(values, number, 8)) for row in logits]
        same(out[0, number], wanted)
