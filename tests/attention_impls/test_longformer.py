"""Longformer's own: its global rows and columns, and the arena's form."""

from __future__ import annotations

import pytest
import torch

from attention_impls.contract import Context
from attention_impls.pattern import _global_columns, longformer
from lra.core.errors import UnsupportedError


def support(layer, n: int, context: Context) -> torch.Tensor:
    x = torch.zeros(1, n, 12, dtype=torch.float64)
    return layer.support(n, n, context, **layer.project(x, context, None, None).extra)[0, 0]


def test_global_projections_start_as_copies_and_global_rows_alone_use_them(build) -> None:
    layer = build(("longformer", {"window": 2}))
    torch.testing.assert_close(layer.global_key.weight, layer.key.weight)
    x = torch.randn(2, 9, 12, dtype=torch.float64)
    before = layer(x, Context()).y_BND
    with torch.no_grad():
        layer.global_value.weight += 1.0
    after = layer(x, Context()).y_BND
    assert torch.equal(after[:, 1:], before[:, 1:])
    assert not torch.allclose(after[:, 0], before[:, 0])
    with torch.no_grad():
        layer.query.weight += 1.0
    assert torch.equal(layer(x, Context()).y_BND[:, 0], after[:, 0])


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("config", [{"window": 4}, {"window": 3, "leading": 3}, {"window": 0}])
def test_rows_with_many_or_no_global_positions_equal_the_oracle(
    config, folded, blocks, build, some_padding, check_reference, monkeypatch
) -> None:
    """Different numbers of them in one batch, some of them padded, some inside of windows."""
    monkeypatch.setattr(longformer, "folds", lambda like: folded)
    if blocks:
        monkeypatch.setattr("attention_impls.pattern._parts.DENSE_ADVANTAGE", 0)
        monkeypatch.setattr("attention_impls.pattern._parts.TILE_COST", 0)
    layer = build(("longformer", config))
    for n in (1, 5, 23):
        x = torch.randn(2, n, 12, dtype=torch.float64, requires_grad=True)
        special = torch.rand(2, n) > 0.7
        special[0] = False
        for mask in (None, some_padding(2, n)):
            for chosen in (None, special):
                check_reference(layer, x, Context(query_mask_BN=mask, special_BN=chosen))


def test_the_arenas_window_is_lopsided_and_has_no_global_position(build) -> None:
    layer = build(("longformer", {"parity": "lra2021"}))
    found = support(layer, 600, Context())
    assert found[300].nonzero().flatten()[[0, -1]].tolist() == [45, 556]
    assert not bool(found[0, 257:].any()) and not bool(found[:, 0].all())


@pytest.mark.parametrize(("window", "arena", "ours"), [(6, (2, 3), (3, 3)), (7, (3, 3), (3, 3))])
def test_odd_windows(window: int, arena, ours, build) -> None:
    """The arena's reaches as far to either side, ours is rounded down."""
    for parity, (left, right) in (("lra2021", arena), ("none", ours)):
        layer = build(("longformer", {"window": window, "leading": 0, "parity": parity}))
        row = support(layer, 20, Context())[10].nonzero().flatten()
        assert row[[0, -1]].tolist() == [10 - left, 10 + right]


def test_the_arenas_form_refuses_global_positions(build) -> None:
    layer = build(("longformer", {"window": 4, "parity": "lra2021"}))
    special = torch.arange(9).expand(1, -1) == 3
    with pytest.raises(UnsupportedError, match=r"longformer.*parity.*special_BN"):
        layer(torch.zeros(1, 9, 12).double(), Context(special_BN=special))


def test_one_mask_serves_all_examples_where_none_is_padded(build, monkeypatch) -> None:
    masks = []
    inner = _global_columns.fused_softmax
    monkeypatch.setattr(
        _global_columns,
        "fused_softmax",
        lambda q, k, v, m, *a, **o: masks.append(m) or inner(q, k, v, m, *a, **o),
    )
    layer, x = build(("longformer", {"window": 4})), torch.randn(3, 9, 12, dtype=torch.float64)
    special = torch.zeros(3, 9, dtype=torch.bool)
    for context in (
        Context(),
        Context(key_mask_BM=torch.ones(3, 9, dtype=torch.bool)),
        Context(special_BN=special),
    ):
        torch.testing.assert_close(layer(x, context).y_BND, layer.reference(x, context))
    assert [len(mask) for mask in masks] == [1, 3, 3]
