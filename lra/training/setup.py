"""Setup of a training: the model around a mechanism, its data and its protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from msgspec import UNSET

from attention_impls.contract import Position
from lra.core.cards import Capabilities, TaskMetric, meet
from lra.core.dataset import Dataset
from lra.core.forms import Size
from lra.core.protocol import BlockForm, ModelSpec, Rules, TrainSpec
from lra.models.build import build_model, tie_queries_and_keys
from lra.models.language import Answers, Slots, build_decoder, build_encoder_decoder
from lra.models.layers import Layers
from lra.models.model import Model
from lra.models.sequence_model import SequenceModel
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


class Network(NamedTuple):
    """Mechanisms and position schemes of a model."""

    slots: Slots
    """In a model of one stack, all three are the same."""
    positions: tuple[type[Position], type[Position]]
    """Schemes of source and target; in a model of one stack, both are the same."""

    @property
    def capabilities(self) -> Capabilities:
        """Requests that all of its mechanisms can honour."""
        return meet([layers.capabilities for layers in self.slots])


def is_convex(stacks: Iterable[Layers]) -> bool:
    """Return whether all mechanisms of these stacks weigh values by shares that sum to 1."""
    members = (member for layers in stacks for member in layers.cycle)
    return all(member.mechanism.card.weights == "convex" for member in members)


class Sizes(Protocol):
    """Sizes of a model that follow from its data, as a `Dataset` has them."""

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""

    @property
    def classes(self) -> int:
        """Number of labels."""

    @property
    def length(self) -> int:
        """Tokens of the longest sequence."""

    @property
    def inputs(self) -> int:
        """Sequences per example."""

    @property
    def parts(self) -> tuple[int, ...]:
        """Sizes of the parts that a token consists of."""


def model_for(
    dataset: Sizes,
    spec: ModelSpec,
    *,
    network: Network,
    rules: Rules,
    seed: int,
    picture_width: int | None = None,
    answers_first: int | None = None,
) -> Model | SequenceModel:
    """Return a model with the sizes that a data set needs, on the CPU.

    `answers_first` is the token that class 0 stands for, the others following; None where classes
    are no tokens.
    """
    if spec.body != "encoder_decoder" and spec.form is UNSET:
        return build_model(
            spec,
            layers=network.slots.decoder,
            position=network.positions[0],
            vocabulary=dataset.vocabulary,
            classes=dataset.classes,
            inputs=dataset.inputs,
            length=dataset.length,
            picture_width=picture_width,
            rules=rules,
            seed=seed,
        )
    own = BlockForm(tied=False, attention_biases=spec.projection_biases)
    form = own if spec.form is UNSET else spec.form
    size = Size(
        layers=spec.layers,
        width=spec.width,
        qkv_width=spec.qkv_width,
        heads=spec.heads,
        mlp_width=spec.mlp_width,
        vocabulary=dataset.vocabulary,
        length=dataset.length,
    )
    shared: dict[str, Any] = {
        "dropout": spec.dropout,
        "attention_dropout": spec.attention_dropout,
        "answers": Answers(
            dataset.classes,
            answers_first,
            spec.classifier_widths if spec.form is UNSET else None,
            dataset.parts,
        ),
        "seed": seed,
    }
    model: Model | SequenceModel
    if spec.body == "encoder_decoder":
        model = build_encoder_decoder(
            size, form, slots=network.slots, positions=network.positions, **shared
        )
    else:
        model = build_decoder(
            size, form, layers=network.slots.decoder, position=network.positions[0], **shared
        )
    if spec.query_key_start == "tied":
        tie_queries_and_keys(model)
    return model
