"""The card of a mechanism: a page of its own, with all results about it."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

import msgspec
import pandas as pd

from lra.core import published
from lra.core.catalogue import EXACT, NO_MIXING
from lra.core.escape import escape_controls
from lra.core.hashing import value_hash
from lra.core.peers import PREFIX
from lra.report.accuracy import ACCURACY, Accuracies, Score
from lra.report.analysis import Analysis
from lra.report.baselines import Simple, shortcut
from lra.report.checks import Check, check_of, checks
from lra.report.crossover import crossover_value, crossovers
from lra.report.leaderboard import Entry, Leaderboard, Ratio, leaderboard
from lra.report.load.frame import typed
from lra.report.load.variants import chosen
from lra.report.model import Row, Section, Table, Value, drawn, there
from lra.report.plots.cost_curves import cost_curves
from lra.report.plots.gallery import card_pattern
from lra.report.score_text import score_text, shortcut_text
from lra.report.sections.gallery import newest, pictures
from lra.report.words import NO_VALUE, NOT_RUN, figures, percent

_FILE = re.compile(r"\w[\w-]{0,63}")
_MODES = {"train": "training step", "forward": "forward pass", "decode": "decoding step"}
_KINDS = {"time": "time", "memory": "peak memory", "state": "state"}


class Card(msgspec.Struct, frozen=True):
    """Content of one mechanism's page."""

    mechanism: str
    name: str
    """Name of the mechanism for people."""
    title: str
    paper: str
    facts: tuple[tuple[str, str], ...]
    """Claims of its card and its row of the leaderboard, as names and words."""
    sections: tuple[Section, ...]
    command: str
    """Command that measures it again."""

    @property
    def file(self) -> str:
        """Name of its file in the folder of cards: the mechanism's, or a hash where that is no file
        name."""
        safe = _FILE.fullmatch(self.mechanism)
        return f"{self.mechanism if safe else value_hash(self.mechanism)}.html"


def cards(analysis: Analysis, only: Collection[str] | None = None) -> list[Card]:
    """Return a card for each mechanism with a figure, a check or a picture, among those in `only`
    where given; public packages are left out."""
    found = _Cards(analysis)
    figures = analysis.evidence.figures
    names = {name for name in figures["mechanism"] if name} | {*found.checks, *found.pictures}
    return [
        found.card(name)
        for name in sorted(names)
        if not name.startswith(PREFIX) and (only is None or name in only)
    ]


