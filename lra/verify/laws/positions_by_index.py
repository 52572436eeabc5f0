"""Places that are given go with their positions: the order that these have in a row means nothing
but what causality makes of it.

Places follow from the case's seed: another order in each example, or two sequences in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Context, Layer
from lra.core.findings import Case
from lra.verify.inputs import given_places
from lra.verify.law import Law, require_same
from lra.verify.laws import oracle
from lra.verify.learned_bias import LearnedBias
from lra.verify.mixed_requests import biased
from lra.verify.requests import crossed_requests, masks, other_dtypes, requests
from lra.verify.subject import Subject

TOLERANCE = 1e-9
_Change = Callable[[Tensor], Tensor]
KINDS = 2
"""Orders and packed rows, by a case's seed."""
SHIFT, STEP = 3, 2
"""Distance that the first example is moved by, and how much more each further one."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every request, in every type and in training, to another sequence too; kinds of places in
    turn."""
    kinds, dtypes = masks(subject, "scattered"), other_dtypes(subject)
    every = list(requests(subject, masks=kinds, training=True, dtypes=dtypes, far=True))
    if subject.card.capabilities.cross:
        every += crossed_requests(subject)
    for place, case in enumerate(every):
        # Not simply in turn: every other request is in training.
        yield msgspec.structs.replace(case, seed=place // 2 % KINDS)


class _Ask(NamedTuple):
    """One request."""

    x_BND: Tensor
    source_BMD: Tensor | None
    context: Context

    def answer(self, layer: Layer) -> Tensor:
        """Return the output, (B, N, D)."""
        out = layer(self.x_BND, self.context, source_BMD=self.source_BMD)
        return cast(Tensor, out.y_BND)

    def under(self, **changes: Tensor | bool | None) -> _Ask:
        """Return the same input with another context."""
        return self._replace(context=replace(self.context, **changes))  # type: ignore[arg-type]


def check(subject: Subject, case: Case) -> None:
    """Compare with the oracle, and with requests that mean the same."""
    layer = subject.build(case)
    context = biased(subject.context(case, layer), case, layer, subject)
    x_BND, source_BMD = subject.inputs(case)
    places_BN = given_places(case, case.n, 0).to(subject.device)
    places_BM = None if case.m is None else given_places(case, case.m, 1).to(subject.device)
    placed = replace(context, positions_BN=places_BN, source_positions_BM=places_BM)
    if subject.has_oracle:
        oracle.compare(subject, case, layer, placed)
    ask = _Ask(x_BND.detach(), None if source_BMD is None else source_BMD.detach(), placed)
    with torch.no_grad():
        for what, found, wanted in _pairs(subject, case, layer, ask):
            require_same(found, wanted, what, subject.allowed(TOLERANCE, case))


def _pairs(
    subject: Subject, case: Case, layer: Layer, ask: _Ask
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield outputs that have to be the same, in words and as tensors."""
    y_BND, can = ask.answer(layer), subject.card.capabilities
    plain = ask.under(positions_BN=None, source_positions_BM=None)
    found = ask.under(**_counted(case, subject.device)).answer(layer)
    yield "output at the places that positions have anyway", found, plain.answer(layer)
    alone = torch.cat([_alone(ask, row).answer(layer) for row in range(case.batch)])
    yield "each example at its places against itself alone", y_BND, alone
    position = ask.context.position
    # Random features of turned queries and keys feel more than distances, and a table ends.
    if subject.card.softmax == "always" and not isinstance(position, LearnedBias):
        yield "output when all places are moved", _moved(ask).answer(layer), y_BND
    order_BN = given_places(msgspec.structs.replace(case, seed=2), case.n, 0).to(subject.device)
    if not case.causal:
        what = "output when positions take their places along to another order"
        yield what, _ordered(ask, order_BN).answer(layer), _taken(y_BND, order_BN)
    elif case.m is None and can.arbitrary_mask and can.bidirectional:
        rank_BN = order_BN.argsort(dim=1)
        earlier_BNN = rank_BN.unsqueeze(1) <= rank_BN.unsqueeze(2)
        wanted = _taken(ask.under(causal=False, mask_BNM=earlier_BNN).answer(layer), order_BN)
        what = "causal output in another order against a mask of the keys earlier in it"
        yield what, _ordered(ask, order_BN).answer(layer), wanted
    keeps = position is None or position.card.acts_on != "logits"
    if case.causal and case.m is None and can.decode == "exact" and keeps:
        yield "decoding at given places against all at once", _decoded(layer, ask), y_BND


def _counted(case: Case, device: str) -> dict[str, Tensor | None]:
    """Return the places that positions have where none are given."""
    m = case.n if case.m is None else case.m
    start = m - case.n if case.causal else 0
    rows_N = torch.arange(start, start + case.n, device=device)
    columns_M = torch.arange(m, device=device)
    return {
        "positions_BN": rows_N.expand(case.batch, -1),
        "source_positions_BM": None if case.m is None else columns_M.expand(case.batch, -1),
    }


def _alone(ask: _Ask, row: int) -> _Ask:
    """Return the request of one example."""
    return _each(ask, lambda x: x[row : row + 1], lambda x: x[row : row + 1])


def _ordered(ask: _Ask, order_BN: Tensor) -> _Ask:
    """Return the request with positions in another order; those of another sequence backwards."""
    return _each(
        ask,
        lambda x: _taken(x, order_BN),
        lambda x: _taken(x, order_BN) if ask.source_BMD is None else x.flip(1),
    )


def _each(ask: _Ask, of_queries: _Change, of_keys: _Change) -> _Ask:
    """Return the request with all that it says of queries, and of keys, changed."""

    def changed(change: _Change, tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else change(tensor)

    context = ask.context
    own = replace(
        context,
        query_mask_BN=changed(of_queries, context.query_mask_BN),
        key_mask_BM=changed(of_keys, context.key_mask_BM),
        positions_BN=changed(of_queries, context.positions_BN),
        source_positions_BM=changed(of_keys, context.source_positions_BM),
    )
    return _Ask(of_queries(ask.x_BND), changed(of_keys, ask.source_BMD), own)


def _moved(ask: _Ask) -> _Ask:
    """Return the request with all places of an example moved alike, which softmax attention under a
    scheme of distances does not feel."""
    moved_B1 = SHIFT + STEP * torch.arange(len(ask.x_BND), device=ask.x_BND.device).unsqueeze(1)
    rows_BN, columns_BM = ask.context.positions_BN, ask.context.source_positions_BM
    assert rows_BN is not None
    columns_BM = None if columns_BM is None else columns_BM + moved_B1
    return ask.under(positions_BN=rows_BN + moved_B1, source_positions_BM=columns_BM)


def _taken(x: Tensor, order_BN: Tensor) -> Tensor:
    """Return positions in an order: (B, N) or (B, N, D)."""
    index = order_BN if x.dim() == 2 else order_BN.unsqueeze(-1).expand_as(x)
    return x.gather(1, index)


def _decoded(layer: Layer, ask: _Ask) -> Tensor:
    """Return the output in three pieces, of a half, one position and the rest."""
    x_BND, half = ask.x_BND, ask.x_BND.shape[1] // 2
    batch, n, _ = x_BND.shape
    state = layer.init_state(batch, length=n, device=x_BND.device, dtype=x_BND.dtype)
    found = []
    for first, last in ((0, half), (half, half + 1), (half + 1, n)):
        cut = partial(torch.narrow, dim=1, start=first, length=last - first)
        own = _each(ask, cut, cut)
        y_BND, state = layer(own.x_BND, own.context, state=state)[:2]
        found.append(y_BND)
    return torch.cat(found, dim=1)


LAW = Law(
    name="positions_by_index",
    says="places that are given go with their positions, in any order",
    claimed=lambda card: card.capabilities.positions_by_index,
    cases=cases,
    check=check,
    claim={"positions_by_index": True},
)
