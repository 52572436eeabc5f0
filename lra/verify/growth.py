"""Growth from half of a length to all of it: which sequence grows, and how fast."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Context, Layer
from lra.core.findings import Case, MaskKind
from lra.verdict.declared_cost import DeclaredCost, parse_cost, parse_greatest_cost
from lra.verify.mixed_requests import biased
from lra.verify.requests import cross_directions, directions, masks, position_schemes
from lra.verify.rotation import choices, rotate
from lra.verify.subject import Subject

FEW = 32
"""Length of the other sequence where one alone grows: so few that a square of the longer one
shows."""
SLACK = 0.25
"""Largest excess of the exponent, between a length and half of it, over the claimed one: a
logarithm and what is left of a lower power make less than half of it."""


def crossed(subject: Subject, longest: int, law: str) -> Iterator[Case]:
    """Yield requests of few queries to many keys, and of many to few: one of each, in the full form
    all."""
    if not subject.card.capabilities.cross:
        return
    for n, m in ((FEW, longest), (longest, FEW)):
        every = (
            Case(n=n, m=m, causal=causal, mask=mask, training=training, batch=1, heads=1)
            for causal, mask, training in product(
                cross_directions(subject), masks(subject, "behind"), (False, True)
            )
        )
        yield from rotate(every, 1, subject, f"{law}, {n} queries")


def positioned(subject: Subject, n: int, law: str) -> Iterator[Case]:
    """Yield requests with each scheme of positions: one in evaluation, and one in training with
    padding, where a bias is trained. Directions take turns."""
    ways = directions(subject)
    start = choices(subject, f"{law}, positions").randrange(len(ways))
    kinds: list[tuple[MaskKind, bool]] = [("none", False), (masks(subject, "behind")[-1], True)]
    for scheme in position_schemes(subject)[1:]:
        for turn, (mask, training) in enumerate(kinds):
            yield Case(
                n=n,
                causal=ways[(start + turn) % len(ways)],
                mask=mask,
                position=scheme,
                training=training and subject.trains_quietly,
                batch=1,
                heads=1,
                # An even length and an odd seed ask for a trained bias.
                seed=turn,
            )
        start += 1


def asked(
    subject: Subject, case: Case, *, dtype: torch.dtype = torch.float32
) -> tuple[Layer, Context, Tensor, Tensor | None]:
    """Return a layer, and what it is asked: context, input and another sequence."""
    layer = subject.build(case, dtype=dtype, max_length=longest(case))
    context = biased(subject.context(case, layer), case, layer, subject)
    return layer, context, *subject.inputs(case, dtype=dtype)


def longest(case: Case) -> int:
    """Return the length of a case's longer sequence."""
    return max(case.n, case.m or 0)


def halved(case: Case) -> Case:
    """Return a case with half of its longer sequence."""
    if case.m is None or case.n > case.m:
        return msgspec.structs.replace(case, n=case.n // 2)
    return msgspec.structs.replace(case, m=case.m // 2)


def exponent(case: Case, shorter: int, longer: int) -> float:
    """Return the power of the length by which a figure grows from the half of a case on."""
    return math.log(longer / shorter) / math.log(longest(case) / longest(halved(case)))


def words(case: Case, grown: float) -> str:
    """Return how something grows from the half of a case on, in words."""
    found = f"as {_growing(case)[0]}^{grown:.2f} from {longest(halved(case))} to {longest(case)}"
    if case.m is None:
        return found
    return found + (f", with {case.m} keys" if case.n > case.m else f", with {case.n} queries")


def claimed(text: str, case: Case, *, gpu: bool = False) -> DeclaredCost | None:
    """Return what a card claims of a case: its first formula where the input is plain, else the
    greatest. None where it is no formula."""
    growing = _growing(case)
    plain = case.mask == "none" and case.position == "none"
    if plain:
        return parse_cost(text, gpu=gpu, growing=growing)
    return parse_greatest_cost(text, growing=growing)


def against(subject: Subject, declared: str) -> str:
    """Return what a figure is compared with, in words."""
    return f"claimed: {declared}" if subject.is_ours else "and no growth is claimed"


def is_too_fast(grown: float, allowed: float) -> bool:
    """Return whether a figure grows faster than claimed, or than inputs and outputs where they do:
    no card claims less than linear for a whole pass."""
    return grown > max(1.0, allowed) + SLACK


def _growing(case: Case) -> str:
    """Return the lengths that grow, as a formula names them."""
    if case.m is None:
        return "nm"
    return "n" if case.n > case.m else "m"
