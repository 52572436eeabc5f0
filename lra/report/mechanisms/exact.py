"""Which mechanisms are exact attention, computed in whatever way, as far as the records tell."""

from __future__ import annotations

from lra.core.cells import VerifyCell
from lra.core.records import Record
from lra.report.mechanisms.capabilities import newest_checks
from lra.report.rows import EXACT
from lra.report.select import Selection

_EQUAL, _GROWTH = "exact_softmax", "time_growth"
"""Laws: that it equals softmax attention where its card says so, and how its time grows."""
_ALL_PAIRS = "claimed: O(n m d)"


def exact_mechanisms(selection: Selection) -> frozenset[str]:
    """Return the names of those: `sdpa`, and what a check of the run or the reference tells of.

    A card may claim softmax attention always, or in one configuration alone, such as a window as
    wide as the input, and both are one law. What claims the time of all pairs, whatever its
    configuration, is taken to be it always; a mechanism without a check is none of them.
    """
    checks = (*newest_checks(selection.checks), *newest_checks(selection.reference_checks))
    return frozenset({EXACT, *(_name(record) for record in checks if _is_exact(record))})


def _name(record: Record) -> str:
    assert isinstance(record.cell, VerifyCell)
    return record.cell.mechanism.name


def _is_exact(record: Record) -> bool:
    found = {finding.law: finding for finding in record.findings}
    if _EQUAL not in found or _GROWTH not in found:
        return False
    return found[_EQUAL].verdict == "held" and found[_GROWTH].detail.endswith(_ALL_PAIRS)
