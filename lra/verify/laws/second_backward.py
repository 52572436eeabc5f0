"""A second backward pass over the same graph gives the same as the first, and two graphs of one
layer keep to themselves, whatever is drawn, called or passed back in between."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import torch
from torch import Tensor

from lra.core.findings import Case
from lra.verify.dropping import OTHER, RATE, drawn, dropping
from lra.verify.law import Broken, Law, binds_all, gradients, require_same
from lra.verify.mixed_requests import biased, differentiated, every_request
from lra.verify.rotation import spread
from lra.verify.subject import Subject, seed_torch

TOLERANCE = 1e-9
COUNT = 16
"""Number of cases of the short form."""
LENGTHS = (2, 7, 16, 37)


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in turn, every other one in training, with dropout."""
    yield from spread(every_request(subject, LENGTHS), COUNT, subject, "second_backward")


def check(subject: Subject, case: Case) -> None:
    """Pass back through one graph, through another one of the same layer, and through the first
    again."""
    layer = dropping(subject, case) if case.training else subject.build(case, seed=1)
    x_BND, source_BMD = subject.inputs(case)
    context = biased(subject.context(case, layer), case, layer, subject)
    other_BND = subject.inputs(msgspec.structs.replace(case, seed=case.seed + 1))[0]
    leaves = differentiated(layer, context, x_BND, source_BMD) | {"other input": other_BND}

    def passed(y_BND: Tensor) -> list[Tensor]:
        upstream = torch.linspace(-1, 1, y_BND.numel()).to(y_BND).view(y_BND.shape)
        try:
            return gradients(y_BND, leaves.values(), upstream, kept=True)
        except Exception as error:
            line = " ".join(f"{type(error).__name__}: {error}".split())
            raise Broken(f"no backward pass over a graph that is kept: {line}") from error

    alone = drawn(layer, other_BND, context, source_BMD, seed=OTHER)
    wanted_other = passed(alone)
    y_BND = drawn(layer, x_BND, context, source_BMD)
    wanted = passed(y_BND)
    beside = drawn(layer, other_BND, context, source_BMD, seed=OTHER)
    seed_torch(OTHER + 1)
    for found, first, what in (
        (passed(y_BND), wanted, "in a second backward pass over its graph, after another call"),
        (passed(beside), wanted_other, "of a second call, passed back after the first one's"),
        (passed(y_BND), wanted, "in a third backward pass over its graph"),
    ):
        for name, one, expected in zip(leaves, found, first, strict=True):
            require_same(one, expected, f"gradient of {name} {what}", subject.allowed(TOLERANCE))


LAW = Law(
    name="second_backward",
    says="a second backward pass over a graph gives the same",
    claimed=binds_all,
    cases=cases,
    check=check,
    dropout=RATE,
)
