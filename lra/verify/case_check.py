"""Check that a law takes a case that somebody wrote: otherwise its answer would mean nothing."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from lra.core.findings import Case
from lra.verify.law import Broken, Law, Untried
from lra.verify.subject import Subject

ASKED = ("causal", "mask", "inputs", "position", "special", "training", "dtype")
"""Fields of a case that must be as in one of the law's own cases."""


def why_unfit(law: Law, subject: Subject) -> str:
    """Return why a law does not take the one case of a subject, in a line; empty where it does."""
    case = subject.only
    assert case is not None
    trials = len(subject.configs)
    if case.trial >= trials:
        return f"--case '{case}': {subject.mechanism.__name__} has trials 0 to {trials - 1}"
    if why := _why_unbuilt(subject, case):
        return f"--case '{case}': {why}"
    if law.claim is not None and not law.claimed(subject.card):
        subject = subject.claiming(law.claim)
    try:
        # All of them: a printed case may have been made smaller, into one that the short form left
        # out for this mechanism.
        own = list(law.cases(replace(subject, full=True)))
    except (Broken, Untried):
        return ""  # it says so when it is tried
    if not own:
        return ""
    example = f"write e.g. '{_closest_case(law, case, own)}'; all its cases: {_common_fields(own)}"
    for name in ASKED:
        taken = {getattr(one, name) for one in own}
        if getattr(case, name) not in taken:
            return f"--case '{case}': {law.name} takes {_describe(name, taken)} cases; {example}"
    if (case.m is None) not in {one.m is None for one in own}:
        which = "one sequence" if case.m is not None else "two sequences (n and m)"
        return f"--case '{case}': {law.name} takes cases of {which}; {example}"
    if not law.takes(case):
        return f"--case '{case}': {law.name} does not take these sizes; {example}"
    return ""


def _why_unbuilt(subject: Subject, case: Case) -> str:
    """Return why no layer can have the sizes of a case; empty where one can. Somebody else's code
    says so when it is tried."""
    name, heads_width = subject.mechanism.__name__, case.heads * case.head_width
    if subject.is_square and case.width not in (None, heads_width):
        return f"{name} is as wide as its heads; leave width out, which is {heads_width} then"
    if case.kv_heads is not None and not hasattr(subject.configs[case.trial], "kv_heads"):
        return f"{name} has no setting kv_heads; leave it out"
    return subject.refuses(case) if subject.is_ours else ""


def _closest_case(law: Law, case: Case, own: list[Case]) -> Case:
    """Return the case asked for, changed to one that the law takes; its most similar own case where
    the sizes do not fit either."""
    ways = [{name: getattr(one, name) for name in ASKED} for one in own]
    alike = [sum(getattr(case, name) == value for name, value in way.items()) for way in ways]
    paired = [(one.m is None) == (case.m is None) for one in own]
    best = max(range(len(own)), key=lambda at: (paired[at], alike[at]))
    changed = msgspec.structs.replace(case, **ways[best])
    if not paired[best]:
        changed = msgspec.structs.replace(changed, m=own[best].m)
    return changed if law.takes(changed) else own[best]


def _common_fields(own: list[Case]) -> str:
    """Return the values that all cases of a law have, in words; sizes, seed and trial are free."""
    words = [_describe(name, {getattr(one, name) for one in own}) for name in ASKED]
    sequences = sorted({"n alone" if one.m is None else "n and m" for one in own})
    return ", ".join([*words, " or ".join(sequences)])


def _describe(name: str, taken: set[object]) -> str:
    if taken == {True, False}:
        return f"{name} or not"
    if isinstance(next(iter(taken)), bool):
        return name if True in taken else f"no {name}"
    return f"{name}={' or '.join(sorted(map(str, taken)))}"
