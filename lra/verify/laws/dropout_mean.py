"""Dropout keeps the mean: over its draws, outputs in training are those of evaluation.

True where all that comes after what is dropped is linear in it, as weights times values and the
projection are. That is known of our mechanisms, and of somebody's core that is linear in its values
under one draw; of anything else a mean that is not kept is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context, Layer
from lra.core.findings import Case
from lra.verify.dropping import (
    DRAW,
    RATE,
    drawn,
    dropping,
    dropping_dtypes,
    require_dropout,
    require_seeded_dropout,
)
from lra.verify.law import Broken, Law, Reported, binds_all, is_not_empty, relative_difference
from lra.verify.mixed_requests import ROUNDED, every_request, in_each
from lra.verify.requests import directions, in_parity
from lra.verify.rotation import spread
from lra.verify.rounding import rounding
from lra.verify.subject import Subject, attend, seed_torch

COUNT = 16
"""Number of cases of the short form."""
LENGTHS = (1, 2, 3, 7, 16)
DRAWS = {False: 24, True: 96}
"""Number of passes that a mean is over, in the short form and in the full one."""
COPIES = 12
"""Copies of each example in a pass, each with its own draw."""
ERRORS = 7.0
"""Largest distance of a mean, beyond rounding, in standard errors, which the passes themselves
show. With 24 passes an honest one in two million is farther away."""
PROJECTIONS = 4


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in training, but for configurations in parity."""
    require = require_dropout if subject.is_ours else require_seeded_dropout
    require(subject, directions(subject)[0])
    every = in_each(every_request(subject, LENGTHS, training=True), dropping_dtypes(subject))
    own = [case for case in every if not in_parity(subject, case)]
    yield from spread(own, COUNT, subject, "dropout_mean")


def check(subject: Subject, case: Case) -> None:
    """Compare the mean of many draws with the evaluation: in size, and along random directions."""
    layer = dropping(subject, case)
    x_BND, source_BMD = subject.inputs(case)
    context = subject.context(case, layer)
    plain = layer.eval()(x_BND, context, source_BMD=source_BMD).y_BND
    layer.train()
    context = _repeated(context)
    x_BND = x_BND.repeat(COPIES, 1, 1)
    if source_BMD is not None:
        source_BMD = source_BMD.repeat(COPIES, 1, 1)
    passes = [
        drawn(layer, x_BND, context, source_BMD, seed=seed).detach().view(COPIES, *plain.shape)
        for seed in range(DRAWS[subject.full])
    ]
    gaps = (torch.stack(passes).mean(1) - plain.detach()).flatten(1).double()
    along = gaps @ _directions(plain.detach().flatten().double(), case.seed).mT
    mean, spread = along.mean(0), along.std(0)
    error = spread / len(passes) ** 0.5
    distance = (mean.abs() - rounding(case)).clamp(min=0.0) / (error + 1e-12)
    if not bool((distance > ERRORS).any()):
        return
    worst = int(distance.argmax())
    where = "in size" if worst == 0 else "along a random direction"
    words = (
        f"the mean output of {len(passes) * COPIES} draws is off {where} by "
        f"{float(mean[worst]):+.1e} of evaluation's, {float(distance[worst]):.0f} standard "
        f"errors, allowed {ERRORS:g}, in {str(subject.dtype(case)).removeprefix('torch.')}"
    )
    if subject.is_ours or _is_linear(subject, case, layer):
        raise Broken(words)
    raise Reported(f"{words}; right where something that is not linear follows the dropout")


def _is_linear(subject: Subject, case: Case, layer: Layer) -> bool:
    """Whether somebody's core is linear in the values under one draw, and so keeps their mean if
    its weights do; of a module's values nothing is known."""
    if not subject.is_attention:
        return False
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    generator = torch.Generator().manual_seed(case.seed)
    other = torch.randn(heads.v_BGMV.shape, dtype=torch.float64, generator=generator)
    v_BGMV = heads.v_BGMV.detach()
    outs = []
    for values in (v_BGMV, other.to(v_BGMV), v_BGMV + other.to(v_BGMV)):
        seed_torch(DRAW)
        outs.append(attend(layer, heads._replace(v_BGMV=values), context))
    return relative_difference(outs[0] + outs[1], outs[2]) <= subject.allowed(ROUNDED, case)


def _repeated(context: Context) -> Context:
    """Return the context of as many copies of the examples."""

    def repeat(mask_BN: Tensor | None) -> Tensor | None:
        return None if mask_BN is None else mask_BN.repeat(COPIES, 1)

    return replace(
        context,
        query_mask_BN=repeat(context.query_mask_BN),
        key_mask_BM=repeat(context.key_mask_BM),
    )


def _directions(plain: Tensor, seed: int) -> Tensor:
    """Return the direction of an output, and random ones: along each, gaps come out relative to the
    output's norm."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(PROJECTIONS, len(plain), dtype=torch.float64, generator=generator)
    size = plain.norm().clamp(min=1e-12)
    unit = F.normalize(drawn, dim=-1).to(plain.device)
    directions: Tensor = torch.cat([plain[None] / size, unit]) / size
    return directions


LAW = Law(
    name="dropout_mean",
    says="dropout keeps the mean of outputs",
    claimed=binds_all,
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and case.training,
    measured=True,
    dropout=RATE,
)
