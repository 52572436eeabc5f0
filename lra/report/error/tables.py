"""Error tables: how far approximations are from softmax attention, by length and by budget."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from statistics import mean

import msgspec

from lra.report.entries import ERRORS, Entry, Origin
from lra.report.error.scale import Laws, ScaleCurve, scale_curves
from lra.report.mechanisms.configs import in_force, told_apart
from lra.report.rows import EXACT, RowKey, Rows, reference_notes, row, shown
from lra.report.select import Selection
from lra.report.table import Cell, Row, Table, sorted_groups
from lra.report.words import NO_VALUE, TIMES, apart, count, figures, listing, percent, span

ROUNDING = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
"""Relative errors below this are those of a type's digits: what has one is no approximation."""
_NAMED = 3
"""So many mechanisms the answer names, those with the least error, at so many settings of sizes."""


class Curve(msgspec.Struct, frozen=True):
    """The output's error of one mechanism at one length and input scale, over its budgets."""

    mechanism: str
    title: str
    """The mechanism, with settings that are no budget where it has several of them."""
    budget: str
    """The settings that it is the sum of: `features`, `left + right`."""
    points: tuple[tuple[float, float], ...]
    """Budgets and errors, the smallest budget first."""
    rate: float | None
    """The error is declared to fall as budget^-rate; None where nothing is declared."""
    origin: Origin = "run"


class ErrorTables(msgspec.Struct, frozen=True):
    """The tables of one setting of sizes, and what its figure shows."""

    number: int
    section: str
    """What its section is called."""
    setting: str
    """All that the tables share, in a sentence."""
    dtype: str
    tables: dict[float, Table]
    """By input scale."""
    length: int
    """That of the curves, the longest."""
    curves: dict[float, tuple[Curve, ...]]
    """By input scale; of what was measured at two budgets or more."""
    by_scale: tuple[ScaleCurve, ...]
    """At the largest budgets, of what was measured at two input scales or more."""
    own_keys: tuple[str, ...]
    """Mechanisms beside softmax attention over keys of their own: no other's exact result."""


def error_tables(selection: Selection) -> list[ErrorTables]:
    """Return tables per setting of sizes, with one table for each input scale."""
    measured = [e for e in selection.entries if e.kind == "error"]
    laws = {(kept.origin, kept.record.id): kept.record.method for kept in selection.kept}
    groups = [group for _, group in sorted_groups(measured, _key)]
    settings = [_parts(group[0]) for group in groups]
    names = apart(
        [
            # The scale is but the name of the suite's block: it is told where nothing else differs.
            [*own, *([f"scale {group[0].scale}"] if settings.count(own) > 1 else [])]
            for own, group in zip(settings, groups, strict=True)
        ]
    )
    return [
        _tables(number, f"Error: {name}" if name else "Error", group, laws)
        for number, (group, name) in enumerate(zip(groups, names, strict=True), start=1)
    ]


def error_sentences(errors: Sequence[ErrorTables]) -> list[str]:
    """Return which mechanisms of the run come nearest to softmax attention, with which budget."""
    if len(errors) > _NAMED:
        return [f"Errors against exact softmax attention at {len(errors)} settings are in tables."]
    sentences = []
    for one in errors:
        scale = told_scale(one)
        best: dict[str, tuple[float, str, str]] = {}
        for line in one.tables[scale].rows:
            last = line.cells[-1]
            if line.origin != "run" or line.mechanism in one.own_keys:
                continue
            if last.value is not None and last.value > ROUNDING[one.dtype]:
                own = (last.value, line.label, last.text)
                best[line.mechanism] = min(own, best.get(line.mechanism, own))
        if best:
            start = f"{one.section.removeprefix('Error: ')}: r" if len(errors) > 1 else "R"
            sentences.append(
                f"{start}elative error of the output against exact softmax attention at length "
                f"{one.tables[scale].columns[-1]}, inputs {TIMES} {scale:g}: "
                f"{_nearest(sorted(best.values()))}.{_unranked(one)}"
            )
    return sentences


def _nearest(ranked: Sequence[tuple[float, str, str]]) -> str:
    """Which come nearer than an output of zeros, whose error is 1: to be nearest beyond that is no
    merit."""
    named = [f"{label} {text}" for _, label, text in ranked]
    near = sum(error < 1.0 for error, _, _ in ranked)
    if near == len(ranked) <= _NAMED:
        return listing(named)
    if not near and len(ranked) == 1:
        return f"{named[0]}, no nearer than an output of zeros (error 1)"
    which = f"{near or 'none'} of {count(len(ranked), 'approximation')}"
    if near == len(ranked):
        which = f"all {near} approximations"
    verb = "comes" if near < 2 else "come"
    told = f"{which} {verb} nearer than an output of zeros (error 1)"
    if not near:
        return f"{told}; nearest is {named[0]}"
    first = "the nearest are " if near > _NAMED else ""
    return f"{told}: {first}{listing(named[: min(near, _NAMED)])}"


