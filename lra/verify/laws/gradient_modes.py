"""Outputs are the same under `no_grad`, `inference_mode`, in evaluation and in training without
dropout, and so are gradients in evaluation and in training: with biases, rotary positions and
another sequence too.

In float64 and in float32: fused kernels are chosen by type and by who asks for gradients.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from lra.core.findings import Case, DtypeName
from lra.verify.law import Law, binds_all, projected_gradients, require_same
from lra.verify.mixed_requests import ROUNDED, biased, differentiated, every_request, in_each, under
from lra.verify.rotation import spread
from lra.verify.subject import Subject

TOLERANCE = 1e-9
GRADIENT = 10 * ROUNDED
"""Tolerance for gradients in float32, which pass through as many sums again, and through those of a
parameter over all positions."""
COUNT = 24
"""Number of cases of the short form."""
TYPES: tuple[DtypeName, ...] = ("float64", "float32")


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in both types."""
    own = every_request(subject, subject.lengths, training=subject.trains_quietly)
    yield from spread(in_each(own, TYPES), COUNT, subject, "gradient_modes")


def check(subject: Subject, case: Case) -> None:
    """Ask the same in every mode."""
    rounded = subject.dtype(case) == torch.float32
    layer = subject.build(case)
    x_BND, source_BMD = subject.inputs(case)
    context = biased(subject.context(case, layer), case, layer, subject)
    leaves = differentiated(layer, context, x_BND, source_BMD)

    def ask(training: bool) -> tuple[Tensor, list[Tensor]]:
        y_BND = layer.train(training)(x_BND, context, source_BMD=source_BMD).y_BND
        return y_BND.detach(), projected_gradients(y_BND, leaves.values())

    wanted, expected = ask(False)
    allowed = subject.allowed(ROUNDED if rounded else TOLERANCE)
    for training in (False, True) if case.training else (False,):
        layer.train(training)
        how = "training without dropout" if training else "evaluation"
        for mode in ("no_grad", "inference"):
            with under(mode):
                found = layer(x_BND, context, source_BMD=source_BMD).y_BND.clone()
            what = f"output under {mode} in {how}, against evaluation with gradients"
            require_same(found, wanted, what, allowed)
    if not case.training:
        return
    found, actual = ask(True)
    require_same(found, wanted, "output in training without dropout", allowed)
    allowed = subject.allowed(GRADIENT if rounded else TOLERANCE)
    for leaf, one, other in zip(leaves, actual, expected, strict=True):
        what = f"gradient of {leaf} in training without dropout, against evaluation"
        require_same(one, other, what, allowed)


LAW = Law(
    name="gradient_modes",
    says="without dropout, every gradient mode and training give the same",
    claimed=binds_all,
    cases=cases,
    check=check,
)
