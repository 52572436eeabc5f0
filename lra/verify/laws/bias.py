"""A position scheme that adds to the logits is honoured, and a trained one gets its gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from attention_impls.contract import Attention, Context, Layer
from lra.core.findings import Case
from lra.verify.law import Broken, Law, projected_gradients, relative_difference
from lra.verify.laws import oracle
from lra.verify.learned_bias import LearnedBias
from lra.verify.requests import SHORT, crossed_requests, masks, other_dtypes, requests
from lra.verify.subject import Subject

FELT = 1e-6
"""Smallest change that a bias must cause."""
ENOUGH = 7
"""Length at which a row without padding has several keys, if any may."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every request under ALiBi, in every type, to another sequence too; the check adds the trained
    bias."""
    kinds, dtypes = masks(subject, "scattered"), other_dtypes(subject)
    yield from requests(subject, masks=kinds, positions=("alibi",), dtypes=dtypes, far=True)
    if subject.card.capabilities.cross:
        yield from crossed_requests(subject, positions=("alibi",))


def check(subject: Subject, case: Case) -> None:
    """Compare with the oracle under both schemes. Each must change outputs where a query has
    several keys: an oracle that ignores it agrees with a mechanism that does."""
    oracle.check(subject, case)
    layer = subject.build(case)
    scheme = LearnedBias(layer.dims).to(subject.device, subject.dtype(case))
    context = replace(subject.context(case, layer), position=scheme)
    x_BND, source_BMD = subject.inputs(case)

    def output(asked: Context) -> Tensor:
        y_BND: Tensor = layer(x_BND, asked, source_BMD=source_BMD).y_BND
        return y_BND

    found = output(context)
    wanted = layer.reference(x_BND, context, source_BMD=source_BMD)
    oracle.require(found, wanted, "output under a trained bias, against the oracle", case)
    actual, expected = (projected_gradients(y, [scheme.table])[0] for y in (found, wanted))
    if max(case.n, case.m or 0) <= SHORT or case.dtype not in oracle.HALF:
        # A bias of long inputs sums so many pairs that in half precision rounding is left.
        what = "gradient of a trained bias, against the oracle"
        oracle.require(actual, expected, what, case, gradient=True)
    if not _weighs(layer, case, context):
        return
    bare = output(replace(context, position=None))
    for name, y_BND in (
        ("ALiBi", output(subject.context(case, layer))),
        ("a trained bias", found),
    ):
        if relative_difference(y_BND, bare) < FELT:
            raise Broken(f"{name} changes nothing")
    if not bool(actual.any()):
        raise Broken("a trained bias gets no gradient")


def _weighs(layer: Layer, case: Case, context: Context) -> bool:
    """Whether some query has several keys, by its support."""
    if not isinstance(layer, Attention) or case.n < ENOUGH:
        return False
    heads = layer.support(case.n, case.m or case.n, context)
    return bool((heads.sum(-1) > 1).any())


LAW = Law(
    name="bias",
    says="a bias of positions on the logits is honoured, and trained",
    claimed=lambda card: card.capabilities.bias,
    cases=cases,
    check=check,
    oracle=True,
)
