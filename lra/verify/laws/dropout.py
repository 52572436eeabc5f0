"""Dropout is felt in training and in no evaluation, and torch's seed repeats it.

Neither examples nor heads nor queries share a draw, and weights are dropped, not outputs. A card
that claims a softmax with convex weights has weights to drop; somebody's own class that takes a
share to drop has something to drop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from attention_impls.contract import Context, Layer
from lra.core.cards import AttentionCard
from lra.core.findings import Case
from lra.verify.dropping import DRAW, FELT, OTHER, RATE, drawn, dropping, dropping_dtypes
from lra.verify.law import Broken, Law, Untried, is_not_empty, relative_difference, require_same
from lra.verify.mixed_requests import every_request, in_each
from lra.verify.requests import in_parity
from lra.verify.rotation import spread
from lra.verify.rounding import ROUNDOFF
from lra.verify.subject import Subject, attend, seed_torch

COUNT = 20
"""Number of cases of the short form."""
LENGTHS = (5, 16, 37, 65)
ENOUGH = 5
"""Length with 15 weights or more in each head of an example, each kept by three in four."""
SUMMED = 16
"""Factor of the rounding of a number that a sum of weights may have."""
HEADS = 4
"""Heads of all examples from which on two draws of as many weights hardly agree by chance."""


def is_claimed(card: AttentionCard) -> bool:
    """Return whether a card claims weights, or a signature a share to drop."""
    if card.assumed:
        return any("= dropout" in words for words in card.assumed)
    softmax = card.softmax in ("always", "configured", "of its own")
    return softmax and card.weights == "convex"


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in training and in every type, but for configurations in parity."""
    if not subject.trains_quietly:
        raise Untried(subject.untrained)
    every = in_each(every_request(subject, LENGTHS, training=True), dropping_dtypes(subject))
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
    if relative_difference(first, evaluated) < max(FELT, ROUNDOFF[case.dtype]):
        raise Broken("dropout changes nothing in training")
    require_same(again, first, "training with dropout, drawn twice from one seed", 0.0)
    if relative_difference(other, first) < FELT:
        raise Broken("two seeds of torch's generator drop the same")
    layer.train()
    if case.batch > 1 and case.mask == "none":
        source = None if source_BMD is None else source_BMD[:1].expand_as(source_BMD)
        if _are_alike(drawn(layer, x_BND[:1].expand_as(x_BND), context, source), 0):
            raise Broken("examples that are alike drop the same")
    if subject.is_attention and case.heads > 1:
        _tell_heads_apart(subject, case, layer)
    if subject.is_ours and case.m is None and case.mask == "none" and not case.causal:
        _tell_queries_apart(layer, x_BND, replace(context, position=None))
    if subject.is_ours and subject.is_attention:
        _require_whole_outputs(subject, case, layer)


def _tell_heads_apart(subject: Subject, case: Case, layer: Layer) -> None:
    """Give all heads the queries, keys and values of the first, and compare what they drop. Heads
    that differ in evaluation, by parameters of their own, tell nothing."""
    context = replace(subject.context(case, layer), position=None)
    own = subject.heads(case, layer, context)
    q, k, v = (None if x is None else x.detach()[:, :1].expand_as(x) for x in own[:3])
    assert v is not None
    heads = own._replace(q_BHNK=q, k_BGMK=k, v_BGMV=v)
    layer.eval()
    if not _are_alike(attend(layer, heads, context), 1):
        return
    layer.train()
    seed_torch(DRAW)
    out_BHNV = attend(layer, heads, context)
    if _are_alike(out_BHNV, 1):
        raise Broken("heads that are alike drop the same")
    grouped = torch.stack(out_BHNV.chunk(v.shape[1], dim=1), dim=1)
    if grouped.shape[2] > 1 and _are_alike(grouped, 2):
        raise Broken("heads that share their keys drop the same")


def _tell_queries_apart(layer: Layer, x_BND: Tensor, context: Context) -> None:
    """Give all positions the first one's input: an output is a value times the weights that are
    kept, as many for each query if all drop the same keys."""
    x_BND = x_BND[:, :1].expand_as(x_BND)
    are_alike = _are_alike(layer.eval()(x_BND, context).y_BND, 1)
    if are_alike and _are_alike(drawn(layer.train(), x_BND, context), 1):
        raise Broken("queries that are alike drop the same")


def _require_whole_outputs(subject: Subject, case: Case, layer: Layer) -> None:
    """Give values whose features are alike: those of an output are, whatever weights are kept."""
    context = replace(subject.context(case, layer), position=None)
    heads = subject.heads(case, layer, context)
    heads = heads._replace(v_BGMV=torch.ones_like(heads.v_BGMV))
    rounded = max(FELT, SUMMED * ROUNDOFF[case.dtype])
    if _are_alike(attend(layer.eval(), heads, context), 3, rounded):
        seed_torch(DRAW)
        if not _are_alike(attend(layer.train(), heads, context), 3, rounded):
            raise Broken("outputs are dropped, where weights should be")


def _are_alike(out: Tensor, dim: int, allowed: float = FELT) -> bool:
    first = out.narrow(dim, 0, 1)
    return relative_difference(out, first.expand_as(out)) < allowed


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
