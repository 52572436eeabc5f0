"""LRA's Table 2 with figures of one's own: speed and memory of a training step of its text model,
beside what it published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lra.core import published
from lra.core.published import Efficiency, Figure
from lra.report.costs.disturbed import SIGNS
from lra.report.costs.place import Cost, costs
from lra.report.costs.tables import EfficiencyTables
from lra.report.entries import PEAK_MEMORY, Busy, Entry
from lra.report.rows import (
    EXACT,
    SPLIT_ROUNDS,
    RowKey,
    anchor_note,
    by_length,
    is_unfused,
    reference_notes,
    row,
    shown,
    torn,
)
from lra.report.table import Cell, Section, Table
from lra.report.words import (
    NO_VALUE,
    NOT_RUN,
    TIMES,
    apart,
    between,
    count,
    figures,
    listing,
    numbered,
    scale_of,
)
from lra.verdict.ratio import Ratio, ratio

_TASK, _SCALE = "text", "paper"
_STEP = (
    "Its hardware and framework are others; not stated there are the size of the "
    "model, warm-up, how many steps were timed, and whether reading data counts. Here a step is "
    "loss, gradients and AdamW on random bytes, and mechanisms have their papers' settings where "
    "the run gave them no others: not those of its code (blocks of 50, rank 16, features without "
    "draws), of which several were not the published mechanism."
)
_FUSED = f"Its Transformer was unfused; here it is {EXACT}, fused: faster, and with less memory."
_UNFUSED = f"Its Transformer was unfused; so is {EXACT} here, on a CPU with dropout on its weights."
_DEVICE = (
    "Its memory is the peak of one device, with one or two of the 32 examples (16 chips of two "
    "cores each; which of the two a device is, and how memory was taken, is not stated); here it "
    "is what a step takes for the whole batch above what is held before, such as parameters: "
    "resident size on a CPU, live tensors on a GPU."
)


def table2_sections(tables: Iterable[EfficiencyTables], busy: Busy) -> list[Section]:
    """Return a section for each setting in which the text model's step was timed at LRA's lengths;
    none where there is none."""
    paper = published.efficiency("lra_table2")
    found = []
    for one in tables:
        own = [e for e in one.entries if _belongs(e, paper)]
        if any(e.origin == "run" for e in own):
            found.append((one, own))
    sections = []
    endings = numbered(apart([one.parts for one, _ in found]))
    for number, ((one, own), (place, which)) in enumerate(zip(found, endings, strict=True), 1):
        sections.append(
            Section(
                f"table-2{place}",
                f"LRA's Table 2{which}",
                (
                    f"Here: {one.setting} Scale {own[0].scale}.",
                    f"There: {paper.source}: {paper.protocol}.",
                    _STEP,
                    _UNFUSED if any(map(is_unfused, own)) else _FUSED,
                    _DEVICE,
                ),
                (_speed(number, own, paper, busy), _memory(number, own, paper)),
            )
        )
    return sections


def _belongs(e: Entry, paper: Efficiency) -> bool:
    asked = (e.scale, e.level, e.mode, e.task, e.direction)
    found = asked == (_SCALE, "model", "train", _TASK, "bidirectional")
    return found and e.length in paper.lengths


def _speed(
    number: int,
    group: Sequence[Entry],
    paper: Efficiency,
    busy: Busy,
) -> Table:
    entries = [e for e in group if e.metric == "latency"]
    rows, known, lengths = shown(entries), costs(entries, busy), _lengths(entries)
    base = {key[0]: own for key, own in reversed(rows.items()) if own[0].mechanism == paper.exact}
    ratios = {
        (key, n): _against(own, base.get(key[0], []), n)
        for key, own in rows.items()
        if own[0].mechanism != paper.exact
        for n in lengths
    }

    def cell(key: RowKey, own: Sequence[Entry], length: int) -> Cell:
        cost, said = known.at(key, length), _published(paper, own[0].mechanism, length, "steps")
        if own[0].mechanism == paper.exact:
            return _exact_cell(cost, said)
        found, lost = ratios[key, length]
        left_out = f"{count(lost, 'split round')} left out" if lost else ""
        return _speed_cell(cost, known.exact(key[0], length), found, _joined(left_out, said))

    several = any(len(found) > 1 for own in base.values() for found in by_length(own).values())
    return Table(
        id=f"table-2-speed-{number}",
        title=f"Training steps a second, over those of {EXACT}",
        caption=f"More is faster. Measured here against {EXACT} measured here; then what LRA "
        "published against its own Transformer.",
        corner="mechanism",
        columns=tuple(str(n) for n in lengths),
        rows=tuple(row(own, [cell(key, own, n) for n in lengths]) for key, own in rows.items()),
        notes=(
            *(["After a ratio of several replicates: its Student's interval of 95 %."] * several),
            *(
                [f"!: the machine was busy, {SIGNS}."]
                if any(cost.disturbed for cost in known.by_place.values())
                else []
            ),
            *([SPLIT_ROUNDS] if any(lost for _, lost in ratios.values()) else []),
            *_suspects(paper, rows.values(), lengths, "steps"),
            *_unknown(paper, rows.values()),
            anchor_note(entries),
            *reference_notes(rows),
        ),
    )


def _against(own: Sequence[Entry], exact: Sequence[Entry], length: int) -> tuple[Ratio | None, int]:
    """The speed of one row at a length over that of exact attention, paired by round, and how many
    rounds are left out, as their processes ran at different times."""
    here, there = ([e for e in side if e.length == length] for side in (own, exact))
    mine, beside = (by_length(side).get(length, {}) for side in (here, there))
    gone = torn(here, there)
    pairs = {r: cost for r, cost in beside.items() if r not in gone}
    return ratio(pairs, mine), len(gone & mine.keys() & beside.keys())


def _exact_cell(cost: Cost, said: str) -> Cell:
    """The speed of exact attention itself, and LRA's."""
    if cost.value is None:
        return Cell(cost.word, said)
    speed = ("!" if cost.disturbed else "") + figures(1 / cost.value, cost.spread / cost.value**2)
    return Cell(f"1 {TIMES}", _joined(f"{speed} steps a second", said), 1.0, ratio=1.0)


