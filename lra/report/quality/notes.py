"""What stands below a quality table: how far its figures can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lra.core.escape import escape_controls
from lra.report.quality.baselines import BITS_BASELINES
from lra.report.quality.columns import Column
from lra.report.quality.score import BITS, Score
from lra.report.rows import Rows
from lra.report.words import listing, listing_of, percent

_TOLD = 5
"""Trainings that a note names."""


def table_notes(
    columns: Sequence[Column],
    averaged: Sequence[Column],
    several: bool,
    score: Score,
    *,
    bold: bool,
    by_token: bool,
) -> list[str]:
    """Return what to know of all figures: means, seeds, sampling, what is bold or stands beside."""
    notes = []
    if averaged:
        tasks = ", ".join(column.title for column in averaged)
        notes.append(f"Mean of {len(averaged)}: {tasks}; only for rows that have them all.")
    if several:
        notes.append("± is one standard deviation over n seeds.")
    else:
        little = "a few hundredths" if score == BITS else "a few points"
        notes.append(f"One seed: differences of {little} may be chance.")
    if by_token:
        notes.append(
            "Each token's answer is predicted from that token and earlier ones only; all "
            "mechanisms here are strictly causal."
        )
    else:
        rows = [column.rows.test for column in columns]
        fewest = " (the fewest of these tasks)" if len({*rows}) > 1 else ""
        error = percent(math.sqrt(0.25 / min(rows)))
        notes.append(
            f"With {min(rows):,} test rows{fewest}, sampling alone has a standard error of up to "
            f"{error} points."
        )
    tied = [column.title for column in columns if column.tied]
    if tied:
        notes.append(
            f"On {listing(tied)} each layer starts with its keys equal to its queries (query key "
            "start: tied), which favours softmax attention."
        )
    if bold:
        clear = "below" if score.lower else "above"
        notes.append(f"Bold: best, with a 95 % interval over seeds that lies {clear} the next.")
    if score == BITS:
        notes.append(BITS_BASELINES)
    return notes


def sharing_notes(rows: Rows) -> list[str]:
    """Return, where several devices shared a training, how many, and which figures tell of that."""
    shared = [e for own in rows.values() for e in own if e.devices is not None and e.devices > 1]
    if not shared:
        return []
    named = dict.fromkeys(f"{e.label} on {escape_controls(e.task)} ({e.devices})" for e in shared)
    return [
        f"Trained on several devices at once: {listing_of(list(named), _TOLD)}. Scores compare "
        "with those of one device; training seconds and steps per second in report.csv do not."
    ]


def machine_notes(rows: Rows) -> list[str]:
    """Return, where the seeds of a row come from several classes of machine, which these are."""
    by_row = [{entry.machine for entry in own} for own in rows.values()]
    found = {name for machines in by_row if len(machines) > 1 for name in machines}
    told = f"Seeds of several classes of machine stand in one row: {'; '.join(sorted(found))}."
    return [told] if found else []
