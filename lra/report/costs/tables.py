"""All cost tables of one setting: time, memory, energy, limits, growth, crossover, decoding."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from lra.core.errors import UsageError
from lra.core.scales import load_scale
from lra.report.costs.crossover import crossover_table
from lra.report.costs.derived import Column, derived_columns
from lra.report.costs.energy import BOARD, NET, energies
from lra.report.costs.growth import growth_table
from lra.report.costs.limit import Ceilings, limit_table
from lra.report.costs.notes import exactness_notes, missing_notes, taken_notes, time_notes
from lra.report.costs.operations import declared_operations
from lra.report.costs.place import costs
from lra.report.costs.repeatability import RepeatTables, repeatability
from lra.report.costs.tokens import by_tokens, tokens_of
from lra.report.entries import PEAK_MEMORY, TIMES_OF_CALLS, Busy, Entry
from lra.report.rows import EXACT, NO_MIXING, anchor_note, reference_notes, row, shown, unfused
from lra.report.select import Selection
from lra.report.table import Table, sorted_groups
from lra.report.versions import among, apart, words
from lra.report.words import Unit, count, differing, flat, scale_of

_CALLS = {"forward": "forward pass", "train": "training step", "decode": "decoding step"}
_QUANTITIES = {
    "latency": ("Time of a {call}", "Median"),
    "prefill": ("Time to take in the prompt", "Median"),
    "peak_resident_bytes": (
        "Peak memory of a {call}",
        "Peak resident memory above its level before the call",
    ),
    "peak_allocated_bytes": (
        "Peak memory of a {call}",
        "Peak memory in live tensors above its level before the call",
    ),
    "state_bytes": ("State kept after the prompt", "Bytes of its tensors"),
    "energy": ("Energy of a {call}", "Mean over the calls of half a second or more"),
    NET: (
        "Energy of a {call}, net of the idle board",
        "Mean energy less idle power times the time of a call there",
    ),
}
"""Title and what is quoted, by metric."""
_UNITS: dict[str, Unit] = {**dict.fromkeys(TIMES_OF_CALLS, "s"), "energy": "J", NET: "J"}
"""Of metrics other than sizes."""
_BOLD = (
    f"Bold: the fastest apart from {NO_MIXING}, reference rows beside a run's left out, where its "
    "range over processes overlaps no other's."
)


class EfficiencyTables(msgspec.Struct, frozen=True):
    """The tables of one machine class, one setting of sizes and one build."""

    number: int
    """What ids of its tables and figures end in."""
    level: str
    batch: int
    """Examples that a figure is of."""
    tokens: int | None
    """Positions of a call, where calls of all lengths have as many; figures are of one example."""
    parts: tuple[str, ...]
    """What sets them apart from other tables, in words."""
    setting: str
    """All that the tables share, in a sentence."""
    reference_only: bool
    latency: dict[str, Table]
    """By mode."""
    memory: dict[str, Table]
    limit: dict[str, Table]
    """What share of the machine's limit is reached, by mode; of none where that is not known."""
    energy: dict[str, Table]
    """By mode, of modes where some was measured."""
    net_energy: dict[str, Table]
    """Less what the idle board takes."""
    declared: Table | None
    """Operations that are declared over those counted, where they differ."""
    agreement: tuple[str, ...]
    """On those where they do not, in sentences."""
    prefill: dict[str, Table]
    """Of decoding, where that was measured: time to take in the prompt."""
    state: dict[str, Table]
    """Likewise: what is kept after it."""
    exactness: tuple[str, ...]
    """How far decoding is from the parallel form, in a sentence."""
    growth: Table | None
    """None where nothing was measured at three lengths."""
    crossover: Table | None
    """Likewise."""
    derived: tuple[Column, ...]
    """The columns of the table of crossings."""
    repeatability: RepeatTables
    """Of cells with replicates."""
    exact_elsewhere: frozenset[tuple[str, int]]
    """Modes and lengths at which another version of the measuring code timed exact attention."""
    entries: tuple[Entry, ...]
    """What the tables are made of."""


