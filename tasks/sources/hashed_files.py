"""The files that a source is read from, by names that stay when it is moved."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from lra.core.errors import DataError
from tasks.sources.cifar10_files import picture_set
from tasks.sources.files import existing, hidden, readable, source_files
from tasks.sources.pair_files import pair_files
from tasks.sources.plain_text import text_files

_FINDERS: dict[str, Callable[[str], Sequence[Path]]] = {
    "bytes": lambda source: text_files(source).files,
    "image": lambda source: picture_set(source).files,
    "listops": lambda source: source_files(source, "listops").files,
    "retrieval": lambda source: pair_files(source).files,
    "text": lambda source: source_files(source, "text").files,
}
"""How readers of the tasks here find their files, for tasks whose files a source alone tells."""


def hashed_files(source: str, task: str) -> list[tuple[str, Path]]:
    """Return the name (relative, fixed) and path of every file that a source is read from.

    How a task from elsewhere reads a folder is not known here: there all files count.
    """
    path = existing(source)
    if task in _FINDERS:
        files = _FINDERS[task](source)
    elif path.is_file():
        files = source_files(source, task).files
    else:
        with readable(path):
            inside = [
                Path(folder, name)
                # Into folders that are links, too, as whoever opens what is in them goes.
                for folder, _, names in os.walk(path, onerror=_raise, followlinks=True)
                for name in names
            ]
            files = [file for file in inside if file.is_file() and not hidden(file)]
    if not files:
        raise DataError(f"folder '{source}' is empty; check the path")
    root = path if path.is_dir() else path.parent
    return sorted((file.relative_to(root).as_posix(), file) for file in files)


def _raise(error: OSError) -> None:
    raise error
