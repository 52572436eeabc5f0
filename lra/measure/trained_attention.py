"""Attention of a trained model: attention distance, and attention rollout.

Distance: Tay et al., "Long Range Arena", ICLR 2021 (arXiv 2011.04006), Figure 2. Rollout: Abnar and
Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020 (arXiv 2005.00928). Weights are the
oracle's, in float64, of one sequence at a time, which is padded and masked as in training.

S sequences of an example, N positions, D model width, H heads, L layers
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isqrt
from time import perf_counter
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from attention_impls.contract import Attention, Context, Layer
from lra.core.dataset import Dataset
from lra.core.protocol import Rules
from lra.core.trained_attention import Rollout, TrainedAttention, pack_rollout
from lra.models.block import Block
from lra.models.model import Model
from lra.training.batches import Collator

EXAMPLES = 64
"""Largest number of sequences that distances are averaged over."""
DRAWN = 8
"""Largest number of pictures, as many of each label."""
SECONDS = 30.0
"""Seconds after which no further sequence or picture is begun: some oracles are loops over all
pairs."""
MOST_WEIGHTS = 2**25
"""Largest number of weights of one layer, heads times N squared: a quarter of a gibibyte, and a
softmax holds it several times. Longer inputs are not looked at."""
ALL_WEIGHTS = 2**28
"""Largest number of weights of all layers and sequences together, approximately."""


@torch.no_grad()
def measure_trained_attention(
    model: Model,
    dataset: Dataset,
    device: torch.device,
    *,
    rules: Rules,
    pad_to_length: bool,
    pictures: bool,
) -> TrainedAttention | None:
    """Return the distance that each head looks over and, for classifiers with a class token, the
    pixels of a few pictures that the answer came from; None where a mechanism has no weights, or
    too many.

    Distances are those of queries at real tokens. `pad_to_length` is that of the training;
    `pictures` says that sequences are square pictures.
    """
    model.eval()
    mechanisms = _mechanisms(model)
    if not all(isinstance(mechanism, Attention) for mechanism in mechanisms):
        return None
    weights = mechanisms[0].dims.heads * (dataset.length + 1) ** 2
    if weights > MOST_WEIGHTS:
        return None
    split = dataset.validation
    examples = int(np.clip(ALL_WEIGHTS // (weights * len(mechanisms)), 4, EXAMPLES))
    examples = min(examples, len(split) * split.inputs)
    padded = pad_to_length or rules == "lra2021"
    look = _Inspection(
        model, Collator(split, length=dataset.length if padded else None, rules=rules), device
    )
    found = [look.distances(sequence) for sequence in _until_timeout(range(examples))]
    drawn = _balanced(split.labels) if pictures and model.pooling == "cls" else []
    return TrainedAttention(
        examples=len(found),
        distances=tuple(tuple(layer) for layer in torch.stack(found).mean(dim=0).tolist()),
        rollouts=tuple(look.rollout(row) for row in _until_timeout(drawn)),
    )


def attention_rollout(weights: Iterable[Tensor]) -> Tensor:
    """Return the share of each output position that comes from each input position, (N, N).

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


def _until_timeout(rows: Iterable[int]) -> Iterator[int]:
    """Yield rows until the time is up, the first in any case."""
    started = perf_counter()
    for number, row in enumerate(rows):
        if number and perf_counter() - started > SECONDS:
            return
        yield row


def _mechanisms(model: Model) -> list[Layer]:
    return [block.mechanism for block in model.modules() if isinstance(block, Block)]


@dataclass(frozen=True)
class _Inspection:
    """A trained model with the sequences of one split."""

    model: Model
    collate: Collator
    device: torch.device

    def distances(self, sequence: int) -> Tensor:
        """Return the mean distance that each head's real queries look over, (L, H)."""
        found = []
        for weights_HNN, context in self._weights(sequence):
            places_N = torch.arange(weights_HNN.shape[-1]).to(weights_HNN)
            apart_NN = (places_N[:, None] - places_N).abs()
            distance_HN = (weights_HNN * apart_NN).sum(-1)
            if context.query_mask_BN is not None:
                distance_HN = distance_HN[:, context.query_mask_BN[0]]
            # A sequence without tokens has no query, and looks nowhere.
            queries = max(1, distance_HN.shape[-1])
            found.append(distance_HN.sum(-1).cpu() / queries)
        return torch.stack(found)

    def rollout(self, row: int) -> Rollout:
        """Return one picture, with each pixel's share in the class token's answer."""
        tokens_1N, mask_1N = self._sequence(row)
        flow_NN = attention_rollout(weights_HNN for weights_HNN, _ in self._weights(row))
        answer = self.model(tokens_1N, mask_1N).logits_LC.argmax()
        side = isqrt(tokens_1N.shape[-1])
        return pack_rollout(
            tokens_1N.cpu().numpy().reshape(side, side),
            # Position 0 is the class token, which the answer is read from.
            flow_NN[0, 1:].cpu().numpy().reshape(side, side),
            label=int(self.collate.labels[row]),
            answer=int(answer),
        )

    def _weights(self, sequence: int) -> Iterator[tuple[Tensor, Context]]:
        """Yield the oracle's weights of each layer, (H, N, N), one layer at a time."""
        with _inputs(self.model) as inputs:
            self.model.encode(*self._sequence(sequence))
        for mechanism, x_1ND, context in inputs:
            q, k, v, extra = mechanism.project(x_1ND, context, None, None)
            yield mechanism.oracle(q, k, v, context, **extra)[1][0], context

    def _sequence(self, sequence: int) -> tuple[Tensor, Tensor | None]:
        """Return tokens and mask of one sequence, (1, N), as in a batch of its example alone."""
        row, which = divmod(sequence, self.collate.starts_SI.shape[1])
        batch = self.collate(np.array([row])).to(self.device)
        mask_SN = batch.mask_SN
        return batch.tokens_SN[which, None], None if mask_SN is None else mask_SN[which, None]


@contextmanager
def _inputs(model: Model) -> Iterator[list[tuple[Attention, Tensor, Context]]]:
    """Collect the inputs of each mechanism while the model runs."""
    seen: list[tuple[Attention, Tensor, Context]] = []

    def note(layer: nn.Module, given: tuple[Any, ...]) -> None:
        seen.append((cast(Attention, layer), given[0], given[1]))

    hooks = [layer.register_forward_pre_hook(note) for layer in _mechanisms(model)]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _balanced(labels: Any) -> list[int]:
    """Return the first rows of each label, as many of each as fit."""
    different = np.unique(labels)
    of_each = max(1, DRAWN // len(different))
    rows = [row for label in different for row in np.flatnonzero(labels == label)[:of_each]]
    return [int(row) for row in rows[:DRAWN]]