def efficiency_tables(selection: Selection) -> list[EfficiencyTables]:
    """Return tables per machine class, sizes, threads, torch and profiler; the run's first.

    Two machine classes never share a table.
    """
    measured = by_tokens([e for e in selection.entries if e.kind == "efficiency"], _but_batch)
    groups = [part for _, group in sorted_groups(measured, _key) for part in _by_version(group)]
    groups.sort(key=lambda group: all(e.origin == "reference" for e in group))
    ceilings, models = Ceilings(selection.ceilings), _models(groups)
    alike: dict[tuple[object, ...], list[list[Entry]]] = defaultdict(list)
    scales: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for group in groups:
        alike[_key(group[0])].append(group)
        scales[_sizes(group[0])].add(group[0].scale)
    found = []
    for number, (group, model) in enumerate(zip(groups, models, strict=True), start=1):
        first = group[0]
        twins = [other for other in alike[_key(first)] if other is not group]
        # A layer has its sizes from no scale, which is but the name of the suite's block.
        named = first.level == "model" or len(scales[_sizes(first)]) > 1
        found.append(
            _tables(number, group, model, selection.busy, ceilings, twins, name_scale=named)
        )
    return found


def _by_version(group: Sequence[Entry]) -> list[list[Entry]]:
    """Parts of a group that no version of the measuring code sets apart."""
    features = apart(e.measured_by for e in group)
    parts = sorted_groups(group, lambda e: (among(e.measured_by, features),))
    return [part for _, part in parts]


def call_words(mode: str) -> str:
    """Return what one call of a mode is."""
    return _CALLS.get(mode, f"{mode} call")


def _key(e: Entry) -> tuple[object, ...]:
    return (e.scale, *_sizes(e))


def _sizes(e: Entry) -> tuple[object, ...]:
    """What is timed, and where."""
    return (*_timed(e), e.batch or 0, tokens_of(e) or 0, *_place(e))


def _but_batch(e: Entry) -> tuple[object, ...]:
    """The same, whatever the number of examples in a call."""
    return (e.scale, *_timed(e), *_place(e))


def _timed(e: Entry) -> tuple[object, ...]:
    return (e.level, e.task, e.direction)


def _place(e: Entry) -> tuple[object, ...]:
    sizes = (e.heads, e.head_width, e.dtype, e.execution != "eager")
    return (*sizes, e.device, e.machine, e.threads, e.torch, e.model)


def _models(groups: Sequence[Sequence[Entry]]) -> list[str]:
    """Say of the model of each group in what it differs from its scale's own, and from others of
    its task and direction."""
    firsts = [group[0] for group in groups]
    alike: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, e in enumerate(firsts):
        if e.model:
            alike[e.scale, e.task, e.direction].append(place)
    told = [""] * len(groups)
    for places in alike.values():
        settings = [flat(json.loads(firsts[place].model)) for place in places]
        own = _own_model(firsts[places[0]])
        for place, text in zip(places, differing([*settings, *own]), strict=False):
            told[place] = text
    return told


def _own_model(e: Entry) -> list[dict[str, str]]:
    """The settings that a shipped scale gives the model; none of a scale of somebody's own."""
    try:
        model = load_scale(e.scale).model_spec(e.task)
    except UsageError:
        return []
    return [flat(msgspec.structs.replace(model, causal=e.direction == "causal"))]


def _tables(
    number: int,
    group: list[Entry],
    model: str,
    busy: Busy,
    ceilings: Ceilings,
    twins: Sequence[Sequence[Entry]],
    *,
    name_scale: bool,
) -> EfficiencyTables:
    """`twins` are groups that differ in the version of the measuring code alone."""
    first = group[0]
    memory = PEAK_MEMORY[first.device]
    modes = sorted({e.mode for e in group}, key=lambda mode: (mode not in _CALLS, mode))
    decoding = [mode for mode in modes if mode == "decode"]
    asked, where = _asked(first, model), _where(first)
    features = apart(e.measured_by for side in (group, *twins) for e in side)
    version = words(among(first.measured_by, features))
    columns, energy_entries = derived_columns(group, memory), energies(group)
    declared, agreement = declared_operations(
        f"declared-{number}", call_words("forward"), [e for e in group if e.mode == "forward"]
    )

    def by_mode(metric: str, noun: str) -> dict[str, Table]:
        # A busy machine slows a call down; it does not make it larger.
        slowed = busy if metric in TIMES_OF_CALLS else ()
        return {
            mode: _table(f"{noun}-{mode}-{number}", metric, mode, group, slowed) for mode in modes
        }

    def of_energy(metric: str, noun: str) -> dict[str, Table]:
        known = {e.mode for e in energy_entries if e.metric == metric and e.value is not None}
        return {
            mode: _table(f"{noun}-{mode}-{number}", metric, mode, energy_entries, ())
            for mode in modes
            if mode in known
        }

    return EfficiencyTables(
        number=number,
        level=first.level,
        batch=first.batch or 1,
        tokens=tokens_of(first),
        parts=(
            *asked,
            *where,
            *([f"scale {first.scale}"] if name_scale else []),
            *([f"measured by {version}"] if version else []),
        ),
        setting=f"{', '.join(where)}: {', '.join(asked)}.",
        reference_only=all(e.origin == "reference" for e in group),
        latency=by_mode("latency", "latency"),
        memory=by_mode(memory, "memory"),
        limit=_limits(number, group, modes, ceilings, busy),
        energy=of_energy("energy", "energy"),
        net_energy=of_energy(NET, "net-energy"),
        declared=declared,
        agreement=agreement,
        prefill={m: _table(f"prefill-{number}", "prefill", m, group, busy) for m in decoding},
        state={m: _table(f"state-{number}", "state_bytes", m, group, ()) for m in decoding},
        exactness=exactness_notes(group),
        growth=growth_table(f"growth-{number}", columns, group, busy),
        crossover=crossover_table(f"crossover-{number}", columns, group, busy),
        derived=tuple(columns),
        repeatability=repeatability(number, group, {m: call_words(m) for m in modes}, busy),
        exact_elsewhere=_exact_elsewhere(twins),
        entries=tuple(group),
    )


