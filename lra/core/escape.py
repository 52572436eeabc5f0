"""Text from elsewhere, made safe to show: invisible characters as escapes.

A name, a message or a setting may hold line breaks, marks that turn the direction of the text, or
characters of no width, so that one text passes for another. All text that is printed, or written
for a person, goes through here last.
"""

from __future__ import annotations

import re

_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0e\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Characters printable by Unicode's categories, and yet invisible: fillers, joiners, selectors."""


def escape_controls(text: str) -> str:
    """Return a text on one line: line breaks and other invisible characters as escapes."""
    if text.isascii() and text.isprintable():
        # Nearly all texts are, and a report has hundreds of thousands.
        return text
    shown = "".join(c if c.isprintable() else _escape_character(c) for c in text)
    return _BLANK.sub(lambda match: _escape_character(match[0]), shown)


def escape_lines(text: str) -> str:
    """Return a text of several lines with invisible characters as escapes; line breaks stay."""
    return "\n".join(map(escape_controls, text.split("\n")))


def _escape_character(character: str) -> str:
    return character.encode("unicode_escape").decode()
