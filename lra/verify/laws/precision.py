"""Half precision stays close to float32: rounded results, no rounded sums."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from lra.core.findings import Case
from lra.verify.law import Broken, Law, always
from lra.verify.subject import Subject

OUTPUT = {torch.bfloat16: 1e-2, torch.float16: 2e-3}
GRADIENT = {torch.bfloat16: 1.5e-2, torch.float16: 3e-3}
"""Largest norm of a difference, relative to that of the float32 result: room for rounded results
and little for rounded sums."""


def cases(subject: Subject) -> Iterator[Case]:
    """One length long enough for sums to matter, one short."""
    for n, causal, mask in product((37, 200), subject.directions(), subject.masks("scattered")):
        yield Case(n=n, causal=causal, mask=mask)


def check(subject: Subject, case: Case) -> None:
    """Compare a layer in half precision with the same rounded parameters in float32."""
    for dtype in (torch.bfloat16, torch.float16):
        name = str(dtype).removeprefix("torch.")
        rounded = subject.build(case, dtype=dtype, qkv_width=64)
        precise = subject.build(case, dtype=torch.float32, qkv_width=64)
        precise.load_state_dict(rounded.state_dict())
        x_BND = subject.inputs(case)[0].detach().to(dtype)
        (y, gradient), (wanted, wanted_gradient) = (
            _run(subject, case, layer, x_BND) for layer in (rounded, precise)
        )
        if y.dtype != dtype:
            raise Broken(f"a {name} layer answers in {y.dtype}")
        for what, found, reference, limit in (
            ("output", y, wanted, OUTPUT[dtype]),
            ("gradient of the input", gradient, wanted_gradient, GRADIENT[dtype]),
        ):
            gap = float((found.detach().float() - reference.detach()).norm())
            gap /= max(1e-12, float(reference.detach().norm()))
            if not gap <= limit:
                raise Broken(f"{what} in {name}: off by {gap:.1e} of its norm, allowed {limit:g}")


def _run(
    subject: Subject, case: Case, layer: torch.nn.Module, x_BND: Tensor
) -> tuple[Tensor, Tensor]:
    dtype = next(layer.parameters()).dtype
    leaf = x_BND.to(dtype).requires_grad_()
    y_BND = layer(leaf, subject.context(case, layer)).y_BND  # type: ignore[arg-type]
    return y_BND, torch.autograd.grad(y_BND, leaf, x_BND.to(y_BND.dtype))[0]


LAW = Law(
    name="precision",
    says="bfloat16 and float16 stay close to float32",
    claimed=always,
    cases=cases,
    check=check,
    measured=True,
)
