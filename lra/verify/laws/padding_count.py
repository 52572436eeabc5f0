"""The number of padded positions changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from attention_impls.contract import Context
from lra.core.findings import Case
from lra.verify.law import Law, require_same
from lra.verify.requests import requests
from lra.verify.sizes import FAR
from lra.verify.subject import Subject, position

TOLERANCE = 1e-9
MORE = (1, 4, 11, 64)


def cases(subject: Subject) -> Iterator[Case]:
    """Every request, in float32 too; the check pads it."""
    return requests(subject, training=True, dtypes=("float32",), far=True)


def check(subject: Subject, case: Case) -> None:
    """Append padding: the real outputs are those of the input alone."""
    with torch.set_grad_enabled(case.training):
        _check(subject, case)


def _check(subject: Subject, case: Case) -> None:
    layer = subject.build(case, max_length=case.n + max(MORE))
    x_BND = subject.inputs(case)[0].detach()
    scheme = position(case.position, layer.dims, subject.device)
    y_BND = layer(x_BND, Context(case.causal, position=scheme)).y_BND
    for more in MORE[-1:] if case.n > FAR else MORE:
        padding = torch.full((case.batch, more, x_BND.shape[2]), 1e4).to(x_BND)
        longer_BND = torch.cat([x_BND, padding], dim=1)
        mask = torch.arange(case.n + more, device=x_BND.device).expand(case.batch, -1) < case.n
        context = Context(case.causal, query_mask_BN=mask, position=scheme)
        found = layer(longer_BND, context).y_BND[:, : case.n]
        require_same(
            found,
            y_BND,
            f"real outputs when {more} padded positions follow",
            subject.allowed(TOLERANCE, case),
        )


LAW = Law(
    name="padding_count",
    says="how many padded positions there are changes nothing",
    claimed=lambda card: card.capabilities.padding == "content",
    cases=cases,
    check=check,
    claim={"padding": "content"},
)
