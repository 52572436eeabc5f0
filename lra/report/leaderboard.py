"""Leaderboard: each mechanism's accuracy, costs against exact attention at one length, and proof.

The front counts only differences beyond noise. A mechanism that is surely slower than another must
be surely more accurate, and one that computes the same function never is: of such ones only the
quickest can be on it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import Literal

import msgspec

from lra.core.catalogue import CONTROLS, EXACT
from lra.core.cells import Mode
from lra.core.protocol import Machine
from lra.report.accuracy import Accuracies, Score
from lra.report.analysis import Analysis
from lra.report.baselines import shortcut, unbeaten
from lra.report.checks import Check, check_of, checks, exact_mechanisms
from lra.report.costs import CLOSE
from lra.report.crossover import crossover_value, crossovers
from lra.report.load.frame import PEAK_MEMORY, typed
from lra.report.load.settings import CostSetting
from lra.report.model import Value
from lra.report.rows import Key, row_keys
from lra.verdict.accuracy import paired_difference

_SURE = 1.96
"""Standard errors beyond which two accuracies of one seed are told apart."""


class Ratio(msgspec.Struct, frozen=True):
    """A cost as a multiple of exact attention's."""

    value: float
    spread: float = 0.0
    """Distance between its bounds."""
    disturbed: bool = False
    elsewhere: bool = False
    """Whether it was measured on another class of machine or build than the run's."""
    other_settings: bool = False
    """Whether the mechanism was timed with other settings than it was trained with."""

    def is_below(self, other: Ratio) -> bool:
        """Whether it is less by more than both spreads, and by a tenth."""
        apart = self.value + self.spread / 2 < other.value - other.spread / 2
        return apart and (1 + CLOSE) * self.value < other.value


class Entry(msgspec.Struct, frozen=True):
    """Results of one mechanism: a row of the leaderboard."""

    key: Key
    score: Score | None
    """Mean over tasks, or score on the only task."""
    time: Ratio | None
    """Time of a call of the board's mode."""
    memory: Ratio | None
    """Peak memory of such a call."""
    decode: Ratio | None
    """Time of a decoding step."""
    state: Ratio | None
    """Bytes kept for decoding."""
    pays_from: Value | None
    """Length from which such a call takes less time than exact attention's; 0 below the shortest
    measured, infinite where it never does."""
    check: Check | None
    is_exact: bool
    """Whether it is softmax attention with as many parameters as exact attention's model: then the
    two compute the same function."""
    shortcuts_beaten: Literal["all", "some", "none"] | None
    """On how many tasks it is surely more accurate than the best shortcut; None where there is no
    shortcut, and for the controls, which are shortcuts."""


class Leaderboard(msgspec.Struct, frozen=True, dict=True):
    """All mechanisms of a report, and the front."""

    scores: Accuracies | None
    mode: Mode
    """Training steps, or forward passes where no training step was timed."""
    setting: CostSetting | None
    """Setting of the calls whose costs are shown."""
    length: int | None
    decoding: CostSetting | None
    decoded: int | None
    """Length of the context before the timed decoding step."""
    entries: tuple[Entry, ...]
    front: frozenset[Key]

    def name(self, one: Entry) -> str:
        """Return the mechanism, with its settings where the board has several rows of it."""
        alone = self._rows[one.key.origin, one.key.mechanism] == 1
        return one.key.name if alone else one.key.label

    @cached_property
    def _rows(self) -> Counter[tuple[str, str]]:
        return Counter((one.key.origin, one.key.mechanism) for one in self.entries)


def leaderboard(
    analysis: Analysis, scores: Accuracies | None = None, length: int | None = None
) -> Leaderboard:
    """Return the leaderboard of a report: by its main accuracies, or by `scores`, and by costs at a
    length, by default the longest that most mechanisms reached."""
    mode: Mode = "train"
    main, longest = main_setting(analysis, mode)
    if main is None:
        mode = "forward"
        main, longest = main_setting(analysis, mode)
    # Boards of other tables and lengths show accuracy and time alone.
    is_main = scores is None and length is None
    scores, length = scores or analysis.main, length or longest
    decoding, decoded = main_setting(analysis, "decode")
    made = checks(analysis.evidence)
    known, exact = check_of(made), exact_mechanisms(made)
    calls = _Ratios(analysis, main, mode, length)
    steps = _Ratios(analysis, decoding if is_main else None, "decode", decoded)
    memory = PEAK_MEMORY[main.device] if main else ""
    crossing = _crossings(analysis, main, mode) if is_main else {}
    timed = _keys(analysis, None, main or decoding, length if main else decoded)
    keys = timed if scores is None else _keys(analysis, scores, None, None)
    if is_main and scores is not None:
        trained = {key.mechanism for key in keys}
        keys += [key for key in timed if key.mechanism not in trained and key.is_ours]
    means = _scores(scores)
    beaten = _shortcuts_beaten(analysis, scores)
    resized = _resized(scores)
    entries = tuple(
        Entry(
            key=key,
            score=means.get((key.origin, key.variant)),
            time=calls.of(key, "latency"),
            memory=calls.of(key, memory),
            decode=steps.of(key, "latency"),
            state=steps.of(key, "state_bytes"),
            pays_from=crossing.get(key.variant) or crossing.get(key.mechanism),
            check=known.get(key.mechanism),
            is_exact=key.mechanism in exact and (key.origin, key.variant) not in resized,
            shortcuts_beaten=beaten.get((key.origin, key.variant)),
        )
        for key in keys
    )
    return Leaderboard(
        scores=scores,
        mode=mode,
        setting=main,
        length=length,
        decoding=decoding,
        decoded=decoded,
        entries=entries,
        front=front(entries, scores),
    )


