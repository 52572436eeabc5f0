"""Accuracy by task, and losses: mechanisms, baselines, and the best shortcut."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import pandas as pd

from lra.core.catalogue import CONTROLS, EXACT
from lra.core.cells import QualityCell
from lra.report.accuracy import ACCURACY, Accuracies, Column, Score, scored, winner
from lra.report.analysis import Analysis
from lra.report.baselines import (
    BAG,
    FLOOR,
    MAJORITY,
    NAMED,
    TREES,
    Simple,
    shortcut,
    simple,
    unbeaten,
)
from lra.report.doubts import impossible
from lra.report.load.frame import typed
from lra.report.load.measurement import Measurement, protocol_hash
from lra.report.mixing import MARGIN
from lra.report.model import Row, Section, Table, Value, drawn
from lra.report.plots.accuracy import accuracy_figure
from lra.report.rows import (
    Key,
    missing,
    of,
    of_the_run,
    of_the_run_first,
    reference_notes,
    row_keys,
)
from lra.report.score_text import is_coarse, score_text, shortcut_text
from lra.report.words import DAGGER, NO_VALUE, NOT_RUN, figures, listing, listing_of, percent

BASELINES = "Baselines"
BEST = "best shortcut"
_NAMED = 5
"""Trainings that a note names."""
_BEST_POSSIBLE = "best possible"
_TITLES = {
    ACCURACY: "Test accuracy, %",
    "bits_per_byte": "Bits per byte",
    "nat": "Loss, nat",
}
_COSTS = {
    "bits_per_byte": "The mean cost of a byte after those before it.",
    "nat": "The mean loss of a token asked for, after those before it.",
}
UNBEATEN = (
    f"{DAGGER}: not surely better than the best shortcut; nothing is shown about attention there."
)
_BOLD = "Bold: best, with a 95 % interval over seeds clear of the next one's."
_OFF = "off: distance of the mean to the best possible score."
_ELSEWHERE = "The other mechanisms of the reference are in the plot and in report.csv."


class Scores(msgspec.Struct, frozen=True):
    """Values of a table of accuracies, or of losses."""

    of: Accuracies
    keys: tuple[Key, ...]
    places: dict[tuple[Key, str], Score]
    """Scores by row and protocol."""
    rates: dict[tuple[Key, str], str]
    """Chosen learning rates of the tuned track, in words."""
    means: dict[Key, Score]
    best: dict[str, tuple[str, str] | None]
    """Winner of each column, where one is told apart."""
    impossible: frozenset[tuple[str, str, str]]
    """Origin, variant and protocol of trainings that score better than possible."""
    baselines: dict[str, dict[str, Simple]]
    """Simple baselines by column, then by metric."""
    shortcuts: dict[str, Simple | None]
    """Best shortcut of each column."""
    unbeaten: frozenset[tuple[str, str, str]]
    """Origin, variant and protocol of scores that are not surely better than it."""
    figures: pd.DataFrame


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each table of accuracies and of losses."""
    return [
        section
        for one in analysis.accuracies
        for section in of_the_run_first(present(analyse(analysis, one), analysis))
    ]


def analyse(analysis: Analysis, scores: Accuracies) -> Scores:
    """Return the rows of a table with their values."""
    wanted = {column.protocol: column for column in scores.columns}
    own = scored(analysis.evidence, scores)
    keys = tuple(row_keys(own))
    places, means = {}, {}
    rates: dict[tuple[Key, str], str] = {}
    tuned = _rates(analysis.evidence.measurements)
    for key in keys:
        for (protocol,), group in of(scores.pooled, key).groupby(["protocol"]):
            (places[key, str(protocol)],) = typed(group, Score)
        rates |= {
            (key, protocol): words
            for (origin, variant, protocol), words in tuned.items()
            if (origin, variant) == (key.origin, key.variant)
        }
        (means[key],) = typed(of(scores.means, key), Score)
    left_out = impossible(analysis.evidence, scores)
    shortcuts = {p: shortcut(analysis.evidence, scores, column) for p, column in wanted.items()}
    return Scores(
        of=scores,
        keys=keys,
        places=places,
        rates=rates,
        means=means,
        best={protocol: winner(scores, protocol, left_out) for protocol in wanted},
        impossible=left_out,
        baselines={
            protocol: simple(analysis.evidence, scores, column)
            for protocol, column in wanted.items()
        },
        shortcuts=shortcuts,
        unbeaten=unbeaten(scores, shortcuts),
        figures=own,
    )


def _rates(measurements: Iterable[Measurement]) -> dict[tuple[str, str, str], str]:
    """Chosen learning rate by origin, variant and protocol, marked where a better one may lie
    beyond those tried."""
    found: dict[tuple[str, str, str], str] = {}
    for one in measurements:
        if not isinstance(one.cell, QualityCell) or one.cell.track != "tuned":
            continue
        rate, tried = one.cell.training.learning_rate, one.rates_tried
        words = f"rate {rate:g}"
        if len(tried) > 1 and rate in (tried[0], tried[-1]):
            words += f", the {'lowest' if rate == tried[0] else 'highest'} of {len(tried)}"
        found[one.origin, one.variant, protocol_hash(one.cell)] = words
    return found