def _unranked(one: ErrorTables) -> str:
    """Which of the run's mechanisms have an exact result of their own, in a sentence."""
    rows = [row for table in one.tables.values() for row in table.rows]
    asked = {row.mechanism for row in rows if row.origin == "run"}
    own = [name for name in one.own_keys if name in asked]
    told = " Not ranked, as measured against an exact result of its own: "
    return f"{told}{listing(own)}." if own else ""


def beside_own(own_keys: Sequence[str], among: Collection[str]) -> list[str]:
    """Return a sentence on each mechanism of some that has an exact result of its own."""
    return [
        f"{name} is compared with softmax attention over its own keys and pairs."
        for name in own_keys
        if name in among
    ]


def told_scale(one: ErrorTables) -> float:
    """Return the input scale that stands for the others: 1, or the smallest."""
    return min(one.tables, key=lambda scale: (scale != 1.0, scale))


def ratio_text(value: float, most: int = 3) -> str:
    """Return a relative error with `most` figures, as a power with one less: `0.123`, `1.3e-07`."""
    if 0 < value < 1e-3 or value >= 1e4:
        return f"{value:.{most - 2}e}"
    return figures(value, most=most)


def _key(e: Entry) -> tuple[object, ...]:
    return (e.scale, e.direction, e.batch, e.heads, e.head_width, e.dtype, e.device)


def _parts(first: Entry) -> list[str]:
    """What a setting is made of, in words."""
    heads = f"{count(first.heads or 0, 'head')} of width {first.head_width}"
    return [first.direction, f"batch {first.batch}", heads, f"{first.dtype} on {first.device}"]


def _tables(number: int, section: str, group: list[Entry], laws: Laws) -> ErrorTables:
    first, longest = group[0], max(e.length for e in group)
    scales = sorted({e.input_scale or 0.0 for e in group})
    by_scale = {s: [e for e in group if (e.input_scale or 0.0) == s] for s in scales}
    own_keys = _own_keys(group, laws)
    tables = {
        scale: _table(f"error-{place}-{number}", scale, own, own_keys)
        for place, (scale, own) in enumerate(by_scale.items(), start=1)
    }
    # The last table that has a row knows it: every scale may have rows of its own.
    by_key = {(r.origin, r.label): r for table in tables.values() for r in table.rows}
    rows = [by_key[key] for key in sorted(by_key, key=lambda key: _natural(key[1]))]
    return ErrorTables(
        number=number,
        section=section,
        setting=f"The attention alone, {', '.join(_parts(first))}, untrained.",
        dtype=first.dtype,
        tables=tables,
        length=longest,
        curves={
            scale: tuple(_curves([e for e in own if e.length == longest], laws))
            for scale, own in by_scale.items()
        },
        by_scale=scale_curves(
            rows,
            [e for e in group if e.length == longest],
            laws,
            ROUNDING[first.dtype],
        ),
        own_keys=own_keys,
    )


def _own_keys(group: Sequence[Entry], laws: Laws) -> tuple[str, ...]:
    """Which mechanisms stand beside softmax attention over keys that they make themselves."""
    # A cell that failed says nothing of its keys.
    told = {(e.mechanism, laws.get((e.origin, e.record), {}).get("exact_keys")) for e in group}
    return tuple(sorted(name for name, keys in told if keys == "of its own"))


def _table(id: str, scale: float, group: Sequence[Entry], own_keys: Sequence[str]) -> Table:
    """Rows are mechanisms with their budgets, columns lengths."""
    lengths, rows = sorted({e.length for e in group}), _ordered(shown(group))
    seeds = {len({e.seed for e in own}) for own in rows.values()}
    lines = [_row(own, lengths) for own in rows.values()]
    spreads = [
        place.spread / place.value
        for line in lines
        for place in line.cells
        if place.value and place.spread is not None
    ]
    means = f"Means of {span(seeds)} seeds" if max(seeds) > 1 else "Of one seed"
    if max(seeds) > 1 and spreads:
        means += f", which lie up to {percent(max(spreads), 1)} % of the mean apart"
    return Table(
        id=id,
        title=f"Relative error, inputs {TIMES} {scale:g}",
        caption="Against softmax attention in float64, by sequence length: norm of the difference "
        "over that of the exact result, of the output, then of the gradients by queries, keys "
        "and values. Queries and keys are N(0, 1) times the factor above.",
        corner="mechanism",
        columns=tuple(map(str, lengths)),
        rows=tuple(lines),
        notes=(
            f"{means}.",
            "1 is as far off as an output of zero.",
            *beside_own(own_keys, own_keys),
            *_why(group),
            *reference_notes(rows),
        ),
    )


