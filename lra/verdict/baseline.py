"""Baselines: the accepted figures of mechanisms, and the judgement of a check against them.

Counted and seeded figures have no noise, and are held to a bound: bytes, operations and parameters
to 1 %, the losses of a short seeded training to 0.05 %, laws to their verdict. Accuracies are held
over seeds, in both directions; a loss that so few seeds cannot prove is no pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec

from lra.core.protocol import Fraction
from lra.core.records import FAILED
from lra.verdict.change import ACCURACY_SAME, COUNT_MARGIN, compare_accuracies

LOSSES = 0.0005
"""Share by which the losses of a seeded training may differ. Over 48 steps the same attention with
another order of sums differs by 2e-7 (full, sdpa, chunked), and the nearest of another kind by
2e-3."""

Outcome = Literal["held", "regression", "improvement", "inconclusive", "new"]
"""inconclusive: the figure cannot be compared. new: there is nothing to compare it with."""


_NotNegative = Annotated[float, msgspec.Meta(ge=0.0)]


class Figures(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Figures of one cell; for trainings for accuracy, those of its seeds."""

    asked: str
    """Hash of the request: sizes, data, configuration, machine, version of torch.

    Without versions or hashes of code: edits do not change the request.
    """
    status: str = "ok"
    counts: dict[str, _NotNegative] = {}
    """Bytes, operations and parameters, by metric."""
    losses: list[_NotNegative] = []
    """Loss of training by batch and of validation by evaluation, point by point, in nat."""
    accuracies: dict[str, Fraction] = {}
    """Accuracies on the test split, as shares of 1, by seed."""
    laws: dict[str, str] = {}
    """Verdicts by law."""


Cells = Mapping[str, Figures]
"""Figures of one mechanism, by the cell's key."""


class Judgement(msgspec.Struct, frozen=True):
    """One figure, judged by its baseline."""

    mechanism: str
    cell: str
    figure: str
    outcome: Outcome
    why: str = ""
    """The change, or why it cannot be told."""


def judge(mechanism: str, before: Cells, after: Cells, *, whole: bool = False) -> list[Judgement]:
    """Judge a mechanism's figures by its baseline, cell by cell.

    A `whole` check reports cells that only the baseline has as missed; another may ask for fewer.
    """
    found = [
        Judgement(mechanism, cell, figure, outcome, why)
        for cell, now in after.items()
        for figure, outcome, why in _judge_cell(before.get(cell), now)
    ]
    missed = before.keys() - after.keys() if whole else ()
    return found + [
        Judgement(mechanism, cell, "ending", "inconclusive", _MISSED) for cell in sorted(missed)
    ]


_OTHER = "another configuration, data or version of torch"
"""Reasons why figures cannot be compared; a change of code is none."""
_MISSED = (
    "in the baseline and not measured now; where nothing asks for it any more, delete it from "
    "the mechanism's file"
)
_UNTRIED = (
    "held before, not tried now; where there is no such law any more, take a new baseline with "
    "`lra baseline update`"
)
_Judgements = Iterator[tuple[str, Outcome, str]]


def _judge_cell(then: Figures | None, now: Figures) -> _Judgements:
    other = _OTHER if then and then.asked != now.asked else ""
    if now.laws:
        # Claims must hold, whatever the baseline.
        yield from _judge_laws(then.laws if then else {}, now.laws, other)
    elif then is None:
        yield "ending", "regression" if now.status in FAILED else "new", now.status
    # A failure now is worse, whatever code was asked before.
    elif other and (now.status not in FAILED or then.status in FAILED):
        yield "ending", "inconclusive", other
    elif then.status != now.status:
        yield "ending", _judge_status(now.status), f"{then.status} before, {now.status} now"
    else:
        yield "ending", "held", now.status
        # No law is tried now.
        yield from _judge_laws(then.laws, now.laws, other)
        yield from _judge_counts(then.counts, now.counts)
        yield from _judge_losses(then.losses, now.losses)
        yield from _judge_accuracies(then.accuracies, now.accuracies)


