"""Fused attention's own: the mask, if any, that reaches PyTorch's kernel."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from attention_impls.contract import Context
from lra.core.catalogue import find
from lra.core.loading import load


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Record what each call of PyTorch's function is given."""
    recorded: list[dict[str, Any]] = []
    original = F.scaled_dot_product_attention

    def record(*tensors: torch.Tensor, **options: Any) -> torch.Tensor:
        recorded.append(options)
        return original(*tensors, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", record)
    return recorded


def test_no_mask_where_none_is_needed(build, draw, calls) -> None:
    layer = build(("sdpa", {}))
    layer.attend(*draw(2, 7), Context())
    layer.attend(*draw(2, 7), Context(causal=True))
    layer.attend(*draw(2, 1, 7), Context(causal=True))
    assert [call["attn_mask"] for call in calls] == [None, None, None]
    assert [call["is_causal"] for call in calls] == [False, True, False]


def test_boolean_masks_where_something_is_hidden(build, draw, calls) -> None:
    """PyTorch aligns `is_causal` at the start, so it must not meet longer keys or padding."""
    layer = build(("sdpa", {}))
    mask = torch.ones(2, 7, dtype=torch.bool)
    layer.attend(*draw(2, 3, 7), Context(causal=True))
    layer.attend(*draw(2, 7), Context(causal=True, key_mask_BM=mask))
    layer.attend(*draw(2, 7), Context(key_mask_BM=mask))
    assert [call["attn_mask"].shape for call in calls] == [(3, 7), (2, 1, 7, 7), (2, 1, 1, 7)]
    assert all(call["attn_mask"].dtype == torch.bool and not call["is_causal"] for call in calls)


def test_no_kernel_meets_a_row_without_keys(build, draw, calls) -> None:
    """Backends differ in the output of such a row; ours is zero on all."""
    layer = build(("sdpa", {}))
    position = load(find("position", "alibi"))(layer.dims)
    mask = torch.tensor([[False, False, True], [False, False, False]])
    for context in (
        Context(key_mask_BM=mask),
        Context(causal=True, key_mask_BM=mask),
        Context(causal=True, key_mask_BM=mask, position=position),
    ):
        out, _ = layer.attend(*draw(2, 3), context)
        given = calls[-1]["attn_mask"]
        visible = given if given.dtype == torch.bool else given.isfinite()
        assert bool(visible.any(dim=-1).all())
        assert not bool(out[1].any()) and bool(out[0, :, 2].any())


def test_a_bias_comes_in_the_dtype_of_the_query(build, draw, calls) -> None:
    layer = build(("sdpa", {}))
    position = load(find("position", "alibi"))(layer.dims)
    layer.attend(*draw(2, 7, dtype=torch.bfloat16), Context(causal=True, position=position))
    mask = calls[0]["attn_mask"]
    assert mask.dtype == torch.bfloat16 and not calls[0]["is_causal"]
    assert bool(mask[0, 0].triu(1).isneginf().any()) and bool(mask[0, 0].tril().isfinite().all())


@torch.no_grad()
def test_decoding_takes_a_mask_only_once_padding_was_seen(build, calls) -> None:
    layer = build(("sdpa", {}))
    x = torch.randn(2, 6, 12, dtype=torch.float64)
    device, dtype = x.device, x.dtype
    state = layer.init_state(2, length=6, device=device, dtype=dtype)
    for start, stop in ((0, 4), (4, 5)):
        _, state = layer(x[:, start:stop], Context(causal=True), state=state)
    assert [call["attn_mask"] for call in calls] == [None, None]
    assert [call["is_causal"] for call in calls] == [True, False]
    mask = torch.tensor([[True], [False]])
    _, state = layer(x[:, 4:5], Context(causal=True, query_mask_BN=mask), state=state)
    assert calls[-1]["attn_mask"][:, 0, 0].tolist() == [[True] * 6, [True] * 5 + [False]]


def test_dropout_is_asked_for_in_training_only(build, draw, calls) -> None:
    layer = build(("sdpa", {}), dropout=0.25)
    layer.attend(*draw(2, 7), Context())
    layer.train()
    layer.attend(*draw(2, 7), Context())
    assert [call["dropout_p"] for call in calls] == [0.0, 0.25]
