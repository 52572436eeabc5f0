"""Latency and memory tables: mechanisms by length, each beside exact attention of the same run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from statistics import median

import msgspec

from lra.core.errors import UsageError
from lra.core.scales import load_scale
from lra.report.costs.crossover import crossover_table
from lra.report.costs.derived import derived_columns
from lra.report.costs.disturbed import SIGNS
from lra.report.costs.energy import BOARD, NET, energies
from lra.report.costs.growth import growth_table
from lra.report.costs.limit import Ceilings, limit_table
from lra.report.costs.operations import declared_operations
from lra.report.costs.place import LOOSE, Costs, costs
from lra.report.costs.repeatability import RepeatTables, repeatability
from lra.report.entries import PEAK_MEMORY, TIMES_OF_CALLS, Entry, Origin
from lra.report.rows import EXACT, NO_MIXING, anchor_note, reference_notes, row, shown, unfused
from lra.report.select import Selection
from lra.report.table import Table, sorted_groups
from lra.report.words import Unit, count, differing, flat, listing, quantity, scale_of

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
    "energy": ("Energy of a {call}", "Mean over the calls of two seconds"),
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
_FOREIGN = {
    "cpu": ("peak_allocated_bytes", "peak_reserved_bytes", "peak_device_bytes"),
    "cuda": ("peak_resident_bytes",),
}
"""Measures of memory that only the other kind of device has."""
_LEAST = (", which the system's counting", ", the least that the system's counting")
"""Words of a reason in records, and what they mean."""


class EfficiencyTables(msgspec.Struct, frozen=True):
    """The tables of one machine class, one setting of sizes and one build."""

    machine: str
    level: str
    batch: int
    parts: tuple[str, ...]
    """What sets them apart from other tables, in words."""
    setting: str
    """All that the tables share, in a sentence."""
    reference_only: bool
    latency: dict[str, Table]
    """By mode."""
    memory: dict[str, Table]
    limit: tuple[Table, ...]
    """What share of the machine's limit is reached, a table for each mode."""
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
    measured = [e for e in selection.entries if e.kind == "efficiency"]
    groups = [group for _, group in sorted_groups(measured, lambda e: (*_key(e), e.measure_hash))]
    groups.sort(key=lambda group: all(e.origin == "reference" for e in group))
    ceilings, models = Ceilings(selection.ceilings), _models(groups)
    alike: dict[tuple[object, ...], list[list[Entry]]] = defaultdict(list)
    scales: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for group in groups:
        alike[_key(group[0])].append(group)
        scales[_sizes(group[0])].add(group[0].scale)
    return [
        _tables(number, group, model, selection.busy, ceilings, twins, name_scale=name_scale)
        for number, (group, model) in enumerate(zip(groups, models, strict=True), start=1)
        for twins in [[other for other in alike[_key(group[0])] if other is not group]]
        # A layer has its sizes from no scale, which is but the name of the suite's block.
        for name_scale in [group[0].level == "model" or len(scales[_sizes(group[0])]) > 1]
    ]


def call_words(mode: str) -> str:
    """Return what one call of a mode is."""
    return _CALLS.get(mode, f"{mode} call")


def _key(e: Entry) -> tuple[object, ...]:
    return (e.scale, *_sizes(e))


def _sizes(e: Entry) -> tuple[object, ...]:
    """What is timed, and where."""
    where = (e.device, e.machine, e.threads, e.torch)
    sizes = (e.batch, e.heads, e.head_width, e.dtype, e.execution != "eager")
    return (e.level, e.task, e.direction, *sizes, *where, e.model)


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
    busy: Collection[tuple[Origin, str]],
    ceilings: Ceilings,
    twins: Sequence[Sequence[Entry]],
    *,
    name_scale: bool,
) -> EfficiencyTables:
    """`twins` are groups that differ in the version of the measuring code alone."""
    first = group[0]
    memory = PEAK_MEMORY[first.device]
    modes = sorted({e.mode for e in group}, key=lambda mode: (mode not in _CALLS, mode))
    what = {"attention": "the attention alone", "model": f"a model of {first.task}"}.get(
        first.level, f"one {first.level}"
    )
    what += f" with {model}" if model else ""
    where = (first.machine, count(first.threads, "thread"), f"torch {first.torch}")
    asked = (
        what,
        first.direction,
        f"batch {first.batch}",
        f"{count(first.heads or 0, 'head')} of width {first.head_width}",
        first.dtype,
        *(["by torch.compile"] if first.execution == "compiled" else []),
    )

    columns = derived_columns(group, memory)

    def by_mode(metric: str, noun: str) -> dict[str, Table]:
        # A busy machine slows a call down; it does not make it larger.
        slowed = busy if metric in TIMES_OF_CALLS else ()
        return {
            mode: _table(f"{noun}-{mode}-{number}", metric, mode, group, slowed) for mode in modes
        }

    def spent(metric: str, noun: str) -> dict[str, Table]:
        known = {e.mode for e in own if e.metric == metric and e.value is not None}
        return {
            mode: _table(f"{noun}-{mode}-{number}", metric, mode, own, ())
            for mode in modes
            if mode in known
        }

    def of_decoding(metric: str, noun: str, slowed: Collection[tuple[Origin, str]]) -> Table:
        return _table(f"{noun}-{number}", metric, "decode", group, slowed)

    own = energies(group)
    declared, agreement = declared_operations(
        f"declared-{number}", call_words("forward"), [e for e in group if e.mode == "forward"]
    )
    return EfficiencyTables(
        machine=first.machine,
        level=first.level,
        batch=first.batch or 1,
        parts=(
            *asked,
            *where,
            *([f"scale {first.scale}"] if name_scale else []),
            *([f"measured by code {first.measure_hash[:8]}"] if twins else []),
        ),
        setting=f"{', '.join(where)}: {', '.join(asked)}.",
        reference_only=all(e.origin == "reference" for e in group),
        latency=by_mode("latency", "latency"),
        memory=by_mode(memory, "memory"),
        limit=tuple(
            table
            for mode in modes
            if (
                table := limit_table(
                    f"limit-{mode}-{number}",
                    call_words(mode),
                    [e for e in group if e.mode == mode],
                    ceilings,
                    busy,
                )
            )
        ),
        energy=spent("energy", "energy"),
        net_energy=spent(NET, "net-energy"),
        declared=declared,
        agreement=agreement,
        prefill={m: of_decoding("prefill", "prefill", busy) for m in modes if m == "decode"},
        state={m: of_decoding("state_bytes", "state", ()) for m in modes if m == "decode"},
        exactness=_exactness(group),
        growth=growth_table(f"growth-{number}", columns, group, busy),
        crossover=crossover_table(f"crossover-{number}", columns, group, busy),
        repeatability=repeatability(number, group, {m: call_words(m) for m in modes}, busy),
        exact_elsewhere=frozenset(
            (e.mode, e.length)
            for other in twins
            for e in other
            if (e.mechanism, e.metric) == (EXACT, "latency") and e.value is not None
        ),
        entries=tuple(group),
    )


