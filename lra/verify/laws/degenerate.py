"""Inputs that are no ordinary numbers: zeros, tokens that are all the same, keys that are all the
same, one huge token.

Zeros come without biases where the projections are ours: queries, keys and values are zero, and a
norm, a variance or a sum of features that something is divided by is too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Attention, Context, Layer, causal_mask
from lra.core.findings import Case, InputKind
from lra.verify.inputs import places
from lra.verify.law import (
    Law,
    binds_all,
    projected_gradients,
    require_finite,
    require_same,
)
from lra.verify.laws import oracle
from lra.verify.requests import masks, requests
from lra.verify.rotation import rotate
from lra.verify.subject import ROOM, Subject, attend

KINDS: tuple[InputKind, ...] = ("zeros", "identical", "large", "huge")
HUGE = 1e3
MOST = 12
"""Number of cases of each kind in the short form."""


def cases(subject: Subject) -> Iterator[Case]:
    """Requests of each kind of input, three examples at a time."""
    for kind in KINDS:
        every = requests(
            subject,
            masks=masks(subject, "scattered", "mixed"),
            positions=("none",),
            batch=3,
            inputs=kind,
        )
        yield from rotate(every, MOST, subject, f"{LAW.name} {kind}")


def check(subject: Subject, case: Case) -> None:
    """Require finite outputs and gradients in float32, and those of the oracle in the most precise
    type; where there is none, that float32 comes near that type."""
    sizes: dict[str, Any] = {"projection_biases": False} if case.inputs == "zeros" else {}
    name = _words(case)
    layer = subject.build(case, dtype=torch.float32, **sizes)
    found = _require_finite(subject, case, layer, name)
    precise = subject.build(case, **sizes)
    context = subject.context(case, precise)
    x_BND = subject.inputs(case)[0].detach()
    if case.inputs in ("zeros", "identical") and subject.has_oracle:
        oracle.compare(subject, case, precise, context)
    elif case.inputs in ("zeros", "identical"):
        # Logits are ordinary ones: ROOM is a thousand roundings of float32.
        wanted = precise(x_BND, context).y_BND
        require_same(found, wanted, f"output for {name}, float32 against {wanted.dtype}", ROOM)
    elif case.inputs == "large" and subject.has_oracle:
        # Gradients of logits of 30^2 are what is left when terms of 30^3 cancel.
        wanted = precise.reference(x_BND, context)
        what = f"output for {name}, against the oracle"
        require_same(precise(x_BND, context).y_BND, wanted, what, oracle.OUTPUT)
    plain = msgspec.structs.replace(case, inputs="normal")
    if subject.is_attention and case.inputs == "identical":
        _constant_keys(subject, plain)
    elif subject.is_attention and subject.has_oracle and case.inputs == "huge":
        _one_huge_key(subject, plain)


def _words(case: Case) -> str:
    return {
        "zeros": "an input of zeros",
        "identical": "an input of identical tokens",
        "large": "an input with one token thirty times as large",
        "huge": "an input with one token ten thousand times as large",
    }[case.inputs]


def _require_finite(subject: Subject, case: Case, layer: Layer, name: str) -> Tensor:
    x_BND, _ = subject.inputs(case, dtype=torch.float32)
    y_BND = layer(x_BND, subject.context(case, layer)).y_BND
    require_finite([(f"the output for {name} in float32", y_BND)])
    _gradients(y_BND, {"the input": x_BND, **dict(layer.named_parameters())}, name)
    return cast(Tensor, y_BND.detach())


def _gradients(out: Tensor, leaves: dict[str, Tensor], name: str) -> None:
    reached = projected_gradients(out, leaves.values())
    require_finite(
        (f"gradient of {leaf} for {name} in {str(out.dtype).removeprefix('torch.')}", grad)
        for leaf, grad in zip(leaves, reached, strict=True)
    )


def _constant_keys(subject: Subject, case: Case) -> None:
    """Check attention over ordinary queries and values whose keys are one."""
    name = "constant keys"
    layer = cast(Attention, subject.build(case))
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    if heads.k_BGMK is None:
        return
    k = heads.k_BGMK.detach()[:, :, :1].expand_as(heads.k_BGMK).clone().requires_grad_()
    heads = heads._replace(k_BGMK=k)
    out_BHNV = attend(layer, heads, context)
    require_finite([(f"attention over {name}", out_BHNV)])
    leaves: Iterable[tuple[str, Any]] = zip(("queries", "keys", "values"), heads[:3], strict=True)
    _gradients(out_BHNV, {leaf: x for leaf, x in leaves if x is not None}, name)
    if subject.card.softmax == "always":
        wanted = _means(heads.v_BGMV, context).repeat_interleave(
            out_BHNV.shape[1] // heads.v_BGMV.shape[1], dim=1
        )
        if context.query_mask_BN is not None:
            real = context.query_mask_BN[:, None, :, None]
            out_BHNV, wanted = out_BHNV * real, wanted * real
        require_same(out_BHNV, wanted, f"attention over {name}, against the mean", oracle.OUTPUT)


@torch.no_grad()
def _one_huge_key(subject: Subject, case: Case) -> None:
    """Check attention over one key of each example that is a thousand times as large, which other
    queries than the last may not see."""
    layer = cast(Attention, subject.build(case))
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    if heads.k_BGMK is None:
        return
    examples_B, places_B = torch.arange(case.batch), places(case.batch, case.n)
    k = heads.k_BGMK.clone()
    k[examples_B, :, places_B] *= HUGE
    found = attend(layer, heads._replace(k_BGMK=k), context)
    wanted, _ = layer.oracle(heads.q_BHNK, k, heads.v_BGMV, context, **heads.extra)
    if context.query_mask_BN is not None:
        real = context.query_mask_BN[:, None, :, None]
        found, wanted = found * real, wanted * real
    what = "attention over one key a thousand times as large"
    require_finite([(what, found)])
    # Where the only weights that a feature map gives are less than float64's least number, the
    # oracle divides zero by zero, and no figure is right.
    is_one = wanted.isfinite()
    # A softmax of logits of a thousand keeps a thousand roundings of float64.
    require_same(found[is_one], wanted[is_one], f"{what}, against the oracle", oracle.OUTPUT)


def _means(v_BGMV: Tensor, context: Context) -> Tensor:
    """Return the mean of the values that each query may read, (B, G, N, V); zero where there are
    none."""
    batch, _, m, _ = v_BGMV.shape
    permitted = torch.ones(batch, m, m, dtype=torch.bool, device=v_BGMV.device)
    if context.causal:
        permitted = permitted & causal_mask(m, m, v_BGMV.device)
    if context.key_mask_BM is not None:
        permitted = permitted & context.key_mask_BM[:, None, :]
    shares = permitted.to(v_BGMV)
    shares = shares / shares.sum(-1, keepdim=True).clamp(min=1.0)
    return shares[:, None] @ v_BGMV


LAW = Law(
    name="degenerate",
    says="zeros, equal tokens or keys and one huge token are as they should be",
    claimed=binds_all,
    cases=cases,
    check=check,
    in_single=lambda subject, case: True,
)
