"""Half precision stays close to float32: results are rounded, sums are not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from attention_impls.contract import Layer
from lra.core.findings import Case
from lra.verify.law import Broken, Law
from lra.verify.requests import directions, masks
from lra.verify.subject import Subject

OUTPUT = {torch.bfloat16: 1e-2, torch.float16: 2e-3}
GRADIENT = {torch.bfloat16: 1.5e-2, torch.float16: 3e-3}
"""Largest norm of a difference, relative to that of the float32 result: rounded results stay within
it, rounded sums hardly."""

AUTOCAST = (2e-2, 5e-2)
"""Largest such norm for bfloat16 autocast, whose gradients are rounded twice."""


def cases(subject: Subject) -> Iterator[Case]:
    """One length long enough for sums to matter, one short."""
    for n, causal, mask in product((37, 200), directions(subject), masks(subject, "scattered")):
        yield Case(n=n, causal=causal, mask=mask)


def check(subject: Subject, case: Case) -> None:
    """Compare half precision with float32 of the same rounded parameters; autocast with float32."""
    for dtype in (torch.bfloat16, torch.float16):
        rounded = subject.build(case, dtype=dtype, qkv_width=64)
        precise = subject.build(case, dtype=torch.float32, qkv_width=64)
        precise.load_state_dict(rounded.state_dict())
        x_BND = subject.inputs(case)[0].detach().to(dtype)
        wanted, found = (_run(subject, case, layer, x_BND) for layer in (precise, rounded))
        name = str(dtype).removeprefix("torch.")
        if found[0].dtype != dtype:
            raise Broken(f"a {name} layer answers in {found[0].dtype}")
        _close(found, wanted, f"in {name}", (OUTPUT[dtype], GRADIENT[dtype]))
    with torch.autocast(subject.device, dtype=torch.bfloat16):
        found = _run(subject, case, precise, x_BND.float())
    wanted = _run(subject, case, precise, x_BND.float())
    _close(found, wanted, "under autocast", AUTOCAST)


def _close(
    found: tuple[Tensor, Tensor], wanted: tuple[Tensor, Tensor], how: str, limits: tuple[float, ...]
) -> None:
    parts = ("output", "gradient of the input")
    for what, one, reference, limit in zip(parts, found, wanted, limits, strict=True):
        reference = reference.detach()
        gap = float((one.detach().float() - reference).norm() / max(1e-12, reference.norm()))
        if not gap <= limit:
            raise Broken(f"{what} {how}: off by {gap:.1e} of its norm, allowed {limit:g}")


def _run(subject: Subject, case: Case, layer: Layer, x_BND: Tensor) -> tuple[Tensor, Tensor]:
    leaf = x_BND.to(next(layer.parameters()).dtype).requires_grad_()
    y_BND = layer(leaf, subject.context(case, layer)).y_BND
    return y_BND, torch.autograd.grad(y_BND, leaf, x_BND.to(y_BND.dtype))[0]


LAW = Law(
    name="precision",
    says="bfloat16 and float16 stay close to float32",
    claimed=lambda card: not card.assumed,
    cases=cases,
    check=check,
    measured=True,
    dtypes=("float32", "bfloat16", "float16"),
)