def _exactness(group: Sequence[Entry]) -> tuple[str, ...]:
    """How far a step is from the parallel form at most, and of which steps nothing is known."""
    tried = [e for e in group if e.metric == "decode_error"]
    found = [(e.value, e) for e in tried if e.value is not None]
    lacking: dict[str, set[int]] = {}
    for e in tried:
        if e.value is None and e.status == "ok":
            lacking.setdefault(e.label, set()).add(e.length)
    told = []
    if found:
        worst, entry = max(found, key=lambda pair: pair[0])
        told.append(
            "In the same processes a step was compared with the parallel form: it differs by at "
            f"most {worst:.0e} of the largest output ({entry.label} after {entry.length} "
            "positions)."
        )
    if lacking:
        parts = [
            f"{name} after {listing([str(n) for n in sorted(ns)])}" for name, ns in lacking.items()
        ]
        told.append(
            "Of these steps the difference from the parallel form is no finite number: "
            f"{'; '.join(parts)} positions."
        )
    return tuple(told)


def _table(
    id: str,
    metric: str,
    mode: str,
    group: Sequence[Entry],
    busy: Collection[tuple[Origin, str]],
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
            *_taken(measured, known),
            *(_time_notes(entries, known) if timed else []),
            *([_BOLD] if any(best.values()) else []),
            *_missing(entries, known, lengths, metric),
            *([anchor_note(entries)] if timed else unfused(entries)),
            *([BOARD] if metric == "energy" else []),
            *reference_notes(rows),
        ),
    )


def _taken(measured: Sequence[Entry], known: Costs) -> list[str]:
    """Of how many processes and samples figures are, where there are several."""
    numbers = [cost.processes for cost in known.by_place.values() if cost.value is not None]
    samples = _span([e.samples for e in measured if e.samples])
    notes = []
    if max(numbers, default=1) > 1:
        each = f"; {samples} samples in each" if samples else ""
        notes.append(
            f"{_span(numbers)} processes a figure: their median, in no more digits than their "
            f"range allows{each}."
        )
    elif samples:
        notes.append(f"{samples} samples a figure.")
    return notes + known.partly_notes()


def _span(numbers: Sequence[int]) -> str:
    """`5 to 500`, `3`; of none an empty text."""
    low, high = min(numbers, default=0), max(numbers, default=0)
    return f"{low} to {high}" if low < high else f"{low}" if numbers else ""


def _time_notes(entries: Sequence[Entry], known: Costs) -> list[str]:
    """How wide, and whether the machine held still."""
    notes = []
    if any(cost.loose for cost in known.by_place.values()):
        notes.append(f"~: the quartiles lie more than {LOOSE:.0%} of the median apart.")
    if any(cost.disturbed for cost in known.by_place.values()):
        notes.append(
            f"!: the machine was busy, {SIGNS}; --rerun disturbed measures these cells again."
        )
    before, after = (
        {(e.origin, e.record): e.value for e in entries if e.metric == name and e.value}
        for name in ("control_before", "control_after")
    )
    pairs = [(before[record], after[record]) for record in sorted(before.keys() & after.keys())]
    if pairs:
        middle = quantity(median([value for pair in pairs for value in pair]), "s")
        drift = max(max(pair) / min(pair) for pair in pairs) - 1
        notes.append(
            f"Control (a plain matrix product in the same processes): {middle}, "
            f"up to {drift:.0%} apart before and after a cell."
        )
    return notes


def _missing(
    entries: Sequence[Entry], known: Costs, lengths: Sequence[int], metric: str
) -> list[str]:
    """Why a ratio is n/a, and what these cells could not measure."""
    notes = []
    gone = [(n, known.exact("run", n)) for n in lengths]
    words = [f"{n} ({cost.word})" for n, cost in gone if cost.value is None]
    if words and any(e.origin == "run" for e in entries):
        notes.append(f"n/a: no ratio, for {EXACT} has no figure at {listing(words)}.")
    # Of memory also the measures that are in no table.
    told = [e for e in entries if e.metric == metric or {e.metric[:5], metric[:5]} == {"peak_"}]
    null = {
        (e.metric.replace("_", " "), e.word, e.reason.replace(*_LEAST))
        for e in told
        if e.reason and e.status == "ok" and e.metric not in _FOREIGN.get(e.device, ())
    }
    return notes + [f"{name}: {word} ({reason})." for name, word, reason in sorted(null)]
