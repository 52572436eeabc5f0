"""Rows of mechanisms: which are shown, in which order, and how reference rows are marked."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain

from lra.core.catalogue import EXACT as EXACT
from lra.core.catalogue import NO_MIXING as NO_MIXING
from lra.report.entries import Entry, Origin
from lra.report.table import Cell, Row
from lra.report.versions import Pairs, apart, named
from lra.report.words import listing

_FUSED = f"{EXACT}: exact attention, fused, the one to beat."
_UNFUSED = (
    f"{EXACT}: exact attention; on a CPU with dropout on its weights torch has no fused kernel for "
    "it: memory is quadratic"
)
_RATIOS = ", and ratios to it look better than to a fused one"

TOGETHER = timedelta(minutes=15)
"""Within it the processes of a pair began; a machine changes its speed in an hour."""
SPLIT_ROUNDS = (
    f"Split round: its processes started more than {TOGETHER.seconds // 60} minutes apart (a rerun "
    "repeated some, or other cells ran in between); left out."
)

RowKey = tuple[Origin, str]
Rows = dict[RowKey, list[Entry]]


def shown(group: Iterable[Entry]) -> Rows:
    """Group entries into rows: the run's before the reference's, exact attention and floor last.

    A reference row is left out where the run has measured all of it, from the same sources, with as
    many seeds, and has a figure wherever it has one.
    """
    rows: Rows = {}
    for entry in sorted(group, key=_order):
        rows.setdefault((entry.origin, entry.label), []).append(entry)
    return {
        (origin, label): own
        for (origin, label), own in rows.items()
        if origin == "run" or not _is_measured(own, rows.get(("run", label), []))
    }


def is_unfused(e: Entry) -> bool:
    """Whether torch has no fused kernel for exact attention in a call: in training on a CPU with
    dropout on the weights."""
    on_cpu = e.device == "cpu" and e.mode == "train"
    return on_cpu and bool(e.model) and bool(json.loads(e.model).get("attention_dropout"))


def unfused(entries: Iterable[Entry], *, ratios: bool = True) -> list[str]:
    """Return what to know of exact attention where it is among the calls and not fused; `ratios`
    says whether there are any to it."""
    if not any(is_unfused(e) for e in entries if e.mechanism == EXACT):
        return []
    return [f"{_UNFUSED}{_RATIOS if ratios else ''}."]


def anchor_note(entries: Iterable[Entry]) -> str:
    """Return what exact attention is in these calls, and what the floor is."""
    (exact,) = unfused(entries) or [_FUSED]
    return f"{exact} {NO_MIXING}: no mixing, the floor."


def by_replicate(own: Iterable[Entry]) -> dict[int, dict[int, Entry]]:
    """Return the entries of one row that have a figure, by replicate and then by length."""
    found: dict[int, dict[int, Entry]] = {}
    for entry in own:
        if entry.value is not None:
            found.setdefault(entry.replicate or 0, {})[entry.length] = entry
    return found


def torn(*sides: Iterable[Entry]) -> set[int]:
    """Return the replicates of which not all sides were measured together: no pair of processes.

    A store keeps what it has: a rerun, or a second sweep beside it, measures one side alone.
    The sides are of one length and one metric.
    """
    began: dict[int, list[datetime]] = {}
    for entry in chain(*sides):
        if entry.value is not None:
            at = datetime.fromisoformat(entry.started_at)
            began.setdefault(entry.replicate or 0, []).append(at)
    return {r for r, found in began.items() if max(found) - min(found) > TOGETHER}


def by_length(own: Iterable[Entry]) -> dict[int, dict[int, float]]:
    """Return the figures of one row, by length and then by replicate."""
    found: dict[int, dict[int, float]] = {}
    for replicate, entries in by_replicate(own).items():
        for length, entry in entries.items():
            if entry.value is not None:
                found.setdefault(length, {})[replicate] = entry.value
    return found


def row(own: Sequence[Entry], cells: Iterable[Cell]) -> Row:
    """Return the row of one mechanism, marked if it is a reference."""
    first = own[0]
    reference = first.origin == "reference"
    return Row(
        label=first.label,
        cells=tuple(cells),
        note="reference" if reference else "",
        group=f"Reference: {_machines(own)}" if reference else "This run",
        mechanism=first.mechanism,
        variant=first.label,
        origin=first.origin,
    )


def reference_notes(rows: Rows) -> list[str]:
    """Return sentences on where the reference rows come from."""
    shown_entries = [entry for own in rows.values() for entry in own]
    reference = [entry for entry in shown_entries if entry.origin == "reference"]
    if not reference:
        return []
    notes = [f"Rows marked reference were measured earlier, on {_machines(reference)}."]
    measured: dict[str, dict[Origin, set[Pairs]]] = defaultdict(lambda: defaultdict(set))
    for entry in shown_entries:
        measured[entry.protocol][entry.origin].add(entry.measured_by)
    both = [one for one in measured.values() if one["run"] and one["reference"] - one["run"]]
    other = {feature for one in both for feature in apart([*one["run"], *one["reference"]])}
    if other:
        words = named(sorted(other))
        notes.append(f"Some of them by another version of the measuring code ({words}).")
    return notes


def _machines(own: Iterable[Entry]) -> str:
    return listing(sorted({entry.machine for entry in own}))


def _is_measured(reference: Sequence[Entry], run: Sequence[Entry]) -> bool:
    """Whether a row of the run answers all that the reference's does, with as many seeds, and has a
    figure wherever that has one."""

    def known(own: Iterable[Entry]) -> list[Entry]:
        return [entry for entry in own if entry.value is not None]

    return _seeds(reference) <= _seeds(run) and _seeds(known(reference)) <= _seeds(known(run))


def _seeds(own: Iterable[Entry]) -> Counter[tuple[object, ...]]:
    """How many seeds there are of each question."""
    return Counter(question for question, _ in {(_question(e), e.seed) for e in own})


def _question(e: Entry) -> tuple[object, ...]:
    return (e.mechanism_version, e.protocol, e.metric, e.mode, e.length)


def _order(entry: Entry) -> tuple[object, ...]:
    anchor = {EXACT: 1, NO_MIXING: 2}.get(entry.mechanism, 0)
    return (entry.origin != "run", anchor, entry.label, entry.seed or 0, entry.record)
