"""A mask of pairs is honoured, beside causality and padding: it hides, and does nothing else.

Which pairs meet follows from the case's seed: a half, few or most of them, others in each example,
and one of several queries meets no key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Context, Layer, causal_mask
from lra.core.findings import Case
from lra.verify.dropping import RATE, drawn, dropping
from lra.verify.inputs import DENSITIES, pairs_that_meet, places
from lra.verify.law import Broken, Law, gradients, require_finite, require_same
from lra.verify.laws import empty_rows, oracle
from lra.verify.mixed_requests import biased, differentiated
from lra.verify.requests import crossed_requests, masks, other_dtypes, requests
from lra.verify.subject import Subject, attend

TOLERANCE = 1e-9
GROWTH = -16.0
"""Factor of what must not be felt: large, and of the other sign."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every request, in every type and in training, to another sequence too; densities in turn."""
    kinds, dtypes = masks(subject, "scattered"), other_dtypes(subject)
    every = list(requests(subject, masks=kinds, training=True, dtypes=dtypes, far=True))
    if subject.card.capabilities.cross:
        every += crossed_requests(subject)
    for place, case in enumerate(every):
        yield msgspec.structs.replace(case, seed=place % len(DENSITIES))


def check(subject: Subject, case: Case) -> None:
    """Compare with the oracle, and with requests that mean the same in other words."""
    layer = subject.build(case)
    context = biased(subject.context(case, layer), case, layer, subject)
    masked = replace(context, mask_BNM=pairs_that_meet(case).to(subject.device))
    if subject.has_oracle:
        oracle.compare(subject, case, layer, masked)
    _require_unfelt(subject, case, masked)
    _require_empty_rows(subject, case, layer, masked)
    with torch.no_grad():
        _require_same_words(subject, case, layer, context)


def _require_unfelt(subject: Subject, case: Case, masked: Context) -> None:
    """Hide a key of each example from all queries, in training under dropout, and change it."""
    layer = dropping(subject, case) if case.training else subject.build(case)
    x_BND, source_BMD = subject.inputs(case)
    read_BMD = x_BND if source_BMD is None else source_BMD
    examples_B, hidden_B = torch.arange(case.batch), places(case.batch, read_BMD.shape[1])
    assert masked.mask_BNM is not None
    mask_BNM = masked.mask_BNM.clone()
    mask_BNM[examples_B, :, hidden_B] = False
    asked = replace(masked, mask_BNM=mask_BNM)
    others_BN = torch.ones(case.batch, case.n, dtype=torch.bool, device=subject.device)
    if source_BMD is None:
        others_BN[examples_B, hidden_B] = False  # its own query feels it
    other_BMD = read_BMD.detach().clone()
    other_BMD[examples_B, hidden_B] *= GROWTH

    wanted = drawn(layer, x_BND, asked, source_BMD)
    if source_BMD is None:
        found = drawn(layer, other_BMD, asked)
    else:
        found = drawn(layer, x_BND, asked, other_BMD)
    how = " under dropout" if case.training else ""
    what = f"the outputs of others{how} when a key that is hidden from all changes"
    room = subject.allowed(TOLERANCE, case)
    require_same(found[others_BN], wanted[others_BN], what, room)
    (reached_BMD,) = gradients(wanted[others_BN].sum(), [read_BMD])
    require_finite([(f"the gradient of a key that is hidden from all{how}", reached_BMD)])
    if bool(reached_BMD[examples_B, hidden_B].any()):
        raise Broken(f"a key that is hidden from all gets a gradient from others{how}")


def _require_empty_rows(subject: Subject, case: Case, layer: Layer, masked: Context) -> None:
    """Require zero of a query that meets no key, and no NaN in the backward pass."""
    x_BND, source_BMD = subject.inputs(case)
    y_BND = layer(x_BND, masked, source_BMD=source_BMD).y_BND
    leaves = differentiated(layer, masked, x_BND, source_BMD)
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        empty_rows.backward("the layer", y_BND, leaves)
    if not subject.is_attention:
        return
    out_BHNV = attend(layer, subject.heads(case, layer, masked), masked)
    assert masked.mask_BNM is not None
    permitted_BNM = masked.mask_BNM
    if masked.key_mask_BM is not None:
        permitted_BNM = permitted_BNM & masked.key_mask_BM[:, None]
    if case.causal:
        n, m = permitted_BNM.shape[1:]
        permitted_BNM = permitted_BNM & causal_mask(n, m, permitted_BNM.device)
    nothing_BN = ~permitted_BNM.any(-1)
    if bool(out_BHNV.transpose(1, 2)[nothing_BN].any()):
        raise Broken("a query that meets no key is not zero")


def _require_same_words(subject: Subject, case: Case, layer: Layer, context: Context) -> None:
    """Say with pairs that all meet, and what causality and padding say."""
    x_BND, source_BMD = subject.inputs(case)
    m = case.n if case.m is None else case.m
    can, room = subject.card.capabilities, subject.allowed(TOLERANCE, case)

    def output(asked: Context) -> Tensor:
        return cast(Tensor, layer(x_BND, asked, source_BMD=source_BMD).y_BND)

    def pairs(mask_NM: Tensor) -> Tensor:
        return mask_NM.to(subject.device).expand(case.batch, case.n, m)

    found = output(replace(context, mask_BNM=pairs(torch.ones(case.n, m, dtype=torch.bool))))
    require_same(found, output(context), "output where all pairs meet, against no mask", room)
    # Causal queries of another sequence have other places than those that see all of it.
    alike = case.n == m or context.position is None
    crosses = case.m is None or subject.mechanism.crosses_causally
    if not case.causal and can.causal == "strict" and alike and crosses:
        found = output(replace(context, mask_BNM=pairs(causal_mask(case.n, m))))
        wanted = output(replace(context, causal=True))
        what = "output under a mask of earlier keys, against a causal call"
        require_same(found, wanted, what, room)
    if context.key_mask_BM is not None:
        plain = replace(context, query_mask_BN=None)
        hidden_BNM = pairs(context.key_mask_BM.unsqueeze(1))
        found = output(replace(plain, key_mask_BM=None, mask_BNM=hidden_BNM))
        what = "output under a mask of pairs with real keys, against a mask of these"
        require_same(found, output(plain), what, room)


LAW = Law(
    name="arbitrary_mask",
    says="a mask of pairs hides these, and does nothing else",
    claimed=lambda card: card.capabilities.arbitrary_mask,
    cases=cases,
    check=check,
    claim={"arbitrary_mask": True},
    dropout=RATE,
)
