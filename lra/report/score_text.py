"""Scores as text, with the digits that their seeds and test rows support."""

from __future__ import annotations

import math

from lra.report.accuracy import Score
from lra.report.baselines import Simple
from lra.report.words import figures, percent

_COARSE = 0.005
"""Above this standard error of sampling an accuracy of one seed is told in whole percent."""


def score_text(place: Score, rows: int, is_loss: bool = False) -> str:
    """Return a score with the digits that its seeds and its number of test rows support."""
    if is_loss:
        return figures(place.mean, None if math.isnan(place.sd) else place.sd)
    if not math.isnan(place.sd):
        return percent(place.mean, place.sd)
    return f"{100 * place.mean:.0f}" if is_coarse(place, rows) else percent(place.mean)


def is_coarse(place: Score, rows: int) -> bool:
    """Whether an accuracy is of one seed and so few rows that it bears no decimal."""
    share = min(max(place.mean, 0.0), 1.0)
    return math.isnan(place.sd) and math.sqrt(share * (1.0 - share) / rows) > _COARSE


def shortcut_text(one: Simple, rows: int) -> str:
    """Return the accuracy of a baseline in percent, that of a control with as many digits as other
    trainings have."""
    return percent(one.value) if one.score is None else score_text(one.score, rows)
