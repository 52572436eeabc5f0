"""What a training begins with: the model around a mechanism, and its first step."""

from __future__ import annotations

import torch
from torch import nn

from attention_impls.contract import Layer, MechanismConfig, Position
from lra.core.dataset import Dataset
from lra.core.protocol import ModelSpec, Rules, TrainSpec
from lra.models.build import build_model
from lra.models.classifier import Classifier
from lra.models.encoder import Encoder
from lra.training.batches import Collator
from lra.training.ranks import ALONE, Ranks
from lra.training.step import Step

GPU_MULTIPLE = 64
"""What lengths of batches are rounded up to on a GPU. Its library for attention plans anew for each
new length, in a tenth of a second, and CUDA graphs hold for one: ListOps has batches of 25 lengths
instead of 1,322, with 3 % more tokens. On a CPU all lengths are alike, and less is computed."""


def model_for(
    dataset: Dataset,
    spec: ModelSpec,
    *,
    mechanism: type[Layer],
    config: MechanismConfig,
    position: type[Position],
    rules: Rules,
    seed: int,
) -> Classifier:
    """Return a model as large as a data set asks, on the CPU."""
    return build_model(
        spec,
        mechanism=mechanism,
        config=config,
        position=position,
        vocabulary=dataset.vocabulary,
        classes=dataset.classes,
        inputs=dataset.inputs,
        length=dataset.length,
        rules=rules,
        seed=seed,
    )


def padded_length(
    dataset: Dataset, spec: TrainSpec, *, rules: Rules, pad_to_length: bool
) -> int | None:
    """Return what every sequence is padded to; None where batches are cut to their longest."""
    # The original's mean runs over padding, so its rules never cut it away.
    cut = spec.bucketed and not pad_to_length and rules == "fixed"
    return None if cut else dataset.length


def step_for(
    model: nn.Module,
    dataset: Dataset,
    spec: TrainSpec,
    *,
    length: int | None,
    seed: int,
    rules: Rules,
    device: torch.device,
    ranks: Ranks = ALONE,
) -> Step:
    """Return the step that trains a model, which is on the device, on rows padded to a length."""
    for module in model.modules():
        if isinstance(module, Encoder):
            module.recompute = spec.recompute
    collate = Collator(
        dataset.train,
        length=length,
        rules=rules,
        multiple=GPU_MULTIPLE if device.type == "cuda" else 1,
    )
    return Step(
        model, dataset.train, spec, collate, seed=seed, rules=rules, device=device, ranks=ranks
    )
