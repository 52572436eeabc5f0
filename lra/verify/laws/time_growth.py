"""Growth of a training pass's time with the length, and the claim: reported, not judged.

A busy machine would fail honest mechanisms.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import torch

from lra.core.findings import Case
from lra.verify import growth
from lra.verify.law import Law, Reported, binds_all, is_not_empty
from lra.verify.subject import Subject

LONGEST = {False: 2048, True: 4096}
ROUNDS = 5


def cases(subject: Subject) -> Iterator[Case]:
    """One direction, at the greater length."""
    causal = not subject.card.capabilities.bidirectional
    yield Case(n=LONGEST[subject.full], causal=causal, batch=1, heads=1)


def check(subject: Subject, case: Case) -> None:
    """Raise `Reported` with the exponent between half the length and all of it."""
    shorter = case.n // 2
    least = [_least_seconds(subject, case, n) for n in (shorter, case.n)]
    grown = math.log(least[1] / least[0]) / math.log(case.n / shorter)
    raise Reported(
        f"time grows as n^{grown:.2f} from {shorter} to {case.n}, "
        f"{growth.against(subject, subject.card.time)}"
    )


def _least_seconds(subject: Subject, case: Case, n: int) -> float:
    shape = Case(n=n, causal=case.causal, batch=1, heads=1)
    layer = subject.build(shape, dtype=torch.float32, max_length=n)
    context = subject.context(shape, layer)
    x_BND, _ = subject.inputs(shape, dtype=torch.float32)
    seconds = []
    for _ in range(ROUNDS):
        _wait(subject.device)
        start = time.perf_counter()
        y_BND = layer(x_BND, context).y_BND
        if y_BND.requires_grad:
            y_BND.sum().backward()
        _wait(subject.device)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


LAW = Law(
    name="time_growth",
    says="how time grows with the length (reported, not judged)",
    claimed=binds_all,
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and case.n >= 64,
    measured=True,
    dtypes=("float32",),
)