def _natural(label: str) -> list[tuple[int, str]]:
    """Return what puts labels in order with their numbers as numbers: 64 before 256."""
    return [(int(p), "") if p.isdigit() else (0, p) for p in re.split(r"(\d+)", label)]


def _ordered(rows: Rows) -> Rows:
    """The same with budgets as numbers."""

    def place(key: RowKey) -> tuple[object, ...]:
        origin, label = key
        return (origin != "run", rows[key][0].mechanism == EXACT, _natural(label))

    return {key: rows[key] for key in sorted(rows, key=place)}


def _row(own: Sequence[Entry], lengths: Sequence[int]) -> Row:
    return row(own, [_cell([e for e in own if e.length == n]) for n in lengths])


def _cell(own: Sequence[Entry]) -> Cell:
    """The mean over seeds, or the word of the first seed that has no figure."""
    by_metric: dict[str, list[Entry]] = defaultdict(list)
    for entry in own:
        by_metric[entry.metric].append(entry)
    output = by_metric["output_error"]
    word = next((e.word for e in output if e.value is None), "" if output else NO_VALUE)
    if word:
        return Cell(word)
    values = [e.value for e in output if e.value is not None]
    parts = [_mean(by_metric[name]) for name in ERRORS[1:]]
    value = mean(values)
    return Cell(ratio_text(value), ", ".join(parts), value=value, spread=max(values) - min(values))


def _mean(entries: Sequence[Entry]) -> str:
    values = [e.value for e in entries if e.value is not None]
    return ratio_text(mean(values), most=2) if values and len(values) == len(entries) else NO_VALUE


def _why(group: Sequence[Entry]) -> list[str]:
    """Why there is no figure, where a cell ended well without one."""
    null = {(e.metric, e.word, e.reason) for e in group if e.word and e.status == "ok"}
    return [f"{name.replace('_', ' ')}: {word} ({why})." for name, word, why in sorted(null)]


def _curves(group: Sequence[Entry], laws: Laws) -> list[Curve]:
    """The curves at one length and input scale: of each mechanism one for each of its settings
    other than the budget, which is whatever whole numbers it was measured at several of."""
    found: dict[tuple[Origin, str, str], list[Entry]] = defaultdict(list)
    for (origin, _), own in shown(e for e in group if e.metric == "output_error").items():
        config = in_force(json.loads(own[0].config))
        others = {key: value for key, value in config.items() if type(value) is not int}
        found[origin, own[0].mechanism, json.dumps(others, sort_keys=True)] += own
    curves = []
    for (origin, mechanism, rest), own in found.items():
        configs = {e.label: json.loads(e.config) for e in own}
        budget = [
            key
            for key in next(iter(configs.values()))
            if len({c.get(key) for c in configs.values() if type(c.get(key)) is int}) > 1
        ]
        points = []
        for label, config in configs.items():
            values = [e.value for e in own if e.label == label]
            size = float(sum(config.get(key) or 0 for key in budget))
            known = [value for value in values if value]
            if size > 0 and len(known) == len(values):
                points.append((size, mean(known)))
        if len(points) > 1:
            rests = [json.loads(r) for o, m, r in found if (o, m) == (origin, mechanism)]
            other = told_apart(rests)[rests.index(json.loads(rest))]
            methods = [laws.get((e.origin, e.record), {}) for e in own]
            # What else varies beside the budget that a law is of has no part in that law.
            lawful = all(set(budget) == set(m.get("predicted_budget", ())) for m in methods)
            rates = {m.get("predicted_rate") for m in methods} if lawful else {None}
            (rate,) = rates if len(rates) == 1 else (None,)
            curves.append(
                Curve(
                    mechanism=mechanism,
                    title=f"{mechanism} ({other})" if other else mechanism,
                    budget=" + ".join(budget),
                    points=tuple(sorted(points)),
                    rate=rate if isinstance(rate, float) else None,
                    origin=origin,
                )
            )
    return curves
