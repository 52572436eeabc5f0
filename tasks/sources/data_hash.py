"""Hashes of data: of the content of real sets, and of all that a set in the cache was made by."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from lra.core.catalogue import names
from lra.core.errors import DataError
from lra.core.hashing import file_hash, source_hash, value_hash
from lra.core.protocol import DataSpec, Rules
from tasks.sources.cifar10_files import picture_set
from tasks.sources.facts import refuse_changed, refuse_unfit, whole_set
from tasks.sources.files import HUB, existing, expanded, hidden, readable, source_files
from tasks.sources.meeting_files import meeting_files
from tasks.sources.pair_files import pair_files
from tasks.sources.pathfinder_files import HARDEST, level_files, paddles_of
from tasks.sources.plain_text import text_files

_FROM_HUB = frozenset(("image", "text"))
"""Tasks here that the hub has sets for."""

_PATHFINDER = frozenset(("path_x", "pathfinder", "pathfinder256", "pathfinder64"))
"""Tasks whose files are those that `tasks.sources.pathfinder_files` finds."""

_FINDERS: dict[str, Callable[[str], Sequence[Path]]] = {
    "bytes": lambda source: text_files(source).files,
    "image": lambda source: picture_set(source).files,
    "listops": lambda source: source_files(source, "listops").files,
    "query_span": lambda source: [file for of in meeting_files(source).values() for file in of],
    "retrieval": lambda source: pair_files(source).files,
    "text": lambda source: source_files(source, "text").files,
}
"""How readers of the tasks here find their files, for tasks whose files a source alone tells."""

_MAKING = ("generate", "generate_part", "part_rows")
_LOADING = ("parts", "wanted", "cut", "joined")
"""Methods of a task that real data, or generated data, does not pass through."""
_ANSWERING = ("solve", "floor", "rules_of_thumb")
"""Methods that no data passes through before it is there."""


def source_kind(source: str | None) -> Literal["generated", "file", "hub"]:
    """Return what kind of source `--data` names; None is the generator.

    A prepared set is of the kind of the source that it was made from.
    """
    if source is None:
        return "generated"
    if source.startswith(HUB):
        return "hub"
    facts = whole_set(source)
    return facts.origin.source if facts is not None and facts.origin is not None else "file"


def content_hash(
    source: str, task: str, *, length: int, rules: Rules, parameters: Mapping[str, Any]
) -> str:
    """Return the hash of the content of real data.

    From files: of the bytes of every file that is read, by name; where the files lie does not
    count. From the hub: of the rows, which are fetched. From a prepared set: of the hash that
    stands in its facts, whose files have to be those that were written. `DataError` where there is
    nothing, and before anything is hashed where the task does not read such a source.
    """
    facts = whole_set(source)
    if facts is None or facts.origin is None:
        return value_hash(source_content(source, task, length, parameters))
    refuse_unfit(facts, source, task, rules, length, level(task, parameters))
    refuse_changed(facts, expanded(source))
    return value_hash(["prepared", facts.origin.hash])


def prepared_name(task_file: Path, spec: DataSpec) -> str:
    """Return what the cache calls the set of `spec`: a hash of all that decides its bytes.

    The sources of the generator or the readers count, so that no set is read that another version
    of them made. The order of tokens is put in as they are read.
    """
    sources = generator_hash(task_file) if spec.source == "generated" else readers_hash(task_file)
    return value_hash([sources, msgspec.structs.replace(spec, order="given")])


def level(task: str, parameters: Mapping[str, Any]) -> int | None:
    """Return how many paddles the paths of a real set are to have; None if it is not Pathfinder."""
    if task not in _PATHFINDER:
        return None
    return int(parameters.get("contour_length") or HARDEST)


def source_level(source: str, task: str, length: int, parameters: Mapping[str, Any]) -> int | None:
    """Return how many paddles the paths of a real set have; None if it is not Pathfinder."""
    asked = level(task, parameters)
    return None if asked is None else paddles_of(source, math.isqrt(length), asked)


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


def source_content(source: str, task: str, length: int, parameters: Mapping[str, Any]) -> list[Any]:
    """Return what tells a real source from others: its files by name and hash, or one hash of the
    hub's rows. Where every image has the same size, `length` and `parameters` say which set is
    read. `DataError` where there is nothing, or the task does not read such a source."""
    refuse_unread(source, task)
    if source.startswith(HUB):
        from tasks.sources.hub import content_hash

        return [content_hash(source, task)]
    paddles = level(task, parameters)
    if paddles is None:
        files = hashed_files(source, task)
    else:
        files = level_files(source, math.isqrt(length), paddles)
    content: list[Any] = []
    for name, path in files:
        with readable(path):
            content.append((name, file_hash(path)))
    return content


def generator_hash(task_file: Path) -> str:
    """Return the hash of the source code by which a task generates data."""
    return source_hash(
        task_file,
        leave_out=["tasks._preview", "tasks.sources"],
        methods=["shown", *_LOADING, *_ANSWERING],
    )


def readers_hash(task_file: Path) -> str:
    """Return the hash of the source code by which a task reads real data."""
    return source_hash(
        task_file,
        leave_out=["tasks._preview", "tasks.generators"],
        methods=["shown", *_MAKING, *_ANSWERING],
    )


def answers_hash(task_file: Path) -> str:
    """Return the hash of the source code by which a task answers without a model: its own rule and
    its rules of thumb, whose scores records of simple baselines repeat."""
    return source_hash(
        task_file, leave_out=["tasks._preview"], methods=["shown", *_MAKING, *_LOADING]
    )


def refuse_unread(source: str, task: str) -> None:
    """Raise `DataError` where a task does not read what `source` names."""
    here = task in _FINDERS or task in _PATHFINDER
    # Tasks from elsewhere say so themselves when they read.
    if not here and task in names("task"):
        raise DataError(
            f"{task} reads no real data yet (asked for '{source}'); where none is named its "
            f"generator is used"
        )
    if source.startswith(HUB) and here and task not in _FROM_HUB:
        raise DataError(f"{task} is not read from the hub ('{source}'); give a file or a folder")
