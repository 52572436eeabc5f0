"""No output depends on a later input: neither on its size nor on its presence.

A shared stabiliser, a mean over the sequence or a constant that depends on the length may hide
small changes, but not sixteen-fold and thousand-fold ones and the shorter input itself. The first
also changes signs, since a norm of each position would undo it. A leak at the border of a block
shows at one place only, which is unknown in somebody's own code.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lra.core.findings import Case
from lra.verify.law import Law, require_same
from lra.verify.requests import masks, requests
from lra.verify.sizes import FAR
from lra.verify.subject import Subject

TOLERANCE = 1e-9
GROWTH = (-16.0, 1e3, -1e3)
EVERY_PLACE = 66
"""Longest length at which inputs grow after every place; beyond, after some."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every causal request, in float32 too."""
    kinds = masks(subject, "scattered")
    return requests(
        subject, causal=(True,), masks=kinds, training=True, dtypes=("float32",), far=True
    )


def check(subject: Subject, case: Case) -> None:
    """Grow all inputs after a place, then cut them off: outputs up to it stay."""
    with torch.set_grad_enabled(case.training):
        _check(subject, case)


def _check(subject: Subject, case: Case) -> None:
    layer = subject.build(case)
    x_BND = subject.inputs(case)[0].detach()
    context = subject.context(case, layer)
    y_BND = layer(x_BND, context).y_BND
    places = range(case.n - 1)
    closely = {0, case.n // 3, case.n // 2, case.n - 2} & set(places)
    growths = GROWTH[:1] if case.n > FAR else GROWTH
    if case.n > FAR:
        closely = {case.n // 2, case.n - 2}
    for last in places if case.n <= EVERY_PLACE else sorted(closely):
        stays = slice(0, last + 1)
        for growth in growths if last in closely else GROWTH[:1]:
            other = x_BND.clone()
            other[:, last + 1 :] *= growth
            found = layer(other, context).y_BND[:, stays]
            what = f"outputs up to position {last} when later inputs are multiplied by {growth:g}"
            allowed = subject.allowed(TOLERANCE, case)
            if case.dtype == "float32":
                # A transform over the sequence rounds by its largest input.
                allowed *= abs(growth / GROWTH[0])
            require_same(found, y_BND[:, stays], what, allowed)
        if case.mask == "none" and last in closely:
            found = layer(x_BND[:, stays], context).y_BND
            what = f"outputs up to position {last} when the input ends there"
            require_same(found, y_BND[:, stays], what, subject.allowed(TOLERANCE, case))


LAW = Law(
    name="causality",
    says="no output feels a later input, nor how many there are",
    claimed=lambda card: card.capabilities.causal == "strict",
    cases=cases,
    check=check,
    claim={"causal": "strict"},
)
