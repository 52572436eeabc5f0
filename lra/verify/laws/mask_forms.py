"""A mask means the same however it lies in memory, and one of another form is refused.

Masks are views more often than not: one row for all examples, a part of a longer one, a comparison
that was transposed. Masks that add to logits, of whole numbers or with a dimension for heads are
common elsewhere; here they would be misread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import cast

import torch
from torch import Tensor

from lra.core.errors import LraError
from lra.core.findings import Case, MaskKind
from lra.verify.law import Broken, Law, require_same
from lra.verify.requests import cross_directions, requests
from lra.verify.rotation import rotate
from lra.verify.subject import Subject

TOLERANCE = 1e-9
KINDS: tuple[MaskKind, ...] = ("scattered", "ragged")
MOST = 24
"""Number of cases in the short form."""


def cases(subject: Subject) -> Iterator[Case]:
    """Padded requests and padded sources."""
    own = requests(subject, masks=KINDS, batch=3)
    every = [case for case in own if case.mask != "none"]
    if subject.card.capabilities.cross:
        for (n, m), causal, mask in product(((1, 2), (5, 9)), cross_directions(subject), KINDS):
            every.append(Case(n=n, m=m, causal=causal, mask=mask, batch=3))
    yield from rotate(every, MOST, subject, LAW.name)


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Lay the mask out in other ways; give one row of it to all examples; try to misread it."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    x_BND, source_BMD = (None if x is None else x.detach() for x in subject.inputs(case))
    assert x_BND is not None
    mask_BM = context.key_mask_BM
    assert mask_BM is not None

    def output(mask: Tensor) -> Tensor:
        queries = mask if case.m is None else None
        asked = replace(context, query_mask_BN=queries, key_mask_BM=mask)
        return cast(Tensor, layer(x_BND, asked, source_BMD=source_BMD).y_BND)

    wanted, room = output(mask_BM), subject.allowed(TOLERANCE)
    for how, mask in _laid_out(mask_BM).items():
        require_same(output(mask), wanted, f"output under a mask that is {how}", room)
    for row in {0, case.batch - 1}:
        one = mask_BM[row : row + 1].expand(case.batch, -1)
        what = f"output under one row of the mask for all (of stride 0, {case.batch} examples)"
        require_same(output(one), output(one.contiguous()), what, room)
    for form, mask in _foreign(mask_BM).items():
        try:
            output(mask)
        except LraError:
            continue
        raise Broken(f"a mask {form}, {tuple(mask.shape)}, is taken and not refused")


def _laid_out(mask_BM: Tensor) -> dict[str, Tensor]:
    """Return equal masks of other strides, whose neighbours in memory say the opposite."""
    length = mask_BM.shape[1]
    return {
        "transposed": mask_BM.mT.contiguous().mT,
        "every other element of a longer one": torch.stack([mask_BM, ~mask_BM], -1)[..., 0],
        "the end of a longer one": torch.cat([~mask_BM, mask_BM], dim=1)[:, length:],
    }


def _foreign(mask_BM: Tensor) -> dict[str, Tensor]:
    """Return masks of forms that other people's attention takes."""
    lowest = torch.finfo(torch.float32).min
    zeros = torch.zeros(mask_BM.shape, device=mask_BM.device)
    return {
        "of whole numbers": mask_BM.long(),
        "of float32 to be added, with minus infinity": zeros.masked_fill(~mask_BM, -torch.inf),
        "of float32 to be added, with its least number": zeros.masked_fill(~mask_BM, lowest),
        "with dimensions for heads and queries": mask_BM[:, None, None, :],
        "for one example": mask_BM[:1],
    }


LAW = Law(
    name="mask_forms",
    says="masks of any strides mean the same, those of another form are refused",
    claimed=lambda card: card.capabilities.padding != "none",
    cases=cases,
    check=check,
    takes=lambda case: case.batch > 1 and 0 not in (case.n, case.m),
    claim={"padding": "length"},
)