class _Cards:
    """Values shared by the cards of a report."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.checks = check_of(checks(analysis.evidence))
        self.pictures = {
            one.cell.mechanism.name: one for one in pictures(newest(analysis.evidence.shown))
        }

    @cached_property
    def board(self) -> Leaderboard:
        return leaderboard(self.analysis)

    @cached_property
    def shortcuts(self) -> dict[str, Simple | None]:
        """Best shortcut of each column."""
        return {
            column.protocol: shortcut(self.analysis.evidence, scores, column)
            for scores in self.analysis.accuracies
            for column in scores.columns
        }

    @cached_property
    def crossings(self) -> pd.DataFrame:
        """Crossovers in the settings of the leaderboard's costs: those of calls and those of
        decoding."""
        settings = [one for one in (self.board.setting, self.board.decoding) if one is not None]
        ids = dict.fromkeys(one.id for one in settings)
        parts = [crossovers(self.analysis.costs, id).assign(setting=id) for id in ids]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def card(self, name: str) -> Card:
        """Return the card of one mechanism."""
        check = self.checks.get(name)
        declared = check.card if check else {}
        entry = next((s for s in self.board.entries if s.key.mechanism == name), None)
        return Card(
            mechanism=name,
            name=escape_controls(name),
            title=str(declared.get("title", "")),
            paper=str(declared.get("paper", "")),
            facts=tuple(_facts(check, entry, self.board)),
            sections=tuple(section for section in self._sections(name) if not section.is_empty),
            command=f"python -m lra {self._verb(name)} --impl {shlex.quote(escape_controls(name))}",
        )

    def _verb(self, name: str) -> str:
        """The command that measures what there is: `run` where it was trained."""
        figures = self.analysis.evidence.figures
        kinds = set(figures["kind"][figures["mechanism"] == name])
        if kinds:
            return "run" if "quality" in kinds else "sweep"
        return "show" if name in self.pictures else "verify"

    def _sections(self, name: str) -> Iterable[Section]:
        picture = self.pictures.get(name)
        if picture is not None:
            figure = card_pattern(picture, self.analysis.looks)
            yield Section(topic="Pattern", figures=(figure,))
        yield Section(
            topic="Accuracy", tables=there([accuracy_table(self.analysis, self.shortcuts, name)])
        )
        yield self._costs(name)
        check = self.checks.get(name)
        yield Section(topic="Laws", tables=there([laws_table(check)]))
        yield Section(topic="Settings", tables=there([settings_table(self.analysis, name)]))
        yield Section(topic="Published", tables=there([published_table(name)]))

    def _costs(self, name: str) -> Section:
        own = self.crossings
        if len(own):
            own = _several(own[own["mechanism"] == name])
        return Section(
            topic="Costs",
            setting=", ".join(self.board.setting.parts) if self.board.setting else "",
            figures=drawn([cost_curves(self.analysis, self.board, name)]),
            tables=there([_crossing_table(own)]),
        )


def _facts(
    check: Check | None, entry: Entry | None, board: Leaderboard
) -> Iterable[tuple[str, str]]:
    """Claims of the card, and the mechanism's row of the leaderboard."""
    if check is not None:
        card = check.card
        if card:
            yield "Time", str(card.get("time", ""))
            yield "Memory", str(card.get("memory", ""))
            yield "Equals softmax attention", str(card.get("softmax", ""))
        broken = len(check.broken)
        yield "Laws held", f"{check.held} of {check.held + broken}"
    if entry is None:
        return
    call = _MODES[board.mode]
    if entry.time and board.length:
        yield f"Time of a {call} at length {board.length:,}", _share(entry.time)
    if entry.memory and board.length:
        yield f"Memory of a {call} at length {board.length:,}", _share(entry.memory)
    if entry.pays_from is not None:
        never = entry.pays_from.number == math.inf
        text = "none compared" if never else entry.pays_from.text
        yield f"Faster {call} from length", _marked(text, entry.pays_from.disturbed)


def _share(one: Ratio) -> str:
    """Return a cost over exact attention's in words, and that it is another machine's."""
    where = ", on another machine" if one.elsewhere else ""
    share = figures(one.value, one.spread, most=2)
    return _marked(f"{share} of {EXACT}'s{where}", one.disturbed)


def _marked(text: str, disturbed: bool) -> str:
    return f"{text}, on a busy machine" if disturbed else text


Shortcuts = Mapping[str, Simple | None]
"""Best shortcut of each column, by protocol."""


def accuracy_table(analysis: Analysis, shortcuts: Shortcuts, name: str) -> Table | None:
    """Return the accuracy of one mechanism by setting and task, beside exact attention, no mixing
    and the best shortcut; None where it was not trained."""
    rows = [
        row
        for scores in analysis.accuracies
        if scores.metric == ACCURACY
        for row in _accuracy_rows(scores, shortcuts, name)
    ]
    if not rows:
        return None
    return Table(
        id="card-accuracy",
        title="Test accuracy, %",
        caption="",
        corner="task",
        columns=(
            escape_controls(name),
            f"exact attention ({EXACT})",
            "no mixing",
            "best shortcut",
        ),
        rows=tuple(rows),
    )


def _accuracy_rows(scores: Accuracies, shortcuts: Shortcuts, name: str) -> Iterable[Row]:
    for column in scores.columns:
        pooled = scores.pooled[scores.pooled["protocol"] == column.protocol]
        tested = column.rows.test
        simple = shortcuts[column.protocol]
        anchors = [_scored(pooled, anchor)[:1] for anchor in (EXACT, NO_MIXING)]
        beside = [_score(found[0] if found else None, tested) for found in anchors]
        beside.append(
            Value(NOT_RUN)
            if simple is None
            else Value(shortcut_text(simple, tested), simple.name, simple.value)
        )
        found = _scored(pooled, name)
        for one in found:
            label = column.title if len(found) == 1 else f"{column.title}, {one.label}"
            values = (_score(one, tested), *beside)
            yield Row(label, values, group=", ".join(scores.setting.parts))