def present(scores: Scores, analysis: Analysis) -> Section:
    """Return the table with its plot."""
    of = scores.of
    several = any(place.n > 1 for place in scores.places.values())
    rows = [
        key.row(
            _values(scores, key, several), BASELINES if key.mechanism in CONTROLS else "Mechanisms"
        )
        for key in sorted(scores.keys, key=lambda key: key.mechanism in CONTROLS)
    ]
    loss = of.loss
    table = Table(
        id=of.id if loss else f"accuracy-{of.id}",
        title=_TITLES[of.metric],
        caption=_caption(of),
        corner="mechanism",
        columns=(
            *(column.title for column in of.columns),
            *([f"mean of {len(of.averaged)}"] if of.averaged else []),
        ),
        rows=(*rows, *_simple_rows(scores)),
        notes=(
            *_notes(of, several),
            *_local_notes(scores),
            *_machine_notes(scores.figures),
            *reference_notes(scores.figures, scores.keys),
        ),
        legend=(
            *([_BOLD] if any(scores.best.values()) else []),
            *([UNBEATEN] if scores.unbeaten else []),
            *([_OFF] if any(FLOOR in own for own in scores.baselines.values()) else []),
        ),
    )
    drawing = None if loss else accuracy_figure(table, of, analysis.looks)
    few, notes = table.rows, table.notes
    if drawing is not None:
        few = of_the_run(table.rows)
        notes = (*notes, *([_ELSEWHERE] if len(few) < len(table.rows) else []))
    # The plot has a line for each baseline, and so for the best.
    table = msgspec.structs.replace(table, rows=(*few, *_best_row(scores)), notes=notes)
    return Section(
        topic="Accuracy" if loss is None else _TITLES[of.metric],
        setting=", ".join(of.setting.parts),
        tables=(table,),
        figures=drawn([drawing]),
    )


def _values(scores: Scores, key: Key, several: bool) -> list[Value]:
    values = [
        _value(
            scores.places.get((key, column.protocol)),
            column.rows.test,
            scores.of.lower,
            several,
            rate=scores.rates.get((key, column.protocol)),
            best=scores.best[column.protocol] == (key.origin, key.variant),
            doubt="better than possible"
            if (key.origin, key.variant, column.protocol) in scores.impossible
            else "",
            floor=scores.baselines[column.protocol].get(FLOOR),
            is_beaten=(key.origin, key.variant, column.protocol) in scores.unbeaten,
        )
        for column in scores.of.columns
    ]
    if scores.of.averaged:
        mean = scores.means[key]
        # The chance of a seed's draw does not average out over tasks as that of rows does.
        rows = min(column.rows.test for column in scores.of.averaged)
        lacking = Value(NO_VALUE, f"{mean.n} of {len(scores.of.averaged)}")
        complete = not math.isnan(mean.mean)
        values.append(_value(mean, rows, False, False) if complete else lacking)
    return values


def _value(
    place: Score | None,
    rows: int,
    is_loss: bool,
    several: bool,
    *,
    floor: Simple | None = None,
    rate: str | None = None,
    best: bool = False,
    doubt: str = "",
    is_beaten: bool = False,
) -> Value:
    """Mean over the seeds that ended well, with the endings of the others."""
    if place is None:
        return Value(NOT_RUN)
    if math.isnan(place.mean):
        return missing(place.endings)
    notes = []
    if place.n > 1 and not math.isnan(place.sd):
        spread = figures(place.sd, most=2) if is_loss else percent(place.sd)
        notes.append(f"± {spread}")
    notes += [f"n {place.n}"] if several and place.n > 1 else []
    notes += [missing(place.endings).text] if place.endings else []
    notes += [rate] if rate else []
    if doubt:
        notes.append(doubt)
    elif floor is not None:
        notes.append(_off(place.mean, floor.value, is_loss))
    text = score_text(place, rows, is_loss)
    return Value(f"{text} {DAGGER}" if is_beaten else text, ", ".join(notes), place.mean, best)


def _off(mean: float, best: float, is_loss: bool) -> str:
    """Words for the distance to the best possible score: nat or bits, or points of an accuracy."""
    return f"off {figures(mean - best, most=2) if is_loss else percent(best - mean)}"


def _simple_rows(scores: Scores) -> list[Row]:
    """Rows of the best possible score, trees, bag of tokens, majority and the best rule of thumb,
    each where a task has it; for a loss one row for each baseline, worst first."""
    columns = [scores.baselines[column.protocol] for column in scores.of.columns]
    if scores.of.lower:
        names = {one.metric: one.name for own in columns for one in own.values()}
        names |= {FLOOR: _BEST_POSSIBLE} if FLOOR in names else {}
        found = [
            _simple_row(name, [own.get(m) for own in columns], scores) for m, name in names.items()
        ]
        return sorted(found, key=lambda row: -max(value.number or 0.0 for value in row.values))
    rules = [_rule(own) for own in columns]
    known = [own.get(FLOOR) for own in columns]
    rows = [
        *([_simple_row(_BEST_POSSIBLE, known, scores)] if any(known) else []),
        _simple_row(TREES, [own.get(TREES) for own in columns], scores),
        _simple_row(BAG.replace("_", " "), [own.get(BAG) for own in columns], scores),
        _simple_row(MAJORITY, [own.get(MAJORITY) for own in columns], scores),
        *([_simple_row("rule of thumb", rules, scores)] if any(rules) else []),
    ]
    return [row for row in rows if any(value.number is not None for value in row.values)]


