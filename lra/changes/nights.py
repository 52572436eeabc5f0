"""Nights: the stores of a folder, each with one point for each figure of each cell."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import msgspec

from lra.changes.measurements import ASKED, CONDITIONS, Ending, Measurement, measurements
from lra.core.errors import StoreError, UsageError, system_reason
from lra.core.escape import escape_controls
from lra.core.records import Record
from lra.report.load.select import join
from lra.store import Store, StoreWarning

SERIES = (*ASKED, "mechanism", "variant")
"""Columns of the question."""
ERA = tuple(name for name in CONDITIONS if name != "variant")
"""Columns of the conditions: points of different eras are not compared."""
_POOLED = {"quality": ("machine", "threads"), "error": ("machine", "threads")}
"""Conditions that accuracies may mix: machines, but not versions of torch, which begin a new
era."""


class Point(msgspec.Struct, frozen=True):
    """One figure of one cell in one night."""

    measurement: Measurement
    value: float | None
    """Median of a time's ratios to its control, largest of a count, or mean over seeds of an
    accuracy or a loss."""
    endings: tuple[Ending, ...]
    """Endings of failed seeds, also beside a value; of failed replicates only where there is no
    value."""
    left_out: str
    """Why there are figures but no value: a busy machine, no control."""
    commit: str
    """Short commit hash; empty where the record has none."""

    @property
    def row(self) -> Any:
        """Row of the frame: the question and the mechanism."""
        return self.measurement.row


class Night(msgspec.Struct, frozen=True):
    """One store."""

    name: str
    """Name of the folder."""
    started: str
    """Start of its first record: UTC, ISO 8601."""
    points: tuple[Point, ...]
    left_out: tuple[str, ...] = ()
    """Why each record that could not be read was left out."""


def nights(folder: Path) -> tuple[list[Night], dict[str, str]]:
    """Return the nights in the order of their records, and by name why other sub-folders are none.

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
    for store in stores:
        name = escape_controls(store.name)
        try:
            night = _night(store)
        except StoreError as error:
            night = escape_controls(str(error))
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


def _night(store: Path) -> Night | str:
    """One store as a night, or why it is none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StoreWarning)
        records = Store(store).records()
    left_out = tuple(escape_controls(str(one.message)) for one in caught)
    if not records:
        return left_out[0] if left_out else "no record in it"
    return Night(
        name=escape_controls(store.name),
        started=min(record.started_at for record in records),
        points=tuple(_points(records)),
        left_out=left_out,
    )


def _points(records: Sequence[Record]) -> Iterator[Point]:
    commits = {record.id: record.provenance.git_commit or "" for record in records}
    for one in measurements(join(records, []), _POOLED):
        value, left_out = _figure(one)
        lost = one.quantity.by_seed or not (one.values or one.busy)
        endings = tuple(one.failures.values()) if lost else ()
        # Errors have a suite of their own and no nights. A figure never measured on such a machine,
        # or not claimed, has nothing to follow.
        if one.row.kind != "error" and (value is not None or endings or left_out):
            yield Point(one, value, endings, left_out, escape_controls(commits[one.row.record][:7]))


def _figure(one: Measurement) -> tuple[float | None, str]:
    """The figure of a night, or why figures that there are make none."""
    if not one.values:
        return None, "busy machine" if one.busy else ""
    if one.quantity.by_seed:
        return fmean(one.values.values()), ""
    if not one.quantity.controlled:
        return max(one.values.values()), ""
    if not one.controlled:
        return None, "no control"
    return median(one.controlled.values()), ""