def _judge_status(now: str) -> Outcome:
    if now == "ok":
        return "improvement"
    # A skipped cell tells nothing.
    return "inconclusive" if now == "skipped" else "regression"


def _judge_counts(then: Mapping[str, float], now: Mapping[str, float]) -> _Judgements:
    for name in sorted(then.keys() | now.keys()):
        if name not in then or name not in now:
            side = "before" if name not in then else "now"
            yield name, "inconclusive", f"not counted {side}"
            continue
        before, after = then[name], now[name]
        if abs(after - before) <= COUNT_MARGIN * before:
            yield name, "held", ""
            continue
        share = f" ({100 * (after / before - 1):+.1f} %)" if before else ""
        outcome: Outcome = "improvement" if after < before else "regression"
        yield name, outcome, f"{before:,.0f} before, {after:,.0f} now{share}"


def _judge_losses(then: list[float], now: list[float]) -> _Judgements:
    """Lower losses are no improvement: so few steps show that something else is computed, and not
    whether it is better."""
    if not then and not now:
        return
    if len(then) != len(now):
        yield "losses", "regression", f"{len(then)} figures before, {len(now)} now"
        return
    off = [_relative_difference(before, after) for before, after in zip(then, now, strict=True)]
    largest = max(off, key=abs)
    if abs(largest) <= LOSSES:
        yield "losses", "held", ""
        return
    last = f"the last {then[-1]:.3f} nat before, {now[-1]:.3f} now"
    yield "losses", "regression", f"differ by up to {100 * largest:+.2f} %; {last}"


def _relative_difference(before: float, after: float) -> float:
    """Share by which a loss differs; infinite between a number and none."""
    if before == after or (math.isnan(before) and math.isnan(after)):
        return 0.0
    # A loss of 0 has no shares: it is compared in nat.
    share = (after - before) / (before or 1.0)
    return math.inf if math.isnan(share) else share


def _judge_laws(then: Mapping[str, str], now: Mapping[str, str], other: str) -> _Judgements:
    """`other` is why the two were not tried alike: that may have lost a claim."""
    for law, verdict in now.items():
        lost = then.get(law) == "held" and verdict != "held"
        if verdict == "failed":
            yield law, "regression", "claimed, and not so"
        elif lost and verdict == "skipped":
            yield law, "inconclusive", "held before, could not be tried now"
        elif lost:
            why = f"held before, {verdict} now"
            yield law, *(("inconclusive", f"{why}; {other}") if other else ("regression", why))
        else:
            yield law, "held", ""
    for law, verdict in then.items():
        if law not in now and verdict == "held":
            yield law, "inconclusive", _UNTRIED


def _judge_accuracies(then: Mapping[str, float], now: Mapping[str, float]) -> _Judgements:
    if not then:
        return
    change = compare_accuracies(
        {int(seed): share for seed, share in then.items()},
        {int(seed): share for seed, share in now.items()},
    )
    if change is None or change.pairs < len(then):
        pairs = change.pairs if change else 0
        yield "accuracy", "inconclusive", f"{pairs} of {len(then)} seeds have an accuracy now"
        return
    difference = change.difference or 0.0
    why = f"{100 * difference:+.1f} points over {change.pairs} seed"
    why += "s" if change.pairs != 1 else ""
    if change.low is not None and change.high is not None:
        why += f" ({100 * change.low:+.1f} to {100 * change.high:+.1f})"
    outcomes: dict[str, Outcome] = {"worse": "regression", "better": "improvement"}
    outcome = outcomes.get(change.verdict, "held")
    if change.verdict == "ambiguous" and difference < -ACCURACY_SAME:
        outcome, why = "inconclusive", f"{why}: not told from luck"
    yield "accuracy", outcome, "" if change.verdict == "same" else why