def _speed_cell(cost: Cost, exact: Cost, found: Ratio | None, said: str) -> Cell:
    """The ratio with its interval, and LRA's below."""
    if cost.value is None:
        return Cell(cost.word, said)
    if found is None or exact.value is None:
        return Cell(NO_VALUE, said)
    spread, bounds = found.value * (cost.spread / cost.value + exact.spread / exact.value), ""
    if found.low is not None and found.high is not None:
        spread, bounds = found.high - found.low, between(found.low, found.high)
    return Cell(
        f"{figures(found.value, spread)} {TIMES}",
        _joined(bounds, said),
        found.value,
        spread,
        found.value,
        busy=cost.disturbed or exact.disturbed,
    )


def _memory(number: int, group: Sequence[Entry], paper: Efficiency) -> Table:
    entries = [e for e in group if e.metric == PEAK_MEMORY[e.device]]
    rows, known, lengths = shown(entries), costs(entries), _lengths(entries)
    size, symbol = scale_of(known.known(), "B")

    def cell(key: RowKey, own: Sequence[Entry], length: int) -> Cell:
        cost, exact = known.at(key, length), known.exact(key[0], length)
        said = _published(paper, own[0].mechanism, length, "gigabytes")
        if cost.value is None:
            return Cell(cost.word, said)
        times = cost.value / exact.value if exact.value else None
        beside = f"{figures(times, most=2)} {TIMES}" if times is not None else ""
        text = figures(cost.value / size, cost.spread / size)
        return Cell(text, _joined(beside, said), cost.value, cost.spread, times)

    return Table(
        id=f"table-2-memory-{number}",
        title=f"Peak memory of a training step, in {symbol}",
        caption=f"Measured here, with its ratio to {EXACT} here; then what LRA published, in GB "
        "of one device, with its ratio to its own Transformer.",
        corner="mechanism",
        columns=tuple(str(n) for n in lengths),
        rows=tuple(row(own, [cell(key, own, n) for n in lengths]) for key, own in rows.items()),
        notes=(
            *_suspects(paper, rows.values(), lengths, "gigabytes"),
            *reference_notes(rows),
        ),
    )


def _published(paper: Efficiency, mechanism: str, length: int, figure: Figure) -> str:
    """`LRA 1.7 x`, `LRA 0.42 GB, 0.49 x`; a figure that may be a slip is marked."""
    if mechanism not in paper.rows:
        return ""
    own, base, place = paper.rows[mechanism], paper.rows[paper.exact], paper.lengths.index(length)
    if figure == "gigabytes":
        share = own.gigabytes[place] / base.gigabytes[place]
        said = f"LRA {own.gigabytes[place]:.2f} GB"
        said += "" if own is base else f", {share:.2f} {TIMES}"
    elif own is base:
        said = f"LRA {own.steps[place]:.1f}"
    else:
        said = f"LRA {own.ratios[place]:.1f} {TIMES}"
    return said + (" (?)" if paper.suspect(mechanism, length, figure) else "")


def _suspects(
    paper: Efficiency, rows: Iterable[Sequence[Entry]], lengths: Sequence[int], figure: Figure
) -> list[str]:
    here = {own[0].mechanism for own in rows}
    said = [
        one.why
        for one in paper.suspects
        if one.figure == figure and one.row in here and one.length in lengths
    ]
    return [f"(?): perhaps a slip in the publication: {listing(said)}."] if said else []


def _unknown(paper: Efficiency, rows: Iterable[Sequence[Entry]]) -> list[str]:
    """Which of LRA's rows were not measured."""
    missing = [n for n in paper.rows if n not in {own[0].mechanism for own in rows}]
    if not missing:
        return []
    return [f"{count(len(missing), 'row')} of LRA's {NOT_RUN} here: {listing(missing)}."]


def _lengths(entries: Iterable[Entry]) -> list[int]:
    return sorted({e.length for e in entries})


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
