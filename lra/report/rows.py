"""Rows of mechanisms: their selection, their order, and the origin of reference rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import msgspec
import pandas as pd

from lra.core.catalogue import CONTROLS, EXACT
from lra.core.escape import escape_controls
from lra.core.peers import PREFIX
from lra.core.records import Failure, Status
from lra.report.load.measurement import Origin
from lra.report.model import Row, Section, Value
from lra.report.words import NO_VALUE, NOT_RUN, ending, listing

ALL_ROWS = "all rows of the reference"
_QUESTION = ["mechanism_version", "protocol", "metric", "mode", "length"]
"""Columns of a figure's question, without its seed or process."""


class Key(NamedTuple):
    """One row of a table: a mechanism with its configuration, of the run or the reference."""

    origin: Origin
    variant: str
    mechanism: str
    label: str

    @property
    def name(self) -> str:
        """Name of the mechanism without its settings, for people."""
        return escape_controls(self.mechanism)

    @property
    def is_ours(self) -> bool:
        """Whether it is no public package's."""
        return not self.mechanism.startswith(PREFIX)

    def row(self, values: Sequence[Value], group: str = "") -> Row:
        """Return the row with its values."""
        return Row(self.label, tuple(values), self.mechanism, self.variant, self.origin, group)


def row_keys(figures: pd.DataFrame) -> list[Key]:
    """Return the rows of figures that share a table: the run's before the reference's, exact
    attention and the controls last.

    A reference row is left out where the run has measured all of it, from the same sources, with at
    least as many seeds and figures.
    """
    names = ["origin", "variant", "mechanism", "label"]
    keys = [Key(*own) for own in figures[names].drop_duplicates().itertuples(index=False)]
    groups = {
        cast(tuple[str, str], key): own for key, own in figures.groupby(["origin", "variant"])
    }
    kept = [
        key
        for key in keys
        if key.origin == "run"
        or ("run", key.variant) not in groups
        or not _answers(groups["run", key.variant], groups["reference", key.variant])
    ]
    anchors = {name: place for place, name in enumerate((EXACT, *CONTROLS), start=1)}
    return sorted(
        kept, key=lambda k: (k.origin != "run", anchors.get(k.mechanism, 0), k.label, k.variant)
    )


def of_the_run(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return a table's rows without those of the reference that the run is not read against.

    Kept are the run's mechanisms, exact attention, the controls, the best of a column and what is
    no mechanism; all rows are kept where the run has no mechanism among them.
    """
    own = {row.mechanism for row in rows if row.origin == "run" and row.mechanism}
    if not own:
        return tuple(rows)
    asked = {"", *read_against(own)}
    return tuple(
        row for row in rows if row.mechanism in asked or any(value.best for value in row.values)
    )


def of_the_run_first(section: Section) -> list[Section]:
    """Return a section with its rows of `of_the_run`, followed by one of all rows where some are
    left out: as a later one of its topic it is folded."""
    near = tuple(msgspec.structs.replace(one, rows=of_the_run(one.rows)) for one in section.tables)
    if all(len(few.rows) == len(one.rows) for few, one in zip(near, section.tables, strict=True)):
        return [section]
    whole = tuple(msgspec.structs.replace(one, id=f"{one.id}-all") for one in section.tables)
    setting = ": ".join(filter(None, [section.setting, ALL_ROWS]))
    return [
        msgspec.structs.replace(section, tables=near),
        Section(topic=section.topic, level=section.level, setting=setting, tables=whole),
    ]


def read_against(own: Iterable[str]) -> frozenset[str]:
    """Return the mechanisms of a run, exact attention and the controls, by name."""
    return frozenset({*own, EXACT, *CONTROLS})


def of(table: pd.DataFrame, key: Key) -> pd.DataFrame:
    """Return the rows of a pooled frame that belong to a key."""
    return table[(table["origin"] == key.origin) & (table["variant"] == key.variant)]


def reference_notes(figures: pd.DataFrame, keys: Sequence[Key]) -> list[str]:
    """Return a sentence on the machines of the reference rows among these; none without any."""
    wanted = {key.variant for key in keys if key.origin == "reference"}
    if not wanted or all(key.origin == "reference" for key in keys):
        return []
    own = figures[(figures["origin"] == "reference") & figures["variant"].isin(wanted)]
    return [f"Reference rows were measured earlier, on {listing(sorted(set(own['machine'])))}."]


def _answers(run: pd.DataFrame, reference: pd.DataFrame) -> bool:
    """Whether the run's figures answer all questions of the reference's, with as many seeds."""
    known = (run[run["value"].notna()], reference[reference["value"].notna()])
    return all(_seeds(theirs) <= _seeds(ours) for ours, theirs in ((run, reference), known))


def _seeds(own: pd.DataFrame) -> Counter[object]:
    """Number of seeds of each question."""
    pairs = own[[*_QUESTION, "seed"]].drop_duplicates()[_QUESTION]
    return Counter(pairs.itertuples(index=False, name=None))


def missing(endings: Sequence[tuple[str, str, str]], *, asked: bool = True) -> Value:
    """Return the cell of a table for a missing figure, by status, failure and reason of each
    process or seed; `asked` says whether anything was tried."""
    if not endings:
        return Value(NOT_RUN if not asked else NO_VALUE)
    words = sorted({_ending(status, failure) for status, failure, _ in endings})
    reasons = sorted({reason for status, _, reason in endings if status == "ok" and reason})
    return Value(listing(words), ", ".join(reasons))


def _ending(status: str, failure: str) -> str:
    if status == "ok":
        return "not measured"
    return ending(cast(Status, status), Failure(type=failure, message="") if failure else None)
