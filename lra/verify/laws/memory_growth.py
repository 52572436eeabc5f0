"""Peak memory of a training pass, and of one in evaluation, grows no faster with the length than
claimed, with that of its queries alone and of its keys alone too."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch

from lra.core.errors import UsageError
from lra.core.findings import Case
from lra.verdict.declared_cost import DeclaredCost
from lra.verify import growth
from lra.verify.law import Broken, Law, Reported, binds_all, is_not_empty
from lra.verify.live_bytes import LiveBytes
from lra.verify.requests import directions, masks
from lra.verify.rotation import rotate
from lra.verify.subject import Subject

LONGEST = {False: 4096, True: 8192}
"""Length by form, beyond those at which mechanisms switch algorithms, which is no growth."""
MOST = 4
"""Number of cases in evaluation, in the short form."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every direction, plain and with padding, in training and some in evaluation; each scheme of
    positions that acts inside; another sequence."""
    n = LONGEST[subject.full]
    if subject.is_ours and _exponent(subject, growth.claimed(subject.card.memory, Case(n=n))) > 1.5:
        n //= 2  # so much for all pairs is enough
    trained, evaluated = (
        [
            Case(n=n, causal=causal, mask=mask, training=training, batch=1, heads=1)
            for causal, mask in product(directions(subject), masks(subject, "behind"))
        ]
        for training in (True, False)
    )
    yield from trained
    yield from growth.positioned(subject, n, LAW.name)
    yield from rotate(evaluated, MOST, subject, LAW.name)
    yield from growth.crossed(subject, n, LAW.name)


def check(subject: Subject, case: Case) -> None:
    """Compare the growth of the peak with the card's formula.

    A card's formulas after the first are for padding, biases and dropout.
    """
    declared = subject.card.memory
    grown = growth.exponent(case, *(peak(subject, one) for one in (growth.halved(case), case)))
    mode = "training" if case.training else "evaluation"
    found = f"peak memory in {mode} grows {growth.words(case, grown)}"
    found += f", {growth.against(subject, declared)}"
    if not subject.is_ours:
        raise Reported(found)
    claimed = growth.claimed(declared, case, gpu=subject.device == "cuda")
    if growth.is_too_fast(grown, _exponent(subject, claimed)):
        raise Broken(found)


def _exponent(subject: Subject, claimed: DeclaredCost | None) -> float:
    if claimed is None:
        raise UsageError(f"'{subject.card.memory}' is no growth; write e.g. O(n m d) on the card")
    return claimed.exponent


def peak(subject: Subject, case: Case) -> int:
    """Return the largest number of bytes in live tensors during a training pass, or one in
    evaluation, beyond those before."""
    layer, context, x_BND, source_BMD = growth.asked(subject, case)
    with torch.set_grad_enabled(case.training), LiveBytes() as live:
        y_BND = layer(x_BND, context, source_BMD=source_BMD).y_BND
        if y_BND.requires_grad:
            y_BND.sum().backward()
    return int(live.peak)


LAW = Law(
    name="memory_growth",
    says="peak memory grows with the length no faster than claimed",
    claimed=binds_all,
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and growth.longest(case) >= 64,
    measured=True,
    dtypes=("float32",),
)
