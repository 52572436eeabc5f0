"""Headings of a report, no two of which are alike, so that a link and a caption name one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, count

import msgspec

from lra.report.table import Section
from lra.report.words import lowered


def distinct(sections: Sequence[Section]) -> list[Section]:
    """Return the sections with the titles of tables and figures told apart.

    Where several share one, it ends in what the title of its section has behind the colon, else in
    all of that; the first, where its section has no colon, is left as it is.
    """
    titles = Counter(title for section in sections for title in _titles(section))
    shared = {title for title, number in titles.items() if number > 1}
    used = titles.keys() - shared

    def told(title: str, section: Section) -> str:
        if title not in shared:
            return title
        found = next(name for name in _names(title, section) if name not in used)
        used.add(found)
        return found

    replace = msgspec.structs.replace
    return [
        replace(
            section,
            tables=tuple(replace(one, title=told(one.title, section)) for one in section.tables),
            figures=tuple(replace(one, title=told(one.title, section)) for one in section.figures),
        )
        for section in sections
    ]


def _titles(section: Section) -> list[str]:
    return [table.title for table in section.tables] + [one.title for one in section.figures]


def _names(title: str, section: Section) -> Iterator[str]:
    """What a title may be, the best first."""
    setting = section.title.partition(": ")[2]
    whole = f"{title}: {lowered(section.title)}"
    best = [f"{title}: {setting}" if setting else title, whole]
    return chain(best, (f"{whole} ({number})" for number in count(2)))
