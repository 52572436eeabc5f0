"""The first screen: at most five sentences, the trade-off figure and the leaderboard."""

from __future__ import annotations

from lra.report.analysis import Analysis
from lra.report.model import Headline

EMPTY = "There is no record to report: run python -m lra run --impl performer, then report again."


def headline(analysis: Analysis) -> Headline:
    """Return the first screen of a report."""
    return Headline(sentences=(EMPTY,))


def spoken(analysis: Analysis) -> tuple[tuple[str, ...], str]:
    """Return the sentences and the small table to print."""
    first = headline(analysis)
    return (*first.sentences, *first.caveats), ""
