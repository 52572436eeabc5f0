"""Answers of the probe: a line for each case."""

from __future__ import annotations

from lra.core.protocol import Frozen
from lra.core.versions import Versions


class Answer(Frozen, frozen=True, kw_only=True):
    """The outcome of one case."""

    case: str
    about: str
    """The feature to bump where the case moves by itself."""
    uses: tuple[str, ...]
    """Features that move it too."""
    versions: Versions
    """Of all of them."""
    bits: str
    """Digest of all figures, to the last bit."""
    entered: tuple[str, ...]
    """Functions that it called, as `lra.identity.sources` names them."""
    failure: str = ""
    """What it raised, where it did."""
