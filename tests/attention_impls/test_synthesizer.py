"""What is particular to the Synthesizer: where its logits come from, and one softmax for all."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch

from attention_impls.contract import Context
from attention_impls.learned import synthesizer
from attention_impls.learned.synthesizer import SynthesizerConfig

KINDS = ["factorised", "random", "dense"]


def parts(layer: Any, x: torch.Tensor, context: Context) -> tuple[Any, ...]:
    q, k, v, extra = layer.project(x, context, None, None)
    return q, k, v, extra["logits"]


@pytest.mark.parametrize("dot_product", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_three_positions_by_hand(kind, dot_product, build) -> None:
    """The paper's formulas, written out; no 1 / sqrt(K) on what is synthetic."""
    layer = build(("synthesizer", {"logits": kind, "rank": 2, "dot_product": dot_product}))
    x = torch.randn(1, 3, 12, dtype=torch.float64)
    v = layer.value(x).view(1, 3, 2, 8)
    out = []
    for head in range(2):
        if kind == "factorised":
            logits = layer.left_HPR[head] @ layer.right_HPR[head].T
        elif kind == "random":
            logits = layer.logits_HPP[head]
        else:
            logits = layer.hidden(x)[0].view(3, 2, 8)[:, head].relu() @ layer.rows_HKP[head]
        logits = logits[:3, :3]
        if dot_product:
            q, k = (p(x)[0].view(3, 2, 8)[:, head] for p in (layer.query, layer.key))
            logits = logits + q @ k.T / 8**0.5
        out.append(logits.softmax(-1) @ v[0, :, head])
    wanted = layer.output(torch.cat(out, dim=-1))
    torch.testing.assert_close(layer(x, Context()).y_BND[0], wanted)


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
def test_weights_do_not_depend_on_the_input(kind, build) -> None:
    layer = build(("synthesizer", {"logits": kind}))
    x = torch.randn(2, 9, 12, dtype=torch.float64)
    first, second = (parts(layer, y, Context())[3] for y in (x, 5 * x))
    assert torch.equal(first, second) and first.dim() == 3


def test_a_dense_row_depends_on_its_own_input_alone(build) -> None:
    layer = build(("synthesizer", {"logits": "dense"}))
    x = torch.randn(2, 9, 12, dtype=torch.float64)
    other = x.clone()
    other[:, 4] += 1.0
    changed = (parts(layer, x, Context())[3] != parts(layer, other, Context())[3]).any(-1)
    assert changed.any(1).nonzero()[:, 1].unique().tolist() == [4]


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
def test_dropout_acts_in_training_only(kind, build) -> None:
    layer = build(("synthesizer", {"logits": kind}), dropout=0.5)
    x = torch.randn(2, 20, 12, dtype=torch.float64)
    mask = torch.ones(2, 20, dtype=torch.bool)
    mask[1, 9:] = False
    for context in (Context(), Context(query_mask_BN=mask)):
        still = layer.eval()(x, context).y_BND
        assert torch.equal(layer(x, context).y_BND, still)
        layer.train()
        assert not torch.equal(layer(x, context).y_BND, still)


def test_hyper_parameters() -> None:
    assert SynthesizerConfig() == SynthesizerConfig("factorised", 32, False)
    for wrong in ({"rank": 0}, {"logits": "learned"}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, SynthesizerConfig)
