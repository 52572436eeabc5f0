"""What to know before a report is quoted: cells that are not ok, and timings of a busy machine."""

from __future__ import annotations

from collections import Counter

from lra.core.cells import CeilingCell, EfficiencyCell, ProfileCell, ShowCell, VerifyCell
from lra.report.analysis import Analysis
from lra.report.words import STATUS, count, listing

_OTHERS = {
    VerifyCell: "check",
    ShowCell: "picture",
    ProfileCell: "profile",
    CeilingCell: "ceiling",
}
"""Kinds that have no row in a table of accuracies, times or errors."""


def caveats(analysis: Analysis) -> tuple[str, ...]:
    """Return a sentence on each caveat, none where there is none."""
    return (*_not_ok(analysis), *_disturbed(analysis))


def _not_ok(analysis: Analysis) -> list[str]:
    """How many of the run's cells did not end well, by ending; other kinds by themselves."""
    evidence = analysis.evidence
    kinds = [("cell", [kept.record for kept in evidence.own])]
    for kind, words in _OTHERS.items():
        own = (*evidence.others, *evidence.checks, *evidence.shown)
        kinds.append((words, [r for r in own if isinstance(r.cell, kind)]))
    sentences = []
    for words, records in kinds:
        bad = Counter(record.status for record in records if record.status != "ok")
        if bad:
            endings = [f"{number} {STATUS[status]}" for status, number in sorted(bad.items())]
            verb = "is" if bad.total() == 1 else "are"
            sentences.append(
                f"{bad.total()} of {count(len(records), words)} {verb} not ok: {listing(endings)}."
            )
    return sentences


def _disturbed(analysis: Analysis) -> list[str]:
    """How many of the run's timings were taken on a busy machine."""
    own = [kept for kept in analysis.evidence.own if isinstance(kept.cell, EfficiencyCell)]
    timed = [kept for kept in own if kept.record.status == "ok"]
    found = sum(kept.disturbed for kept in timed)
    if not found:
        return []
    return [
        f"The machine was busy during {found} of {count(len(timed), 'timing')} (marked !): the "
        "same command with --rerun disturbed measures them again."
    ]
