"""The state dict holds all that a result depends on, random draws included."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all, require_same
from lra.verify.requests import requests
from lra.verify.subject import Subject


def cases(subject: Subject) -> Iterator[Case]:
    """Every request without a position scheme."""
    return requests(subject, positions=("none",))


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Load one layer's state dict into a layer of another seed."""
    layer, other = subject.build(case, seed=1), subject.build(case, seed=2)
    x_BND = subject.inputs(case)[0].detach()
    context = subject.context(case, layer)
    wanted = layer(x_BND, context).y_BND
    try:
        other.load_state_dict(layer.state_dict())
    except RuntimeError as error:
        raise Broken(f"its own state dict does not load: {error}") from error
    require_same(other(x_BND, context).y_BND, wanted, "a layer loaded from the state dict", 0.0)


LAW = Law(
    name="state_dict",
    says="the state dict carries all that a result depends on",
    claimed=binds_all,
    cases=cases,
    check=check,
)
