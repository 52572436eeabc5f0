"""Queries in pieces read a state made of another sequence once, as one call reads the sequence
itself; what happens to the sequence afterwards, and to other copies of the state, changes nothing.

The queries' mask follows from the case: the kind of the source's, its examples in reverse order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, product
from typing import Any

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Context, Layer
from lra.core.findings import Case, MaskKind
from lra.verify.inputs import real_positions
from lra.verify.law import Broken, Law, is_not_empty, require_close, require_same
from lra.verify.laws import oracle
from lra.verify.laws.decode import splits
from lra.verify.requests import masks, other_dtypes
from lra.verify.rounding import rounding
from lra.verify.subject import Subject

TOLERANCE = 1e-9
SIZES = ((1, 2), (2, 1), (5, 9), (9, 5), (7, 7), (1, 37), (30, 41))
"""As many queries as keys, too: then the mask of one would fit the other."""
FAR_SIZES = ((3, 301), (40, 1031))
"""Sizes tried with one mask each."""
KINDS: tuple[MaskKind, ...] = ("ragged", "mixed", "scattered")


def cases(subject: Subject) -> Iterator[Case]:
    """Fewer queries than keys, as many and more; all configurations and types in turn."""
    trials, types = cycle(range(len(subject.configs))), cycle(other_dtypes(subject))
    kinds = masks(subject, *KINDS)
    for (n, m), mask in product(SIZES, kinds):
        plain = Case(n=n, m=m, mask=mask, batch=3)
        yield msgspec.structs.replace(plain, trial=next(trials))
        yield msgspec.structs.replace(plain, trial=next(trials), dtype=next(types))
    for (n, m), mask in zip(FAR_SIZES, cycle(kinds), strict=False):
        yield Case(n=n, m=m, mask=mask, batch=3)


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Keep the source, spoil it, and ask in pieces of many sizes; for layers in float32 under
    autocast too."""
    layer = subject.build(case)
    _pieces(subject, case, layer, "")
    if case.dtype == "float32" and subject.is_ours:
        with torch.autocast(subject.device, dtype=torch.bfloat16):
            _pieces(subject, case, layer, " under autocast")


def _pieces(subject: Subject, case: Case, layer: Layer, how: str) -> None:
    x_BND, source_BMD = (None if x is None else x.detach() for x in subject.inputs(case))
    assert x_BND is not None and source_BMD is not None
    one = replace(subject.context(case, layer), position=None)
    queries_BN = real_positions(msgspec.structs.replace(case, m=None))
    if queries_BN is not None:
        one = replace(one, query_mask_BN=queries_BN.flip(0).to(x_BND.device))
    wanted = layer(x_BND, one, source_BMD=source_BMD).y_BND
    state = _kept(layer, case, source_BMD, one.key_mask_BM)
    copies = [x.clone() for x in _tensors(state)]
    for pieces in splits(case.n):
        found, after = _asked(layer, x_BND, one, state, pieces)
        what = f"queries in pieces of {', '.join(map(str, pieces[:6]))}{how}, against one call"
        _require(found, wanted, what, case, how)
        if after.seen_B.tolist() != [case.n] * case.batch:
            raise Broken(f"the state does not count {case.n} queries in seen_B{how}")
        kept = (*_tensors(state), *_tensors(after._replace(seen_B=state.seen_B)))
        if not all(map(_is_same, kept, copies * 2)):
            raise Broken(f"queries change more of the state than seen_B{how}")
    _reordered(case, layer, x_BND, one, state, wanted, how)


def _kept(layer: Layer, case: Case, source_BMD: Tensor, mask_BM: Tensor | None) -> Any:
    """Return the state of a source, which holds something else afterwards, as its mask does."""
    own = source_BMD.clone()
    mask = None if mask_BM is None else mask_BM.clone()
    state = layer.init_state(
        case.batch,
        length=case.n,
        device=own.device,
        dtype=own.dtype,
        source_BMD=own,
        source_mask_BM=mask,
    )
    own.fill_(torch.nan)
    if mask is not None:
        mask.logical_not_()
    return state


def _asked(
    layer: Layer, x_BND: Tensor, one: Context, state: Any, pieces: list[int]
) -> tuple[Tensor, Any]:
    """Return the outputs of queries in pieces, and the state after them."""
    outputs, start = [], 0
    for size in pieces:
        part = slice(start, start + size)
        mask = None if one.query_mask_BN is None else one.query_mask_BN[:, part]
        y_BND, state = layer(x_BND[:, part], Context(query_mask_BN=mask), state=state)
        outputs.append(y_BND)
        start += size
    return torch.cat(outputs, dim=1), state


def _reordered(
    case: Case, layer: Layer, x_BND: Tensor, one: Context, state: Any, wanted: Tensor, how: str
) -> None:
    """Check that a state of other rows answers as these rows do."""
    order = torch.tensor([case.batch - 1, 0, 0], device=x_BND.device)
    mask = None if one.query_mask_BN is None else one.query_mask_BN[order]
    chosen = layer.select_state(state, order)
    found, _ = layer(x_BND[order], Context(query_mask_BN=mask), state=chosen)
    what = f"queries to the state of chosen and repeated rows{how}, against those rows"
    _require(found, wanted[order], what, case, how)


def _require(found: Tensor, wanted: Tensor, what: str, case: Case, how: str) -> None:
    """Require agreement to the accuracy of the case's type; both sides round in half precision."""
    half = "bfloat16" if how else case.dtype
    if half in oracle.HALF:
        require_close(found, wanted, what, 2 * oracle.HALF[half])
    else:
        require_same(found, wanted, what, max(TOLERANCE, rounding(case)))


def _tensors(state: Any) -> Iterator[Tensor]:
    """Yield the tensors of a state, however nested."""
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, tuple | list):
        for part in state:
            yield from _tensors(part)


def _is_same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num())


LAW = Law(
    name="cross_decode",
    says="a sequence kept in a state is read, in pieces, as the sequence itself",
    claimed=lambda card: card.capabilities.cross_decode == "exact",
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and case.m is not None,
    claim={"cross": True, "cross_decode": "exact"},
)
