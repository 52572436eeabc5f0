"""Dropout of weights in training: its rate, its draws, and whether a mechanism has any."""

from __future__ import annotations

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Context, Layer
from lra.core.findings import Case
from lra.verify.law import Untried, relative_difference
from lra.verify.subject import Subject, seed_torch

RATE = 0.25
"""Share dropped. Unlike a half, it tells division by what is kept from division by what is not."""
DRAW = 11
"""Seed of the draws of one pass."""
OTHER = 12
"""Seed that others leave the generator with, between a forward pass and its backward pass."""
FELT = 1e-6
"""Smallest change that dropout must cause, relative to the output."""


def dropping(subject: Subject, case: Case, *, dtype: torch.dtype | None = None) -> Layer:
    """Return a layer in training with dropout, and without a setting for noise."""
    trained = msgspec.structs.replace(case, training=True)
    return subject.build(trained, seed=1, dropout=RATE, dtype=dtype)


def drawn(
    layer: Layer,
    x_BND: Tensor,
    context: Context,
    source_BMD: Tensor | None = None,
    seed: int = DRAW,
) -> Tensor:
    """Return the output under one seed of torch's generators."""
    seed_torch(seed)
    y_BND: Tensor = layer(x_BND, context, source_BMD=source_BMD).y_BND
    return y_BND


def in_parity(subject: Subject, case: Case) -> bool:
    """Whether a configuration follows somebody's code, which may drop nothing."""
    return getattr(subject.configs[case.trial], "parity", "none") != "none"


def drops(subject: Subject, case: Case) -> bool:
    """Whether training with dropout differs from evaluation here."""
    layer = dropping(subject, case)
    x_BND, _ = subject.inputs(case)
    context = subject.context(case, layer)
    found = drawn(layer, x_BND, context)
    return relative_difference(found, layer.eval()(x_BND, context).y_BND) > FELT


def require_dropout(subject: Subject, causal: bool) -> None:
    """Raise `Untried` where dropout has nothing to drop, or somebody's own code draws anyway."""
    if not subject.trains_quietly:
        raise Untried(subject.untrained)
    for trial in range(len(subject.configs)):
        if drops(subject, Case(n=7, causal=causal, trial=trial, training=True)):
            return
    raise Untried("training with a dropout rate gives the same as evaluation with it")
