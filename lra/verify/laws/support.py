"""No gradient outside the declared support; none of the oracle's weights either."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from lra.core.findings import Case
from lra.verify.law import Broken, Law, Untried, always
from lra.verify.subject import Subject


def cases(subject: Subject) -> Iterator[Case]:
    """Every unpadded request."""
    if not subject.is_attention:
        raise Untried("it has no keys that a query could leave out")
    return subject.requests(positions=("none",), batch=1)


def check(subject: Subject, case: Case) -> None:
    """Ask a few rows which keys and values their outputs feel."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    q, k, v, extra = subject.heads(case, layer, context)
    support = layer.support(case.n, case.n, context, **extra)  # type: ignore[operator]
    if support.dtype != torch.bool or support.shape[-2:] != (case.n, case.n):
        raise Broken(f"support is {support.dtype} {tuple(support.shape)}, not boolean (N, M)")
    allowed = support.to(v.device).expand(1, layer.dims.heads, case.n, case.n)
    out_BHNV, _ = layer.attend(q, k, v, context, **extra)  # type: ignore[operator]
    leaves = {name: leaf for name, leaf in (("key", k), ("value", v)) if leaf is not None}
    if out_BHNV.requires_grad:
        for i in sorted({*range(0, case.n, max(1, case.n // 7)), *range(case.n)[-1:]}):
            row = out_BHNV[:, :, i].square().sum()
            reached = torch.autograd.grad(
                row, list(leaves.values()), retain_graph=True, allow_unused=True
            )
            for name, gradient in zip(leaves, reached, strict=True):
                if gradient is not None:
                    _inside(gradient, allowed[:, :, i], f"query {i} feels the {name}")
    if subject.has_oracle:
        _, weights_BHNM = layer.oracle(q, k, v, context, **extra)  # type: ignore[operator]
        if bool((weights_BHNM != 0)[~allowed].any()):
            raise Broken("the oracle has weights outside the support")


def _inside(gradient_BGMK: Tensor, allowed_BHM: Tensor, what: str) -> None:
    felt_BGM = gradient_BGMK.abs().amax(-1) > 0
    # A group of heads shares its keys: felt by one of them is felt.
    grouped = allowed_BHM.unflatten(1, (felt_BGM.shape[1], -1)).any(2)
    outside = (felt_BGM & ~grouped).nonzero()
    if len(outside):
        raise Broken(f"{what} at {int(outside[0, -1])}, outside of its support")


LAW = Law(
    name="support",
    says="no gradient reaches a pair outside the declared support",
    claimed=always,
    cases=cases,
    check=check,
)
