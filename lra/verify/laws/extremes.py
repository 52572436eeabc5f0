"""Logits of ten thousand, and of almost nothing, give finite outputs and gradients."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lra.core.findings import Case
from lra.verify.law import Law, always, finite
from lra.verify.requests import masks, requests
from lra.verify.subject import Subject, attend

SIZES = (1e-8, 1e4)
"""Of the logits."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every request, in float32."""
    return requests(subject, masks=masks(subject, "scattered"), positions=("none",))


def check(subject: Subject, case: Case) -> None:
    """Scale queries and keys, or the inputs of what has none; one key is huge by itself."""
    layer = subject.build(case, dtype=torch.float32)
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context) if subject.is_attention else None
    if heads is None or heads.q_BHNK is None or heads.k_BGMK is None:
        for size in SIZES:
            x_BND, _ = subject.inputs(case, dtype=torch.float32, scale=size**0.5)
            _finite(layer(x_BND, context).y_BND, {"the input": x_BND}, size)
        return
    q, k, v = heads.q_BHNK, heads.k_BGMK, heads.v_BGMV
    for size in SIZES:
        root = size**0.5
        big_q, big_k = (x.detach().mul(root).requires_grad_() for x in (q, k))
        out = attend(layer, heads._replace(q_BHNK=big_q, k_BGMK=big_k), context)
        _finite(out, {"the queries": big_q, "the keys": big_k, "the values": v}, size)
    for place in sorted({0, case.n // 2, case.n - 1}):
        one = k.detach().clone()
        one[:, :, place] *= 40.0
        one.requires_grad_()
        out = attend(layer, heads._replace(k_BGMK=one), context)
        _finite(out, {"the queries": q, "the keys": one, "the values": v}, 40.0)


def _finite(out: torch.Tensor, leaves: dict[str, torch.Tensor], size: float) -> None:
    finite([(f"the output at size {size:g}", out)])
    if out.requires_grad:
        reached = torch.autograd.grad(
            out.square().sum(), list(leaves.values()), allow_unused=True, materialize_grads=True
        )
        finite(
            (f"gradient of {n} at size {size:g}", g) for n, g in zip(leaves, reached, strict=True)
        )


LAW = Law(
    name="extremes",
    says="extreme logits give finite outputs and gradients",
    claimed=always,
    cases=cases,
    check=check,
)
