"""Cross maps: shares of the longest examples, as the cross layers themselves weigh them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
import torch

from attention_impls.contract import Context
from attention_impls.dense.sdpa import Sdpa
from attention_impls.positions.none import NoPosition
from lra.core.dataset import UNASKED, Split
from lra.core.forms import Size
from lra.core.protocol import BlockForm
from lra.core.trained_attention import CrossMap, pack_cross
from lra.measure.cross_maps import measure_cross_maps
from lra.models.language import Slots, build_encoder_decoder
from lra.models.layers import Layers
from lra.models.sequence_model import SequenceModel

SIZE = Size(layers=2, width=16, qkv_width=16, heads=2, mlp_width=16, vocabulary=8, length=6)


def model() -> SequenceModel:
    layers = Layers.of(Sdpa)
    slots, positions = Slots(layers, layers, layers), (NoPosition, NoPosition)
    return build_encoder_decoder(SIZE, BlockForm(), slots=slots, positions=positions)


def split(*sizes: tuple[int, int]) -> Split:
    draws, tokens, labels = np.random.default_rng(0), [], []
    for source, target in sizes:
        tokens += [draws.integers(1, 8, n).astype(np.uint8) for n in (source, target)]
        labels += [np.full(source, UNASKED), np.ones(target, dtype=np.int64)]
    return Split.of(tokens, np.concatenate(labels), 2, by_token=True)


def test_each_target_token_shares_its_look_among_the_source() -> None:
    found = measure_cross_maps(
        model(), split((3, 2), (5, 4), (5, 4)), torch.device("cpu"), rules="fixed", length=None
    )
    assert found is not None and (found.examples, found.distances) == (2, ())
    assert [(one.targets, one.sources) for one in found.crosses] == [(4, 5), (4, 5)]
    for one in found.crosses:
        assert one.shares_NM().sum(axis=1) == pytest.approx(1.0, abs=0.02)


def test_a_map_is_the_mean_of_the_layers_own_weights() -> None:
    network, data = model(), split((4, 3))
    found = measure_cross_maps(network, data, torch.device("cpu"), rules="fixed", length=6)
    (source, target) = (torch.from_numpy(data.sequence(n).astype(np.int64))[None] for n in (0, 1))
    memory_BMD = network.encode(source)
    block = network.body.decoder.blocks[0]
    x_BND, _ = network.target(target, None)
    mixed_BND, _ = block.mechanism(block.mechanism_norm(x_BND), Context(causal=True))
    q, k, *_ = block.cross.project(block.cross_norm(x_BND + mixed_BND), Context(), memory_BMD, None)
    logits_BHNM = q @ k.mT / q.shape[-1] ** 0.5
    weights_NM = logits_BHNM.softmax(dim=-1).mean(dim=(0, 1)).detach().numpy()
    assert found is not None
    assert found.crosses[0].shares_NM() == pytest.approx(weights_NM, abs=0.01)


def test_a_map_survives_a_record_and_a_damaged_one_is_refused() -> None:
    shares_NM = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])
    packed = pack_cross(shares_NM)
    again = msgspec.json.decode(msgspec.json.encode(packed), type=CrossMap)
    assert again.shares_NM() == pytest.approx(shares_NM, abs=1 / 255)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**msgspec.to_builtins(packed), "sources": 3}, CrossMap)


def test_fewer_examples_are_weighed_where_their_weights_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heads, padded = SIZE.heads, 6
    data = split(*[(5, 4)] * 9)
    monkeypatch.setattr("lra.measure.cross_maps.ALL_WEIGHTS", 3 * heads * padded**2)
    device = torch.device("cpu")
    padded_out = measure_cross_maps(model(), data, device, rules="fixed", length=padded)
    as_long_as_they_are = measure_cross_maps(model(), data, device, rules="fixed", length=None)
    assert padded_out is not None and padded_out.examples == 3
    assert as_long_as_they_are is not None and as_long_as_they_are.examples == 5
