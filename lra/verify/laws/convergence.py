"""An approximation of softmax converges at its declared rate as its budget grows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import Context, Heads
from lra.core.findings import Case
from lra.verify.law import Broken, Law
from lra.verify.requests import directions
from lra.verify.subject import HEAD_WIDTH, Subject, attend

DRAWS = {False: 40, True: 200}
"""Number of independent draws that an error is a mean over, in the short form and in the full
one."""

DEVIATION = 0.35
"""Standard deviation of queries and keys: laws of random features are not observable at larger
norms."""

SLACK = 0.2
"""Largest distance between the fitted exponent and the declared one."""


def cases(subject: Subject) -> Iterator[Case]:
    """One length, both directions."""
    if subject.mechanism.convergence() is None:
        raise Broken("claims softmax attention in the limit and declares no convergence")
    for causal in directions(subject):
        yield Case(n=16, causal=causal, batch=1, heads=1)


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Fit the exponent of the mean squared error against the budget."""
    law = subject.mechanism.convergence()
    assert law is not None
    context = Context(causal=case.causal)
    generator = torch.Generator().manual_seed(case.seed)
    q, k, v = (
        torch.randn(1, 1, case.n, HEAD_WIDTH, generator=generator, dtype=torch.float64).to(
            subject.device
        )
        for _ in range(3)
    )
    q, k = q * DEVIATION, k * DEVIATION
    wanted, _ = softmax_oracle(q, k, v, context)
    points = []
    for budget, config in law.budgets:
        total = 0.0
        for draw in range(DRAWS[subject.full]):
            layer = subject.build(case, config=config, seed=draw)
            found = attend(layer, Heads(q, k, v), context)
            total += float((found - wanted).square().mean())
        points.append((math.log(budget), math.log(total)))
    exponent = slope(points)
    if abs(exponent + law.rate) > SLACK:
        raise Broken(f"the error falls as budget^{exponent:.2f}, declared budget^{-law.rate:g}")


def slope(points: list[tuple[float, float]]) -> float:
    """Return the least-squares slope of points (x, y)."""
    x_mean = sum(x for x, _ in points) / len(points)
    y_mean = sum(y for _, y in points) / len(points)
    above = sum((x - x_mean) * (y - y_mean) for x, y in points)
    return above / sum((x - x_mean) ** 2 for x, _ in points)


LAW = Law(
    name="convergence",
    says="the error against softmax falls at the declared rate",
    claimed=lambda card: card.softmax == "in the limit",
    cases=cases,
    check=check,
    measured=True,
)
