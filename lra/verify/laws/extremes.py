"""Logits of ten thousand, and of almost nothing, give finite outputs and gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import torch

from lra.core.findings import Case
from lra.verify.law import Law, binds_all, gradients, require_finite
from lra.verify.requests import half_dtypes, masks, requests
from lra.verify.subject import Subject, attend

SCALES = (1.0, 1e-4, 1e2)
"""Scales of queries and keys: logits are multiplied by the square. Plain numbers come first, to
show what is not finite in them."""

LARGEST_IN_FLOAT16 = 10.0
"""Largest of these scales in float16, which ends at 65504: a product of two numbers of size 30 over
64 features stays within it."""

HUGE = 40.0
"""Scale of one key."""

GROWTHS = (1e1, 1e2, 1e3)
"""Scales of the input behind the other tensors of the heads, such as the logits of a sort."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every request in float32, and in half precision."""
    kinds, dtypes = masks(subject, "scattered"), half_dtypes(subject)
    for case in requests(subject, masks=kinds, positions=("none",), dtypes=dtypes):
        yield case if case.dtype in dtypes else msgspec.structs.replace(case, dtype="float32")


def check(subject: Subject, case: Case) -> None:
    """Scale queries and keys, or the input where there are none; then one key, and the other
    tensors of the heads."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context) if subject.is_attention else None
    if heads is None or heads.q_BHNK is None or heads.k_BGMK is None:
        for scale in _within(case, SCALES):
            x_BND, _ = subject.inputs(case, scale=scale)
            under = _describe("the input", scale)
            _finite(layer(x_BND, context).y_BND, {"the input": x_BND}, under)
        return
    q, k, v = heads.q_BHNK, heads.k_BGMK, heads.v_BGMV
    for scale in _within(case, SCALES):
        big_q, big_k = (x.detach().mul(scale).requires_grad_() for x in (q, k))
        out = attend(layer, heads._replace(q_BHNK=big_q, k_BGMK=big_k), context)
        leaves = {"the queries": big_q, "the keys": big_k, "the values": v}
        _finite(out, leaves, _describe("queries and keys", scale))
    for place in sorted({0, case.n // 2, case.n - 1}):
        one = k.detach().clone()
        one[:, :, place] *= HUGE
        one.requires_grad_()
        out = attend(layer, heads._replace(k_BGMK=one), context)
        leaves = {"the queries": q, "the keys": one, "the values": v}
        _finite(out, leaves, _describe("one key", HUGE))
    for growth in _within(case, GROWTHS) if _numbers(heads.extra) else ():
        extra = subject.heads(case, layer, context, scale=growth).extra
        grown = {name: extra[name].requires_grad_() for name in _numbers(extra)}
        out = attend(layer, heads._replace(extra={**extra, **grown}), context)
        leaves = {"the values": v, **{f"'{name}'": x for name, x in grown.items()}}
        _finite(out, leaves, f" with {' and '.join(grown)} of {growth:g} times the input")


def _within(case: Case, scales: tuple[float, ...]) -> list[float]:
    """Return the scales whose products are numbers of the case's type."""
    return [scale for scale in scales if case.dtype != "float16" or scale <= LARGEST_IN_FLOAT16]


def _numbers(extra: Mapping[str, Any]) -> list[str]:
    """Return the names of tensors that could have a gradient."""
    return [
        name for name, x in extra.items() if isinstance(x, torch.Tensor) and x.is_floating_point()
    ]


def _describe(what: str, scale: float) -> str:
    """Return the change of the plain numbers, in words."""
    return "" if scale == 1.0 else f" with {what} multiplied by {scale:g}"


def _finite(out: torch.Tensor, leaves: dict[str, torch.Tensor], under: str) -> None:
    require_finite([(f"the output{under}", out)])
    if out.requires_grad:
        reached = gradients(out.square().sum(), leaves.values())
        require_finite(
            (f"gradient of {name}{under}", grad) for name, grad in zip(leaves, reached, strict=True)
        )


LAW = Law(
    name="extremes",
    says="extreme logits give finite outputs and gradients",
    claimed=binds_all,
    cases=cases,
    check=check,
)
