"""One layer answers each of many requests as a fresh layer does, whatever it was asked before.

Directions, lengths, masks, batches, positions, other sequences, gradient modes and training
alternate; before the last request the parameters may change, or their type. Some requests are long,
some in other types, and some come after all shorter lengths, since tables are kept by length, by
type, and in a number that has a limit. Results given earlier stay as they were, and so does a
decode state that is held meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Layer
from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all, require_same
from lra.verify.mixed_requests import (
    MANY,
    ROUNDED,
    THINGS,
    Ask,
    Mode,
    answer,
    earlier,
    every_request,
    longest,
    step,
)
from lra.verify.requests import directions, half_dtypes
from lra.verify.rotation import choices, rotate, spread
from lra.verify.subject import Subject, position

TOLERANCE = 1e-9
COUNT = 30
"""Number of cases of the short form; each brings one to three requests before it."""
LENGTHS = (2, 5, 16, 37)
LONG = 301
"""Length of requests at which tables are kept that are not worth it for short ones."""
TOLD = 3
"""Largest number of earlier requests that a failure names."""
LAST: tuple[Mode, ...] = ("grad", "no_grad", "grad", "inference", "grad")
"""Gradient modes of the last request, in turn by the seed."""
KINDS = ("", " after a step of its parameters", " after a move to float32")
"""Ways in which the layer itself changes before the last request, in turn by the seed."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in turn; the seed decides which ones come before it, and what the first
    of them differs in: each thing for each kind of position and of sequence."""
    first = choices(subject, "sequel").randrange(1000)
    own = spread(every_request(subject, LENGTHS), COUNT, subject, "sequel")
    kinds: Counter[tuple[str, bool]] = Counter()
    for place, case in enumerate([*own, *_alike(subject)]):
        kind = (case.position, case.m is None)
        seed = len(THINGS) * (first + place) + kinds[kind] % len(THINGS)
        yield msgspec.structs.replace(case, seed=seed)
        kinds[kind] += 1


def _alike(subject: Subject) -> list[Case]:
    """Return plain requests, as many alike as there are things for the first one before them to
    differ in: of one length in float32 and in half precision, and long; then one after many
    lengths. A single example may have no padding."""
    ways = directions(subject)
    half = rotate(half_dtypes(subject), 1, subject, "sequel, types")
    plain = [Case(n=37, batch=3, dtype=dtype) for dtype in ("float32", *half)]
    many = []
    if subject.far:
        plain.append(Case(n=LONG, batch=3))
        many.append(Case(n=MANY, batch=3, causal=ways[-1]))
    found = [
        msgspec.structs.replace(one, causal=ways[turn // 2 % len(ways)])
        for one in plain
        for turn in range(len(THINGS))
    ]
    return found + many


def check(subject: Subject, case: Case) -> None:
    """Ask one layer everything in a row, and a fresh layer each."""
    asks = [*earlier(subject, case), Ask(case, LAST[case.seed % len(LAST)])]
    layer = _build(subject, case, asks)
    held = _begin(subject, case, layer)
    kept: list[tuple[Ask, Tensor, Tensor]] = []
    changes = _changes(subject, case)
    for place, ask in enumerate(asks):
        fresh = _build(subject, case, asks)
        last = place == len(asks) - 1
        if last and held is not None:
            _finish(subject, case, layer, fresh, held, asks)
        if last:
            _change(layer, changes)
            _change(fresh, changes)
        found, wanted = (answer(subject, one, ask) for one in (layer, fresh))
        after = f", after {_listed(asks[:place])}" if place else ""
        how = KINDS[changes] if last else ""
        allowed = subject.allowed(TOLERANCE, case)
        if last and changes == 2:
            allowed = subject.allowed(ROUNDED)
        for name, value in found.items():
            what = f"{name} of request {ask}{after}{how}, against a fresh layer's"
            require_same(value, wanted[name], what, allowed)
        kept.append((ask, found["output"], found["output"].detach().clone()))
    for ask, result, copy in kept:
        if not torch.equal(result.detach().nan_to_num(), copy.nan_to_num()):
            raise Broken(f"the output given to request {ask} is changed by a later call")


def _listed(asks: list[Ask]) -> str:
    return f"{len(asks)} others" if len(asks) > TOLD else ", ".join(map(str, asks))


def _build(subject: Subject, case: Case, asks: list[Ask]) -> Layer:
    # A setting for noise is left out where any of the requests trains.
    quiet = any(ask.case.training for ask in asks)
    own = msgspec.structs.replace(case, training=quiet)
    limit = max(longest(asks), *subject.lengths)
    return subject.build(own, seed=1, max_length=limit)


def _changes(subject: Subject, case: Case) -> int:
    """Return the number of the way in which a layer changes: one in half precision always moves, as
    tables that it has kept are too coarse then."""
    dtype = subject.dtype(case)
    if dtype == torch.float32:
        return case.seed // 3 % 2
    return case.seed // 3 % len(KINDS) if dtype == torch.float64 else 2


def _change(layer: Layer, kind: int) -> None:
    if kind == 1:
        step(layer)
    elif kind == 2:
        layer.to(torch.float32)


@torch.no_grad()
def _begin(subject: Subject, case: Case, layer: Layer) -> object | None:
    """Return a decode state of a case's first half; None where the case cannot be decoded."""
    plain = case.causal and case.m is None and not case.training and case.n > 1
    if not plain or subject.card.capabilities.decode == "none":
        return None
    state = layer.eval().init_state(
        case.batch, length=case.n, device=torch.device(subject.device), dtype=subject.dtype(case)
    )
    return _advance(subject, case, layer, state, slice(0, case.n // 2))[1]


@torch.no_grad()
def _finish(
    subject: Subject, case: Case, layer: Layer, fresh: Layer, held: object, asks: list[Ask]
) -> None:
    """Go on with the state that was held while other requests came."""
    second = slice(case.n // 2, case.n)
    found, _ = _advance(subject, case, layer.eval(), held, second)
    wanted, _ = _advance(subject, case, fresh, _begin(subject, case, fresh), second)
    what = f"decoding on with a state that was held during {_listed(asks[:-1])}"
    require_same(found, wanted, what, subject.allowed(TOLERANCE, case))


def _advance(
    subject: Subject, case: Case, layer: Layer, state: object, part: slice
) -> tuple[Tensor, object]:
    x_BND = subject.inputs(case)[0].detach()
    context = subject.context(case, layer)
    mask = None if context.query_mask_BN is None else context.query_mask_BN[:, part]
    own = type(context)(True, mask, position=position(case.position, layer.dims, subject.device))
    y_BND, state = layer(x_BND[:, part], own, state=state)
    return y_BND, state


LAW = Law(
    name="sequel",
    says="one layer answers many requests as a fresh layer does each",
    claimed=binds_all,
    cases=cases,
    check=check,
)
