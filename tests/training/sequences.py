"""An encoder-decoder and sources with answers, small enough to train in a second.

As a program, `sequences.py INDEX FOLDER` is one of two processes that train it together, and writes
its end to a file named INDEX.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from lra.core.catalogue import find
from lra.core.dataset import UNASKED, Dataset, Split
from lra.core.forms import Size, load_preset
from lra.core.loading import load
from lra.core.protocol import Mechanism, TrainSpec
from lra.models.language import Slots, build_encoder_decoder, named_layers
from lra.models.sequence_model import SequenceModel
from lra.training.loop import Run, train
from lra.training.outcome import Trained
from lra.training.ranks import Joined
from lra.training.setup import Training

CPU = torch.device("cpu")
SIZE = Size(layers=2, width=16, qkv_width=16, heads=2, mlp_width=32, vocabulary=13, length=24)


def split(rows: int) -> Split:
    """Sources of 5 to 24 tokens, and answers of 2 to 9, each of whose tokens is asked."""
    draws = np.random.default_rng(rows)
    sequences, labels = [], []
    for _ in range(rows):
        source, given = (draws.integers(1, 13, draws.integers(*n)) for n in ((5, 25), (2, 10)))
        sequences += [source.astype(np.uint8), given.astype(np.uint8)]
        labels += [np.full(len(source), UNASKED), given - 1]
    return Split.of(sequences, np.concatenate(labels), 2, by_token=True)


DATA = Dataset(split(40), split(20), split(21), classes=13, vocabulary=13, length=24, inputs=2)


def model(*, dropout: float = 0.0, **slots: str) -> SequenceModel:
    """Exact attention where no other mechanism is named."""
    layers = (named_layers([Mechanism(name=slots.get(one, "full"))]) for one in Slots._fields)
    position = load(find("position", "sinusoidal"))
    return build_encoder_decoder(
        SIZE,
        load_preset("pegasus").form,
        slots=Slots(*layers),
        positions=(position, position),
        dropout=dropout,
        seed=1,
    )


def trained(net: nn.Module, spec: TrainSpec, **options: object) -> Trained:
    """Train to the end; `options` are asked of `Run`."""
    return train(Run(net, Training(DATA, spec, seed=3), device=CPU, **options))


if __name__ == "__main__":
    index, folder = int(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=index, world_size=2
    )
    spec = TrainSpec(
        steps=6, batch=8, learning_rate=3e-3, evaluate_every=3, evaluation_batch=7, clip=1.0
    )
    net = model().double()
    found = trained(net, spec, ranks=Joined())
    ends = {"losses": [p.train_loss for p in found.curve], "weights": net.state_dict()}
    torch.save(ends, folder / str(index))
    dist.destroy_process_group()
