"""What mechanisms claim and what was proved of it: a table of capabilities, and what is broken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from lra.core.cells import VerifyCell
from lra.core.escape import escape_controls
from lra.core.findings import Finding
from lra.core.peers import PREFIX
from lra.core.records import Record
from lra.report.mechanisms.configs import in_force, labelled
from lra.report.table import Cell, Row, Section, Table
from lra.report.versions import Pairs, pairs
from lra.report.words import count, ending, flat, listing, machine_words

COLUMNS: dict[str, tuple[tuple[str, str], ...]] = {
    "causal": (("causality", "strict"), ("values_causality", "values only")),
    "cross": (("cross", "yes"),),
    "padding": (
        ("padding_count", "content"),
        ("padding_content", "length"),
        ("empty_rows", "empty rows"),
    ),
    "decode": (("decode", "exact"),),
    "bias": (("bias", "yes"),),
    "rotary": (("rotary", "yes"),),
}
"""Capabilities, each with the laws that prove it, strongest first, and what that is called."""

BROKEN = "claimed, broken"
_NOTES = {"skipped": "claimed, not tried", "unclaimed": "holds, though not claimed"}
"""Beside a capability, by the verdict on its law."""

OURS = "The last column counts claimed laws that held."
_MEANINGS = (
    "no: neither claimed nor seen to hold. holds, though not claimed: it held in every case tried.",
    "causal: strict, no output feels a later input; values only, none feels a later value, but "
    "later inputs may sway who attends to whom.",
    "cross: queries may read another sequence. decode: exact, position by position gives what all "
    "at once give.",
    "padding: content, neither what padded positions hold nor how many there are changes anything; "
    "length, how many there are may; empty rows, only that what has nothing to attend to is zero.",
    "bias: relative positions in the logits. rotary: queries and keys turned by their positions.",
)
PUBLIC = (
    "Called through an adapter. What a signature offers counts as claimed: a causal flag, a mask, "
    f"another sequence. {OURS}"
)


def capabilities(own: Iterable[Record], reference: Iterable[Record] = ()) -> Section | None:
    """Return the section on what was proved; None without a whole check among the records."""
    found = [*newest_checks(own), *(committed := newest_checks(reference))]
    if not found:
        return None
    labels = _labels(found)
    notes = {record.id: "reference" for record in committed}
    peers = [record for record in found if _cell(record).mechanism.name.startswith(PREFIX)]
    made = (
        _table([r for r in found if r not in peers], labels, notes),
        _table(peers, labels, {**notes, **_packages(peers)}, PUBLIC, "peers"),
        _broken(found, labels),
    )
    tables = [table for table in made if table is not None]
    # Whichever stands first explains the words of all: a report may have strangers alone.
    tables[0] = msgspec.structs.replace(tables[0], notes=_MEANINGS)
    text = (
        "Each mechanism was asked, law by law, for what its card claims; see python -m lra "
        "verify. In use, what is not claimed is refused; the check tries it where it can.",
        f"Tried on {_builds(found)}.",
    )
    return Section("capabilities", "Capabilities", text, tuple(tables))


def _labels(found: Sequence[Record]) -> dict[str, str]:
    """Name each check by its mechanism, and by its device where that was tried on several."""
    named = labelled([_cell(record).mechanism for record in found])
    devices: dict[str, set[str]] = {}
    for record, label in zip(found, named, strict=True):
        devices.setdefault(label, set()).add(_cell(record).device)
    return {
        record.id: f"{label} on {_cell(record).device}" if len(devices[label]) > 1 else label
        for record, label in zip(found, named, strict=True)
    }


def _packages(records: Iterable[Record]) -> dict[str, str]:
    """Which release each check is of."""
    return {r.id: str(r.method["package"]) for r in records if r.method.get("package")}


def _cell(record: Record) -> VerifyCell:
    assert isinstance(record.cell, VerifyCell)
    return record.cell


def newest_checks(records: Iterable[Record]) -> list[Record]:
    """The newest whole check of each mechanism and configuration on each device; of the same
    sources and torch a full one before a short."""
    found: dict[tuple[str, str, str], Record] = {}
    whole = [r for r in records if isinstance(r.cell, VerifyCell) and not r.cell.laws]
    for record in sorted(whole, key=lambda r: (r.started_at, r.id)):
        mechanism = _cell(record).mechanism
        key = mechanism.name, str(flat(in_force(mechanism.config))), _cell(record).device
        older = found.get(key)
        if older is None or _cell(record).form == "full" or not _is_fuller(older, record):
            found[key] = record
    return [found[key] for key in sorted(found)]


def _is_fuller(older: Record, short: Record) -> bool:
    """Whether an older check says more than a short one; one that went wrong says nothing."""
    is_full = _cell(older).form == "full" and older.status == "ok"
    return is_full and _tried(older) == _tried(short)


def _tried(record: Record) -> tuple[Pairs, str]:
    """What was tried, and with which laws."""
    cell = _cell(record)
    return pairs(cell), cell.torch


def _builds(records: Sequence[Record]) -> str:
    builds: dict[str, set[str]] = {}
    for r in records:
        where = f"{machine_words(_cell(r).machine)} with torch {_cell(r).torch}"
        builds.setdefault(where, set()).add((r.provenance.git_commit or "unknown")[:7])
    return "; ".join(
        f"{where}, code of commit{'s' * (len(commits) > 1)} {listing(sorted(commits))}"
        for where, commits in sorted(builds.items())
    )


def _table(
    records: Sequence[Record],
    labels: dict[str, str],
    notes: dict[str, str],
    caption: str = OURS,
    id: str = "capabilities",
) -> Table | None:
    rows = []
    for record in records:
        if record.status != "ok":
            words = ending(record.status, record.failure)
            cells = [Cell(words) for _ in (*COLUMNS, "laws")]
        else:
            by_law = {finding.law: finding for finding in record.findings}
            cells = [_proved(by_law, laws) for laws in COLUMNS.values()]
            cells.append(_tally(record.findings))
        rows.append(Row(labels[record.id], tuple(cells), escape_controls(notes.get(record.id, ""))))
    if not rows:
        return None
    return Table(
        id=id,
        title="Claims tested" if id == "capabilities" else "Public packages",
        caption=caption,
        corner="mechanism",
        columns=(*COLUMNS, "laws held"),
        rows=tuple(rows),
        numeric=False,
    )


def _proved(by_law: dict[str, Finding], laws: Sequence[tuple[str, str]]) -> Cell:
    """The strongest claim that was proved, and what more there is to say of a stronger one; a claim
    that is broken comes before all."""
    verdicts = {law: finding.verdict for law, finding in by_law.items()}
    for law, level in laws:
        if verdicts.get(law) == "failed":
            return Cell(level, BROKEN)
    for verdict in ("held", *_NOTES):
        for place, (law, level) in enumerate(laws):
            if verdicts.get(law) == verdict:
                notes = [_NOTES[verdict]] if verdict in _NOTES else []
                for stronger, above in laws[:place]:
                    if verdicts.get(stronger) in _NOTES:
                        notes.append(f"{above} {_NOTES[verdicts[stronger]]}")
                return Cell(level, "; ".join(notes))
    return Cell("no")


def _tally(findings: Sequence[Finding]) -> Cell:
    held = sum(finding.verdict == "held" for finding in findings)
    failed = sum(finding.verdict == "failed" for finding in findings)
    return Cell(f"{held} of {held + failed}")


def _broken(records: Sequence[Record], labels: dict[str, str]) -> Table | None:
    rows = [
        Row(
            labels[record.id],
            tuple(
                Cell(escape_controls(text))
                for text in (finding.law, finding.detail, str(finding.case or "") or "any")
            ),
        )
        for record in records
        for finding in record.findings
        if finding.verdict == "failed"
    ]
    if not rows:
        return None
    return Table(
        id="broken-claims",
        title="Claims that do not hold",
        caption=f"{count(len(rows), 'broken claim')}, each with the smallest input found.",
        corner="mechanism",
        columns=("law", "difference", "input"),
        rows=tuple(rows),
        numeric=False,
    )
