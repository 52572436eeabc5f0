"""Conformance checks: the newest of each mechanism, with the card that it was held against."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from lra.core.catalogue import EXACT
from lra.core.cells import VerifyCell
from lra.core.findings import Finding
from lra.core.peers import PREFIX
from lra.core.records import Record
from lra.report.load.measurement import Origin, variant_id
from lra.report.load.select import Evidence
from lra.report.load.versions import pairs

_SOFTMAX = "exact_softmax"
"""Name of the law that a mechanism equals softmax attention where its card says so."""


class Check(msgspec.Struct, frozen=True):
    """The newest whole check of one mechanism with one configuration on one device."""

    record: Record
    origin: Origin

    @property
    def cell(self) -> VerifyCell:
        """Cell of the check."""
        assert isinstance(self.record.cell, VerifyCell), "only checks have findings"
        return self.record.cell

    @property
    def mechanism(self) -> str:
        """Name of the mechanism."""
        return self.cell.mechanism.name

    @property
    def variant(self) -> str:
        """Id of the mechanism with its configuration."""
        return variant_id(self.cell.mechanism.name, self.cell.mechanism.config)

    @property
    def is_peer(self) -> bool:
        """Whether the mechanism is a public package's."""
        return self.mechanism.startswith(PREFIX)

    @property
    def held(self) -> int:
        """Number of claims that held."""
        return sum(finding.verdict == "held" for finding in self.record.findings)

    @property
    def broken(self) -> tuple[Finding, ...]:
        """Claims that do not hold."""
        return tuple(f for f in self.record.findings if f.verdict == "failed")

    @property
    def card(self) -> dict[str, Any]:
        """Declaration as plain data; empty in records of an earlier version."""
        card = self.record.method.get("card", {})
        return card if isinstance(card, dict) else {}

    @property
    def is_exact(self) -> bool:
        """Whether the mechanism is softmax attention in every configuration, by its card and by
        this check."""
        held = any(f.law == _SOFTMAX and f.verdict == "held" for f in self.record.findings)
        return held and self.card.get("softmax") == "always"


def checks(evidence: Evidence) -> list[Check]:
    """Return the checks of a report, sorted by mechanism, configuration and device; the reference's
    only for mechanisms that the run did not check."""
    own = _newest(evidence.checks, "run")
    known = {check.mechanism for check in own}
    rest = [c for c in _newest(evidence.reference_checks, "reference") if c.mechanism not in known]
    return sorted([*own, *rest], key=lambda c: (c.mechanism, c.variant, c.cell.device))


def check_of(found: Iterable[Check]) -> dict[str, Check]:
    """Return one check of each mechanism, the first of several, which is a CPU's before a GPU's."""
    by_name: dict[str, Check] = {}
    for check in found:
        by_name.setdefault(check.mechanism, check)
    return by_name


def exact_mechanisms(found: Iterable[Check]) -> frozenset[str]:
    """Return the names of mechanisms that are exact attention, however computed."""
    return frozenset({EXACT, *(check.mechanism for check in found if check.is_exact)})


def _newest(records: Iterable[Record], origin: Origin) -> list[Check]:
    """Newest check of each variant and device; a full one that ended well is kept over a later
    short one of the same sources and torch."""
    found: dict[tuple[str, str], Check] = {}
    for record in sorted(records, key=lambda r: (r.started_at, r.id)):
        one = Check(record, origin)
        if one.cell.laws or one.cell.case is not None:
            continue
        key = one.variant, one.cell.device
        older = found.get(key)
        if older is None or one.cell.form == "full" or not _is_fuller(older, one):
            found[key] = one
    return [*found.values()]


def _is_fuller(older: Check, short: Check) -> bool:
    same = (pairs(older.cell), older.cell.torch) == (pairs(short.cell), short.cell.torch)
    return same and older.cell.form == "full" and older.record.status == "ok"
