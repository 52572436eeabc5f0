"""The files that a source is read from, by names that stay when it is moved."""

from __future__ import annotations

import os
from pathlib import Path

from lra.core.errors import DataError
from tasks.sources.files import STEMS, existing, hidden, readable, source_files
from tasks.sources.pair_files import pair_files

_PAIR_TASKS = {"retrieval"}
"""Tasks whose files are those that `tasks.sources.pair_files` finds."""


def hashed_files(source: str, task: str) -> list[tuple[str, Path]]:
    """Return the name (relative, fixed) and path of every file that a source is read from.

    How a task from elsewhere reads a folder is not known here: there all files count.
    """
    path = existing(source)
    if task in _PAIR_TASKS:
        files = pair_files(source).files
    elif path.is_file() or task in STEMS:
        files = source_files(source, task).files
    else:
        with readable(path):
            files = [
                Path(folder, name)
                # Into folders that are links, too, as whoever opens what is in them goes.
                for folder, _, names in os.walk(path, onerror=_raise, followlinks=True)
                for name in names
            ]
            files = [file for file in files if file.is_file() and not hidden(file)]
    if not files:
        raise DataError(f"folder '{source}' is empty; check the path")
    root = path if path.is_dir() else path.parent
    return sorted((file.relative_to(root).as_posix(), file) for file in files)


def _raise(error: OSError) -> None:
    raise error
