"""Weights are not negative: no output leaves the range of the values it may read."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lra.core.findings import Case
from lra.verify.law import Broken, Law, Untried
from lra.verify.requests import requests
from lra.verify.subject import Subject, attend

TOLERANCE = 1e-9


def cases(subject: Subject) -> Iterator[Case]:
    """Every request in which each query has something to attend to."""
    if not subject.is_attention:
        raise Untried("it has no values apart from its inputs")
    return requests(subject)


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Compare each output with the least and the greatest value, up to its own place if causal."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    out_BHNV, v = attend(layer, heads, context), heads.v_BGMV
    values = v.repeat_interleave(out_BHNV.shape[1] // v.shape[1], dim=1)
    if case.causal:
        least, greatest = values.cummin(2).values, values.cummax(2).values
    else:
        least, greatest = values.amin(2, keepdim=True), values.amax(2, keepdim=True)
    outside = torch.maximum(least - out_BHNV, out_BHNV - greatest)
    if float(outside.amax()) > TOLERANCE:
        raise Broken(f"an output leaves the range of the values by {float(outside.amax()):.1e}")


LAW = Law(
    name="convexity",
    says="weights are not negative: outputs stay in the range of the values",
    claimed=lambda card: card.weights == "convex",
    cases=cases,
    check=check,
)
