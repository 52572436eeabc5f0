"""A report, or the card of a mechanism, as one self-contained HTML page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lra.core.escape import escape_controls
from lra.report.model import Figure, Report, Row
from lra.report.plots.style import MARKS, Looks, inline

if TYPE_CHECKING:
    from jinja2 import Environment

    from lra.report.cards import Card

_TEMPLATES = Path(__file__).with_name("templates")
_NONE: Mapping[str, str] = {}
CARDS = "mechanisms"
"""Folder of the cards beside the page."""


def report_html(report: Report, looks: Looks, cards: Mapping[str, str] = _NONE) -> str:
    """Return the page: nothing is fetched, and all text from records is escaped.

    Rows of mechanisms link to their `cards`, files by name. The script sorts and filters tables;
    without it the page reads the same.
    """
    return _render("report.html", looks, report=report, cards=cards, home="", folder=f"{CARDS}/")


def card_html(
    card: Card, looks: Looks, cards: Mapping[str, str] = _NONE, home: str = "../index.html"
) -> str:
    """Return the page of one mechanism, for the folder of cards; `home` is the place of the report,
    "" where there is none."""
    return _render("card.html", looks, card=card, cards=cards, home=home, folder="")


def _render(name: str, looks: Looks, **values: Any) -> str:
    from markupsafe import Markup

    markers = list(MARKS)

    def drawing(figure: Figure) -> Markup:
        return Markup(inline(figure.svg, f"plot-{figure.id}", figure.alt))

    def colour(row: Row) -> str:
        return looks.of(row.mechanism, row.variant).colour

    def mark(row: Row) -> int:
        return 1 + markers.index(looks.of(row.mechanism, row.variant).marker)

    template = _environment().get_template(name)
    return template.render(
        drawing=drawing, marks=MARKS, colour=colour, mark=mark, sorted_by=_sorted_by, **values
    )


def _sorted_by(number: float) -> str:
    """A number as JavaScript reads it."""
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return f"{number:.6g}"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_visible,
    )


def _visible(value: Any) -> Any:
    """A text of somebody's own with its invisible characters as escapes; markup unchanged."""
    return escape_controls(value) if type(value) is str else value
