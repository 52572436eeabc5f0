"""Decoding step by step equals the parallel form, wherever the input is split; for layers in
float32 under autocast too."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from attention_impls.contract import Context, Layer, Position
from lra.core.errors import UnsupportedError
from lra.core.findings import Case
from lra.verify.law import Broken, Law, require_close, require_same
from lra.verify.laws import oracle
from lra.verify.mixed_requests import biased
from lra.verify.requests import half_dtypes, masks, other_dtypes, requests
from lra.verify.rounding import rounding
from lra.verify.subject import Subject

TOLERANCE = 1e-9

LONG = 600
"""Number of positions decoded once in each type: a sum that is kept in half precision stops growing
within them."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every causal request, in every type, and a long one."""
    yield from requests(
        subject,
        causal=(True,),
        masks=masks(subject, "scattered", "front"),
        dtypes=other_dtypes(subject),
    )
    for dtype in ("float64", *half_dtypes(subject)[:1]):
        yield Case(n=LONG, causal=True, batch=1, dtype=dtype)


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Feed the input in pieces of many sizes, then one more position."""
    layer = subject.build(case)
    x_BND = subject.inputs(case)[0].detach()
    mask_BN = subject.mask(case)
    wanted = layer(x_BND, _context(subject, case, layer)).y_BND
    one_by_one = case.n >= LONG and case.dtype in oracle.HALF
    for pieces in [[1] * case.n] if one_by_one else splits(case.n):
        found = decode(subject, case, layer, x_BND, pieces, mask_BN)
        what = f"decoding in pieces of {', '.join(map(str, pieces[:6]))}"
        _require(found, wanted, what + ("" if len(pieces) <= 6 else ", ..."), case)
    if case.dtype == "float32" and subject.is_ours:
        _under_autocast(subject, case, layer, x_BND, mask_BN)
    if mask_BN is not None:
        _after_padding(subject, case, layer, x_BND, mask_BN)
        _before_padding(subject, case, layer, x_BND, mask_BN)
    else:
        _beyond(subject, case, layer, x_BND, wanted)


def _require(found: Tensor, wanted: Tensor, what: str, case: Case) -> None:
    """Require agreement to the accuracy of the case's type; both sides round in half precision."""
    if case.dtype in oracle.HALF:
        require_close(found, wanted, what, 2 * oracle.HALF[case.dtype])
    else:
        require_same(found, wanted, what, max(TOLERANCE, rounding(case)))


def _under_autocast(
    subject: Subject, case: Case, layer: Layer, x_BND: Tensor, mask_BN: Tensor | None
) -> None:
    """Check pieces under autocast, whose products are in bfloat16, against the whole under it."""
    with torch.autocast(subject.device, dtype=torch.bfloat16):
        wanted = layer(x_BND, _context(subject, case, layer)).y_BND
        for pieces in splits(case.n)[:2]:
            found = decode(subject, case, layer, x_BND, pieces, mask_BN)
            what = f"decoding under autocast in pieces of {', '.join(map(str, pieces[:6]))}"
            require_close(found, wanted, what, 2 * oracle.HALF["bfloat16"])


def splits(n: int) -> list[list[int]]:
    """Return ways to cut n positions into pieces, equal and unequal."""
    if n >= LONG:
        unequal = [7, 130, 1, n - 204, 64, 2]
        return [[25] * (n // 25) + [n % 25] * (n % 25 > 0), unequal]
    ways = [[1] * n, [n], [n - 1, 1], [1, n - 1], [0, n // 2, 0, n - n // 2]]
    if n > 7:
        ways += [[3, 1, 2, n - 6], [n // 2, *[1] * (n - n // 2)]]
    return [way for way in ways if n > 1 or way == [1]]


def decode(
    subject: Subject,
    case: Case,
    layer: Layer,
    x_BND: Tensor,
    pieces: list[int],
    mask_BN: Tensor | None,
) -> Tensor:
    """Feed pieces one after another and return all outputs."""
    state = _state(layer, x_BND, case.n)
    scheme = _scheme(subject, case, layer)
    outputs, start = [], 0
    for size in pieces:
        part = slice(start, start + size)
        own = None if mask_BN is None else mask_BN[:, part]
        context = Context(causal=True, query_mask_BN=own, position=scheme)
        y_BND, state = layer(x_BND[:, part], context, state=state)
        outputs.append(y_BND)
        start += size
        if state is None or state.seen_B.tolist() != [start] * case.batch:
            raise Broken(f"the state does not count {start} positions in seen_B")
    return torch.cat(outputs, dim=1)


def _after_padding(
    subject: Subject, case: Case, layer: Layer, x_BND: Tensor, mask_BN: Tensor
) -> None:
    """Check prompts of unequal length: later steps without a mask still do not see their
    padding."""
    prompt = case.n // 2
    whole_BN = mask_BN.clone()
    whole_BN[:, prompt:] = True
    scheme = _scheme(subject, case, layer)
    wanted = layer(x_BND, Context(True, whole_BN, position=scheme)).y_BND
    first = Context(True, mask_BN[:, :prompt], position=scheme)
    _, state = layer(x_BND[:, :prompt], first, state=_state(layer, x_BND, case.n))
    for place in range(prompt, case.n):
        step = slice(place, place + 1)
        y_BND, state = layer(x_BND[:, step], Context(True, position=scheme), state=state)
        _require(y_BND, wanted[:, step], "a step without a mask after a padded prompt", case)


def _before_padding(
    subject: Subject, case: Case, layer: Layer, x_BND: Tensor, mask_BN: Tensor
) -> None:
    """Check a prompt without a mask, and later pieces with one: the prompt stays seen."""
    prompt = case.n // 2
    late_BN = mask_BN.clone()
    late_BN[:, :prompt] = True
    scheme = _scheme(subject, case, layer)
    wanted = layer(x_BND, Context(True, late_BN, position=scheme)).y_BND
    state = _state(layer, x_BND, case.n)
    _, state = layer(x_BND[:, :prompt], Context(True, position=scheme), state=state)
    rest = Context(True, late_BN[:, prompt:], position=scheme)
    found = layer(x_BND[:, prompt:], rest, state=state).y_BND
    _require(found, wanted[:, prompt:], "masked positions after a prompt without a mask", case)


def _beyond(subject: Subject, case: Case, layer: Layer, x_BND: Tensor, wanted: Tensor) -> None:
    """Check that a state made for fewer positions goes on exactly, or refuses."""
    short = case.n // 2
    if not short:
        return
    scheme = _scheme(subject, case, layer)
    context = Context(causal=True, position=scheme)
    _, state = layer(x_BND[:, :short], context, state=_state(layer, x_BND, short))
    try:
        found = layer(x_BND[:, short : short + 1], context, state=state).y_BND
    except UnsupportedError:
        return
    what = "one position more than the state was made for"
    _require(found, wanted[:, short : short + 1], what, case)


def _context(subject: Subject, case: Case, layer: Layer) -> Context:
    """Return a case's context, with a trained bias in place of some ALiBi: that is symmetric."""
    return biased(subject.context(case, layer), case, layer, subject)


def _scheme(subject: Subject, case: Case, layer: Layer) -> Position | None:
    return _context(subject, case, layer).position


def _state(layer: Layer, x_BND: Tensor, length: int) -> object:
    return layer.init_state(len(x_BND), length=length, device=x_BND.device, dtype=x_BND.dtype)


LAW = Law(
    name="decode",
    says="decoding in pieces equals the parallel form, wherever it is cut",
    claimed=lambda card: card.capabilities.decode == "exact",
    cases=cases,
    check=check,
    claim={"decode": "exact", "causal": "strict"},
)
