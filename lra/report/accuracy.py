"""Accuracies and losses pooled over seeds: one row for each mechanism and column.

A column is one protocol of one task. The interval of 95 % is Student's over seeds; a single seed
has none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

import msgspec
import pandas as pd
from msgspec import UNSET

from lra.core.catalogue import CONTROLS
from lra.core.cells import QualityCell
from lra.core.escape import escape_controls
from lra.core.protocol import Rows
from lra.report.load.measurement import protocol_hash
from lra.report.load.select import Evidence
from lra.report.load.settings import QualitySetting
from lra.report.load.versions import data_hash
from lra.report.words import differing, leaves
from lra.verdict.accuracy import mean_interval

AVERAGED = ("listops", "text", "retrieval", "image", "pathfinder")
"""Tasks of one stack that a mean accuracy is over; a setting with fewer of them says which."""
ACCURACY = "test_accuracy"
ROW = ["origin", "variant"]


class Loss(NamedTuple):
    """Unit of a loss in records, its words, and the beginning of ids of tables in it."""

    unit: str
    words: str
    id: str


LOSSES = {
    "bits_per_byte": Loss("bit", "bits per byte", "bits-"),
    "nat": Loss("nat", "nat", "nat-"),
}
"""Metrics that are the mean loss of an answer, where less is better."""
SCORED = (ACCURACY, *LOSSES)
"""Metrics by which trainings are judged."""


class Column(msgspec.Struct, frozen=True):
    """One protocol of one task."""

    protocol: str
    title: str
    """Task, with the differences between its protocols in one setting."""
    task: str
    cell: QualityCell
    """Any cell of the column: they share scale, track, data, model and training."""
    rows: Rows
    """Examples of each split: the real numbers, where the record has them."""
    data: str
    """Hash of the data alone, by which simple baselines are joined."""


class Score(msgspec.Struct, frozen=True):
    """Score of one mechanism on one column, or its mean over columns: a row of a pooled frame."""

    origin: str
    variant: str
    mechanism: str
    label: str
    mean: float
    """Mean score; NaN where there is none."""
    sd: float
    """Standard deviation over seeds; NaN for a single one."""
    n: int
    """Number of seeds with a figure; for a mean, of columns with one."""
    endings: tuple[tuple[str, str, str], ...]
    """Status, failure and reason of seeds without a figure."""


class Accuracies(msgspec.Struct, frozen=True):
    """Scores of one setting: accuracies, or losses of one unit."""

    setting: QualitySetting
    metric: str
    columns: tuple[Column, ...]
    averaged: tuple[Column, ...]
    """Columns that the mean is over; empty where there is none."""
    local: tuple[Column, ...]
    """Columns of the named tasks on which exact attention is not clear of the best shortcut."""
    pooled: pd.DataFrame
    """One row for each mechanism and column: origin, variant, mechanism, label, protocol, task,
    mean, sd, n, low, high, seeds (accuracy by seed), parameters, endings (status, failure, reason
    of seeds without)."""
    means: pd.DataFrame
    """One row for each mechanism: mean and sd over the averaged columns, n (its columns among
    them), seeds."""

    @property
    def lower(self) -> bool:
        """Whether less is better."""
        return self.loss is not None

    @property
    def loss(self) -> Loss | None:
        """The loss that the scores are; None for accuracies."""
        return LOSSES.get(self.metric)

    @property
    def parts(self) -> tuple[str, ...]:
        """Words for the setting, and for the unit where it is a loss."""
        return (*self.setting.parts, *([self.loss.words] if self.loss else []))

    @property
    def id(self) -> str:
        """Id of the setting, with the unit where it is a loss."""
        return f"{self.loss.id if self.loss else ''}{self.setting.id}"


def accuracies(evidence: Evidence) -> list[Accuracies]:
    """Return the scores of each setting and metric: accuracies first, among each the settings that
    the run has, with one answer an example before answers at tokens, and then those with the most
    mechanisms of the run."""
    figures = evidence.figures
    scored = figures[
        (figures["kind"] == "quality")
        & figures["metric"].isin(SCORED)
        & (figures["order"] == "given")
    ]
    found = [
        _scores(evidence, str(metric), str(setting), own)
        for (metric, setting), own in scored.groupby(["metric", "setting"], sort=True)
    ]

    def place(one: Accuracies) -> tuple[Any, ...]:
        known = one.pooled[one.pooled["mean"].notna()]
        own = known[known["origin"] == "run"]["variant"].nunique()
        most = known["variant"].nunique()
        tokens = one.setting.by_token
        return (one.metric != ACCURACY, own == 0, tokens, -own, -most, one.setting.parts)

    return sorted(found, key=place)


def scored(evidence: Evidence, scores: Accuracies) -> pd.DataFrame:
    """Return the figures that a table of scores is made of: one row for each seed."""
    figures = evidence.figures
    protocols = [column.protocol for column in scores.columns]
    return figures[(figures["metric"] == scores.metric) & figures["protocol"].isin(protocols)]


def _scores(evidence: Evidence, metric: str, setting: str, own: pd.DataFrame) -> Accuracies:
    under = evidence.settings[setting]
    assert isinstance(under, QualitySetting), "only trainings are scored"
    columns = _columns(evidence, own)
    rows = {column.protocol: column.rows.test for column in columns}
    pooled = pd.DataFrame(
        [
            {
                "origin": key[0],
                "variant": key[1],
                "protocol": key[2],
                **_pooled(group, rows[str(key[2])], metric),
            }
            for key, group in own.groupby([*ROW, "protocol"], sort=True)
        ]
    )
    # Tasks from sequence to sequence ask for one thing, attention across; others for several.
    named = AVERAGED if under.slots is UNSET else {column.task for column in columns}
    averaged = _averaged(columns, pooled, named) if metric == ACCURACY else ()
    return Accuracies(under, metric, columns, averaged, (), pooled, means_over(pooled, averaged))


def _pooled(group: pd.DataFrame, rows: int, metric: str) -> dict[str, Any]:
    """Score of one mechanism on one column."""
    known = group[group["value"].notna()]
    lost = group[group["value"].isna()]
    values = [float(value) for value in known["value"]]
    bounds = None
    if len(values) > 1:
        bounds = (
            mean_interval(values, most=math.inf)
            if metric in LOSSES
            else mean_interval(values, 1 / rows)
        )
    first = group.iloc[0]
    return {
        "mechanism": first["mechanism"],
        "label": first["label"],
        "task": first["task"],
        "mean": fmean(values) if values else math.nan,
        "sd": stdev(values) if len(values) > 1 else math.nan,
        "n": len(values),
        "low": bounds[0] if bounds else math.nan,
        "high": bounds[1] if bounds else math.nan,
        "seeds": {
            int(seed): float(v) for seed, v in zip(known["seed"], known["value"], strict=True)
        },
        "parameters": first["parameters"],
        "endings": tuple(sorted(zip(lost["status"], lost["failure"], lost["reason"], strict=True))),
    }


def _columns(evidence: Evidence, own: pd.DataFrame) -> tuple[Column, ...]:
    """Columns, one for each protocol, the five named tasks first."""
    cells: dict[str, QualityCell] = {}
    rows: dict[str, Rows] = {}
    for origin, id in sorted(set(zip(own["origin"], own["record"], strict=True)), reverse=True):
        record = evidence.records[origin, id]
        assert isinstance(record.cell, QualityCell), "only trainings are scored"
        protocol = protocol_hash(record.cell)
        cells[protocol] = record.cell
        if record.rows is not None:
            rows[protocol] = record.rows
    by_task: dict[str, list[QualityCell]] = {}
    for _, cell in sorted(cells.items()):
        by_task.setdefault(cell.data.task, []).append(cell)
    found = []
    for task in sorted(by_task, key=_place):
        alike = by_task[task]
        titled = [
            Column(
                protocol=(protocol := protocol_hash(cell)),
                title=escape_controls(f"{task} ({difference})" if difference else task),
                task=task,
                cell=cell,
                rows=rows.get(protocol, cell.data.rows),
                data=data_hash(cell),
            )
            for cell, difference in zip(alike, _differences(alike), strict=True)
        ]
        found += sorted(titled, key=lambda column: column.title)
    return tuple(found)


def _differences(cells: Sequence[QualityCell]) -> list[str]:
    """Words for the differences between the protocols of one task; empty for a single protocol."""
    settings = [
        leaves({"data": cell.data, "model": cell.model, "training": cell.training})
        for cell in cells
    ]
    for one, cell in zip(settings, cells, strict=True):
        del one["data.hash"]
        if cell.track == "tuned":
            # Each row has a rate of its own; the rate of this cell is any of them.
            del one["training.learning_rate"]
    differences = differing(settings)
    if len(set(differences)) < len(cells):
        pairs = zip((f"data {data_hash(cell)[:8]}" for cell in cells), differences, strict=True)
        differences = [", ".join(part for part in pair if part) for pair in pairs]
    return differences


def _place(task: str) -> tuple[int, str]:
    return (AVERAGED.index(task) if task in AVERAGED else len(AVERAGED), task)


def _averaged(
    columns: Iterable[Column], pooled: pd.DataFrame, named: Collection[str]
) -> tuple[Column, ...]:
    """Columns that a mean is over: for each named task the one with most rows.

    Empty if two protocols of a task share the lead, or if there is only one task.
    """
    number = Counter(pooled[pooled["n"] > 0]["protocol"])
    by_task: dict[str, list[Column]] = {}
    for column in columns:
        if column.task in named:
            by_task.setdefault(column.task, []).append(column)
    chosen = []
    for found in by_task.values():
        most = max(number[column.protocol] for column in found)
        leading = [column for column in found if number[column.protocol] == most]
        if len(leading) > 1:
            return ()
        chosen += leading
    return tuple(chosen) if len(chosen) > 1 else ()


def means_over(pooled: pd.DataFrame, averaged: Sequence[Column]) -> pd.DataFrame:
    """Return the mean over tasks of each row that has them all.

    Its spread is over seeds, where all tasks have the same.
    """
    wanted = {column.protocol for column in averaged}
    found = []
    for key, group in pooled.groupby(ROW, sort=True):
        own = group[group["protocol"].isin(wanted) & group["mean"].notna()]
        complete = len(own) == len(wanted) > 0
        seeds = [set(one) for one in own["seeds"]]
        shared = sorted(set.intersection(*seeds)) if seeds and complete else []
        same = complete and all(one == seeds[0] for one in seeds)
        by_seed = {n: fmean(one[n] for one in own["seeds"]) for n in shared} if same else {}
        found.append(
            {
                "origin": key[0],
                "variant": key[1],
                "mechanism": group.iloc[0]["mechanism"],
                "label": group.iloc[0]["label"],
                "mean": fmean(own["mean"]) if complete else math.nan,
                "sd": stdev(by_seed.values()) if len(by_seed) > 1 else math.nan,
                "n": len(own),
                "seeds": by_seed,
                "endings": (),
            }
        )
    names = ["origin", "variant", "mechanism", "label", "mean", "sd", "n", "seeds", "endings"]
    return pd.DataFrame(found, columns=names)


def winner(
    scores: Accuracies, protocol: str, left_out: Collection[tuple[str, str, str]] = ()
) -> tuple[str, str] | None:
    """Return origin and variant of the best mechanism but the controls, where its interval over
    seeds lies clear of the next one's; None where it does not, or some row has a single seed.

    Rows that are `left_out`, by origin, variant and protocol, are in no comparison.
    """
    own = scores.pooled
    names = [own[name] for name in (*ROW, "protocol")]
    own = own[[key not in left_out for key in zip(*names, strict=True)]]
    own = own[(own["protocol"] == protocol) & own["mean"].notna()]
    own = own[~own["mechanism"].isin(CONTROLS)]
    if len(own) < 2 or own["low"].isna().any():
        return None
    ranked = own.sort_values(["mean", "variant"], ascending=[scores.lower, True])
    first, second = ranked.iloc[0], ranked.iloc[1]
    clear = first.high < second.low if scores.lower else first.low > second.high
    return (str(first.origin), str(first.variant)) if clear else None
