"""An input beyond a mechanism's limit of length is refused, and taken where there is no limit."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from attention_impls.contract import Context
from lra.core.errors import UnsupportedError
from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all, is_not_empty
from lra.verify.requests import directions
from lra.verify.subject import Subject


def cases(subject: Subject) -> Iterator[Case]:
    """Inputs longer than the layer was built for."""
    for causal in directions(subject):
        for n in (9, 37):
            yield Case(n=n, causal=causal)


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Build for one position less than the input has."""
    layer = subject.build(case, max_length=case.n - 1)
    x_BND, _ = subject.inputs(case)
    limited = subject.card.capabilities.fixed_length
    try:
        y_BND = layer(x_BND, Context(case.causal)).y_BND
    except UnsupportedError as error:
        if not limited:
            raise Broken(f"claims any length and refuses this one: {error}") from error
        return
    if limited:
        raise Broken(f"built for {case.n - 1} positions, it takes {case.n} in silence")
    if y_BND.shape != x_BND.shape:
        raise Broken(f"{case.n} positions go in, {y_BND.shape[1]} come out")


LAW = Law(
    name="length_limit",
    says="a limit on the length is kept, and declared",
    claimed=binds_all,
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and case.n >= 2,
)
