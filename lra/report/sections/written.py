"""Answers that trained models wrote by themselves, token by token, against those of the task."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from lra.core.records import Metric
from lra.report.analysis import Analysis
from lra.report.model import Section, Table, Value
from lra.report.rows import reference_notes
from lra.report.training_findings import Trainings, trainings
from lra.report.words import NO_VALUE, percent

EXACT_MATCH, LONGEST = "exact_match", "rouge_l"
Scores = tuple[Metric, Metric]
"""Exact matches, and ROUGE-L."""


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting in which models wrote answers."""
    found: dict[tuple[str, str], Scores] = {
        id: (record.metrics[EXACT_MATCH], record.metrics[LONGEST])
        for id, record in analysis.evidence.records.items()
        if {EXACT_MATCH, LONGEST} <= record.metrics.keys()
    }
    return [present(one) for one in trainings(analysis, found)]


def present(one: Trainings[Scores]) -> Section:
    """Return the table of a setting."""
    rows = [key.row([_value(one.of(key, column)) for column in one.columns]) for key in one.keys]
    return Section(
        topic="Written answers",
        setting=", ".join(one.setting.parts),
        tables=(
            Table(
                id=f"written-{one.setting.id}",
                title="Answers with every token right, %",
                caption=(
                    "Written greedily from the source alone, each token from the model's own "
                    "before it; below, ROUGE-L. An accuracy of tokens is of right tokens before."
                ),
                corner="mechanism",
                columns=tuple(column.title for column in one.columns),
                rows=tuple(rows),
                notes=tuple(reference_notes(one.figures, one.keys)),
            ),
        ),
    )


def _value(found: Iterable[Scores]) -> Value:
    """Means over seeds; a dash with the reason where nothing can be written."""
    pairs = list(found)
    exact = [one.value for one, _ in pairs if one.value is not None]
    longest = [one.value for _, one in pairs if one.value is not None]
    if not exact or not longest:
        reasons = sorted({one.why_null for one, _ in pairs if one.why_null})
        return Value(NO_VALUE, "no state of the source" if reasons else "")
    mean = fmean(exact)
    return Value(percent(mean), f"R-L {percent(fmean(longest))}", mean)
