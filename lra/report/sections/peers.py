"""Public implementations and ours, measured in the same rounds, with the goal for ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from lra.core.catalogue import EXACT, NO_MIXING
from lra.core.peers import Peer
from lra.report.analysis import Analysis
from lra.report.costs import Costs
from lra.report.load.frame import PEAK_MEMORY
from lra.report.load.settings import CostSetting
from lra.report.model import Row, Section, Table, Value
from lra.report.pairs import Pair, Process, pairs_of, processes, rounds_of
from lra.report.rows import missing
from lra.report.sections.cost_table import CALLS
from lra.report.sweeps import MODES
from lra.report.words import NO_VALUE, TIMES, apart, count, figures
from lra.verdict.peer_ratio import (
    BAR,
    ROOM,
    SHARE,
    RatioAboveFloor,
    Verdict,
    memory_verdict,
    ratio_above_floor,
    time_verdict,
)
from lra.verdict.ratio import Ratio, ratio

TOPIC = "Public implementations"
_OTHERS = {"misses": "missed by", "undecided": "undecided for", "not judged": "not judged for"}
"""Words for places that do not meet the goal, as in the summary."""


class Place(msgspec.Struct, frozen=True):
    """One cost of one pair at one length."""

    whole: Ratio | None
    above: RatioAboveFloor | None
    """Ratio with the floor taken off both."""
    verdict: Verdict | None
    against: tuple[str, ...]
    """Reasons why it is not judged."""
    left_out: int
    """Number of rounds that were disturbed or ran apart."""
    endings: tuple[tuple[str, str, str], ...]

    @property
    def word(self) -> str:
        """Outcome by the goal; empty without a figure."""
        if self.verdict is None:
            return ""
        return "not judged" if self.against else self.verdict.word


class PeerComparison(msgspec.Struct, frozen=True):
    """All pairs of one setting and mode."""

    setting: CostSetting
    mode: str
    pairs: tuple[Pair, ...]
    times: dict[tuple[int, int], Place]
    """Places by number of the pair and length."""
    sizes: dict[tuple[int, int], Place]


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting with a peer and its counterpart."""
    found: dict[CostSetting, list[PeerComparison]] = {}
    for one in analyse(analysis):
        found.setdefault(one.setting, []).append(one)
    names = apart([setting.parts for setting in found])
    sections = [present(own, name) for own, name in zip(found.values(), names, strict=True)]
    if sections:
        peers = {
            p.theirs[0].mechanism: p.peer for own in found.values() for b in own for p in b.pairs
        }
        first = sections[0]
        tables = (*first.tables, *_notes(peers))
        sections[0] = msgspec.structs.replace(first, text=(_goal(), *first.text), tables=tables)
    return sections


def analyse(analysis: Analysis) -> list[PeerComparison]:
    """Return the pairs of the run by setting and mode."""
    costs, found = analysis.costs, []
    run = costs.figures[costs.figures["origin"] == "run"]
    for setting in costs.settings:
        own = run[run["setting"] == setting.id]
        for mode in MODES:
            figures = processes(own[own["mode"] == mode])
            pairs = pairs_of(figures)
            if pairs:
                memory = PEAK_MEMORY[setting.device]
                where = [(n, length) for n, pair in enumerate(pairs) for length in pair.lengths]
                times = {(n, m): _place(pairs[n], m, figures, "latency") for n, m in where}
                sizes = {(n, m): _place(pairs[n], m, figures, memory) for n, m in where}
                found.append(PeerComparison(setting, mode, tuple(pairs), times, sizes))
    return found


def compared(costs: Costs) -> dict[tuple[str, str], frozenset[str]]:
    """Return the variants of public packages that have their counterpart, by setting and mode."""
    run = costs.figures[costs.figures["origin"] == "run"]
    return {
        (str(setting), str(mode)): frozenset(
            pair.theirs[0].variant for pair in pairs_of(processes(own))
        )
        for (setting, mode), own in run.groupby(["setting", "mode"])
    }


def _place(pair: Pair, length: int, figures: Sequence[Process], metric: str) -> Place:
    timed = metric == "latency"
    rounds = rounds_of(pair, length, figures, metric, timed=timed)
    ours, theirs, floor = rounds.ours, rounds.theirs, rounds.floor
    if timed:
        bar = 1.0 if pair.peer.lighter else BAR
        verdict = time_verdict(ours, theirs, floor, rounds.exact, bar=bar)
    else:
        verdict = memory_verdict(ours, theirs, floor)
    lost = [
        (one.status, one.failure, one.reason)
        for one in (*pair.ours, *pair.theirs)
        if one.length == length and one.metric == metric and not one.known
    ]
    return Place(
        whole=ratio(ours, theirs),
        above=ratio_above_floor(ours, theirs, floor) if timed else None,
        verdict=verdict,
        against=pair.unlike or pair.burdens(length) or _unfair(verdict, pair.peer),
        left_out=rounds.disturbed + rounds.torn,
        endings=tuple(sorted(set(lost))),
    )


