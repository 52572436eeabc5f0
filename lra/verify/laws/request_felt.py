"""Every field of a request changes the output, or the card says that it has no effect.

A field that is taken and not read is no error anywhere: the oracle shares the request, and what
nobody reads leaks nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, product
from typing import cast

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Context
from lra.core.errors import LraError
from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all, relative_difference
from lra.verify.requests import cross_directions, directions, masks, position_schemes
from lra.verify.rotation import rotate
from lra.verify.subject import Subject

FELT = 1e-9
"""Least relative change of an output that is more than rounding."""
MOST = 24
"""Number of cases in the short form."""


def cases(subject: Subject) -> Iterator[Case]:
    """Requests at a length where each query has padding, a later position and another place to
    read; all configurations in turn."""
    trials = cycle(range(len(subject.configs)))
    modes = (False, True) if subject.trains_quietly else (False,)
    every = []
    for n, m in ((13, None), *(((9, 14),) if subject.card.capabilities.cross else ())):
        ways = directions(subject) if m is None else cross_directions(subject)
        for causal, mask, scheme, training in product(
            ways, masks(subject, "front"), position_schemes(subject), modes
        ):
            every.append(
                Case(
                    n=n, m=m, causal=causal, mask=mask, position=scheme, training=training,
                    trial=next(trials),
                )
            )  # fmt: skip
    yield from rotate(every, MOST, subject, LAW.name)


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Leave each field out of the request: the output is another one, in the case's configuration
    or in one of the others (causal is all that a window without a right side can be)."""
    trials = len(subject.configs)
    unfelt: set[str] | None = None
    for turn in range(trials):
        trial = (case.trial + turn) % trials
        felt = _felt(subject, msgspec.structs.replace(case, trial=trial))
        silent = subject.card.without_effect
        for name in silent:
            if felt.get(name):
                raise Broken(f"{name} changes the output, and the card says that it has no effect")
        found = {name for name, changes in felt.items() if not changes} - {*silent}
        unfelt = found if unfelt is None else unfelt - {n for n, changes in felt.items() if changes}
        if not unfelt:
            return
    assert unfelt
    raise Broken(f"{min(unfelt)} is taken and changes nothing, and the card does not say so")


def _felt(subject: Subject, case: Case) -> dict[str, bool]:
    """Return whether an output changes, by the field that is left out."""
    layer = subject.build(case)
    x_BND, source_BMD = (None if x is None else x.detach() for x in subject.inputs(case))
    assert x_BND is not None
    context = subject.context(case, layer)

    def output(asked: Context, source: Tensor | None = source_BMD) -> Tensor:
        return cast(Tensor, layer(x_BND, asked, source_BMD=source).y_BND)

    felt = {}
    for name, (one, other) in _without(subject, case, context).items():
        try:
            felt[name] = relative_difference(output(one), output(other)) > FELT
        except LraError:
            continue  # this configuration refuses it
    if source_BMD is not None:
        own = replace(context, key_mask_BM=None)
        felt["source_BMD"] = relative_difference(output(own), output(own, None)) > FELT
    return felt


def _without(subject: Subject, case: Case, context: Context) -> dict[str, tuple[Context, Context]]:
    """Return pairs of requests by the field in which they differ.

    Masks are compared with none at all: keys without a mask of their own have the queries'.
    """
    can = subject.card.capabilities
    pairs = {}
    if case.causal and can.bidirectional:
        pairs["causal"] = (context, replace(context, causal=False))
    if context.position is not None:
        pairs["position"] = (context, replace(context, position=None))
        if can.positions_by_index:
            pairs |= _with_places(subject, case, context)
    if can.arbitrary_mask:
        m = case.n if case.m is None else case.m
        sums_NM = torch.arange(case.n).unsqueeze(-1) + torch.arange(m)
        mask_BNM = (sums_NM % 2 == 1).expand(case.batch, -1, -1).to(subject.device)
        pairs["mask_BNM"] = (replace(context, mask_BNM=mask_BNM), context)
    plain = replace(context, query_mask_BN=None, key_mask_BM=None)
    if case.mask != "none":
        pairs["key_mask_BM"] = (replace(plain, key_mask_BM=context.key_mask_BM), plain)
        if case.m is None:
            pairs["query_mask_BN"] = (replace(plain, query_mask_BN=context.query_mask_BN), plain)
    if case.m is None and subject.is_ours:
        special_BN = torch.zeros(case.batch, case.n, dtype=torch.bool, device=subject.device)
        special_BN[:, case.n // 2] = True
        pairs["special_BN"] = (replace(context, special_BN=special_BN), context)
    return pairs


def _with_places(
    subject: Subject, case: Case, context: Context
) -> dict[str, tuple[Context, Context]]:
    """Return pairs of requests with places twice as far apart, and without."""
    rows_N = 2 * torch.arange(case.n, device=subject.device)
    own = replace(context, positions_BN=rows_N.expand(case.batch, -1))
    pairs = {"positions_BN": (own, context)}
    if case.m is not None:
        columns_M = 2 * torch.arange(case.m, device=subject.device)
        theirs = replace(context, source_positions_BM=columns_M.expand(case.batch, -1))
        pairs["source_positions_BM"] = (theirs, context)
    return pairs


LAW = Law(
    name="request_felt",
    says="every field of a request is felt, or the card says that it is not",
    claimed=binds_all,
    cases=cases,
    check=check,
    # Shorter inputs have no later position, or no padding, to feel.
    measured=True,
)
