"""Runs laws on a mechanism, each in a process of its own, so that no failure stops the rest.

A law that fails is tried again on smaller inputs, so that the printed case is small.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import msgspec
import torch

from lra.core.errors import UsageError
from lra.core.findings import Finding, Verdict
from lra.verify.case_check import why_unfit
from lra.verify.isolation import run_isolated
from lra.verify.law import Law
from lra.verify.laws import LAWS, output
from lra.verify.second_look import look_again
from lra.verify.shrink import shrink
from lra.verify.subject import Subject
from lra.verify.trial import try_case

TIMEOUT = 120.0
"""Time limit of one law in seconds, in the short form; ten times as much in the full one."""

MOST_TIMEOUTS = 2
"""Number of claimed laws without an answer after which the rest is left out; one unclaimed law is
enough to leave out the unclaimed."""


def select(names: Iterable[str] = (), *, full: bool = False) -> tuple[Law, ...]:
    """Return the laws of these names, or all of the form."""
    wanted = set(names)
    return tuple(
        law for law in LAWS if (law.name in wanted if wanted else full or not law.only_full)
    )


def verify(
    subject: Subject,
    laws: Iterable[Law],
    *,
    timeout: float = TIMEOUT,
    tell: Callable[[Law], None] = lambda law: None,
) -> Iterator[Finding]:
    """Yield one finding per law; none of them can end, hang or disturb this process.

    A mechanism without any output, or with laws that time out, is tried no further. Raises
    `UsageError` where a law does not take the one case to try.
    """
    patience = timeout * (10 if subject.full else 1)
    hopeless, timeouts, tried_unclaimed, has_output = "", 0, True, True
    for law in laws:
        claimed = law.claimed(subject.card)
        if hopeless or not (claimed or tried_unclaimed):
            verdict: Verdict = "skipped" if claimed else "not claimed"
            yield Finding(law=law.name, says=law.says, verdict=verdict, detail=hopeless)
            continue
        tell(law)
        started = time.monotonic()
        if subject.only is not None:
            fits = run_isolated(partial(_binds, law, subject), patience)
            if isinstance(fits, Finding) and fits.detail:
                raise UsageError(fits.detail)
        found = run_isolated(partial(_single_threaded, law, subject, _first_failure), patience)
        if isinstance(found, Finding) and _may_shrink(law, subject, found):
            # In a process of its own: the failure is not lost where the search for a smaller one
            # dies.
            smaller = run_isolated(
                partial(_single_threaded, law, subject, partial(shrink, found)), patience
            )
            found = smaller if isinstance(smaller, Finding) else found
        if isinstance(found, Finding):
            finding = found
        else:
            # A law without an answer in time may hold: the machine may have been busy.
            lost: Verdict = "skipped" if found.ending == "timeout" else "failed"
            finding = Finding(
                law=law.name,
                verdict=lost if claimed else "not claimed",
                detail=found.words,
                ending=found.ending,
            )
        if finding.verdict == "failed" and not subject.is_ours:
            again = partial(look_again, finding)
            looked = run_isolated(partial(_single_threaded, law, subject, again), patience)
            finding = looked if isinstance(looked, Finding) else finding
        if not has_output and finding.verdict == "failed" and finding.case is not None:
            explained = run_isolated(
                partial(_single_threaded, output.LAW, subject, partial(_explain, finding)), patience
            )
            finding = explained if isinstance(explained, Finding) else finding
        if finding.ending == "timeout":
            timeouts += claimed
            tried_unclaimed &= claimed
        if law is output.LAW:
            has_output = finding.verdict != "failed" and not finding.ending
            if finding.ending and finding.cases <= 1:
                hopeless = "it gives no output"
        if timeouts == MOST_TIMEOUTS and not hopeless:
            hopeless = f"{timeouts} laws before it gave no answer"
        seconds = round(time.monotonic() - started, 3)
        yield msgspec.structs.replace(finding, says=law.says, seconds=seconds)


def _single_threaded(
    law: Law, subject: Subject, attempt: Callable[[Law, Subject], Finding]
) -> Finding:
    """Work in a forked child, where the parent's threads are gone: with a single thread."""
    torch.set_num_threads(1)
    return attempt(law, subject)


def _explain(finding: Finding, law: Law, subject: Subject) -> Finding:
    """Return a failure, with the name of the law of outputs where that fails on the same input."""
    assert finding.case is not None
    mask = finding.case.mask if finding.case.mask in output.MASKS else "none"
    case = msgspec.structs.replace(finding.case, m=None, mask=mask)
    is_alike = law.takes(case) and try_case(law, subject, [case]).verdict == "failed"
    return msgspec.structs.replace(finding, follows=law.name if is_alike else "")


def _binds(law: Law, subject: Subject) -> Finding:
    return Finding(law=law.name, verdict="held", detail=why_unfit(law, subject))


def try_law(law: Law, subject: Subject) -> Finding:
    """Try one law in this process.

    Where the card does not claim it, the mechanism is tried under a card that does. Raises
    `UsageError` as `verify` does.
    """
    if subject.only is not None and (why := why_unfit(law, subject)):
        raise UsageError(why)
    found = _first_failure(law, subject)
    found = shrink(found, law, subject) if _may_shrink(law, subject, found) else found
    return look_again(found, law, subject)


def _first_failure(law: Law, subject: Subject) -> Finding:
    if law.claimed(subject.card):
        if law.oracle and not subject.has_oracle:
            detail = "it has no oracle to compare with"
            return Finding(law=law.name, verdict="skipped", detail=detail)
        return try_case(law, subject)
    if law.claim is None or law.measured or (law.oracle and not subject.has_oracle):
        return Finding(law=law.name, verdict="not claimed")
    found = try_case(law, subject.claiming(law.claim))
    if found.verdict != "held":
        return Finding(law=law.name, verdict="not claimed", cases=found.cases, detail=found.detail)
    return msgspec.structs.replace(
        found, verdict="unclaimed", detail="holds in every case tried; the card does not claim it"
    )


def _may_shrink(law: Law, subject: Subject, found: Finding) -> bool:
    whole = not law.measured and subject.only is None
    return found.verdict == "failed" and found.case is not None and whole
