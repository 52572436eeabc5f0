"""Conformance checks: of each mechanism the newest, with the card that it was held against."""

from __future__ import annotations

from typing import Any

import msgspec

from lra.core.catalogue import EXACT
from lra.core.cells import VerifyCell
from lra.core.records import Record
from lra.report.load.select import Evidence

_SOFTMAX = "exact_softmax"
"""The law that it equals softmax attention where its card says so."""


class Check(msgspec.Struct, frozen=True):
    """The newest check of one mechanism on one device."""

    mechanism: str
    record: Record
    is_reference: bool
    held: int
    """Claims that held."""
    broken: tuple[str, ...]
    """Laws that are broken, by name."""

    @property
    def card(self) -> dict[str, Any]:
        """The declaration as plain data; empty in records of an earlier version."""
        card = self.record.method.get("card", {})
        return card if isinstance(card, dict) else {}

    @property
    def is_exact(self) -> bool:
        """Whether it is softmax attention in every configuration, by its card and by its check."""
        held = any(f.law == _SOFTMAX and f.verdict == "held" for f in self.record.findings)
        return held and self.card.get("softmax") == "always"


def checks(evidence: Evidence) -> dict[str, Check]:
    """Return the newest check of each mechanism by name; the run's before the reference's, and a
    CPU's before a GPU's."""
    found: dict[str, Check] = {}
    for records, is_reference in ((evidence.reference_checks, True), (evidence.checks, False)):
        for record in sorted(records, key=_age, reverse=True):
            cell = record.cell
            assert isinstance(cell, VerifyCell), "only checks have findings"
            if record.status == "ok" and not cell.laws and cell.case is None:
                name = cell.mechanism.name
                if name not in found or found[name].is_reference != is_reference:
                    found[name] = _check(record, name, is_reference)
    return dict(sorted(found.items()))


def exact_mechanisms(evidence: Evidence) -> frozenset[str]:
    """Return the names of mechanisms that are exact attention, computed in whatever way."""
    return frozenset({EXACT, *(c.mechanism for c in checks(evidence).values() if c.is_exact)})


def _check(record: Record, name: str, is_reference: bool) -> Check:
    return Check(
        mechanism=name,
        record=record,
        is_reference=is_reference,
        held=sum(finding.verdict == "held" for finding in record.findings),
        broken=tuple(f.law for f in record.findings if f.verdict == "failed"),
    )


def _age(record: Record) -> tuple[bool, str, str]:
    cell = record.cell
    assert isinstance(cell, VerifyCell), "only checks have findings"
    return cell.device == "cpu", record.started_at, record.id
