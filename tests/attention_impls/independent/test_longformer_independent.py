"""Longformer's oracle against its equations in plain Python.

Beltagy et al. 2020, section 3.1: a window of w / 2 keys to either side; global positions attend to
all and are attended to by all, by projections of their own. Checked against allenai/longformer,
longformer/longformer.py, LongformerSelfAttention.forward: a local row has one softmax over the
global columns and the window without them, with local queries, keys and values throughout; a global
row one over everything, with global queries, keys and values; both over sqrt(width of a head).
"""

from __future__ import annotations

import pytest
import torch
from plain import affine, attention, drawn, head, same

from attention_impls.contract import Context

WINDOW = [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5]]
"""One to either side: a window of 2."""


@pytest.mark.parametrize("everywhere", [[0], [3], [1, 4], []])
def test_local_and_global_rows(everywhere, build) -> None:
    layer = build(("longformer", {"window": 2}))
    for linear in (layer.global_query, layer.global_key, layer.global_value):
        torch.nn.init.normal_(linear.weight)
    x = drawn(1, 6, 12)
    special = torch.tensor([[i in everywhere for i in range(6)]])
    context = Context(special_BN=special)
    q, k, v, extra = layer.project(x, context, None, None)
    out, _ = layer.oracle(q, k, v, context, **extra)
    rows = x[0].tolist()
    own = [affine(rows, linear) for linear in (layer.query, layer.key, layer.value)]
    others = [
        affine(rows, linear)
        for linear in (layer.global_query, layer.global_key, layer.global_value)
    ]
    reads = [sorted({*WINDOW[i], *everywhere}) for i in range(6)]
    for number in range(2):
        local = attention(*(head(y, number, 8) for y in own), lambda i: reads[i])
        far = attention(*(head(y, number, 8) for y in others), lambda i: range(6))
        wanted = [far[i] if i in everywhere else local[i] for i in range(6)]
        same(out[0, number], wanted)


def test_the_class_token_is_global_where_nothing_is_said(build) -> None:
    layer = build(("longformer", {"window": 2}))
    x = drawn(1, 6, 12)
    named = Context(special_BN=torch.arange(6)[None] == 0)
    same(layer.reference(x, Context()), layer.reference(x, named))
