"""Errors that a person can act on: what went wrong, where, and what to do, in one line.

Anything that is not an `LraError` is a bug and keeps its traceback.
"""

from __future__ import annotations

import difflib
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
    """A mechanism was asked for something that its card does not claim."""


class DataError(LraError):
    """A data file is missing or malformed; names the file, the row and the remedy."""

    def __init__(self, message: str, *, reached: bool = True) -> None:
        super().__init__(message)
        self.reached = reached
        """False where no data was looked at: a hub that does not answer, or a size that is asked
        for and that no such data has. The data may be sound."""


class StoreError(LraError):
    """The record store cannot be read, written or locked."""


LONGEST = 300
"""Most characters of a message: about four lines of a terminal."""
_LONG = re.compile(r"[^\s'\"]{81,}|'[^']{81,}'|\"[^\"]{81,}\"")
"""A quoted text, or one without a space, that is too long to be read in a message."""

OURS = frozenset(
    kind.__name__ for kind in (LraError, UsageError, UnsupportedError, DataError, StoreError)
)
"""Names of these classes, which say nothing to a person that the text does not."""


def system_reason(error: OSError) -> str:
    """Return why the system refused, in words for the middle of a sentence."""
    return (error.strerror or str(error)).lower()


def truncate(text: str) -> str:
    """Return a message of at most `LONGEST` characters: of a longer one, long names and quotations
    without their middles, then the message without its own. It begins with what is wrong and ends
    with what to do.
    """
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
    """Return the known name that is most like this one, if any is; `preformer` is `performer`, for
    the same letters in another order are the likeliest slip.

    A prefix that ends in a colon, as in `peer:name`, is no likeness.
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
