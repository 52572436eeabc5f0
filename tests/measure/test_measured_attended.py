"""Attention distance against its formula, and rollout against a product done by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lra.core.catalogue import find
from lra.core.dataset import Dataset, Split
from lra.core.loading import load
from lra.core.protocol import ModelSpec
from lra.measure.trained_attention import DRAWN, attention_rollout, measure_trained_attention
from lra.models.build import build_model
from lra.models.layers import Layers

CPU = torch.device("cpu")
SIDE = 4
pytestmark = pytest.mark.usefixtures("one_thread")
AS_IS = {"rules": "fixed", "pad_to_length": False, "pictures": True}


def model(mechanism="full", pooling="mean", length=SIDE**2, **config):
    kind = load(find("mechanism", mechanism))
    spec = ModelSpec(layers=2, width=16, qkv_width=16, heads=2, mlp_width=16, pooling=pooling)
    return build_model(
        spec,
        layers=Layers.of(kind, kind.Config(**config)),
        position=load(find("position", spec.position)),
        vocabulary=256,
        classes=2,
        length=length,
    )


def pictures(rows=20):
    draws = np.random.default_rng(0)
    tokens = draws.integers(0, 256, (rows, SIDE**2)).astype(np.uint8)
    split = Split.of(list(tokens), np.arange(rows) % 2)
    return Dataset(split, split, split, classes=2, vocabulary=256, length=SIDE**2)


def looked(net, **how):
    return measure_trained_attention(net, pictures(), CPU, **{**AS_IS, **how})


def test_attention_that_reads_all_alike_looks_a_third_of_the_way():
    found, n = looked(alike()), SIDE**2
    assert np.shape(found.distances) == (2, 2)
    assert np.ravel(found.distances) == pytest.approx(np.full(4, (n * n - 1) / (3 * n)))
    assert found.distance == pytest.approx((n * n - 1) / (3 * n))


def test_no_mixing_looks_nowhere_and_a_window_no_further_than_it_reaches():
    assert looked(model("identity")).distance == 0.0
    assert 0.0 < looked(model("sliding_window", left=2, right=1)).distance < 2.0


@pytest.mark.parametrize(("left", "right"), [(2, 0), (0, 2)])
def test_what_stands_before_is_as_far_as_what_stands_after(left, right):
    found, n = looked(alike(mechanism="sliding_window", left=left, right=right)), SIDE**2
    # Places 0, 1 and 2 away, but at one end of the sequence.
    assert found.distance == pytest.approx(((n - 2) * 1.0 + 0.5 + 0.0) / n)


def test_when_time_is_up_no_further_sequence_is_begun(monkeypatch):
    whole = looked(model(pooling="cls", length=SIDE**2))
    monkeypatch.setattr("lra.measure.trained_attention.SECONDS", 0.0)
    short = looked(model(pooling="cls", length=SIDE**2))
    assert (whole.examples, len(whole.rollouts)) == (20, DRAWN)
    assert (short.examples, len(short.rollouts)) == (1, 1)


def test_it_is_the_validation_split_that_is_looked_at():
    held, other = pictures(6).train, pictures(20).train
    data = Dataset(other, held, other, classes=2, vocabulary=256, length=SIDE**2)
    assert measure_trained_attention(model(), data, CPU, **AS_IS).examples == 6


def test_dropout_is_off():
    net, seen = model(), []
    net.train()
    for block in net.body.blocks:
        block.register_forward_pre_hook(lambda module, given: seen.append(module.training))
    looked(net)
    assert seen and not any(seen)


def ragged(*lengths, inputs=1):
    tokens = [np.full(length, 7, dtype=np.uint8) for length in lengths]
    split = Split.of(tokens, np.zeros(len(lengths) // inputs), inputs)
    return Dataset(split, split, split, classes=2, vocabulary=256, length=SIDE**2, inputs=inputs)


def alike(**config):
    net = model(**config)
    for block in net.body.blocks:
        torch.nn.init.zeros_(block.mechanism.query.weight)
    return net


@pytest.mark.parametrize("pad_to_length", [False, True])
@pytest.mark.parametrize("inputs", [1, 2])
def test_padding_is_neither_a_query_nor_a_key(inputs, pad_to_length):
    how = {**AS_IS, "pad_to_length": pad_to_length, "pictures": False}
    found = measure_trained_attention(alike(), ragged(4, 12, inputs=inputs), CPU, **how)
    thirds = [(n * n - 1) / (3 * n) for n in (4, 12)]
    assert found.examples == 2
    assert found.distance == pytest.approx(np.mean(thirds))


def test_a_model_that_was_trained_on_padding_is_looked_at_with_it():
    """Segments of what is padded to 16 are 4 tokens long, of what is not 1."""
    data, net = ragged(4), model("nystromformer", landmarks=4, convolution=1)
    apart = [
        measure_trained_attention(net, data, CPU, **{**AS_IS, "pad_to_length": padded}).distance
        for padded in (False, True)
    ]
    assert apart[0] != pytest.approx(apart[1], rel=1e-3)


def test_what_the_original_masks_is_masked():
    tokens = [np.array([5, 0, 5, 0, 5, 0, 5, 0], dtype=np.uint8)]
    split = Split.of(tokens, [0])
    data = Dataset(split, split, split, classes=2, vocabulary=256, length=8)
    found = measure_trained_attention(alike(length=8), data, CPU, **{**AS_IS, "rules": "lra2021"})
    assert found.distance == pytest.approx(2 * (4 * 4 - 1) / (3 * 4))


def test_under_the_originals_rules_every_model_was_trained_on_padding():
    data, net = ragged(4), model("nystromformer", landmarks=4, convolution=1)
    apart = [
        measure_trained_attention(
            net, data, CPU, **{**AS_IS, "rules": "lra2021", "pad_to_length": padded}
        )
        for padded in (False, True)
    ]
    assert apart[0] == apart[1]


def test_a_sequence_without_tokens_looks_nowhere():
    found = measure_trained_attention(alike(), ragged(0, 4), CPU, **{**AS_IS, "pictures": False})
    assert found.distance == pytest.approx((0 + (4 * 4 - 1) / (3 * 4)) / 2)


@pytest.mark.parametrize("mechanism", ["lstm", "s4d"])
def test_what_has_no_weights_is_not_looked_at(mechanism):
    assert looked(model(mechanism)) is None


def test_an_input_that_is_too_long_is_not_looked_at(monkeypatch):
    # Weights of both heads, with room for a class token.
    weights = 2 * (SIDE**2 + 1) ** 2
    monkeypatch.setattr("lra.measure.trained_attention.MOST_WEIGHTS", weights)
    assert looked(model()) is not None
    monkeypatch.setattr("lra.measure.trained_attention.MOST_WEIGHTS", weights - 1)
    assert looked(model()) is None


@pytest.mark.parametrize(("room", "examples"), [(10, 10), (10.9, 10), (1, 4), (1000, 20)])
def test_of_long_inputs_so_few_are_looked_at_that_their_weights_fit(monkeypatch, room, examples):
    """Four at least, and no more than the twenty that there are."""
    layers, heads = 2, 2
    most = int(room * layers * heads * (SIDE**2 + 1) ** 2)
    monkeypatch.setattr("lra.measure.trained_attention.ALL_WEIGHTS", most)
    assert looked(model()).examples == examples


def test_however_many_there_are_sixty_four_are_looked_at():
    data = pictures(70)
    assert measure_trained_attention(model("identity"), data, CPU, **AS_IS).examples == 64


def test_a_rollout_is_the_product_of_the_layers_each_half_residual():
    draws = torch.Generator().manual_seed(0)
    weights = [torch.rand(3, 5, 5, generator=draws).softmax(-1).double() for _ in range(2)]
    halves = [0.5 * w.mean(0) + 0.5 * torch.eye(5, dtype=torch.float64) for w in weights]
    flow = attention_rollout(weights)
    assert torch.allclose(flow, halves[1] @ halves[0])
    assert torch.allclose(flow.sum(-1), torch.ones(5, dtype=torch.float64))
    assert not torch.allclose(flow, halves[0] @ halves[1])


def test_pictures_are_drawn_of_models_with_a_class_token_as_many_of_each_label():
    net = model(pooling="cls")
    found, data = looked(net), pictures()
    assert len(found.rollouts) == DRAWN
    assert [one.label for one in found.rollouts] == [0] * 4 + [1] * 4
    first = found.rollouts[0]
    assert np.array_equal(first.pixels_YX().ravel(), data.validation.sequence(0))
    # The class token keeps a share of its own: at least a quarter, by two residual branches.
    assert 0.0 < first.shares_YX().sum() < 0.75
    with torch.no_grad():
        said = net(torch.from_numpy(data.validation.sequence(0)[None])).logits_LC.argmax()
    assert first.answer == int(said)


@pytest.mark.parametrize(("pooling", "how"), [("mean", {}), ("cls", {"pictures": False})])
def test_others_have_distances_alone(pooling, how):
    found = looked(model(pooling=pooling), **how)
    assert found.rollouts == () and found.distance > 0
