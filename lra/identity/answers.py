"""Answers of the probe: a line for each case."""

from __future__ import annotations

from lra.core.protocol import Frozen
from lra.core.versions import Versions


class CaseOutcome(Frozen, frozen=True, kw_only=True):
    """The outcome of one case."""

    case: str
    about: str
    """The feature to bump where the case moves by itself."""
    uses: tuple[str, ...]
    """Features that move it too."""
    versions: Versions
    """Versions of all of them."""
    bits: str
    """Digest of all figures, to the last bit."""
    entered: tuple[str, ...]
    """Functions that it called, as `lra.identity.sources` names them."""
    failure: str = ""
    """The exception that it raised, if any."""
