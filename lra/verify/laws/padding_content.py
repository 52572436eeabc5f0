"""The content of padded positions changes nothing: neither outputs nor gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from attention_impls.contract import Context, Layer
from lra.core.findings import Case, MaskKind
from lra.verify.law import Broken, Law, projected_gradients, require_same
from lra.verify.requests import cross_directions, requests
from lra.verify.sizes import FAR
from lra.verify.subject import Subject, attend

TOLERANCE = 1e-9
GARBAGE = {"float64": (1e4, -1e12), "float32": (1e4, -1e8)}
"""Values put into padded inputs, by type: logits of 1e24 in float32, and of 1e19 in float64, are
too much for torch's own kernels, which give NaN to padded queries."""

NOT_FINITE = (math.nan, math.inf)
"""Values that are not finite, put there too: a layer of ours must not read them at all, while
others' masks may multiply."""

FINITE = 1e4
"""Values put into padded keys and values, which attention may multiply by zero."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every padded request, in float32 too, and padded sources where there may be any."""
    masks: tuple[MaskKind, ...] = ("scattered", "behind", "front")
    yield from requests(subject, masks=masks, training=True, dtypes=("float32",), far=True)
    if subject.card.capabilities.cross:
        for causal, mask in product(cross_directions(subject), masks):
            yield Case(n=9, m=13, causal=causal, mask=mask)


def check(subject: Subject, case: Case) -> None:
    """Fill padding with garbage, at the layer and, finite, behind the projections."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    x_BND, source_BMD = subject.inputs(case)
    padding_BM = ~_real(subject, case)
    wanted = _require_no_gradient(layer, context, x_BND, source_BMD)
    if case.m is None and bool(wanted["the output"][padding_BM].any()):
        raise Broken("padded outputs are not zero")
    values = (*GARBAGE[case.dtype], *(NOT_FINITE if subject.is_ours else ()))
    for garbage in values[-1:] if case.n > FAR else values:
        polluted = [
            part if part is None else part.detach().masked_fill(padding_BM.unsqueeze(-1), garbage)
            for part in ((x_BND, None) if case.m is None else (None, source_BMD))
        ]
        found = _require_no_gradient(
            layer,
            context,
            x_BND if polluted[0] is None else polluted[0].requires_grad_(),
            source_BMD if polluted[1] is None else polluted[1].requires_grad_(),
        )
        for name, value in wanted.items():
            require_same(
                found[name],
                value,
                f"{name} when padding holds {garbage:g}",
                subject.allowed(TOLERANCE, case),
            )
    if subject.is_attention:
        _behind_projections(subject, case, layer, context, padding_BM)


@torch.no_grad()
def _behind_projections(
    subject: Subject, case: Case, layer: Layer, context: Context, padding_BM: Tensor
) -> None:
    heads = subject.heads(case, layer, context)
    hidden = padding_BM[:, None, :, None]
    k, v = (None if x is None else x.masked_fill(hidden, FINITE) for x in heads[1:3])
    assert v is not None
    out_BHNV = attend(layer, heads, context)
    found = attend(layer, heads._replace(k_BGMK=k, v_BGMV=v), context)
    if case.m is None:  # a padded query's row is zeroed after the attention
        real = ~hidden
        out_BHNV, found = out_BHNV * real, found * real
    require_same(
        found,
        out_BHNV,
        f"attention when padded keys and values hold {FINITE:g}",
        subject.allowed(TOLERANCE, case),
    )


def _real(subject: Subject, case: Case) -> Tensor:
    mask = subject.mask(case)
    assert mask is not None
    return mask


def _require_no_gradient(
    layer: Layer, context: Context, x_BND: Tensor, source_BMD: Tensor | None
) -> dict[str, Tensor]:
    leaves = {"gradient of the input": x_BND}
    if source_BMD is not None:
        leaves["gradient of the source"] = source_BMD
    leaves |= {f"gradient of {name}": p for name, p in layer.named_parameters()}
    y_BND = layer(x_BND, context, source_BMD=source_BMD).y_BND
    reached = projected_gradients(y_BND, leaves.values())
    return {"the output": y_BND.detach(), **dict(zip(leaves, reached, strict=True))}


LAW = Law(
    name="padding_content",
    says="the content of padded positions changes nothing",
    claimed=lambda card: card.capabilities.padding != "none",
    cases=cases,
    check=check,
    claim={"padding": "length"},
)
