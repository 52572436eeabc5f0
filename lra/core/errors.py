"""Errors that a person can act on: fault, place and remedy, in one line.

Anything that is not an `LraError` is a bug and keeps its traceback.
"""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

LISTED = 40
"""Most names that an error lists."""


class LraError(Exception):
    """A failure that the user can mend; the command line prints its text as one line."""

    exit_code = 2


class UsageError(LraError):
    """A name, key, flag or value that does not exist or does not fit."""


class UnsupportedError(LraError):
    """A request outside the mechanism's card."""


class DataError(LraError):
    """A data file is missing or malformed; names the file, the row and the remedy."""

    def __init__(self, message: str, *, reached: bool = True, once: str = "") -> None:
        super().__init__(message)
        self.reached = reached
        """Whether data was looked at; False for a hub that does not answer, or for a size that such
        data lacks. The data may be sound then."""
        self.once = once
        """A name for a fault that many rows share and one remedy mends; empty where each row has a
        fault of its own."""


class StoreError(LraError):
    """The record store cannot be read, written or locked."""


LONGEST = 300
"""Most characters of a message: about four lines of a terminal."""
_LONG = re.compile(r"[^\s'\"]{81,}|'[^']{81,}'|\"[^\"]{81,}\"")
"""A quoted text, or one without a space, too long for a message."""

OURS = frozenset(
    kind.__name__ for kind in (LraError, UsageError, UnsupportedError, DataError, StoreError)
)
"""Names of these classes, left out of messages: the text says as much."""


def system_reason(error: OSError) -> str:
    """Return why the system refused, in words for the middle of a sentence."""
    return (error.strerror or str(error)).lower()


def is_full(error: OSError) -> bool:
    """Return whether a disk, a quota or a limit has no room left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def truncate(text: str) -> str:
    """Return a message of at most `LONGEST` characters. A longer one loses the middles of long
    names and quotations, then its own: it begins with the fault and ends with the remedy."""
    if len(text) <= LONGEST:
        return text
    text = _LONG.sub(lambda found: without_middle(found[0], 60), text)
    return without_middle(text, LONGEST)


def without_middle(text: str, most: int) -> str:
    """Return at most so many characters of a text, two thirds of them from its beginning."""
    if len(text) <= most:
        return text
    end = most // 3
    return f"{text[: most - end - 3]}...{text[-end:]}"


@contextmanager
def ensure_readable(what: str) -> Iterator[None]:
    """Raise `UsageError` where the system refuses to look at `what`, a file or folder in words."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{what} cannot be read: {system_reason(error)}; check the path and its permissions"
        ) from error


def closest_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the known name most like this one, if any is close. Letters in another order are the
    likeliest slip: `preformer` is `performer`.

    A prefix that ends in a colon, as in `peer:name`, does not count.
    """
    prefix = name[: name.find(":") + 1]
    bare = name.removeprefix(prefix)
    whole = {one.removeprefix(prefix): one for one in sorted(known)}
    swapped = [one for one in whole if sorted(one) == sorted(bare)]
    alike = swapped or difflib.get_close_matches(bare, whole, n=1, cutoff=0.5)
    return [whole[one] for one in alike[:1]]


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for an unknown `name`, with the closest known one, or all if few.

    `kind` is the singular noun to print ("mechanism", "task", "scale", ...).
    """
    names = sorted(known)
    found = closest_names(name, names)
    if found:
        hint = f"did you mean '{found[0]}'?"
    elif len(names) > LISTED:
        hint = f"none of the {len(names)} there is like it; check the spelling"
    elif names:
        hint = f"choose from: {', '.join(names)}"
    else:
        hint = "there is none"
    return UsageError(f"unknown {kind} '{name}'; {hint}")
