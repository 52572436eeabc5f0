"""Each example is read by its own mask: as if it stood alone, and as if it ended with its padding.

In no other law is an example full where the first of its batch is padded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import torch
from torch import Tensor

from attention_impls.contract import Context, Layer
from lra.core.findings import Case, MaskKind
from lra.verify.law import Broken, Law, projected_gradients, require_same
from lra.verify.requests import cross_directions, requests, special_requests
from lra.verify.rotation import rotate
from lra.verify.subject import Subject

TOLERANCE = 1e-9
MOST = 36
"""Number of cases in the short form."""

SPECIAL, LENGTHS = 6, (2, 7, 16, 37)
"""Number of cases with special positions, and their lengths."""

KINDS: tuple[MaskKind, ...] = ("first", "ragged", "mixed")


def cases(subject: Subject) -> Iterator[Case]:
    """Requests whose first example is padded and whose last is not, and such sources."""
    every = list(requests(subject, masks=KINDS, batch=3, training=True))
    every = [case for case in every if case.mask != "none"]
    if subject.card.capabilities.cross:
        sizes = ((1, 2), (5, 9), (13, 9))
        for (n, m), causal, mask in product(sizes, cross_directions(subject), KINDS):
            every.append(Case(n=n, m=m, causal=causal, mask=mask, batch=3))
    yield from rotate(every, MOST, subject, LAW.name)
    special = special_requests(subject, LENGTHS, masks=KINDS, batch=3, training=True)
    yield from rotate(special, SPECIAL, subject, f"{LAW.name}, special")


def check(subject: Subject, case: Case) -> None:
    """Compare each example with itself alone, its mask left out where nothing of it is padded; and
    with its real part, where padding may not be counted."""
    with torch.set_grad_enabled(case.training):
        _check(subject, case)


def _check(subject: Subject, case: Case) -> None:
    layer = subject.build(case)
    x_BND, source_BMD = subject.inputs(case)
    context = subject.context(case, layer)
    mask_BM = context.key_mask_BM
    assert mask_BM is not None
    y_BND = layer(x_BND, context, source_BMD=source_BMD).y_BND
    alone, shares = [], []
    for row in range(case.batch):
        own = slice(row, row + 1)
        real_1M = mask_BM[own]
        whole = bool(real_1M.all())
        key_mask = None if whole else real_1M
        single = replace(
            context,
            query_mask_BN=key_mask if case.m is None else None,
            key_mask_BM=key_mask,
            special_BN=None if context.special_BN is None else context.special_BN[own],
        )
        source = None if source_BMD is None else source_BMD[own]
        alone.append(layer(x_BND[own], single, source_BMD=source).y_BND)
        if not bool(real_1M.any()):
            # Nothing else has to be zero: a mechanism's own bias may stand behind an empty source.
            if case.m is None and bool(alone[-1].any()):
                raise Broken("an example that is padding alone does not give zero")
        elif not whole and subject.card.capabilities.padding == "content":
            _require_cut(subject, case, layer, single, x_BND[own], source, y_BND[own], real_1M)
        shares.append("all real" if whole else f"{int(real_1M.sum())} of {real_1M.shape[1]} real")
    # A row of the batch that is multiplied by another has the error of that row, not of its own.
    room = subject.allowed(TOLERANCE)
    for row, (single_1ND, share) in enumerate(zip(alone, shares, strict=True)):
        what = f"example {row} of {case.batch} ({share}) against itself alone"
        require_same(y_BND[row : row + 1], single_1ND, what, room)
    if case.training:
        leaves = {"the input": x_BND, **dict(layer.named_parameters())}
        wanted = projected_gradients(torch.cat(alone), leaves.values())
        found = projected_gradients(y_BND, leaves.values())
        for name, one, other in zip(leaves, found, wanted, strict=True):
            require_same(one, other, f"gradient of {name} against that of examples alone", room)


def _require_cut(
    subject: Subject,
    case: Case,
    layer: Layer,
    context: Context,
    x_1ND: Tensor,
    source_1MD: Tensor | None,
    y_1ND: Tensor,
    real_1M: Tensor,
) -> None:
    """Require the output of a row to be that of its real part, without a mask."""
    real = int(real_1M.sum())
    special = None if context.special_BN is None else context.special_BN[:, :real]
    plain = Context(context.causal, position=context.position, special_BN=special)
    what = f"an example of {real} real positions of {real_1M.shape[1]} against these alone"
    if source_1MD is None:
        found, wanted = y_1ND[:, :real], layer(x_1ND[:, :real], plain).y_BND
    elif context.causal:
        return  # queries are aligned with the end of the keys, which is another one
    else:
        found, wanted = y_1ND, layer(x_1ND, plain, source_BMD=source_1MD[:, :real]).y_BND
    require_same(found, wanted, what, subject.allowed(TOLERANCE))


LAW = Law(
    name="ragged",
    says="each example is read by its own mask, as if it stood alone",
    claimed=lambda card: card.capabilities.padding != "none",
    cases=cases,
    check=check,
    claim={"padding": "length"},
)
