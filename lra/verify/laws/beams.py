"""A decode state reordered along its batch goes on as the reordered prefixes do, and the state that
it was taken from goes on as before: beam search chooses, drops and repeats examples so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from lra.core.findings import Case
from lra.verify.law import Broken, Law, is_not_empty, require_same
from lra.verify.laws.streams import SINGLE, Stream
from lra.verify.requests import TYPED, masks, requests
from lra.verify.rotation import rotate
from lra.verify.subject import Subject

TOLERANCE = 1e-9
COUNT = 9
"""Number of cases of the short form."""
LENGTHS = (2, 5, 7, 16, 37, 70)


def cases(subject: Subject) -> Iterator[Case]:
    """Every causal request in turn, of three examples and of one; some of three in float32."""
    kinds = masks(subject, "scattered", "front")
    own = [
        case
        for batch in (3, 1)
        for case in requests(
            subject, lengths=LENGTHS, causal=(True,), masks=kinds if batch > 1 else ("none",),
            batch=batch,
        )
    ]  # fmt: skip
    yield from sorted(rotate(own, COUNT, subject, "beams"), key=lambda case: case.n)
    single = requests(subject, lengths=TYPED, causal=(True,), masks=kinds, batch=3, dtype="float32")
    yield from rotate(single, SINGLE, subject, "beams")


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Decode half, reorder, and go on with both states in turns."""
    order = torch.tensor([0, 0, 0] if case.batch == 1 else [case.batch - 1, 0, 0])
    order = order.to(subject.device)
    wanted, many = (_alone(subject, case, which) for which in (None, order))
    layer = subject.build(case, seed=1)
    stream, beams = Stream(subject, case, layer), Stream(subject, case, layer)
    _choose(beams, order)
    half = max(1, case.n // 2)
    stream.feed(half)
    _require_rows(stream.state, case.batch, "state")
    beams.state = layer.select_state(stream.state, order)
    beams.start = half
    while stream.start < case.n:
        stream.feed(1)
        beams.feed(1)
    allowed = subject.allowed(TOLERANCE, case)
    again = "decoding on with a state reordered along its batch, against the reordered prefixes"
    require_same(torch.cat(beams.outputs, 1), many[:, half:], again, allowed)
    still = "decoding on with the state that a reordered one was taken from"
    require_same(torch.cat(stream.outputs, 1), wanted, still, allowed)


def _alone(subject: Subject, case: Case, order: Tensor | None) -> Tensor:
    """Decode the examples in this order from their beginning, in a layer of their own."""
    stream = Stream(subject, case, subject.build(case, seed=1))
    if order is not None:
        _choose(stream, order)
        stream.state = stream.layer.init_state(
            len(order), length=case.n, device=stream.x_BND.device, dtype=stream.x_BND.dtype
        )
    stream.feed(max(1, case.n // 2))
    while stream.start < case.n:
        stream.feed(1)
    return torch.cat(stream.outputs, 1)


def _choose(stream: Stream, order: Tensor) -> None:
    stream.x_BND = stream.x_BND[order]
    if stream.mask_BN is not None:
        stream.mask_BN = stream.mask_BN[order]


def _require_rows(state: Any, batch: int, where: str) -> None:
    """Raise `Broken` for a tensor of a state that has not the examples first."""
    if isinstance(state, Tensor):
        if state.dim() == 0 or len(state) != batch:
            shape = tuple(state.shape)
            raise Broken(f"{where} has shape {shape}; the {batch} examples belong first")
    elif isinstance(state, tuple) and hasattr(state, "_fields"):
        for name, part in zip(state._fields, state, strict=True):
            _require_rows(part, batch, f"{where}.{name}")
    elif isinstance(state, tuple | list):
        for part in state:
            _require_rows(part, batch, where)


LAW = Law(
    name="beams",
    says="a state reordered along its batch goes on as the reordered prefixes",
    claimed=lambda card: card.capabilities.decode != "none",
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and case.n >= 2,
)
