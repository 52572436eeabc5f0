"""The Synthesizer's own: projections it lacks, first logits, and one softmax for all."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from attention_impls.contract import Context
from attention_impls.learned import synthesizer

KINDS = ["factorised", "random", "dense"]


def parts(layer: Any, x: torch.Tensor, context: Context) -> tuple[Any, ...]:
    q, k, v, extra = layer.project(x, context, None, None)
    return q, k, v, extra["logits"]


def test_what_is_not_compared_has_no_projection(build) -> None:
    for kind in KINDS:
        names = {
            name.split(".")[0]
            for name, _ in build(("synthesizer", {"logits": kind})).named_parameters()
        }
        assert not names & {"query", "key"}
    names = {name for name, _ in build(("synthesizer", {"dot_product": True})).named_parameters()}
    assert {"query.weight", "key.weight"} <= names


@pytest.mark.parametrize("kind", ["factorised", "random"])
def test_logits_start_with_variance_one(kind, build) -> None:
    layer = build(("synthesizer", {"logits": kind}), max_length=200)
    logits = parts(layer, torch.zeros(1, 200, 12, dtype=torch.float64), Context())[3]
    assert 0.8 < float(logits.detach().var()) < 1.25


@pytest.mark.parametrize("causal", [False, True])
def test_far_apart_logits_are_not_lost_to_a_padded_key(causal, build) -> None:
    """A padded key a thousand above the rest would leave nothing of them in a shared row."""
    layer = build(("synthesizer", {"logits": "random"}), dtype=torch.float32)
    with torch.no_grad():
        layer.logits_HPP[:, :, 1] += 1000.0
    x = torch.randn(2, 9, 12)
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[0, 1] = False
    context = Context(causal, mask, mask)
    q, k, v, logits = parts(layer, x, context)
    found, _ = layer.attend(q, k, v, context, logits=logits)
    wanted, weights = layer.oracle(q, k, v, context, logits=logits)
    torch.testing.assert_close(found, wanted.float(), rtol=1e-4, atol=1e-5)
    assert float(weights.detach()[0, :, 2:, 2].amin()) > 0.0


def test_the_batch_shares_its_softmax(build, monkeypatch) -> None:
    """Padded or not, no weights are formed per example where none depends on the example."""

    def forbidden(*_: Any) -> None:
        raise AssertionError("weights of every example")

    monkeypatch.setattr(synthesizer, "_own_softmax", forbidden)
    x = torch.randn(2, 9, 12, dtype=torch.float64)
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[1, 5:] = False
    for context in (Context(), Context(True, mask, mask)):
        build(("synthesizer", {}))(x, context)
        with pytest.raises(AssertionError, match="every example"):
            build(("synthesizer", {"logits": "dense"}))(x, context)


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_of_a_padded_batch_acts_in_training_only(kind, build) -> None:
    layer = build(("synthesizer", {"logits": kind}), dropout=0.5)
    x = torch.randn(2, 20, 12, dtype=torch.float64)
    context = Context(query_mask_BN=torch.arange(20) < torch.tensor([[20], [9]]))
    still = layer(x, context).y_BND
    assert torch.equal(layer(x, context).y_BND, still)
    assert not torch.equal(layer.train()(x, context).y_BND, still)
