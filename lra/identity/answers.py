"""Outcomes of the probe's cases, a line each."""

from __future__ import annotations

from lra.core.protocol import Frozen
from lra.core.versions import Versions


class CaseOutcome(Frozen, frozen=True, kw_only=True):
    """The outcome of one case."""

    case: str
    about: str
    """Feature to bump where the case moves by itself."""
    uses: tuple[str, ...]
    """Other features that move the case."""
    versions: Versions
    """Versions of all these features."""
    bits: str
    """Digest of all figures, to the last bit."""
    entered: tuple[str, ...]
    """Functions that it entered, by their names in `lra.identity.sources`."""
    failure: str = ""
    """Exception that it raised, if any."""
