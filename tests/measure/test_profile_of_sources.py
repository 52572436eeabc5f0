"""The profile of a step that reads a source: sources and answers are padded apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from attention_impls.dense.full import Full
from attention_impls.positions.sinusoidal import Sinusoidal
from lra.core.dataset import UNASKED, Dataset, Split
from lra.core.profile_metrics import PARTS, part_metric
from lra.core.protocol import ModelSpec, TrainSpec
from lra.measure import profile
from lra.measure.profile import measure_profile, padding_share
from lra.models.layers import Layers
from lra.training.setup import Network, Training, model_for
from lra.training.step import Step

CPU = torch.device("cpu")
SPEC = TrainSpec(steps=100, batch=4, learning_rate=1e-2, evaluate_every=30, evaluation_batch=8)
LONGEST = 16


def sources(rows: int) -> Split:
    """Long sources, each with a short answer that has a label for each token."""
    draws = np.random.default_rng(rows)
    parts, labels = [], []
    for _ in range(rows):
        source, answer = (
            draws.integers(1, 6, draws.integers(*n)).astype(np.uint8) for n in ((9, 17), (2, 5))
        )
        parts += [source, answer]
        labels += [np.full(len(source), UNASKED), answer.astype(np.int64) - 1]
    return Split.of(parts, np.concatenate(labels), 2, by_token=True)


SOURCES = Dataset(
    sources(40), sources(20), sources(20), classes=5, vocabulary=6, length=LONGEST, inputs=2
)
TWO_STACKS = ModelSpec(
    layers=1, width=8, qkv_width=8, heads=2, mlp_width=8,
    body="encoder_decoder", pooling="none", causal=True,
)  # fmt: skip


def two_stacks() -> nn.Module:
    network = Network.of(Layers.of(Full), Sinusoidal)
    return model_for(SOURCES, TWO_STACKS, network=network, rules="fixed", seed=0)


def step() -> Step:
    made = Step(two_stacks(), Training(SOURCES, SPEC, seed=0), device=CPU)
    made.join()
    return made


def test_sources_and_answers_are_padded_apart() -> None:
    own = step()
    computed = 0
    for done in range(own.order.batches):
        batch = own.batch(own.order.rows(done))
        assert batch.source_EM is not None
        computed += batch.source_EM.numel() + batch.tokens_SN.numel()
    real = int(SOURCES.train.lengths.sum())
    assert padding_share(own) == pytest.approx(1 - real / computed)


def test_a_batch_is_new_where_either_of_its_lengths_is() -> None:
    own = step()
    every = list(range(own.order.batches))
    shapes: dict[tuple[int, int], int] = {}
    for done in every:
        batch = own.batch(own.order.rows(done))
        assert batch.source_EM is not None
        shapes.setdefault((batch.source_EM.shape[1], batch.tokens_SN.shape[1]), done)
        last = batch.source_EM.shape[1], batch.tokens_SN.shape[1]
    sources_alone = {source for source, _ in shapes}
    assert len(sources_alone) < len(shapes)
    del shapes[last]
    assert profile._warm_up_batches(own, every) == list(shapes.values())


def test_the_step_of_two_stacks_has_a_profile() -> None:
    own = two_stacks()
    found = measure_profile(own, Training(SOURCES, SPEC, seed=0), device=CPU, seconds=0.1).metrics
    assert found["operations"].value
    assert all(found[part_metric(part)].value for part in PARTS)
