"""Examples are independent: a row is the same alone, and beside rows that are not finite."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from lra.core.findings import Case
from lra.verify.law import Law, binds_all, require_same
from lra.verify.requests import masks, requests
from lra.verify.sizes import FAR
from lra.verify.subject import Subject

TOLERANCE = 1e-9
OUTLIERS = (1e3, 1e-3, math.nan)


def cases(subject: Subject) -> Iterator[Case]:
    """Every request."""
    return requests(
        subject,
        masks=masks(subject, "scattered"),
        positions=("none",),
        training=True,
        far=True,
    )


def check(subject: Subject, case: Case) -> None:
    """Change the first example, and compare each other one with itself alone."""
    with torch.set_grad_enabled(case.training):
        _check(subject, case)


def _check(subject: Subject, case: Case) -> None:
    layer = subject.build(case)
    x_BND = subject.inputs(case)[0].detach()
    context = subject.context(case, layer)
    alone = []
    for row in range(1, case.batch):
        own = slice(row, row + 1)
        mask = None if context.key_mask_BM is None else context.key_mask_BM[own]
        single = replace(context, query_mask_BN=mask, key_mask_BM=mask)
        alone.append(layer(x_BND[own], single).y_BND)
    for outlier in OUTLIERS[-1:] if case.n > FAR else OUTLIERS:
        beside = x_BND.clone()
        beside[0] *= outlier
        found = layer(beside, context).y_BND[1:]
        what = f"an example beside one multiplied by {outlier:g}, against itself alone"
        require_same(found, torch.cat(alone), what, subject.allowed(TOLERANCE))


LAW = Law(
    name="batch",
    says="examples of a batch do not feel each other",
    claimed=binds_all,
    cases=cases,
    check=check,
    takes=lambda case: case.batch > 1 and case.n > 0,
)
