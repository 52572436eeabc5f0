"""Dropout is felt in training and in no evaluation, and torch's seed repeats it.

A card that claims a softmax with convex weights has weights to drop; somebody's own class that
takes a share to drop has something to drop.
"""

from __future__ import annotations

from collections.abc import Iterator

from lra.core.cards import AttentionCard
from lra.core.findings import Case
from lra.verify.dropping import FELT, OTHER, RATE, drawn, dropping, in_parity
from lra.verify.law import Broken, Law, Untried, is_not_empty, relative_difference, require_same
from lra.verify.mixture import every_request
from lra.verify.rotation import spread
from lra.verify.subject import Subject

COUNT = 14
"""Number of cases of the short form."""
LENGTHS = (5, 16, 37, 65)
ENOUGH = 5
"""Length with 15 weights or more in each head of an example, each kept by three in four."""
HEADS = 4
"""Heads of all examples from which on two draws of as many weights hardly agree by chance."""


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
    every = every_request(subject, LENGTHS, training=True)
    own = [case for case in every if has_enough(case) and not in_parity(subject, case)]
    yield from spread(own, COUNT, subject, "dropout")


def has_enough(case: Case) -> bool:
    """Return whether a case has so many weights that chance does not keep all of them."""
    long = min(case.n, case.n if case.m is None else case.m) >= ENOUGH
    return is_not_empty(case) and case.training and long and case.batch * case.heads >= HEADS


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
    if case.batch > 1 and case.m is None and case.mask == "none":
        alike = drawn(layer.train(), x_BND[:1].expand_as(x_BND), context)
        if relative_difference(alike[1:], alike[:1].expand_as(alike[1:])) < FELT:
            raise Broken("examples that are alike drop the same")


LAW = Law(
    name="dropout",
    says="dropout is felt in training alone, by torch's seed",
    claimed=is_claimed,
    cases=cases,
    check=check,
    takes=has_enough,
    claim={},
    dropout=RATE,
)
