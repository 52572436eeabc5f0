"""Error text as it may be published: the words without the places."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

_QUOTED = re.compile(
    r"""(?P<quote>["'`])(?:/|[A-Za-z]:\\)[^"'`\n]*[/\\](?P<name>[^"'`/\\\n]*)(?P=quote)"""
)
"""A path in quotes may hold spaces."""
_BARE = re.compile(r"""(?<![\w.:/\\-])(?:/|[A-Za-z]:\\)(?:[^\s"'`:;,()<>|/\\]+[/\\])+""")
"""The folders of an absolute path outside quotes."""


def strip_paths(text: str, known: Iterable[str] = ()) -> str:
    """Return text with each absolute path cut down to its last part.

    `known` paths (the data's, the cache's) are cut wherever they stand, spaces and all; so are the
    home, the current and the temporary folder.
    """
    places = {*known, str(Path.home()), str(Path.cwd()), tempfile.gettempdir()}
    for place in sorted(places, key=len, reverse=True):
        if "/" in place.rstrip("/"):
            # What lies below stays an absolute path without spaces, for the patterns to cut.
            text = text.replace(f"{place.rstrip('/')}/", "/~/")
            text = re.sub(rf"{re.escape(place.rstrip('/'))}(?![\w-])", Path(place).name, text)
    text = _QUOTED.sub(r"\g<quote>\g<name>\g<quote>", text)
    return _BARE.sub("", text)


def one_line(error: BaseException) -> str:
    """Return an exception's text on one line, its class where it has none."""
    return " ".join(str(error).split()) or type(error).__name__
