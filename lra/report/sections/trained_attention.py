"""Attention of trained models: the distances that heads look over, and the pixels that an answer
came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

from lra.core.catalogue import NO_MIXING
from lra.core.cells import QualityCell
from lra.core.published import Spans, spans
from lra.core.trained_attention import TrainedAttention
from lra.report.accuracy import Column
from lra.report.analysis import Analysis
from lra.report.doubts import UNSEEN
from lra.report.load.settings import QualitySetting
from lra.report.model import Figure, Row, Section, Table, Value
from lra.report.plots.cross_map import cross_map_figure
from lra.report.plots.rollout import rollout_figure
from lra.report.rows import reference_notes
from lra.report.training_findings import Trainings, trainings, whole_setting
from lra.report.words import NO_VALUE, figures, span

_MOST = 6
"""Number of models whose pictures of one kind are drawn."""
_ALIKE = 2.0
"""Factor between lengths within which a published distance is shown."""
_FAILED = "failed"
_CAPTION = (
    "From a query to the keys it reads, by how much it reads of them, over layers and heads; in "
    "brackets the length. Attention that reads all alike has a third of it, causal a quarter."
)


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting with trained attention."""
    seen = {
        id: record.attended
        for id, record in analysis.evidence.records.items()
        if record.attended is not None or UNSEEN in record.method
    }
    published, pictures = spans("lra_spans"), _pictures(analysis)
    found = trainings(analysis, seen)
    first = next((one for one in found if _with_distances(one)), None)
    return [
        present(one, published, pictures.get(one.setting, ()), is_first=one is first)
        for one in found
    ]


def _pictures(analysis: Analysis) -> dict[QualitySetting, list[Figure]]:
    found: dict[QualitySetting, list[Figure]] = {}
    drawn: Counter[object] = Counter()
    settings = {
        column.protocol: whole_setting(one) for one in analysis.accuracies for column in one.columns
    }
    names = ["origin", "record", "protocol", "label"]
    figures = analysis.evidence.figures
    trained = figures[figures["kind"] == "quality"][names].drop_duplicates()
    for origin, id, protocol, label in trained.itertuples(index=False, name=None):
        record = analysis.evidence.records[origin, id]
        seen, cell = record.attended, record.cell
        if seen is None or not (seen.rollouts or seen.crosses) or protocol not in settings:
            continue
        picture = rollout_figure if seen.rollouts else cross_map_figure
        if drawn[picture] < _MOST:
            assert isinstance(cell, QualityCell), "only trainings are looked at"
            drawn[picture] += 1
            title = f"{label} (reference)" if origin == "reference" else label
            drawing = picture(title, cell, seen, drawn[picture])
            found.setdefault(settings[protocol], []).append(drawing)
    return found


def present(
    one: Trainings[TrainedAttention | None],
    published: Spans,
    pictures: Sequence[Figure],
    *,
    is_first: bool,
) -> Section:
    """Return the distances of a setting with published ones, and pictures."""
    columns = _with_distances(one)
    rows = [
        key.row([_value(one.of(key, column), column) for column in columns])
        for key in one.keys
        # Without mixing no position reads another.
        if key.mechanism != NO_MIXING
    ]
    beside = [_there(published, column) for column in columns]
    legend = []
    if any(value.number is not None for value in beside):
        rows.append(Row("LRA: Transformer", tuple(beside), group="Published"))
        legend.append(f"LRA: {published.source}; below, the length there.")
    examples = [
        attention.examples for seen in one.found.values() for attention in seen if attention
    ]
    over = f"over {span(examples) or '0'} validation sequences of each seed"
    table = Table(
        id=f"attention-distance-{one.setting.id}",
        title="Mean attention distance, tokens",
        caption=f"{_CAPTION if is_first else ''} {over.capitalize()}.".strip(),
        corner="mechanism",
        columns=tuple(f"{column.title} ({column.cell.data.length:,})" for column in columns),
        rows=tuple(rows),
        notes=tuple(reference_notes(one.figures, one.keys)),
        legend=tuple(legend),
    )
    return Section(
        topic="Trained attention",
        level="appendix",
        setting=", ".join(one.setting.parts),
        tables=(table,) if columns else (),
        figures=tuple(pictures),
    )


def _with_distances(one: Trainings[TrainedAttention | None]) -> tuple[Column, ...]:
    """Columns of models that read one sequence: there is no distance to the tokens of another."""
    return tuple(c for c in one.columns if c.cell.model.body != "encoder_decoder")


def _value(seen: Iterable[TrainedAttention | None], column: Column) -> Value:
    tried = list(seen)
    found = [one for one in tried if one is not None]
    if not found:
        return Value(_FAILED if tried else NO_VALUE)
    distance = fmean(one.distance for one in found)
    lost = len(tried) - len(found)
    return Value(figures(distance, most=2), f"{lost} {_FAILED}" if lost else "", distance)


def _there(published: Spans, column: Column) -> Value:
    """Published distance of a task; nothing where its length is another."""
    task, length = column.task, column.cell.data.length
    there = published.lengths.get(task)
    if there is None or max(length, there) > _ALIKE * min(length, there):
        return Value(NO_VALUE)
    distance = published.tasks[task]
    return Value(f"about {distance:,}", f"of {there:,}", float(distance))
