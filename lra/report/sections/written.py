"""Answers that trained models wrote by themselves, token by token, against those of the task."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from lra.core.cells import QualityCell
from lra.core.escape import escape_controls
from lra.core.records import Metric, Record
from lra.report.analysis import Analysis
from lra.report.doubts import UNDECODED
from lra.report.model import Section, Table, Value
from lra.report.rows import reference_notes
from lra.report.training_findings import Trainings, trainings
from lra.report.words import NO_VALUE, percent

_FAILED = "failed"
EXACT_MATCH, LONGEST = "exact_match", "rouge_l"
Scores = tuple[Metric, Metric] | None
"""Exact matches, and ROUGE-L; None where writing ended with an error."""


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting in which models wrote answers."""
    records = analysis.evidence.records.items()
    found = {id: _scores(record) for id, record in records if _was_to_write(record)}
    return [present(one) for one in trainings(analysis, found)]


def _was_to_write(record: Record) -> bool:
    """Whether answers were written, or an error came between."""
    if EXACT_MATCH in record.metrics:
        return True
    cell = record.cell
    writes = isinstance(cell, QualityCell) and cell.model.body == "encoder_decoder"
    return writes and UNDECODED in record.method


def _scores(record: Record) -> Scores:
    if EXACT_MATCH not in record.metrics:
        return None
    return record.metrics[EXACT_MATCH], record.metrics[LONGEST]


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
                    "The model writes each token after its own earlier ones; below, ROUGE-L. For "
                    "test accuracy it is given the right earlier tokens."
                ),
                corner="mechanism",
                columns=tuple(column.title for column in one.columns),
                rows=tuple(rows),
                notes=(*_reasons(one), *reference_notes(one.figures, one.keys)),
            ),
        ),
    )


def _reasons(one: Trainings[Scores]) -> list[str]:
    """Reasons of mechanisms that cannot write an answer."""
    metrics = [scores[0] for found in one.found.values() for scores in found if scores]
    reasons = sorted({metric.why_null for metric in metrics if metric.why_null})
    return [f"{NO_VALUE}: {escape_controls(reason)}." for reason in reasons]


def _value(found: Iterable[Scores]) -> Value:
    """Means over seeds."""
    tried = list(found)
    pairs = [one for one in tried if one is not None]
    lost = len(tried) - len(pairs)
    exact = [one.value for one, _ in pairs if one.value is not None]
    longest = [one.value for _, one in pairs if one.value is not None]
    if not exact or not longest:
        return Value(_FAILED if lost else NO_VALUE)
    mean = fmean(exact)
    failed = f", {lost} {_FAILED}" if lost else ""
    return Value(percent(mean), f"R-L {percent(fmean(longest))}{failed}", mean)
