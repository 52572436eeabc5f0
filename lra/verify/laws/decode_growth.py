"""Counted work of one decoding step grows with the positions before it no faster than claimed: by
one power less than that of a pass, as the steps add up to one."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from attention_impls.contract import Context
from lra.core.findings import Case
from lra.verify import growth
from lra.verify.law import Broken, Law, Reported, is_not_empty
from lra.verify.laws.operation_growth import Counted
from lra.verify.subject import Subject

LENGTH = 1024
"""Positions before a step, beyond those at which mechanisms switch algorithms."""


def cases(subject: Subject) -> Iterator[Case]:
    """One step after a long prompt."""
    yield Case(n=LENGTH, causal=True, batch=1, heads=1)


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Compare the growth of each count with what the card's formula leaves for a step."""
    claimed = growth.claimed(subject.card.time, case)
    few, many = _work(subject, growth.halved(case)), _work(subject, case)
    words = []
    for name, count in many.items():
        if not few[name]:
            continue
        grown = growth.exponent(case, few[name], count)
        words.append(f"{name} of a step grow {growth.words(case, grown)}")
        if claimed and subject.is_ours and growth.is_too_fast(grown + 1.0, claimed.exponent):
            raise Broken(f"{words[-1]}, and a pass as {subject.card.time}")
    if not subject.is_ours:
        raise Reported(f"{', '.join(words)}, and a pass as {subject.card.time}")


def _work(subject: Subject, case: Case) -> dict[str, int]:
    """Return the work of a step after as many positions as a case has."""
    layer = subject.build(case, dtype=torch.float32, max_length=2 * LENGTH)
    x_BND = subject.inputs(case, dtype=torch.float32)[0]
    context = Context(causal=True)
    state = layer.init_state(case.batch, length=2 * LENGTH, device=x_BND.device, dtype=x_BND.dtype)
    _, state = layer(x_BND, context, state=state)
    with Counted() as counted:
        layer(x_BND[:, :1], context, state=state)
    return {"operations": counted.operations, "elements written": counted.elements}


LAW = Law(
    name="decode_growth",
    says="work of a step grows with the past no faster than claimed",
    claimed=lambda card: card.capabilities.decode == "exact",
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and case.n >= 64,
    measured=True,
    dtypes=("float32",),
)
