"""Cross maps of a trained encoder-decoder: which tokens of a source each token of a target reads.

Weights are the oracle's, in float64. E examples, N target and M source tokens, H heads
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attention_impls.contract import Attention, Context
from lra.core.dataset import Split
from lra.core.protocol import Rules
from lra.core.trained_attention import TrainedAttention, pack_cross
from lra.models.block import Block
from lra.models.sequence_model import SequenceModel
from lra.training.batches import Collator
from lra.training.forward import forward

EXAMPLES = 64
"""Largest number of examples that a map is the mean of."""
MOST_WEIGHTS = 2**22
"""Largest number of weights of one layer and example, heads times N M; larger ones are not looked
at."""
ALL_WEIGHTS = 2**25
"""Largest number of weights of one layer and all examples: a quarter of a gibibyte in float64."""


@torch.no_grad()
def measure_cross_maps(
    model: SequenceModel, split: Split, device: torch.device, *, rules: Rules, length: int | None
) -> TrainedAttention | None:
    """Return the map of each layer, over the longest examples that are equally long; None where a
    mechanism has no weights, or too many.

    Sequences are padded to `length` where there is one, as in training.
    """
    model.eval()
    crosses = [block.cross for block in model.modules() if isinstance(block, Block) and block.cross]
    if not all(isinstance(cross, Attention) for cross in crosses):
        return None
    rows = _longest(split)
    sources, targets = split.lengths[rows[0]].tolist()
    computed = sources * targets if length is None else length**2
    weights = crosses[0].dims.heads * computed
    if weights > MOST_WEIGHTS:
        return None
    rows = rows[: max(1, ALL_WEIGHTS // weights)]
    batch = Collator(split, length=length, rules=rules)(rows).to(device)
    with _calls(crosses) as calls:
        forward(model, batch, None)
    maps = []
    for cross, x_END, context, source_EMD in calls:
        q, k, v, extra = cross.project(x_END, context, source_EMD, None)
        weights_EHNM = cross.oracle(q, k, v, context, **extra)[1]
        shares_NM = weights_EHNM.mean(dim=(0, 1))[:targets, :sources]
        maps.append(pack_cross(shares_NM.cpu().numpy()))
    return TrainedAttention(examples=len(rows), distances=(), cross_maps=tuple(maps))


def _longest(split: Split) -> Any:
    """Rows of the examples that are as long as the longest, the first of them."""
    order = np.lexsort(split.lengths.T)[::-1]
    alike = (split.lengths[order] == split.lengths[order[0]]).all(axis=1)
    return np.sort(order[alike])[:EXAMPLES]


@contextmanager
def _calls(
    crosses: Sequence[nn.Module],
) -> Iterator[list[tuple[Attention, Tensor, Context, Tensor]]]:
    """Collect the inputs of cross layers while the model runs."""
    seen: list[Any] = []

    def note(layer: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        seen.append((layer, given[0], given[1], named["source_BMD"]))

    hooks = [cross.register_forward_pre_hook(note, with_kwargs=True) for cross in crosses]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