def _asked(first: Entry, model: str) -> tuple[str, ...]:
    """What a call is of, in words."""
    what = {"attention": "the attention alone", "model": f"a model of {first.task}"}.get(
        first.level, f"one {first.level}"
    )
    return (
        f"{what} with {model}" if model else what,
        first.direction,
        f"batch {first.batch}"
        if (tokens := tokens_of(first)) is None
        else f"per example in calls of {tokens:,} positions",
        f"{count(first.heads or 0, 'head')} of width {first.head_width}",
        first.dtype,
        *(["by torch.compile"] if first.execution == "compiled" else []),
    )


def _where(first: Entry) -> tuple[str, ...]:
    """Machine, threads and torch, in words."""
    return first.machine, count(first.threads, "thread"), f"torch {first.torch}"


def _limits(
    number: int,
    group: Sequence[Entry],
    modes: Sequence[str],
    ceilings: Ceilings,
    busy: Busy,
) -> dict[str, Table]:
    by_mode = {mode: [e for e in group if e.mode == mode] for mode in modes}
    tables = {
        mode: limit_table(f"limit-{mode}-{number}", call_words(mode), own, ceilings, busy)
        for mode, own in by_mode.items()
    }
    return {mode: table for mode, table in tables.items() if table is not None}


def _exact_elsewhere(twins: Sequence[Sequence[Entry]]) -> frozenset[tuple[str, int]]:
    """Modes and lengths at which another version of the measuring code timed exact attention."""
    others = (e for twin in twins for e in twin if (e.mechanism, e.metric) == (EXACT, "latency"))
    return frozenset((e.mode, e.length) for e in others if e.value is not None)


def _table(
    id: str,
    metric: str,
    mode: str,
    group: Sequence[Entry],
    busy: Busy,
) -> Table:
    """Rows are mechanisms, columns lengths; one unit for the whole table."""
    entries = [e for e in group if e.mode == mode]
    measured = [e for e in entries if e.metric == metric]
    lengths = sorted({e.length for e in entries})
    timed = metric in TIMES_OF_CALLS
    rows, known = shown(measured), costs(measured, busy)
    size, symbol = scale_of(known.known(), _UNITS.get(metric, "B"))
    best = {length: known.fastest(length) if timed else None for length in lengths}
    subject, quoted = _QUANTITIES[metric]
    return Table(
        id=id,
        title=f"{subject.format(call=call_words(mode))}, in {symbol}",
        caption=f"{quoted}, by sequence length, with its ratio to {EXACT} on the same machine.",
        corner="mechanism",
        columns=tuple(str(length) for length in lengths),
        rows=tuple(
            row(own, [known.cell(key, n, size, strong=best[n] == key) for n in lengths])
            for key, own in rows.items()
        ),
        notes=(
            *taken_notes(measured, known),
            *(time_notes(entries, known) if timed else []),
            *([_BOLD] if any(best.values()) else []),
            *missing_notes(entries, known, lengths, metric),
            *([anchor_note(entries)] if timed else unfused(entries)),
            *([BOARD] if metric == "energy" else []),
            *reference_notes(rows),
        ),
        unit=symbol,
    )