def _unfair(found: Verdict | None, peer: Peer) -> tuple[str, ...]:
    """Words for the work of theirs, more or less whatever the settings, that the verdict may come
    from."""
    if found is not None and found.word == "meets" and peer.more:
        return (f"theirs {peer.more}",)
    if found is not None and found.word == "misses" and peer.less:
        return (f"theirs {peer.less}",)
    return ()


def present(own: Sequence[PeerComparison], name: str) -> Section:
    """Return the tables of a setting: times and memory by length, for each mode."""
    return Section(
        topic=TOPIC,
        level="appendix",
        setting=name or ", ".join(own[0].setting.parts),
        text=tuple(
            text
            for kind, of in (("time", "times"), ("memory", "sizes"))
            if (text := summary([p for one in own for p in getattr(one, of).values()], kind))
        ),
        tables=tuple(map(_table, own)),
    )


def summary(places: Sequence[Place], kind: str) -> str:
    """Return a sentence on how many places meet the goal: `Goal for time: met by 3 of 6, missed by
    1.`"""
    words = Counter(place.word for place in places if place.word)
    if not words:
        return ""
    others = [f"{text} {words[word]}" for word, text in _OTHERS.items() if words[word]]
    met = f"met by {words['meets']} of {words.total()}"
    return f"Goal for {kind}: {', '.join([met, *others])}."


def _table(one: PeerComparison) -> Table:
    costs = (("time", one.times), ("memory", one.sizes))
    asked = [
        (kind, places, length)
        for kind, places in costs
        for length in sorted({length for _, length in places})
    ]
    rows = [
        Row(
            f"{pair.ours[0].label} / {pair.theirs[0].label}",
            tuple(_value(places.get((number, n)), kind) for kind, places, n in asked),
            pair.ours[0].mechanism,
            pair.ours[0].variant,
        )
        for number, pair in enumerate(one.pairs)
    ]
    reasons = [
        f"{pair.ours[0].label} / {pair.theirs[0].label}: {why}"
        for number, pair in enumerate(one.pairs)
        for why in dict.fromkeys(
            why
            for _, places in costs
            for (n, _), place in places.items()
            if n == number
            for why in place.against
        )
    ]
    return Table(
        id=f"peers-{one.mode}-{one.setting.id}",
        title=f"Costs of ours over those of theirs: {CALLS[one.mode]}",
        caption="",
        corner="ours / theirs",
        columns=tuple(f"{kind}, {length:,}" for kind, _, length in asked),
        rows=tuple(rows),
        legend=(
            f"By length, paired by round; net: both less {NO_MIXING}.",
            *([f"Not judged: {'; '.join(reasons)}."] if reasons else []),
        ),
    )


def _value(place: Place | None, kind: str) -> Value:
    if place is None:
        return Value("")
    left_out = f"{count(place.left_out, 'round')} left out" if place.left_out else ""
    if place.whole is None:
        word = missing(place.endings).text if place.endings else NO_VALUE
        return Value(word, left_out)
    value = place.whole.value
    if kind == "memory":
        return Value(figures(value, most=2), place.word, value)
    notes = [_above(place.above), place.word, left_out]
    return Value(_ratio(place.whole), ", ".join(filter(None, notes)), value)


def _above(found: RatioAboveFloor | None) -> str:
    if found is None:
        return ""
    return "at the floor" if found.ratio is None else f"net {_ratio(found.ratio)}"


def _ratio(found: Ratio) -> str:
    """Ratio with as many digits as its interval supports."""
    if found.low is None or found.high is None:
        return figures(found.value, most=2)
    return figures(found.value, found.high - found.low)


def _goal() -> str:
    return (
        f"Goal for time: at most {BAR:g} {TIMES} theirs, both less {NO_MIXING}, where theirs takes "
        f"{SHARE:g} {TIMES} {EXACT}'s time above {NO_MIXING} or more (1 {TIMES} where theirs has "
        f"less to compute); else at most theirs. For memory: at most theirs, or within "
        f"{100 * ROOM:g} % of {NO_MIXING}'s."
    )


def _notes(peers: dict[str, Peer]) -> list[Table]:
    """Notes on how each public implementation differs, where it does."""
    rows = [Row(name, (Value(peer.note),)) for name, peer in sorted(peers.items()) if peer.note]
    if not rows:
        return []
    return [
        Table(
            id="peer-differences",
            title="Differences of public implementations",
            caption="",
            corner="theirs",
            columns=("does otherwise",),
            rows=tuple(rows),
            numeric=False,
        )
    ]
