"""Runs laws on a mechanism, each in a process of its own, so that no failure stops the rest.

A law that fails is tried again on smaller inputs, so that the printed case is small.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Literal

import msgspec
import torch

from lra.core.errors import LraError, UnsupportedError, UsageError
from lra.core.findings import Case, Finding, Verdict
from lra.core.traceback_place import place_of
from lra.verify.case_check import why_unfit
from lra.verify.clear_difference import clearest, is_as_clear
from lra.verify.isolation import run_isolated
from lra.verify.law import Broken, Law, Reported, Untried
from lra.verify.laws import LAWS
from lra.verify.second_look import look_again
from lra.verify.subject import Subject

TIMEOUT = 120.0
"""Time limit of one law in seconds, in the short form; ten times as much in the full one."""

MOST_TIMEOUTS = 2
"""Number of claimed laws without an answer after which the rest is left out; one unclaimed law is
enough to leave out the unclaimed."""

SHRINK_BELOW = 40
"""Longest input that shrinking tries."""


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

    A mechanism without any output, or with laws that time out, is tried no further; then a claim
    has failed. Raises `UsageError` where a law does not take the one case to try.
    """
    patience = timeout * (10 if subject.full else 1)
    hopeless, timeouts, tried_unclaimed = "", 0, True
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
                partial(_single_threaded, law, subject, partial(_shrink, found)), patience
            )
            found = smaller if isinstance(smaller, Finding) else found
        if isinstance(found, Finding):
            finding = found
        else:
            finding = Finding(
                law=law.name,
                verdict="failed" if claimed else "not claimed",
                detail=found.words,
                ending=found.ending,
            )
        if finding.verdict == "failed" and not subject.is_ours:
            again = partial(look_again, _try_case, finding)
            looked = run_isolated(partial(_single_threaded, law, subject, again), patience)
            finding = looked if isinstance(looked, Finding) else finding
        if finding.ending == "timeout":
            timeouts += claimed
            tried_unclaimed &= claimed
        if law.name == "output" and finding.ending and finding.cases <= 1:
            hopeless = "it gives no output"
        elif timeouts == MOST_TIMEOUTS:
            hopeless = f"{timeouts} laws before it gave no answer"
        seconds = round(time.monotonic() - started, 3)
        yield msgspec.structs.replace(finding, says=law.says, seconds=seconds)


def _single_threaded(
    law: Law, subject: Subject, attempt: Callable[[Law, Subject], Finding]
) -> Finding:
    """Work in a forked child, where the parent's threads are gone: with a single thread."""
    torch.set_num_threads(1)
    return attempt(law, subject)


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
    found = _shrink(found, law, subject) if _may_shrink(law, subject, found) else found
    return look_again(_try_case, found, law, subject)


def _first_failure(law: Law, subject: Subject) -> Finding:
    if law.claimed(subject.card):
        if law.oracle and not subject.has_oracle:
            detail = "it has no oracle to compare with"
            return Finding(law=law.name, verdict="skipped", detail=detail)
        return _try_case(law, subject)
    if law.claim is None or law.measured or (law.oracle and not subject.has_oracle):
        return Finding(law=law.name, verdict="not claimed")
    found = _try_case(law, subject.claiming(law.claim))
    if found.verdict != "held":
        return Finding(law=law.name, verdict="not claimed", cases=found.cases)
    return msgspec.structs.replace(
        found, verdict="unclaimed", detail="holds in every case tried; the card does not claim it"
    )


def _try_case(law: Law, subject: Subject, cases: Iterable[Case] | None = None) -> Finding:
    count, case = 0, None
    try:
        if cases is None:
            cases = law.cases(subject) if subject.only is None else [subject.only]
        for case in cases:
            law.check(subject, case)
            count += 1
    except Reported as words:
        return Finding(law=law.name, verdict="reported", cases=count + 1, detail=str(words))
    except Untried as words:
        return Finding(law=law.name, verdict="skipped", cases=count, detail=str(words))
    except Broken as words:
        return _failure(law, count, case, str(words))
    except UnsupportedError as error:
        return _failure(law, count, case, f"refused: {error}")
    except LraError as error:
        return _failure(law, count, case, str(error), ending="error")
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        return _failure(
            law, count, case, detail, ending="error", inside=place_of(error, subject.home)
        )
    if not count:
        return Finding(law=law.name, verdict="skipped", detail="nothing to try it on")
    return Finding(law=law.name, verdict="held", cases=count)


_WRAPPED = re.compile(r"\binner\.(bidirectional|causal)\.")
"""Prefix that an adapter puts before the names of somebody's own parameters."""


def _failure(
    law: Law,
    count: int,
    case: Case | None,
    detail: str,
    ending: Literal["", "error"] = "",
    inside: str = "",
) -> Finding:
    line = _WRAPPED.sub("", " ".join(detail.split()))
    return Finding(
        law=law.name,
        verdict="failed",
        cases=count + 1,
        detail=line + inside,
        case=case,
        ending=ending,
    )


def _may_shrink(law: Law, subject: Subject, found: Finding) -> bool:
    whole = not law.measured and subject.only is None
    return found.verdict == "failed" and found.case is not None and whole


def _shrink(found: Finding, law: Law, subject: Subject) -> Finding:
    """Return the failure at the smallest input that shows it: in evaluation, one example, one head,
    fewer positions. An empty input is a question of its own."""
    found = clearest(_try_case, _is_same_failure, found, law, subject)
    assert found.case is not None
    case, smallest = found.case, found
    for change in ({"training": False}, {"batch": 1}, {"heads": 1}):
        smaller = msgspec.structs.replace(case, **change)
        # The first example of a mask may be one without padding.
        if smaller == case or ("batch" in change and case.mask != "none"):
            continue
        if not law.takes(smaller):
            continue
        again = _try_case(law, subject, [smaller])
        if _is_same_failure(again, found):
            case, smallest = smaller, again
    if case.m is None:
        for n in range(1, min(case.n, SHRINK_BELOW)):
            smaller = msgspec.structs.replace(case, n=n)
            if not law.takes(smaller):
                continue
            again = _try_case(law, subject, [smaller])
            if _is_same_failure(again, found):
                smallest = again
                break
    return msgspec.structs.replace(smallest, cases=found.cases)


def _is_same_failure(again: Finding, found: Finding) -> bool:
    """Whether two failures have the same words but for their numbers, and not one a difference that
    may be rounding."""
    alike = (again.verdict, again.ending) == (found.verdict, found.ending)
    alike &= is_as_clear(again.detail, found.detail)
    return alike and _without_numbers(again.detail) == _without_numbers(found.detail)


def _without_numbers(detail: str) -> str:
    """Leave numbers out, and their count in a row."""
    words = re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?|\b(inf|nan)\b", "#", detail)
    return re.sub(r"#(, (#|\.\.\.))+", "#", words)
