"""Error text fit for publication: its words without paths and credentials."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from lra.core.errors import LraError
from lra.engine.process.secrets import mask_credentials

_START = r"(?:(?<![\w.:/\\-])|(?<=:)(?!//)|(?<=[^\w-]-[A-Za-z])|(?<=\A-[A-Za-z]))"
"""Start of an absolute path: not within an address or a relative path, but after a colon, as in a
list of folders, and after a compiler's flag of one letter."""
_DRIVE = r"[A-Za-z]:[\\/]{1,2}"
_PART = r"""[^\s"'`:;,()<>|/\\]+"""
_QUOTED = re.compile(
    rf"""(?P<quote>["'`])(?:/|{_DRIVE})[^"'`\n]*[/\\](?P<name>[^"'`/\\\n]*)(?P=quote)"""
)
"""A path in quotes may hold spaces."""
_BARE = re.compile(rf"{_START}(?://?|{_DRIVE})(?:{_PART}[/\\]{{1,2}})+")
"""Folders of an absolute path outside quotes."""
_HOME = re.compile(
    rf"(?:{_START}|(?<=file://)|(?<=:///)|(?<=\.\.))"
    rf"(?:/?(?:/{_PART}){{0,8}}?//?(?:homes?|[Uu]sers)//?{_PART}"
    # A name of two words only before a folder: elsewhere the second word belongs to the sentence.
    rf"|{_DRIVE}(?:Users|home)[\\/]{{1,2}}{_PART}(?:\ {_PART}(?=\\))?)"
)
"""Home of any user: it holds a name."""


def strip_paths(text: str, known: Iterable[str] = ()) -> str:
    """Return text with each absolute path cut down to its last part.

    `known` paths (the data's, the cache's) are cut wherever they stand, relative or absolute,
    spaces and all, and so are paths beside them; so are the home, the current and the temporary
    folder. The last part of a path stays, but for a home's: it is a person's name.
    """
    given = {Path(place) for place in known}
    beside = {path.parent for path in given if path.parent.name}
    places = {*given, *beside, Path.home(), Path.cwd(), Path(tempfile.gettempdir())}
    for place in sorted(places, key=lambda path: len(str(path)), reverse=True):
        if place == Path("/"):
            continue
        # A relative path starts where no other path goes on.
        start = "" if place.is_absolute() else r"(?<![\w./\\-])(?:\./)*"
        folder = start + re.escape(str(place))
        # A path below becomes absolute and without spaces, for the patterns to cut.
        text = re.sub(f"{folder}/", "/~/", text)
        if len(place.parts) > 1:
            name = "~" if place == Path.home() else place.name
            text = re.sub(rf"{folder}(?![\w-])", name.replace("\\", r"\\"), text)
    text = _HOME.sub("/~", text)
    text = _QUOTED.sub(r"\g<quote>\g<name>\g<quote>", text)
    return _BARE.sub("", text)


def publishable(text: str, known: Iterable[str] = ()) -> str:
    """Return text without credentials and paths, as a record holds it."""
    # Credentials first: one may contain a text like a path.
    return strip_paths(mask_credentials(text), known)


def whole_lines(end: str) -> str:
    """Return the end of a longer text without its first, partial line; of a single line without its
    first, partial word. Half a credential has no shape by which it could be masked."""
    half, _, lines = end.partition("\n")
    return lines or half.partition(" ")[2]


def one_line(error: BaseException) -> str:
    """Return an exception's text on one line; its class where it has no text or fails to give it.

    Characters outside Unicode, as in a file's name, become escapes: no record could hold them.
    """
    try:
        text = str(error)
    except Exception:  # somebody's own class
        text = ""
    words = " ".join(text.split()) or type(error).__name__
    return words.encode("utf-8", "backslashreplace").decode()


def named_line(error: BaseException) -> str:
    """Return an exception's text on one line, after its class unless that is ours: other texts
    alone may say little (`KeyError: 'q'`)."""
    words, name = one_line(error), type(error).__name__
    return words if isinstance(error, LraError) or words == name else f"{name}: {words}"