def _scored(pooled: pd.DataFrame, name: str) -> list[Score]:
    """Scores of a mechanism in the run, one for each of its settings; else in the reference."""
    found = [one for one in typed(pooled[pooled["mechanism"] == name], Score) if one.n]
    own = [one for one in found if one.origin == "run"] or found
    return sorted(own, key=lambda one: (one.label, one.variant))


def _score(score: Score | None, rows: int) -> Value:
    if score is None:
        return Value(NO_VALUE)
    note = "" if math.isnan(score.sd) else f"± {percent(score.sd)}, n {score.n}"
    return Value(score_text(score, rows), note, score.mean)


def _several(crossings: pd.DataFrame) -> pd.DataFrame:
    """Crossings of variants that were compared at several lengths; all where none was."""
    several = crossings[crossings["lengths"].map(len) > 1]
    return several if len(several) else crossings


def _crossing_table(own: pd.DataFrame) -> Table | None:
    """Table of the lengths from which each cost lies below exact attention's."""
    if own.empty:
        return None
    is_one = own["variant"].nunique() == 1
    rows = [
        Row(
            f"{_KINDS[row['kind']]} of a {_MODES[row['mode']]}",
            (crossover_value(row),),
            group="" if is_one else row["label"],
            origin=row["origin"],
        )
        for _, row in own.sort_values(["label", "variant"], kind="stable").iterrows()
    ]
    return Table(
        id="card-crossover",
        title=f"Length from which it costs less than {EXACT}",
        caption="",
        corner="cost",
        columns=("from length",),
        rows=tuple(rows),
    )


def laws_table(check: Check | None) -> Table | None:
    """Return a table of laws and verdicts; None without a check."""
    if check is None or not check.record.findings:
        return None
    order = {"failed": 0, "held": 1, "unclaimed": 2}
    findings = sorted(check.record.findings, key=lambda f: order.get(f.verdict, 3))
    return Table(
        id="card-laws",
        title="Claims tried",
        caption=f"{check.cell.form} form, torch {check.cell.torch}, on {check.cell.device}.",
        corner="law",
        columns=("verdict", "cases", "statement", "detail"),
        rows=tuple(
            Row(
                f.law,
                (Value(f.verdict), Value(str(f.cases)), Value(f.says), Value(f.detail)),
            )
            for f in findings
        ),
        numeric=False,
    )


def settings_table(analysis: Analysis, name: str) -> Table | None:
    """Return a table of the settings that a mechanism was trained and timed with."""
    own = analysis.evidence.figures
    own = own[own["mechanism"] == name]
    own = own[["variant", "kind", "scale", "config"]].drop_duplicates()
    uses: dict[str, set[str]] = {}
    texts: dict[str, str] = {}
    for variant, kind, scale, config in own.itertuples(index=False, name=None):
        texts[variant] = ", ".join(
            f"{key} {value}" for key, value in chosen(msgspec.json.decode(config), name).items()
        )
        words = {"quality": f"trained ({scale})", "efficiency": "timed", "error": "error"}[kind]
        uses.setdefault(variant, set()).add(words)
    rows = [
        Row(texts[variant] or "none", (Value(", ".join(sorted(uses[variant]))),))
        for variant in sorted(uses, key=lambda variant: (texts[variant], variant))
    ]
    if not rows:
        return None
    return Table(
        id="card-settings",
        title="Settings measured",
        caption="",
        corner="settings",
        columns=("used for",),
        rows=tuple(rows),
        numeric=False,
    )


def published_table(name: str) -> Table | None:
    """Return a table of the accuracies that papers print of a mechanism; None where there are
    none."""
    found = [
        (quality, row)
        for quality in published.qualities()
        for row in quality.rows
        if row.mechanism == name
    ]
    if not found:
        return None
    tasks = list(dict.fromkeys(task for _, row in found for task in row.accuracy))
    return Table(
        id="card-published",
        title="Published accuracies, %",
        caption="Protocols differ from ours.",
        corner="model and source",
        columns=tuple(tasks),
        rows=tuple(
            Row(
                f"{row.model}, {quality.source}",
                tuple(
                    Value(str(row.accuracy[task]), "", float(row.accuracy[task]))
                    if task in row.accuracy
                    else Value(NO_VALUE)
                    for task in tasks
                ),
            )
            for quality, row in found
        ),
    )
