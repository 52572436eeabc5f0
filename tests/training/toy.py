"""A model and a task small enough to train in a second, for this room's tests."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from attention_impls.contract import Attention, Context, Dims, Position, default_scale
from lra.core.cards import AttentionCard, Capabilities, PositionCard
from lra.core.dataset import Dataset, Split
from lra.core.protocol import ModelSpec, Rules, TrainSpec
from lra.models.build import build_model
from lra.models.layers import Layers
from lra.models.model import Model
from lra.training.loop import Run, train
from lra.training.outcome import Trained
from lra.training.setup import Training

LENGTH = 24
CPU = torch.device("cpu")
SPEC = TrainSpec(
    steps=60,
    batch=32,
    learning_rate=5e-3,
    warmup=5,
    evaluate_every=20,
    evaluation_batch=50,
)


class Plain(Attention):
    """Masked softmax attention."""

    card = AttentionCard(
        title="",
        paper="",
        year=2017,
        time="",
        memory="",
        capabilities=Capabilities(bidirectional=True, padding="content"),
    )

    def attend(self, q: Tensor, k: Tensor, v: Tensor, context: Context, state: object = None):
        logits = q @ k.mT * default_scale(q.shape[-1])
        if context.key_mask_BM is not None:
            logits = logits.masked_fill(~context.key_mask_BM[:, None, None, :], -torch.inf)
        return logits.softmax(dim=-1).nan_to_num() @ v, state

    def oracle(self, *args: object) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


class Softmax(Plain):
    """The same, with a buffer that only `after_step` changes."""

    def __init__(self, dims: Dims, *args: object, **options: object) -> None:
        super().__init__(dims, *args, **options)
        self.register_buffer("steps_seen", torch.zeros((), dtype=torch.int64))

    def after_step(self, step: int) -> None:
        self.steps_seen.fill_(step)


class Learned(Position):
    card = PositionCard(title="", paper="", year=2017, acts_on="input", fixed_length=True)

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.table = nn.Parameter(torch.randn(dims.max_length, dims.width) * 0.02)

    def embed(self, positions_N: Tensor) -> Tensor:
        return self.table[positions_N]


def model(
    *,
    dropout: float = 0.0,
    inputs: int = 1,
    rules: Rules = "fixed",
    mechanism: type[Attention] = Softmax,
    seed: int = 1,
) -> Model:
    spec = ModelSpec(layers=1, width=16, qkv_width=16, heads=2, mlp_width=32, dropout=dropout)
    return build_model(
        spec,
        layers=Layers.of(mechanism),
        position=Learned,
        vocabulary=6,
        classes=2,
        inputs=inputs,
        length=LENGTH,
        rules=rules,
        seed=seed,
    )


def split(rows: int, seed: int, *, inputs: int = 1) -> Split:
    """Rows of 4 to 24 tokens; the label says whether 1 is more frequent than 2."""
    draws = np.random.default_rng(seed)
    lengths = draws.integers(4, LENGTH + 1, size=rows * inputs)
    lengths[0] = LENGTH
    sequences = [draws.integers(1, 6, size=n).astype(np.uint8) for n in lengths]
    surplus = np.array([(s == 1).sum() - (s == 2).sum() for s in sequences[::inputs]])
    return Split.of(sequences, surplus > 0, inputs)


def dataset(*, inputs: int = 1, rows: int = 400) -> Dataset:
    train, validation, test = (
        split(n, seed, inputs=inputs) for seed, n in enumerate((rows, 120, 130))
    )
    return Dataset(train, validation, test, classes=2, vocabulary=6, length=LENGTH, inputs=inputs)


def trained(
    model: nn.Module,
    spec: TrainSpec = SPEC,
    *,
    data: Dataset | None = None,
    seed: int = 0,
    training: dict[str, object] | None = None,
    device: torch.device = CPU,
    **options: object,
) -> Trained:
    """Train to the end; `training` and `options` are what is asked of `Training` and of `Run`."""
    asked = Training(data or dataset(), spec, seed=seed, **(training or {}))
    return train(Run(model, asked, device=device, **options))
