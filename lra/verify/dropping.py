"""Dropout of weights in training: its rate, its draws, and whether a mechanism has any."""

from __future__ import annotations

import msgspec
import torch
from torch import Tensor
from torch.nn.modules.dropout import _DropoutNd

from attention_impls.contract import Context, Layer
from lra.core.findings import Case, DtypeName
from lra.verify.law import Untried, relative_difference
from lra.verify.subject import Subject, seed_torch

RATE = 0.25
"""Share dropped. Unlike a half, it tells division by what is kept from division by what is not."""
DRAW = 11
"""Seed of the draws of one pass."""
OTHER = 12
"""Seed that others leave the generator with, between a forward pass and its backward pass."""
NOTHING_DROPPED = "it has no dropout: training with a rate gives the same as evaluation"
"""Reason not to try a law, in words."""
FELT = 1e-6
"""Smallest change that dropout must cause, relative to the output."""


def dropping(subject: Subject, case: Case, *, dtype: torch.dtype | None = None) -> Layer:
    """Return a layer in training with dropout, and without a setting for noise; somebody's own
    draws by torch's seed too."""
    trained = msgspec.structs.replace(case, training=True)
    return subject.build(trained, seed=1, dropout=RATE, dtype=dtype, steady=False)


def dropping_dtypes(subject: Subject) -> list[DtypeName]:
    """Return the types that dropout is tried in: all that an evaluation gives numbers in."""
    every: tuple[DtypeName, ...] = ("float64", "float32", "bfloat16", "float16")
    return [dtype for dtype in every if subject.is_ours or _takes(subject, dtype)]


def _takes(subject: Subject, dtype: DtypeName) -> bool:
    case = Case(n=7, causal=not subject.card.capabilities.bidirectional, dtype=dtype)
    try:
        layer = subject.build(case)
        with torch.no_grad():
            y_BND = layer(subject.inputs(case)[0], subject.context(case, layer)).y_BND
    except Exception:
        # Another law says so, where it takes its own type no more.
        return dtype == "float64"
    return dtype == "float64" or bool(y_BND.isfinite().all())


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


def drops(subject: Subject, case: Case) -> bool:
    """Whether training with dropout differs from evaluation here."""
    layer = dropping(subject, case)
    x_BND, _ = subject.inputs(case)
    context = subject.context(case, layer)
    found = drawn(layer, x_BND, context)
    return relative_difference(found, layer.eval()(x_BND, context).y_BND) > FELT


def has_dropout(subject: Subject) -> bool:
    """Whether any configuration drops something in training; False where that cannot be tried."""
    causal = not subject.card.capabilities.bidirectional
    trials = range(len(subject.configs))
    try:
        return any(drops(subject, Case(n=7, causal=causal, trial=trial)) for trial in trials)
    except Exception:
        # Laws will find the error.
        return False


def require_dropout(subject: Subject, causal: bool) -> None:
    """Raise `Untried` where dropout has nothing to drop, or somebody's own code draws anyway."""
    if not subject.trains_quietly:
        raise Untried(subject.untrained)
    for trial in range(len(subject.configs)):
        if drops(subject, Case(n=7, causal=causal, trial=trial, training=True)):
            return
    raise Untried(NOTHING_DROPPED)


def require_seeded_dropout(subject: Subject, causal: bool) -> None:
    """Raise `Untried` where somebody's own code draws anything but dropout, or not by the seed of
    torch's generator, or nothing."""
    case = Case(n=7, causal=causal, training=True)
    if subject.untrained and not _draws_dropout_alone(subject, case):
        raise Untried(subject.untrained)
    layer = dropping(subject, case)
    x_BND = subject.inputs(case)[0].detach()
    context = subject.context(case, layer)
    first, again, other = (drawn(layer, x_BND, context, seed=s) for s in (DRAW, DRAW, OTHER))
    layer.eval()
    one, two = (drawn(layer, x_BND, context, seed=seed) for seed in (DRAW, OTHER))
    if not torch.equal(one, two):
        raise Untried("it draws in evaluation too, which has no mean to keep then")
    if not torch.equal(first, again):
        raise Untried("what it draws in training does not follow the seed of torch's generator")
    if torch.equal(first, other):
        raise Untried(NOTHING_DROPPED)


def _draws_dropout_alone(subject: Subject, case: Case) -> bool:
    """Whether somebody's own code draws nothing where every rate of dropout is zero: those of its
    settings, and of torch's modules in it."""
    rates = {name: 0.0 for name in subject.config.__struct_fields__ if "drop" in name}
    config = msgspec.structs.replace(subject.config, **rates)
    try:
        layer = subject.build(case, config=config, steady=False)
        for part in layer.modules():
            if isinstance(part, _DropoutNd):
                part.p = 0.0
        x_BND, context = subject.inputs(case)[0].detach(), subject.context(case, layer)
        one, two = (drawn(layer, x_BND, context, seed=seed) for seed in (DRAW, OTHER))
    except Exception:
        # Laws will find the error, in evaluation.
        return False
    return torch.equal(one, two)
