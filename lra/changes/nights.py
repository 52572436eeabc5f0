"""A folder of stores, one per night, as points: one figure of one cell in one night each."""

from __future__ import annotations

import math
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

import msgspec

from lra.changes.compare import QUANTITIES, cell_words, place
from lra.changes.counterparts import ASKED, CONDITIONS, Key, key
from lra.core.errors import StoreError, UsageError, system_reason
from lra.core.escape import escape_controls
from lra.core.records import Record
from lra.report.entries import Entry
from lra.report.select import join
from lra.report.words import is_failure, listing, span
from lra.store import Store, StoreWarning
from lra.verdict.repeatability import ControlledCost

FOLLOWED = tuple(name for name in QUANTITIES if name != "output_error")
"""Metrics that are followed; errors have a suite of their own and no nights."""
SERIES = (*ASKED, "mechanism", "config")
"""What was asked."""
Known = dict[Key, Key]
"""Keys by themselves, so that a year of nights holds each once."""
_OTHERWISE = tuple(name for name in CONDITIONS if name != "config")


class Point(msgspec.Struct, frozen=True):
    """One figure of one cell in one night."""

    series: Key
    """The fields of `SERIES`."""
    era: Key
    """Under which conditions: points of different eras are not compared."""
    label: str
    """The mechanism, with what sets it apart."""
    cell: str
    """What was asked, in words."""
    place: Key
    """To sort by."""
    unit: str
    value: float | None
    """A time over its control, the middle of the replicates; a count, the largest; an accuracy or
    bits per byte, the mean over seeds."""
    seeds: dict[int, float]
    """Accuracies and bits per byte by seed; empty for others."""
    word: str
    """Why there is no value: how the cell ended, or that the machine was busy. Beside a value, how
    some of its seeds ended."""
    mechanism: str
    """Version of the mechanism."""
    commit: str
    """Short; empty where the record has none."""

    @property
    def metric(self) -> str:
        """What was measured."""
        return str(self.series[SERIES.index("metric")])

    @property
    def failed(self) -> bool:
        """Whether the cell failed that night, or a seed of it."""
        return is_failure(self.word)


class Night(msgspec.Struct, frozen=True):
    """One store."""

    name: str
    """Of the folder."""
    started: str
    """When its first record was: UTC, ISO 8601."""
    points: tuple[Point, ...]
    left_out: tuple[str, ...] = ()
    """Of each record that could not be read, which and why."""


def nights(folder: Path) -> tuple[list[Night], dict[str, str]]:
    """Return the nights in the order of their records, and why other sub-folders are none.

    Raises `UsageError` where there is no such folder or no night in it.
    """
    try:
        stores = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    except OSError as error:
        raise UsageError(
            f"no history at '{folder}': {system_reason(error)}; name a folder that holds one "
            "store per night"
        ) from error
    found, unread = [], {}
    known: Known = {}
    for store in stores:
        name = escape_controls(store.name)
        try:
            night = _night(store, known)
        except StoreError as error:
            unread[name] = escape_controls(str(error))
            continue
        if isinstance(night, Night):
            found.append(night)
        else:
            unread[name] = night
    if not found:
        why = "".join(f"; {name}: {reason}" for name, reason in unread.items())
        raise UsageError(
            f"no night in '{folder}': it holds no store{why}; sweep into a folder of it, such as "
            f"--store {folder / '2026-01-31'}"
        )
    return sorted(found, key=lambda night: (night.started, night.name)), unread


def _night(store: Path, known: Known) -> Night | str:
    """One store as a night; why it is none."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", StoreWarning)
        records = Store(store).records()
    left_out = tuple(escape_controls(str(one.message)) for one in told)
    if not records:
        return left_out[0] if left_out else "no record in it"
    return Night(
        name=escape_controls(store.name),
        started=min(record.started_at for record in records),
        points=tuple(_points(records, known)),
        left_out=left_out,
    )


def _points(records: Sequence[Record], known: Known) -> Iterator[Point]:
    selection = join(records, [])
    commits = {record.id: record.provenance.git_commit or "" for record in records}
    busy = {record for _, record in selection.busy}
    controls: dict[str, dict[str, float]] = defaultdict(dict)
    groups: dict[tuple[Key, Key], list[Entry]] = defaultdict(list)
    for e in selection.entries:
        if e.metric in ("control_before", "control_after") and e.value:
            controls[e.record][e.metric] = e.value
        elif e.metric in FOLLOWED:
            # Of accuracies the machine may change; torch starts a new era of everything.
            groups[key(e, SERIES), (*key(e, _OTHERWISE), e.torch)].append(e)
    for (series, era), own in groups.items():
        first = own[0]
        value, word = _figure(own, controls, busy)
        if value is None and not any(is_failure(e.word) for e in own) and not word:
            # Never measured on such a machine, or not claimed: there is nothing to follow.
            continue
        where = place(first)
        yield Point(
            series=known.setdefault(series, series),
            era=known.setdefault(era, era),
            label=sys.intern(first.label),
            cell=sys.intern(cell_words(first)),
            place=known.setdefault(where, where),
            unit=first.unit,
            value=value,
            seeds=_seeds(own),
            word=word,
            mechanism=sys.intern(first.mechanism_version),
            commit=sys.intern(escape_controls(commits[first.record][:7])),
        )


def _figure(
    own: Sequence[Entry], controls: dict[str, dict[str, float]], busy: set[str]
) -> tuple[float | None, str]:
    """The figure of a night; else why there is none, empty where there never is one. Of seeds of
    which some failed, both."""
    quantity = QUANTITIES[own[0].metric]
    there = [(e, e.value) for e in own if e.value is not None]
    failed = [e.word for e in own if is_failure(e.word)]
    if not there:
        return None, failed[0] if failed else ""
    if quantity.by_seed:
        ended = f"{listing(list(dict.fromkeys(failed)))} of {len(failed)} of {len(own)} seeds"
        return fmean(value for _, value in there), ended if failed else ""
    if not quantity.controlled:
        return max(value for _, value in there), ""
    quiet = [(e, value) for e, value in there if e.record not in busy]
    if not quiet:
        return None, "busy machine"
    framed = [
        ControlledCost(value, pair["control_before"], pair["control_after"]).ratio
        for e, value in quiet
        if len(pair := controls[e.record]) == 2 and value > 0
    ]
    return (median(framed), "") if framed else (None, "no control")


def _seeds(own: Sequence[Entry]) -> dict[int, float]:
    if not QUANTITIES[own[0].metric].by_seed:
        return {}
    return {e.seed or 0: e.value for e in own if e.value is not None and math.isfinite(e.value)}


def days_missing(days: Sequence[str]) -> list[str]:
    """Return the days without a night between the first and the last of these, as spans."""
    found = []
    for one, other in pairwise(days):
        first = date.fromisoformat(one) + timedelta(days=1)
        last = date.fromisoformat(other) - timedelta(days=1)
        if first <= last:
            found.append(span([f"{first}", f"{last}"]))
    return found
