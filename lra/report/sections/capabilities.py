"""Claims of mechanisms and their proofs: capabilities, and broken claims."""

from __future__ import annotations

from collections.abc import Sequence

from lra.core.catalogue import CONTROLS, EXACT
from lra.core.cells import BaselineCell
from lra.core.findings import Finding
from lra.report.analysis import Analysis
from lra.report.checks import Check, checks
from lra.report.load.variants import labelled
from lra.report.model import Row, Section, Table, Value, there
from lra.report.words import count, ending

CAPABILITIES: dict[str, tuple[tuple[str, str], ...]] = {
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
"""Columns of capabilities, each with the laws that prove it, strongest first, and its name."""
BROKEN = "claimed, broken"
_VERDICTS = {"skipped": "claimed, not tried", "unclaimed": "holds, though not claimed"}
_NOTES = (
    "no: neither claimed nor seen to hold. causal, values only: later inputs may sway who attends "
    "to whom.",
    "padding, content: neither what padded positions hold nor how many there are changes "
    "anything; length: how many there are may.",
)


def sections(analysis: Analysis) -> list[Section]:
    """Return the section on proved claims; none without a whole check among the records."""
    found = checks(analysis.evidence)
    asked = {*_mechanisms(analysis), EXACT, *CONTROLS}
    own = [one for one in found if one.origin == "run" or one.mechanism in asked]
    return [present(own)] if own else []


def _mechanisms(analysis: Analysis) -> set[str]:
    """Names of the mechanisms of the run; of all where it has none."""
    cells = [one.cell for one in analysis.evidence.own or analysis.evidence.measurements]
    return {cell.mechanism.name for cell in cells if not isinstance(cell, BaselineCell)}


def present(found: Sequence[Check]) -> Section:
    """Return the capabilities of ours, those of public packages, and the broken claims."""
    labels = labels_of(found)
    ours = [check for check in found if not check.is_peer]
    peers = [check for check in found if check.is_peer]
    return Section(
        topic="Capabilities",
        text=(
            "Each mechanism was asked, law by law, for what its card claims: see python -m lra "
            "verify.",
        ),
        tables=there(
            [
                _table(ours, labels, "capabilities", "Claims tested", _NOTES),
                _table(peers, labels, "peer-capabilities", "Public packages", ()),
                _broken(found, labels),
            ]
        ),
    )


def labels_of(found: Sequence[Check]) -> dict[str, str]:
    """Return the name of each check, by record: its mechanism, with the device where it was tried
    on several."""
    named = labelled([check.cell.mechanism for check in found])
    devices: dict[str, set[str]] = {}
    for check in found:
        devices.setdefault(check.variant, set()).add(check.cell.device)
    return {
        check.record.id: f"{name} on {check.cell.device}"
        if len(devices[check.variant]) > 1
        else name
        for check, name in zip(found, named, strict=True)
    }


def _table(
    found: Sequence[Check], labels: dict[str, str], id: str, title: str, notes: tuple[str, ...]
) -> Table | None:
    if not found:
        return None
    return Table(
        id=id,
        title=title,
        caption="The last column counts claimed laws that held.",
        corner="mechanism",
        columns=(*CAPABILITIES, "laws held"),
        rows=tuple(
            Row(
                labels[one.record.id], _values(one), one.mechanism, one.variant, one.origin,
            )
            for one in found
        ),
        notes=notes,
        numeric=False,
    )  # fmt: skip


def _values(check: Check) -> tuple[Value, ...]:
    if check.record.status != "ok":
        words = ending(check.record.status, check.record.failure)
        return (Value(words),) * (len(CAPABILITIES) + 1)
    by_law = {finding.law: finding for finding in check.record.findings}
    tally = f"{check.held} of {check.held + len(check.broken)}"
    own = [proved(by_law, laws) for laws in CAPABILITIES.values()]
    return (*own, Value(tally, "", float(check.held)))


def proved(by_law: dict[str, Finding], laws: Sequence[tuple[str, str]]) -> Value:
    """Return the strongest proved claim, with a note on a stronger one; a broken claim comes before
    all."""
    verdicts = {law: finding.verdict for law, finding in by_law.items()}
    for law, level in laws:
        if verdicts.get(law) == "failed":
            return Value(level, BROKEN)
    for verdict in ("held", *_VERDICTS):
        for place, (law, level) in enumerate(laws):
            if verdicts.get(law) == verdict:
                notes = [_VERDICTS[verdict]] if verdict in _VERDICTS else []
                for stronger, above in laws[:place]:
                    if verdicts.get(stronger) in _VERDICTS:
                        notes.append(f"{above} {_VERDICTS[verdicts[stronger]]}")
                return Value(level, "; ".join(notes))
    return Value("no")


def _broken(found: Sequence[Check], labels: dict[str, str]) -> Table | None:
    rows = [
        Row(
            labels[check.record.id],
            (Value(one.law), Value(one.detail)),
            origin=check.origin,
        )
        for check in found
        for one in check.broken
    ]
    if not rows:
        return None
    return Table(
        id="broken-claims",
        title="Claims that do not hold",
        caption=f"{count(len(rows), 'broken claim')}; python -m lra verify --impl NAME finds the "
        "smallest input again.",
        corner="mechanism",
        columns=("law", "difference"),
        rows=tuple(rows),
        numeric=False,
    )
