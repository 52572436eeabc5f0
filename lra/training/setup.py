"""Setup of a training: the model around a mechanism, its data and its protocol."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from attention_impls.contract import Layer, MechanismConfig, Position
from lra.core.cards import TaskMetric
from lra.core.dataset import Dataset
from lra.core.protocol import ModelSpec, Rules, TrainSpec
from lra.models.build import build_model
from lra.models.layers import Layers
from lra.models.model import Model
from lra.training.batches import Collator
from lra.training.objectives.labels import Labels
from lra.training.objectives.objective import Objective

GPU_MULTIPLE = 64
"""Multiple that lengths of batches are rounded up to on a GPU. Its library for attention plans anew
for each new length, in a tenth of a second, and a CUDA graph holds for one length: ListOps has
batches of 25 lengths instead of 1,322, with 3 % more tokens. On a CPU all lengths are alike, and
less is computed."""


@dataclass(frozen=True)
class Training:
    """All that determines a training's numbers, but for its model and the device.

    `lra2021` rules always pad to the length and shuffle without regard to it, as in the original.
    """

    dataset: Dataset
    spec: TrainSpec
    seed: int
    rules: Rules = "fixed"
    metric: TaskMetric = "accuracy"
    pad_to_length: bool = False
    """Whether every sequence is padded to the length, for mechanisms whose padding is `length`."""
    objective: Objective = field(default_factory=Labels)

    @property
    def length(self) -> int | None:
        """Length that every sequence is padded to; None where batches are cut to their longest."""
        # The original's mean runs over padding, so its rules never cut it away.
        cut = self.spec.bucketed and not self.pad_to_length and self.rules == "fixed"
        return None if cut else self.dataset.length

    def collator(self, device: torch.device) -> Collator:
        """Return the collator of the training rows."""
        return Collator(
            self.dataset.train,
            length=self.length,
            rules=self.rules,
            multiple=GPU_MULTIPLE if device.type == "cuda" else 1,
        )


def model_for(
    dataset: Dataset,
    spec: ModelSpec,
    *,
    mechanism: type[Layer],
    config: MechanismConfig,
    position: type[Position],
    rules: Rules,
    seed: int,
    picture_width: int | None = None,
) -> Model:
    """Return a model with the sizes that a data set needs, on the CPU."""
    return build_model(
        spec,
        layers=Layers.of(mechanism, config),
        position=position,
        vocabulary=dataset.vocabulary,
        classes=dataset.classes,
        inputs=dataset.inputs,
        length=dataset.length,
        picture_width=picture_width,
        rules=rules,
        seed=seed,
    )