def _rule(own: dict[str, Simple]) -> Simple | None:
    rules = [one for one in own.values() if one.metric not in (*NAMED, FLOOR)]
    return min(rules, key=lambda one: (-one.value, one.name), default=None)


def _best_row(scores: Scores) -> list[Row]:
    """Row of the best shortcut of each column, each with its name; none where there is none."""
    found = [scores.shortcuts[column.protocol] for column in scores.of.columns]
    return [_simple_row(BEST, found, scores, named=True)] if any(found) else []


def _simple_row(
    name: str, found: Sequence[Simple | None], scores: Scores, named: bool = False
) -> Row:
    is_loss, values = scores.of.lower, []
    for one, column in zip(found, scores.of.columns, strict=True):
        if one is None:
            values.append(Value(NO_VALUE))
        else:
            text = figures(one.value) if is_loss else shortcut_text(one, column.rows.test)
            is_rule = one.metric not in (*NAMED, FLOOR) and not is_loss
            own = one.name if named or is_rule else ""
            values.append(Value(text, own, one.value))
    if scores.of.averaged:
        known = [
            (one, column.rows.test)
            for one, column in zip(found, scores.of.columns, strict=True)
            if one is not None and column in scores.of.averaged
        ]
        complete = len(known) == len(scores.of.averaged)
        mean = sum(one.value for one, _ in known) / len(known) if complete else 0.0
        coarse = any(one.score is not None and is_coarse(one.score, n) for one, n in known)
        text = percent(mean, 1.0 if coarse else None)
        values.append(Value(text, "", mean) if complete else Value(NO_VALUE))
    origins = {one.origin for one in found if one is not None}
    return Row(
        name, tuple(values), origin="reference" if origins == {"reference"} else "run",
        group=BASELINES,
    )  # fmt: skip


def _caption(of: Accuracies) -> str:
    lengths = lengths_text(of.columns)
    rows = min(column.rows.test for column in of.columns)
    per = "tokens asked for" if of.setting.by_token else "test rows"
    what = _COSTS.get(of.metric, f"Percent of {per}.")
    return f"{what} {of.setting.data.capitalize()}, {lengths}, at least {rows:,} test rows."


def lengths_text(columns: Sequence[Column]) -> str:
    """Return the lengths of the inputs of columns: `24 to 128 tokens`."""
    lengths = {column.cell.data.length for column in columns}
    low, high = min(lengths), max(lengths)
    return f"{low:,} to {high:,} tokens" if low < high else f"{low:,} tokens"


def _notes(of: Accuracies, several: bool) -> list[str]:
    seeds = "± is one standard deviation over n seeds; all others are of one seed."
    notes = [seeds if several else "One seed each."]
    tied = [c.title for c in of.columns if c.cell.model.query_key_start == "tied"]
    if tied:
        notes.append(f"Keys start equal to queries on {', '.join(tied)}, which favours softmax.")
    return notes


def _local_notes(scores: Scores) -> list[str]:
    """Tasks that test local structure, each with its best shortcut."""
    if not scores.of.local:
        return []
    named = []
    for column in scores.of.local:
        best = scores.shortcuts[column.protocol]
        if best is not None:
            text = shortcut_text(best, column.rows.test)
            named.append(f"{column.title} ({best.name} {text})")
    left_out = any(column not in scores.of.averaged for column in scores.of.local)
    where = "left out of the mean" if left_out else "in the mean for want of others"
    return [
        f"Local structure is tested, and no attention, where {EXACT} is less than "
        f"{round(100 * MARGIN)} points above the best shortcut; {where}: {listing(named)}."
    ]


def _machine_notes(figures: pd.DataFrame) -> list[str]:
    """Trainings that several devices shared, and classes of machine that share a row."""
    notes = []
    shared = figures[figures["devices"] > 1].sort_values(["label", "task"], kind="stable")
    if len(shared):
        rows = shared[["label", "task", "devices"]].itertuples(index=False, name=None)
        names = [*dict.fromkeys(f"{label} on {task} ({n:.0f})" for label, task, n in rows)]
        notes.append(f"Trained on several devices at once: {listing_of(names, _NAMED)}.")
    machines = figures.groupby(["origin", "variant"])["machine"].unique()
    mixed = sorted({name for own in machines if len(own) > 1 for name in own})
    if mixed:
        notes.append(f"Seeds of several classes of machine share a row: {'; '.join(mixed)}.")
    return notes
