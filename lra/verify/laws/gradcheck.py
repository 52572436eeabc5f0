"""Gradients are those of the function computed: finite differences agree, no oracle needed."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd import gradcheck

from lra.core.findings import Case
from lra.verify.law import Broken, Law, Untried, always
from lra.verify.requests import masks, requests
from lra.verify.subject import ROOM, Subject, seed_torch


def cases(subject: Subject) -> Iterator[Case]:
    """Every request without a position scheme."""
    return requests(subject, masks=masks(subject, "behind"), positions=("none",), heads=1)


def check(subject: Subject, case: Case) -> None:
    """Compare the gradient of the input along random directions with finite differences."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    x_BND, _ = subject.inputs(case)

    def output(x: Tensor) -> Tensor:
        y_BND: Tensor = layer(x, context).y_BND
        return y_BND

    if subject.precise != torch.float64:
        raise Untried("it takes no float64, which finite differences need")
    eps, atol, rtol = (1e-6, 1e-6, 1e-5) if subject.is_ours else (1e-4, ROOM, 10 * ROOM)
    # A GPU adds up what is gathered in any order: twice the same gradient is not the same bits.
    apart = 0.0 if subject.device == "cpu" else 1e-10
    try:
        # Fast mode projects on random directions, from torch's default generator.
        seed_torch(case.seed)
        gradcheck(output, (x_BND,), fast_mode=True, eps=eps, atol=atol, rtol=rtol, nondet_tol=apart)
    except RuntimeError as error:
        if "Jacobian mismatch" not in str(error):
            raise
        raise Broken("the gradient of the input is not that of finite differences") from error


LAW = Law(
    name="gradcheck",
    says="gradients agree with finite differences",
    claimed=always,
    cases=cases,
    check=check,
)
