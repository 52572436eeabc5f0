"""Our mechanisms beside public implementations of them, measured in the same rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

from lra.core.peers import Peer
from lra.report.costs.disturbed import SIGNS
from lra.report.costs.tables import EfficiencyTables, call_words
from lra.report.entries import PEAK_MEMORY, Busy, Entry
from lra.report.others.pairs import Pair, Rounds, pairs_of, rounds_of, why_not
from lra.report.rows import EXACT, NO_MIXING, SPLIT_ROUNDS
from lra.report.table import Cell, Row, Section, Table, sorted_groups
from lra.report.words import NO_VALUE, TIMES, apart, between, count, figures, numbered, scale_of
from lra.verdict.peer_ratio import (
    BAR,
    CLOSE,
    ROOM,
    SHARE,
    RatioAboveFloor,
    Verdict,
    memory_verdict,
    ratio_above_floor,
    time_verdict,
)
from lra.verdict.ratio import Ratio, ratio

_OTHERS = {"misses": "missed by", "undecided": "undecided for", "not judged": "not judged for"}
"""Words of rows that do not meet the goal, as the summary has them."""


def beside_sections(tables: Iterable[EfficiencyTables], busy: Busy) -> list[Section]:
    """Return a section for each setting in which a peer was measured beside its counterpart."""
    found = []
    for one in tables:
        own = [e for e in one.entries if e.origin == "run"]
        made = [
            (mode, pairs, entries)
            for (mode,), entries in sorted_groups(own, lambda e: (e.mode,))
            if (pairs := pairs_of(entries))
        ]
        if made:
            found.append((one, made))
    sections = []
    endings = numbered(apart([one.parts for one, _ in found]))
    for number, ((one, made), (place, which)) in enumerate(zip(found, endings, strict=True), 1):
        tables_here = tuple(
            _table(f"beside-{mode}-{number}", str(mode), pairs, entries, busy)
            for mode, pairs, entries in made
        )
        sections.append(
            Section(
                f"beside{place}",
                f"Ours beside public implementations{which}",
                (one.setting, *_summary(tables_here)),
                tables_here,
            )
        )
    return sections


def _table(
    id: str, mode: str, pairs: Sequence[Pair], entries: Sequence[Entry], busy: Busy
) -> Table:
    memory = PEAK_MEMORY[entries[0].device]
    sizes = [e.value for p in pairs for e in (*p.ours, *p.theirs) if e.metric == memory and e.value]
    size, symbol = scale_of(sizes, "B")
    rows = [
        _row(pair, length, entries, memory, size, busy)
        for pair in pairs
        for length in sorted({e.length for e in pair.ours} & {e.length for e in pair.theirs})
    ]
    return Table(
        id=id,
        title=f"Ours over theirs: {call_words(mode)}",
        caption="Time of ours over that of theirs, paired by round, with Student's interval of "
        f"95 %; then both less {NO_MIXING}, the floor that both stand on.",
        corner="ours and theirs",
        columns=(
            "length",
            "time",
            "time above the floor",
            "goal, time",
            f"memory in {symbol}: ours, theirs, floor",
            "goal, memory",
        ),
        rows=tuple(rows),
        notes=_notes(pairs),
        numeric=False,
    )


def _row(
    pair: Pair, length: int, entries: Sequence[Entry], memory: str, size: float, busy: Busy
) -> Row:
    timed = rounds_of(pair, length, entries, "latency", busy)
    sized = rounds_of(pair, length, entries, memory, None)
    whole, over = (
        ratio(timed.ours, timed.theirs),
        ratio_above_floor(timed.ours, timed.theirs, timed.floor),
    )
    bar = 1.0 if pair.peer.lighter else BAR
    fast = time_verdict(timed.ours, timed.theirs, timed.floor, timed.exact, bar=bar)
    small = memory_verdict(sized.ours, sized.theirs, sized.floor)
    ours, theirs = pair.ours[0], pair.theirs[0]
    apart = pair.unlike or pair.burdens(length)
    return Row(
        label=f"{ours.label} / {theirs.label}",
        cells=(
            Cell(str(length)),
            _whole(whole, timed, lambda: why_not(pair, length, "latency")),
            _over(over, floored=timed.floored),
            _judged(fast, apart or _unfair(fast, pair.peer)),
            _sizes(sized, size, lambda: why_not(pair, length, memory)),
            _judged(small, apart or _unfair(small, pair.peer)),
        ),
        mechanism=ours.mechanism,
        variant=ours.label,
    )


def _unfair(found: Verdict | None, peer: Peer) -> list[str]:
    """What theirs does more or less whatever is set, where the verdict may come from that."""
    if found is not None and found.word == "meets" and peer.more:
        return [f"theirs {peer.more}"]
    if found is not None and found.word == "misses" and peer.less:
        return [f"theirs {peer.less}"]
    return []


def _whole(found: Ratio | None, rounds: Rounds, why: Callable[[], str]) -> Cell:
    left = ((rounds.disturbed, "disturbed round"), (rounds.torn, "split round"))
    gone = [f"{count(n, what)} left out" for n, what in left if n]
    if found is None:
        return Cell(NO_VALUE, "; ".join(gone or [why()]))
    text, bounds = _ratio(found)
    note = "; ".join([*bounds, count(found.pairs, "round"), *gone])
    return Cell(text, note, found.value, ratio=found.value)


def _over(found: RatioAboveFloor | None, *, floored: bool) -> Cell:
    if found is None:
        return Cell(NO_VALUE, "" if floored else f"{NO_MIXING} not measured beside")
    if found.ratio is None:
        where = (("ours", found.ours_at_floor), ("theirs", found.theirs_at_floor))
        said = [f"{who} in {n} of {count(found.rounds, 'round')}" for who, n in where if n]
        return Cell("at the floor", "; ".join(said))
    text, bounds = _ratio(found.ratio)
    return Cell(text, "; ".join(bounds), found.value, ratio=found.value)


def _ratio(found: Ratio) -> tuple[str, list[str]]:
    """The ratio with as many digits as its interval supports, and the interval if there is one."""
    if found.low is None or found.high is None:
        return f"{figures(found.value, most=2)} {TIMES}", []
    value = figures(found.value, found.high - found.low)
    return f"{value} {TIMES}", [between(found.low, found.high)]


def _sizes(found: Rounds, size: float, why: Callable[[], str]) -> Cell:
    beside = ratio(found.ours, found.theirs)
    if beside is None:
        return Cell(NO_VALUE, why())
    three = [found.ours, found.theirs, found.floor]
    texts = [figures(median(own.values()) / size) if own else NO_VALUE for own in three]
    note = f"ours over theirs {figures(beside.value, most=2)} {TIMES}"
    return Cell(", ".join(texts), note, median(found.ours.values()), ratio=beside.value)


def _judged(found: Verdict | None, unlike: Sequence[str]) -> Cell:
    if found is None:
        return Cell(NO_VALUE)
    if unlike:
        return Cell("not judged", "; ".join(unlike))
    return Cell(found.word, found.bar)


def _summary(tables: Sequence[Table]) -> list[str]:
    """`Goal for time: met by 3 of 6, missed by 1, undecided for 2.`"""
    said = []
    for what in ("time", "memory"):
        words: Counter[str] = Counter()
        for table in tables:
            place = table.columns.index(f"goal, {what}")
            words.update(row.cells[place].text for row in table.rows)
        total = words.total() - words[NO_VALUE]
        if total:
            others = [f"{told} {words[word]}" for word, told in _OTHERS.items() if words[word]]
            met = f"met by {words['meets']} of {total}"
            said.append(f"Goal for {what}: {', '.join([met, *others])}.")
    return said


def _notes(pairs: Sequence[Pair]) -> tuple[str, ...]:
    both = {p.theirs[0].mechanism: p.peer for p in pairs}
    alike: Mapping[tuple[str, str], tuple[str, ...]] = {
        (p.ours[0].label, p.theirs[0].label): p.alike for p in pairs if p.alike
    }
    return (
        f"Goal for time: where theirs takes at least {SHARE:g} {TIMES} {EXACT}'s time more than "
        f"{NO_MIXING}, ours (less {NO_MIXING}) must take at most {BAR:g} {TIMES} theirs (less "
        f"{NO_MIXING}), or 1 {TIMES} where theirs has less to compute; elsewhere ours must take "
        f"at most theirs, both whole. For memory: at most theirs, or within {100 * ROOM:g} % of "
        f"{NO_MIXING}'s.",
        f"Undecided: within {CLOSE:g} of a bar (but of those {100 * ROOM:g} %), with a bar inside "
        "of the interval, or of one round (--replicates gives more).",
        f"At the floor: in some round it cost no more than {NO_MIXING}. Disturbed: in one "
        f"of the processes, {SIGNS}. {SPLIT_ROUNDS}",
        *(f"{ours} and {theirs}: {'; '.join(said)}." for (ours, theirs), said in alike.items()),
        *(f"{name}: {peer.note}." for name, peer in sorted(both.items()) if peer.note),
    )
