"""What a trained model attends to: attention distance, and attention rollout.

Distance: Tay et al., "Long Range Arena", ICLR 2021 (arXiv 2011.04006), Figure 2. Rollout: Abnar and
Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020 (arXiv 2005.00928). Weights are the
oracle's, in float64, one example at a time, so that none is padded.

N positions, D model width, H heads, L layers
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import isqrt
from time import perf_counter
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from attention_impls.contract import Attention, Context
from lra.core.attended import Attended, Rollout, pack_rollout
from lra.core.dataset import Dataset, Split
from lra.models.block import Block
from lra.models.classifier import Classifier

EXAMPLES = 64
"""Sequences whose distances are averaged, at most."""
DRAWN = 8
"""Pictures at most, as many of each label."""
SECONDS = 30.0
"""After which no further sequence or picture is begun: some oracles are loops over all pairs."""
MOST_WEIGHTS = 2**25
"""Of one layer, heads times N squared: a quarter of a gibibyte, of which a softmax holds several.
Longer inputs are not looked at."""
ALL_WEIGHTS = 2**28
"""Of all layers and sequences together, about as many."""


@torch.no_grad()
def measure_attended(
    model: Classifier, dataset: Dataset, device: torch.device, *, pictures: bool
) -> Attended | None:
    """Return how far each head looks and, of classifiers with a class token, which pixels of a few
    pictures the answer came from; None where a mechanism has no weights, or too many.

    `pictures` says that sequences are square pictures.
    """
    model.eval()
    mechanisms = [block.mechanism for block in _blocks(model)]
    if not all(isinstance(mechanism, Attention) for mechanism in mechanisms):
        return None
    weights = mechanisms[0].dims.heads * (dataset.length + 1) ** 2
    if weights > MOST_WEIGHTS:
        return None
    split = dataset.validation
    examples = int(np.clip(ALL_WEIGHTS // (weights * len(mechanisms)), 4, EXAMPLES))
    examples = min(examples, len(split) * split.inputs)
    found = [
        _distances(_weights(model, split.sequence(s), device)) for s in _in_time(range(examples))
    ]
    drawn = _varied(split.labels) if pictures and model.encoder.pooling == "cls" else []
    return Attended(
        examples=len(found),
        distances=tuple(tuple(layer) for layer in torch.stack(found).mean(dim=0).tolist()),
        rollouts=tuple(_rollout(model, split, row, device) for row in _in_time(drawn)),
    )


def attention_rollout(weights: Iterable[Tensor]) -> Tensor:
    """Return how much of each output position comes from each input position, (N, N).

    `weights` are those of the layers in order, (H, N, N). Heads are averaged, half of each layer is
    its residual branch, and layers are multiplied.
    """
    flow_NN: Tensor | None = None
    for weights_HNN in weights:
        mean_NN = weights_HNN.mean(dim=0)
        layer_NN = 0.5 * mean_NN + 0.5 * torch.eye(len(mean_NN)).to(mean_NN)
        flow_NN = layer_NN if flow_NN is None else layer_NN @ flow_NN
    assert flow_NN is not None, "a model has layers"
    return flow_NN


def _in_time(rows: Iterable[int]) -> Iterator[int]:
    """Yield rows until the time is up, the first in any case."""
    started = perf_counter()
    for number, row in enumerate(rows):
        if number and perf_counter() - started > SECONDS:
            return
        yield row


def _blocks(model: Classifier) -> Iterable[Block]:
    return cast(Iterable[Block], model.encoder.blocks)


def _distances(weights: Iterable[Tensor]) -> Tensor:
    """Mean distance that each head looks over, (L, H)."""
    found = []
    for weights_HNN in weights:
        places_N = torch.arange(weights_HNN.shape[-1]).to(weights_HNN)
        apart_NN = (places_N[:, None] - places_N).abs()
        found.append((weights_HNN * apart_NN).sum(-1).mean(-1).cpu())
    return torch.stack(found)


def _weights(model: Classifier, tokens: Any, device: torch.device) -> Iterator[Tensor]:
    """The oracle's weights of each layer on one sequence, (H, N, N), one at a time."""
    with _inputs(model) as inputs:
        model.encoder(torch.from_numpy(np.array(tokens)[None]).to(device), None)
    for mechanism, x_1ND, context in inputs:
        q, k, v, extra = mechanism.project(x_1ND, context, None, None)
        yield mechanism.oracle(q, k, v, context, **extra)[1][0]


@contextmanager
def _inputs(model: Classifier) -> Iterator[list[tuple[Attention, Tensor, Context]]]:
    """What comes into each mechanism while the model runs."""
    seen: list[tuple[Attention, Tensor, Context]] = []

    def note(layer: nn.Module, given: tuple[Any, ...]) -> None:
        seen.append((cast(Attention, layer), given[0], given[1]))

    hooks = [block.mechanism.register_forward_pre_hook(note) for block in _blocks(model)]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _rollout(model: Classifier, split: Split, row: int, device: torch.device) -> Rollout:
    tokens = split.sequence(row)
    flow_NN = attention_rollout(_weights(model, tokens, device))
    answer = model(torch.from_numpy(np.array(tokens)[None]).to(device)).argmax()
    side = isqrt(len(tokens))
    return pack_rollout(
        tokens.reshape(side, side),
        # Position 0 is the class token, which the answer is read from.
        flow_NN[0, 1:].cpu().numpy().reshape(side, side),
        label=int(split.labels[row]),
        answer=int(answer),
    )


def _varied(labels: Any) -> list[int]:
    """The first rows of each label, as many of each as fit."""
    different = np.unique(labels)
    of_each = max(1, DRAWN // len(different))
    rows = [row for label in different for row in np.flatnonzero(labels == label)[:of_each]]
    return [int(row) for row in rows[:DRAWN]]
