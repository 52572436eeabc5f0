"""Another process computes the same, from a seed and from a state dict.

It has other hashes of strings, other addresses and another time: a seed made of `hash`, `id` or a
clock, and an order taken from a set, are the same for every layer of one process.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import msgspec

from lra.core.findings import Case
from lra.verify.law import Law, binds_all, require_same
from lra.verify.made_again import answers, answers_elsewhere, states
from lra.verify.requests import directions
from lra.verify.subject import Subject

LENGTH = 37
TOLERANCE = 1e-9
"""Tolerance of float64: how a kernel adds may depend on where its memory lies."""


def cases(subject: Subject) -> Iterator[Case]:
    """One length: a process for it takes longer than all of its outputs."""
    yield Case(n=LENGTH)


def check(subject: Subject, case: Case) -> None:
    """Compare with another process in each configuration and direction."""
    own = [
        msgspec.structs.replace(case, trial=trial, causal=causal)
        for trial, causal in product(range(len(subject.configs)), directions(subject))
    ]
    questions = [(subject.config_for(one), one) for one in own]
    known = states(subject, questions)
    found = answers_elsewhere(subject, questions, known)
    for one, here, there in zip(own, answers(subject, questions, known), found, strict=True):
        for name, wanted in here.items():
            what = f"{name} in another process, for '{one}'"
            require_same(there[name], wanted, what, subject.allowed(TOLERANCE))


LAW = Law(
    name="another_process",
    says="another process computes the same, from a seed and from a state dict",
    claimed=binds_all,
    cases=cases,
    check=check,
    measured=True,
)
