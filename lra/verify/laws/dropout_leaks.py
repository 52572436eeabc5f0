"""Under dropout too, no output feels a later input, another example or what padding holds.

One seed draws the same for the changed input, so that nothing else may differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from lra.core.findings import Case
from lra.verify.dropping import RATE, drawn, dropping, require_dropout
from lra.verify.law import Broken, Law, binds_all, is_not_empty, require_same
from lra.verify.mixed_requests import every_request
from lra.verify.requests import directions
from lra.verify.rotation import spread
from lra.verify.subject import Subject

TOLERANCE = 1e-9
COUNT = 14
"""Number of cases of the short form."""
LENGTHS = (2, 7, 16, 37, 65)
GROWTH = -16.0
"""Factor of what must not be felt: large, and of the other sign."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in training, three examples at a time."""
    require_dropout(subject, directions(subject)[0])
    own = every_request(subject, LENGTHS, training=True, batch=3)
    yield from spread(own, COUNT, subject, "dropout_leaks")


def check(subject: Subject, case: Case) -> None:
    """Change later inputs, the first example, and padding."""
    layer = dropping(subject, case)
    x_BND, source_BMD = subject.inputs(case)
    context = subject.context(case, layer)
    y_BND = drawn(layer, x_BND, context, source_BMD)
    allowed = subject.allowed(TOLERANCE)
    read = (x_BND if source_BMD is None else source_BMD).detach()

    def after(changed: torch.Tensor) -> torch.Tensor:
        """Return the output when what keys come from is changed."""
        if source_BMD is None:
            return drawn(layer, changed.requires_grad_(), context)
        return drawn(layer, x_BND, context, changed.requires_grad_())

    if case.causal and case.m is None and subject.card.capabilities.causal == "strict":
        for last in sorted({0, case.n // 2, case.n - 2} & set(range(case.n - 1))):
            later = read.clone()
            later[:, last + 1 :] *= GROWTH
            what = f"outputs up to position {last} under dropout when later inputs change"
            require_same(after(later)[:, : last + 1], y_BND[:, : last + 1], what, allowed)
    if case.batch > 1:
        beside = read.clone()
        beside[0] *= GROWTH
        what = "an example under dropout when the first one changes"
        require_same(after(beside)[1:], y_BND[1:], what, allowed)
    mask = subject.mask(case)
    if mask is None:
        return
    if case.m is None and bool(y_BND[~mask].any()):
        raise Broken("padded outputs are not zero under dropout")
    for garbage in (1e4, *([math.nan] if subject.is_ours else [])):
        filled = read.masked_fill(~mask.unsqueeze(-1), garbage)
        what = f"the output under dropout when padding holds {garbage:g}"
        require_same(after(filled), y_BND, what, allowed)


LAW = Law(
    name="dropout_leaks",
    says="under dropout no later input, other example or padding is felt",
    claimed=binds_all,
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and case.training,
    dropout=RATE,
)
