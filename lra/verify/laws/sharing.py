"""Layers that share parts answer as each does alone: a part that is shared belongs to no layer."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import torch
from torch import Tensor, nn

from lra.core.findings import Case
from lra.verify.law import Law, binds_all, require_same
from lra.verify.requests import directions
from lra.verify.subject import Subject, seed_torch

TOLERANCE = 1e-9
LAYERS = (0, 4, 1)
"""Layers that are asked one after another."""


def cases(subject: Subject) -> Iterator[Case]:
    """Both directions, in each configuration whose layers share a part."""
    plain = Case(n=37, causal=directions(subject)[0])
    for trial in range(len(subject.configs)):
        case = msgspec.structs.replace(plain, trial=trial)
        if _shared(subject, case) is not None:
            for causal in directions(subject):
                yield msgspec.structs.replace(case, causal=causal)


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Ask layers of one shared part in turns, and each of them with a part of its own."""
    shared = _shared(subject, case)
    for place, index in enumerate(LAYERS):
        own = msgspec.structs.replace(case, layer=index)
        found, wanted = (_output(subject, own, part) for part in (shared, _shared(subject, case)))
        before = ", ".join(map(str, LAYERS[:place])) or "no other"
        what = f"layer {index} after layer {before} of the same shared part, against it alone"
        require_same(found, wanted, what, subject.allowed(TOLERANCE))


def _shared(subject: Subject, case: Case) -> nn.Module | None:
    """Return the part that layers share, the same numbers each time."""
    layer = subject.build(case)
    seed_torch(1)
    part = subject.mechanism.build_shared(layer.dims, layer.config)
    return None if part is None else part.to(subject.device, subject.dtype(case))


def _output(subject: Subject, case: Case, shared: nn.Module | None) -> Tensor:
    layer = subject.build(case, shared=shared)
    y_BND: Tensor = layer(subject.inputs(case)[0], subject.context(case, layer)).y_BND
    return y_BND


LAW = Law(
    name="sharing",
    says="layers that share parts answer as each does alone",
    claimed=binds_all,
    cases=cases,
    check=check,
    measured=True,
)
