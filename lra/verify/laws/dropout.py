"""Dropout is felt in training and in no evaluation, and torch's seed repeats it.

A card that claims a softmax with convex weights has weights to drop; somebody's own class that
takes a share to drop has something to drop.
"""

from __future__ import annotations

from collections.abc import Iterator

from lra.core.cards import AttentionCard
from lra.core.findings import Case
from lra.verify.dropping import FELT, OTHER, drawn, dropping, in_parity
from lra.verify.law import Broken, Law, Untried, is_not_empty, relative_difference, require_same
from lra.verify.mixture import every_request, rotated
from lra.verify.subject import Subject

COUNT = 14
"""Number of cases of the short form."""
LENGTHS = (5, 16, 37, 65)
ENOUGH = 5
"""Length from which on two draws of all weights hardly agree by chance: 8 heads of examples with 15
weights or more, each kept by three in four."""


def is_claimed(card: AttentionCard) -> bool:
    """Return whether a card claims weights, or a signature a share to drop."""
    if card.assumed:
        return any("= dropout" in words for words in card.assumed)
    softmax = card.softmax in ("always", "configured", "of its own")
    return softmax and card.weights == "convex"


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in training, but for configurations in parity."""
    if not subject.trains_quietly:
        raise Untried(subject.untrained)
    own = [
        case
        for case in every_request(subject, LENGTHS, training=True)
        if case.n >= ENOUGH and (case.m is None or case.m >= ENOUGH)
        and not in_parity(subject, case)
    ]  # fmt: skip
    yield from rotated(subject, "dropout", own, COUNT)


def check(subject: Subject, case: Case) -> None:
    """Draw twice from one seed and once from another; then evaluate, with the rate and without."""
    layer = dropping(subject, case)
    x_BND, source_BMD = subject.inputs(case)
    context = subject.context(case, layer)
    first = drawn(layer, x_BND, context, source_BMD)
    again = drawn(layer, x_BND, context, source_BMD)
    other = drawn(layer, x_BND, context, source_BMD, seed=OTHER)
    evaluated = layer.eval()(x_BND, context, source_BMD=source_BMD).y_BND
    plain = subject.build(case, seed=1).eval()(x_BND, context, source_BMD=source_BMD).y_BND
    require_same(evaluated, plain, "evaluation with a dropout rate, against none", 0.0)
    if relative_difference(first, evaluated) < FELT:
        raise Broken("dropout changes nothing in training")
    require_same(again, first, "training with dropout, drawn twice from one seed", 0.0)
    if subject.is_ours and relative_difference(other, first) < FELT:
        raise Broken("two seeds of torch's generator drop the same")


LAW = Law(
    name="dropout",
    says="dropout is felt in training alone, by torch's seed",
    claimed=is_claimed,
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and case.training and min(case.n, case.m or 5) >= ENOUGH,
    claim={},
)
