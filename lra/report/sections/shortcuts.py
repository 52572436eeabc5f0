"""Shortcuts by task: exact attention beside each rule and model that does without it."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev

import msgspec
import pandas as pd

from lra.core.catalogue import EXACT, LOCAL, NO_MIXING
from lra.core.cells import QualityCell
from lra.report.accuracy import ACCURACY, SCORED, Accuracies, Column, Score
from lra.report.analysis import Analysis
from lra.report.baselines import (
    BAG,
    CONTROL_NAMES,
    FLOOR,
    MAJORITY,
    NAMED,
    TREES,
    floor,
    simple,
    solver,
)
from lra.report.load.measurement import protocol_hash
from lra.report.load.settings import QualitySetting
from lra.report.model import Row, Section, Table, Value
from lra.report.score_text import score_text
from lra.report.training_findings import whole_setting
from lra.report.words import NOT_RUN, figures, percent

TOPIC = "Shortcuts"
SHUFFLED = "shuffled input"
_NOTHING, _LOCAL = CONTROL_NAMES[NO_MIXING], CONTROL_NAMES[LOCAL]
_RULE = "rule of thumb"
_BAG = BAG.replace("_", " ")
_NONE = "none"
_ORDER = (_LOCAL, _NOTHING, SHUFFLED, TREES, _BAG, MAJORITY, _RULE)
_TEXT = (
    "A shortcut does without attention over the whole input in its order; a task tests attention "
    "as far as exact attention beats the best shortcut."
)
_Shuffled = Mapping[str, Sequence[Score]]
"""Scores of exact attention trained and tested on shuffled input, by the protocol of the input as
given."""


class Shortcut(msgspec.Struct, frozen=True):
    """One way to solve a task without attention to all of the ordered input."""

    score: Score
    name: str = ""
    """Own name, where the column has several."""
    reads_all: bool = False
    """Whether it is no shortcut after all: its layers together reach over the longest input."""


class Certificate(msgspec.Struct, frozen=True):
    """One task, with exact attention and with shortcuts."""

    column: Column
    of: Accuracies
    known: float | None
    """Best possible score: the floor, or else the exact solver's accuracy."""
    exact: Score
    shortcuts: dict[str, Shortcut]

    @property
    def best(self) -> str:
        """Name of the best shortcut."""
        own = {name: one for name, one in self.shortcuts.items() if not one.reads_all}
        sign = -1.0 if self.of.lower else 1.0
        return max(own, key=lambda name: (sign * own[name].score.mean, name))

    @property
    def margin(self) -> float:
        """Difference by which exact attention is better than the best shortcut."""
        apart = self.exact.mean - self.shortcuts[self.best].score.mean
        return -apart if self.of.lower else apart


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting in which exact attention was trained on shuffled input."""
    found: dict[QualitySetting, list[Table]] = defaultdict(list)
    control = _shuffled(analysis)
    controlled = {
        one.setting
        for one in analysis.accuracies
        if any(column.protocol in control for column in one.columns)
    }
    for metric in SCORED:
        for setting in dict.fromkeys(map(whole_setting, analysis.accuracies)):
            alike = [
                one
                for one in analysis.accuracies
                if whole_setting(one) == setting and one.metric == metric
            ]
            known = [task for one in alike for task in analyse(analysis, one, control)]
            if known and setting in controlled:
                found[setting].append(_table(known, setting))
    return [
        Section(
            topic=TOPIC,
            setting=", ".join(one.parts),
            text=(_TEXT,) if place == 0 else (),
            tables=tuple(tables),
        )
        for place, (one, tables) in enumerate(found.items())
    ]


def _shuffled(analysis: Analysis) -> _Shuffled:
    evidence = analysis.evidence
    frame = evidence.figures
    own = frame[(frame["order"] == "shuffled") & (frame["mechanism"] == EXACT)]
    own = own[(own["metric"] == ACCURACY) & own["value"].notna()]
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for origin, id, value in zip(own["origin"], own["record"], own["value"], strict=True):
        cell = evidence.records[origin, id].cell
        assert isinstance(cell, QualityCell), "only trainings have an accuracy"
        replace = msgspec.structs.replace
        given = replace(cell, data=replace(cell.data, order="given"))
        values[protocol_hash(given), origin].append(value)
    found: dict[str, list[Score]] = defaultdict(list)
    for (protocol, origin), one in sorted(values.items()):
        found[protocol].append(_score(one, origin))
    return found


def _score(values: Sequence[float], origin: str = "run") -> Score:
    sd = stdev(values) if len(values) > 1 else math.nan
    return Score(origin, "", "", "", fmean(values), sd, len(values), ())


def analyse(analysis: Analysis, scores: Accuracies, control: _Shuffled) -> list[Certificate]:
    """Return the tasks with a certificate. One whose order could matter needs exact attention on
    shuffled input, since the best shortcut is the best of those tried."""
    found = []
    pooled = scores.pooled[scores.pooled["mean"].notna()]
    configs = dict(zip(*(analysis.evidence.figures[n] for n in ("variant", "config")), strict=True))
    for column in scores.columns:
        own = pooled[pooled["protocol"] == column.protocol]
        exact = _of_origin(_scores(own[own["mechanism"] == EXACT]))
        without = {
            **_windows(own, column, configs),
            **_trained(_LOCAL, _scores(own[own["mechanism"] == LOCAL])),
            **_trained(_NOTHING, _scores(own[own["mechanism"] == NO_MIXING])),
            **_trained(SHUFFLED, control.get(column.protocol, ())),
            **_simple(analysis, scores, column),
        }
        controlled = column.cell.model.causal or SHUFFLED in without
        if exact is None or not controlled or all(one.reads_all for one in without.values()):
            continue
        known = floor(analysis.evidence, scores, column)
        if known is None:
            known = solver(analysis.evidence, scores, column)
        found.append(Certificate(column, scores, known, exact, without))
    return found


def _scores(own: pd.DataFrame) -> list[Score]:
    names = [own[name] for name in ("origin", "mean", "sd", "n")]
    return [
        Score(origin, "", "", "", mean, sd, n, ())
        for origin, mean, sd, n in zip(*names, strict=True)
    ]


def _of_origin(found: Iterable[Score]) -> Score | None:
    """Score of the run where there is one, else of the reference."""
    return min(found, key=lambda one: one.origin != "run", default=None)


def _trained(name: str, found: Iterable[Score]) -> dict[str, Shortcut]:
    one = _of_origin(found)
    return {} if one is None else {name: Shortcut(one)}


def _windows(own: pd.DataFrame, column: Column, configs: Mapping[str, str]) -> dict[str, Shortcut]:
    """Mechanisms whose only settings are the two sides of a window, by these."""
    sides: dict[tuple[int, int], list[Score]] = defaultdict(list)
    for variant, group in own.groupby("variant", sort=True):
        config = json.loads(configs[str(variant)])
        if config.keys() == {"left", "right"}:
            sides[int(config["left"]), int(config["right"])] += _scores(group)
    found = {}
    for (left, right), scored in sorted(sides.items()):
        one = _of_origin(scored)
        a_layer = left if column.cell.model.causal else left + right
        reads_all = column.cell.model.layers * a_layer + 1 >= column.cell.data.length
        if one is not None:
            found[f"window {left} + {right}"] = Shortcut(
                one, "reads all" if reads_all else "", reads_all
            )
    return found


def _simple(analysis: Analysis, scores: Accuracies, column: Column) -> dict[str, Shortcut]:
    """Simple baselines; the best among rules of thumb."""
    known = simple(analysis.evidence, scores, column)
    found = {
        one.name: Shortcut(_score([one.value])) for metric, one in known.items() if metric in NAMED
    }
    sign = -1.0 if scores.lower else 1.0
    rules = [one for metric, one in known.items() if metric not in (*NAMED, FLOOR)]
    best = min(rules, key=lambda one: (-sign * one.value, one.name), default=None)
    return found | ({_RULE: Shortcut(_score([best.value]), best.name)} if best else {})


def _table(tasks: Sequence[Certificate], setting: QualitySetting) -> Table:
    of = tasks[0].of
    windows = sorted({name for one in tasks for name in one.shortcuts if name not in _ORDER})
    names = [
        *windows,
        *(name for name in _ORDER if any(name in one.shortcuts for one in tasks)),
    ]
    solved = any(one.known is not None for one in tasks)
    known = ["best possible"] if solved else []
    shuffled = "; shuffled input: exact attention trained and tested on tokens in a random order"
    shuffled = shuffled if SHUFFLED in names else ""
    rows = [
        Row(
            one.column.title,
            (
                *([_known(one)] if solved else []),
                _value(one, one.exact),
                _margin(one),
                *(_shortcut(one, name) for name in names),
            ),
        )
        for one in tasks
    ]
    return Table(
        id=f"certificate-{of.loss.id if of.loss else ''}{setting.id}",
        title=f"Margin of exact attention over shortcuts, {of.loss.words if of.loss else '%'}",
        caption=f"Shortcuts stand right of the margin{shuffled}.",
        corner="task",
        columns=(*known, f"exact ({EXACT})", "margin", *names),
        rows=tuple(rows),
        notes=("A window that reads all, layer upon layer, is no shortcut.",)
        if any(s.reads_all for one in tasks for s in one.shortcuts.values())
        else (),
    )


def _known(one: Certificate) -> Value:
    if one.known is None:
        return Value(_NONE)
    text = figures(one.known) if one.of.lower else percent(one.known)
    return Value(text, "", one.known)


def _value(one: Certificate, score: Score, note: str = "") -> Value:
    return Value(score_text(score, one.column.rows.test, one.of.lower), note, score.mean)


def _margin(one: Certificate) -> Value:
    decimals = 1 if one.exact.n > 1 else 0
    text = f"{one.margin:+.2f}" if one.of.lower else f"{100 * one.margin:+.{decimals}f}"
    return Value(text, f"over {one.best}", one.margin)


def _shortcut(one: Certificate, name: str) -> Value:
    """Score of a shortcut; where there is none, whether it could have been trained."""
    found = one.shortcuts.get(name)
    if found is not None:
        return _value(one, found.score, found.name)
    # A task with a label for each token has no answers apart from its tokens: nothing to shuffle.
    never = name in (TREES, _BAG, MAJORITY, _RULE) or (
        name == SHUFFLED and one.column.cell.model.causal
    )
    return Value(_NONE if never else NOT_RUN)