def front(entries: Iterable[Entry], scores: Accuracies | None) -> frozenset[Key]:
    """Return the front of accuracy and time: a mechanism is on it unless another is surely better
    in one of the two and not surely worse in the other. Never on it are the controls, mechanisms
    that beat no shortcut on any task, and times of a busy machine."""
    placed = [
        one
        for one in entries
        if one.time
        and one.score
        and one.key.mechanism not in CONTROLS
        and one.shortcuts_beaten != "none"
        and not (one.time.disturbed or _is_nan(one.score))
    ]
    order = _AccuracyOrder(scores)

    def beats(one: Entry, other: Entry) -> bool:
        assert one.time and other.time, "only what is placed is compared"
        if one.is_exact and other.is_exact:
            return one.time.value < other.time.value
        if one.time.is_below(other.time):
            return not order.better(other, one)
        return not other.time.is_below(one.time) and order.better(one, other)

    return frozenset(one.key for one in placed if not any(beats(other, one) for other in placed))


class _AccuracyOrder:
    """Accuracies of one table, to tell whether two mechanisms differ."""

    def __init__(self, scores: Accuracies | None) -> None:
        self._seeds: dict[tuple[str, str], dict[str, dict[int, float]]] = defaultdict(dict)
        self._rows: dict[str, int] = {}
        if scores is not None:
            own = scores.averaged or scores.columns
            self._rows = {column.protocol: column.rows.test for column in own}
            pooled = scores.pooled[scores.pooled["n"] > 0]
            names = [pooled[name].tolist() for name in ("origin", "variant", "protocol", "seeds")]
            for origin, variant, protocol, seeds in zip(*names, strict=True):
                if protocol in self._rows:
                    self._seeds[origin, variant][protocol] = seeds

    def better(self, one: Entry, other: Entry) -> bool:
        """Return whether one mechanism is surely more accurate than another.

        By pairs of seeds where both have several; else by sampling of the test rows alone, the
        smallest noise between two trainings.
        """
        mine, theirs = (self._seeds[side.key.origin, side.key.variant] for side in (one, other))
        if mine.keys() != theirs.keys() or not mine:
            return False
        if all(len(own) > 1 for side in (mine, theirs) for own in side.values()):
            found = paired_difference(mine, theirs, 1 / min(self._rows.values()))
            if found is not None and found.low is not None:
                return found.low > 0
        difference = variance = 0.0
        for protocol in mine:
            means = [sum(own.values()) / len(own) for own in (mine[protocol], theirs[protocol])]
            difference += (means[0] - means[1]) / len(mine)
            spread = sum(p * (1.0 - p) for p in means) / self._rows[protocol]
            variance += spread / len(mine) ** 2
        return difference > _SURE * math.sqrt(variance)


def main_setting(analysis: Analysis, mode: str) -> tuple[CostSetting | None, int | None]:
    """Return the first setting with calls of a mode, and the longest among the lengths at which
    most mechanisms have a time there."""
    pooled = analysis.costs.pooled
    timed = pooled[(pooled["mode"] == mode) & (pooled["metric"] == "latency")]
    timed = timed[timed["value"].notna()]
    for setting in analysis.costs.settings:
        own = timed[timed["setting"] == setting.id]
        if not own.empty:
            numbers = own.groupby("length")["variant"].nunique()
            return setting, int(max(numbers.index, key=lambda n: (numbers[n], n)))
    return None, None


