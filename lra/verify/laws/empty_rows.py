"""A row with nothing to attend to gives zero, and finite gradients that reach nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import torch

from attention_impls.contract import causal_mask
from lra.core.findings import Case
from lra.verify.law import Broken, Law, ordinal, require_finite
from lra.verify.requests import cross_directions, half_dtypes, requests
from lra.verify.subject import Subject, attend

_NAN = re.compile(r"Function '(?P<step>\w+)' returned nan values in its (?P<place>\d+)th output")


def cases(subject: Subject) -> Iterator[Case]:
    """Requests whose first example has padding alone to attend to, and some whose second example
    begins with padding."""
    dtypes = half_dtypes(subject)
    yield from requests(subject, masks=("all",), dtypes=dtypes)
    yield from requests(subject, masks=("front",), dtypes=dtypes, training=True, far=True)
    if subject.card.capabilities.cross:
        for (n, m), causal in product(((1, 5), (5, 9), (9, 5)), cross_directions(subject)):
            yield Case(n=n, m=m, causal=causal, mask="all", batch=3)


def check(subject: Subject, case: Case) -> None:
    """Check the layer, and the attention behind the projections.

    No step of the backward pass may have a NaN, not even one that is masked afterwards.
    """
    layer = subject.build(case)
    context = subject.context(case, layer)
    x_BND, source_BMD = subject.inputs(case)
    y_BND = layer(x_BND, context, source_BMD=source_BMD).y_BND
    require_finite([("the output", y_BND)])
    mask = subject.mask(case)
    assert mask is not None
    if case.m is None and bool(y_BND[~mask].any()):
        raise Broken("the layer's output is not zero at padding")
    padded = x_BND if source_BMD is None else source_BMD
    leaves = {"the input": x_BND, "what is padded": padded, **dict(layer.named_parameters())}
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        backward("the layer", y_BND, leaves)
    if padded.grad is not None and bool(padded.grad[~mask].any()):
        raise Broken("padded inputs get a gradient")
    if subject.is_attention:
        _behind_projections(subject, case)


def _behind_projections(subject: Subject, case: Case) -> None:
    layer = subject.build(case)
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    mask = context.key_mask_BM
    assert mask is not None
    out_BHNV = attend(layer, heads, context)
    require_finite([("the attention's output", out_BHNV)])
    permitted_BNM = mask[:, None, :].expand(-1, case.n, -1)
    if case.causal:
        permitted_BNM = permitted_BNM & causal_mask(case.n, mask.shape[1], mask.device)
    nothing_BN = ~permitted_BNM.any(-1)
    if bool(out_BHNV.transpose(1, 2)[nothing_BN].any()):
        raise Broken("a row with nothing to attend to is not zero")
    leaves = dict(zip(("queries", "keys", "values"), heads[:3], strict=True))
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        backward(
            "the attention",
            out_BHNV,
            {name: leaf for name, leaf in leaves.items() if leaf is not None},
        )
    for name, leaf in leaves.items():
        reached = leaf is not None and leaf.grad is not None and bool(leaf.grad[0].any())
        if reached and case.mask == "all":
            raise Broken(f"{name} of an example that is padding alone get a gradient")


def backward(what: str, out: torch.Tensor, leaves: dict[str, torch.Tensor]) -> None:
    """Pass back to these leaves. Raises `Broken` for a NaN at any step, where torch looks for it,
    and for a gradient that is not finite."""
    if not out.requires_grad:
        return
    try:
        # A sum over a thousand positions may leave the range of float16, a mean does not.
        torch.autograd.backward(out.square().sum() / max(1, out[..., 0].numel()))
    except RuntimeError as error:
        if "nan" not in str(error):
            raise
        raise Broken(f"the backward pass of {what} meets a NaN{_where(error)}") from error
    require_finite(
        (f"gradient of {name}", x.grad) for name, x in leaves.items() if x.grad is not None
    )


def _where(error: RuntimeError) -> str:
    """Return the place of an error in plain words: torch counts from 0 and writes `2th output`."""
    found = _NAN.search(str(error))
    if found is None:
        return f": {error}"
    return f", the {ordinal(int(found['place']) + 1)} gradient that {found['step']} returns"


LAW = Law(
    name="empty_rows",
    says="a row with nothing to attend to is zero, with finite gradients",
    claimed=lambda card: card.capabilities.padding != "none",
    cases=cases,
    check=check,
    claim={"padding": "length"},
)
