"""Decoding of trained models: the share of equal answers in one pass and step by step."""

from __future__ import annotations

import math
from collections.abc import Iterable

from lra.core.cells import QualityCell
from lra.core.records import Record
from lra.report.analysis import Analysis
from lra.report.doubts import AGREEMENT, UNDECODED, agreement_text
from lra.report.model import Section, Table, Value
from lra.report.rows import reference_notes
from lra.report.training_findings import Trainings, trainings
from lra.report.words import NO_VALUE, listing

_FAILED = "failed"


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting in which trained models were decoded."""
    decoded: dict[tuple[str, str], float] = {}
    for id, record in analysis.evidence.records.items():
        metric = record.metrics.get(AGREEMENT)
        if metric is not None and metric.value is not None:
            decoded[id] = metric.value
        elif UNDECODED in record.method and not _writes_answers(record):
            decoded[id] = math.nan
    return [present(one) for one in trainings(analysis, decoded)]


def _writes_answers(record: Record) -> bool:
    """Whether a model answers another sequence, which it does not continue."""
    cell = record.cell
    return isinstance(cell, QualityCell) and cell.model.body == "encoder_decoder"


def present(one: Trainings[float]) -> Section:
    """Return a sentence on the models that always answer alike, and a table of the others."""
    alike = [
        key
        for key in one.keys
        if all(share == 1.0 for column in one.columns for share in one.of(key, column))
    ]
    rows = [
        key.row([_value(one.of(key, column)) for column in one.columns])
        for key in one.keys
        if key not in alike
    ]
    table = Table(
        id=f"decoding-by-use-{one.setting.id}",
        title="Tokens predicted alike in one pass and step by step, %",
        caption="Half of each text is taken in at once. With several seeds: the least.",
        corner="mechanism",
        columns=tuple(column.title for column in one.columns),
        rows=tuple(rows),
        notes=tuple(reference_notes(one.figures, one.keys)),
    )
    names = listing([key.row(()).title for key in alike])
    return Section(
        topic="Decoding by use",
        level="appendix",
        setting=", ".join(one.setting.parts),
        text=(f"The same tokens in one pass and step by step: {names}.",) if alike else (),
        tables=(table,) if rows else (),
    )


def _value(shares: Iterable[float]) -> Value:
    every = list(shares)
    known = [share for share in every if not math.isnan(share)]
    if not known:
        return Value(_FAILED if every else NO_VALUE)
    failed = len(every) - len(known)
    note = f"{failed} of {len(every)} {_FAILED}" if failed else ""
    return Value(agreement_text(min(known)), note, min(known))