class _Ratios:
    """Ratios to exact attention in one mode at one length, the run's own before others."""

    def __init__(
        self, analysis: Analysis, setting: CostSetting | None, mode: str, length: int | None
    ) -> None:
        pooled = analysis.costs.pooled
        alike = [] if setting is None else [setting, *_elsewhere(analysis, setting)]
        order = {one.id: place for place, one in enumerate(alike)}
        own = pooled[
            pooled["setting"].isin(list(order))
            & (pooled["mode"] == mode)
            & (pooled["length"] == (length or 0))
            & pooled["ratio"].notna()
        ]
        tried = pooled.groupby(["setting", "variant"])["length"].size()
        pairs = zip(own["setting"], own["variant"], strict=True)
        own = own.assign(place=own["setting"].map(order), tried=[-tried[pair] for pair in pairs])
        # Sorted backwards: "run" before "reference".
        keys, up = ["place", "origin", "tried", "variant"], [True, False, True, True]
        self._found: dict[tuple[str, str], Ratio] = {}
        for row in typed(own.sort_values(keys, ascending=up), _Row):
            # A busy machine sways times, and no bytes.
            is_disturbed = row.ratio_disturbed and row.metric == "latency"
            ratio = Ratio(row.ratio, row.ratio_spread, is_disturbed, row.place > 0)
            self._found.setdefault((row.metric, row.variant), ratio)
            ratio = msgspec.structs.replace(ratio, other_settings=True)
            self._found.setdefault((row.metric, row.mechanism), ratio)

    def of(self, key: Key, metric: str) -> Ratio | None:
        """Return a mechanism's ratio: with its own settings, else with those that it was timed with
        at most lengths; from the run, else from the reference."""
        own = self._found.get((metric, key.variant))
        return own or self._found.get((metric, key.mechanism))


class _Row(msgspec.Struct, frozen=True):
    metric: str
    variant: str
    mechanism: str
    ratio: float
    ratio_spread: float
    ratio_disturbed: bool
    place: int


def _elsewhere(analysis: Analysis, setting: CostSetting) -> list[CostSetting]:
    """Settings of the same calls on other machines, builds or versions of the measuring code."""
    here = _called(setting)
    return [one for one in analysis.costs.settings if one.id != setting.id and _called(one) == here]


def _called(one: CostSetting) -> CostSetting:
    anywhere = Machine(processor="", cores=1)
    return msgspec.structs.replace(one, machine=anywhere, threads=1, torch="", version=())


def _crossings(analysis: Analysis, setting: CostSetting | None, mode: Mode) -> dict[str, Value]:
    """Lengths from which a call takes less time, by variant and by mechanism; the run's first."""
    found: dict[str, Value] = {}
    for one in [] if setting is None else [setting, *_elsewhere(analysis, setting)]:
        rows = crossovers(analysis.costs, one.id)
        rows = rows[(rows["kind"] == "time") & (rows["mode"] == mode)]
        rows = rows.assign(tried=rows["lengths"].map(len))
        order = ["origin", "tried", "variant"]
        for _, row in rows.sort_values(order, ascending=[False, False, True]).iterrows():
            if row["found"] is None and not row["lost"]:
                # Exact attention was not measured at the same lengths.
                continue
            for name in (row["variant"], row["mechanism"]):
                found.setdefault(name, crossover_value(row))
    return found


def _keys(
    analysis: Analysis, scores: Accuracies | None, setting: CostSetting | None, length: int | None
) -> list[Key]:
    """Rows of the accuracies; without any those of the costs."""
    figures = analysis.evidence.figures
    if scores is not None:
        protocols = [column.protocol for column in scores.columns]
        own = figures[(figures["metric"] == scores.metric) & figures["protocol"].isin(protocols)]
        return row_keys(own)
    costs = analysis.costs.figures
    id = setting.id if setting else ""
    return row_keys(costs[(costs["setting"] == id) & (costs["length"] == (length or 0))])


def _scores(scores: Accuracies | None) -> dict[tuple[str, str], Score]:
    """Mean over tasks by row; where there is none, score on the only task."""
    if scores is None:
        return {}
    if scores.averaged:
        table = scores.means
    elif len(scores.columns) == 1:
        table = scores.pooled
    else:
        return {}
    return {(one.origin, one.variant): one for one in typed(table, Score)}


def _resized(scores: Accuracies | None) -> set[tuple[str, str]]:
    """Rows whose models have another number of parameters than exact attention's."""
    if scores is None:
        return set()
    pooled = scores.pooled[scores.pooled["parameters"].notna()]
    exact = pooled[pooled["mechanism"] == EXACT].set_index("protocol")["parameters"].to_dict()
    usual = pooled["protocol"].map(exact).astype(float)
    other = pooled[usual.notna() & (pooled["parameters"] != usual)]
    return set(zip(other["origin"], other["variant"], strict=True))


def _shortcuts_beaten(
    analysis: Analysis, scores: Accuracies | None
) -> dict[tuple[str, str], Literal["all", "some", "none"]]:
    """On how many of the tasks that its accuracy is of a row is surely above the best shortcut."""
    if scores is None:
        return {}
    columns = scores.averaged or scores.columns
    best = {c.protocol: shortcut(analysis.evidence, scores, c) for c in columns}
    known = [protocol for protocol, one in best.items() if one is not None]
    own = scores.pooled[scores.pooled["mean"].notna() & scores.pooled["protocol"].isin(known)]
    own = own[~own["mechanism"].isin(CONTROLS)]
    tasks = Counter(zip(own["origin"], own["variant"], strict=True))
    fails = Counter((origin, variant) for origin, variant, _ in unbeaten(scores, best))
    return {
        row: "none" if fails[row] == number else "some" if fails[row] else "all"
        for row, number in tasks.items()
    }


def _is_nan(score: Score) -> bool:
    return math.isnan(score.mean)
