"""Gradients outside the declared support are zero, and so are the oracle's weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor

from attention_impls.contract import Attention
from lra.core.findings import Case
from lra.verify.law import Broken, Law, Untried, binds_all, gradients
from lra.verify.requests import requests
from lra.verify.subject import Subject, attend


def cases(subject: Subject) -> Iterator[Case]:
    """Every unpadded request."""
    if not subject.is_attention:
        raise Untried("which keys and values a query reads cannot be seen from outside")
    return requests(subject, positions=("none",), batch=1)


def check(subject: Subject, case: Case) -> None:
    """Check which keys and values the outputs of a few rows depend on."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    k, v = heads.k_BGMK, heads.v_BGMV
    support = cast(Attention, layer).support(case.n, case.n, context, **heads.extra)
    if support.dtype != torch.bool or support.shape[-2:] != (case.n, case.n):
        raise Broken(f"support is {support.dtype} {tuple(support.shape)}, not boolean (N, M)")
    allowed = support.to(v.device).expand(1, layer.dims.heads, case.n, case.n)
    out_BHNV = attend(layer, heads, context)
    leaves = {name: leaf for name, leaf in (("key", k), ("value", v)) if leaf is not None}
    if out_BHNV.requires_grad:
        for i in sorted({*range(0, case.n, max(1, case.n // 7)), *range(case.n)[-1:]}):
            row = out_BHNV[:, :, i].square().sum()
            reached = gradients(row, leaves.values(), kept=True)
            for name, gradient in zip(leaves, reached, strict=True):
                _inside(gradient, allowed[:, :, i], f"query {i} feels the {name}")
    if subject.has_oracle:
        _, weights_BHNM = cast(Attention, layer).oracle(*heads[:3], context, **heads.extra)
        if bool((weights_BHNM != 0)[~allowed].any()):
            raise Broken("the oracle has weights outside the support")


def _inside(gradient_BGMK: Tensor, allowed_BHM: Tensor, what: str) -> None:
    felt_BGM = gradient_BGMK.abs().amax(-1) > 0
    # Heads of a group share their keys: a dependence of one of them is one of the group.
    batch, heads, m = allowed_BHM.shape
    groups = felt_BGM.shape[1]
    grouped = allowed_BHM.view(batch, groups, heads // groups, m).any(2)
    outside = (felt_BGM & ~grouped).nonzero()
    if len(outside):
        raise Broken(f"{what} at {int(outside[0, -1])}, outside of its support")


LAW = Law(
    name="support",
    says="no gradient reaches a pair outside the declared support",
    claimed=binds_all,
    cases=cases,
    check=check,
)
