"""What identifies data: the hash that goes into a record and names a prepared set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from lra.core.errors import DataError
from lra.core.hashing import file_hash, source_hash, value_hash
from lra.core.protocol import Rows, Rules
from tasks.sources.files import HUB, hashed_files, readable

_READ: dict[str, tuple[str, ...]] = {
    "bytes": ("file",),
    "image": ("file", "hub"),
    "listops": ("file",),
    "path_x": ("file",),
    "pathfinder": ("file",),
    "pathfinder256": ("file",),
    "pathfinder64": ("file",),
    "recall": (),
    "retrieval": ("file",),
    "text": ("file", "hub"),
}
"""What the tasks here read; what others read is not known before they are asked."""


_LOADING = ("load", "parts", "cut", "joined", "_left")
"""Methods of a task that generated data does not pass through."""


def source_kind(source: str | None) -> Literal["generated", "file", "hub"]:
    """Return what kind of source `--data` names; None is the generator."""
    if source is None:
        return "generated"
    return "hub" if source.startswith(HUB) else "file"


def data_hash(
    task_file: Path,
    task: str,
    *,
    length: int,
    rows: Rows,
    rules: Rules,
    parameters: Mapping[str, Any],
    source: str | None = None,
) -> str:
    """Return the hash of a set of data.

    Generated: of the task's and generators' sources and all parameters, but not of how the task
    loads real data. From files: of the bytes of every file that is read, by name, and of the task's
    and readers' sources, not the generators'; where the files lie does not count. From the hub: of
    the content, which is fetched. How examples are shown never counts. `DataError` where there is
    nothing, and before anything is hashed where the task does not read such a source.
    """
    kind = source_kind(source)
    if source is not None:
        _refuse_unread(source, kind, task)
    content: list[Any] = []
    if source is not None and kind == "file":
        for name, path in hashed_files(source, task):
            with readable(path):
                content.append((name, file_hash(path)))
    elif source is not None:
        from tasks.sources.hub import content_hash

        content = [content_hash(source, task)]
    modules, methods = ["tasks._shown"], ["shown"]
    if kind == "generated":
        modules, methods = (
            [*modules, "tasks.sources"],
            [*methods, *_LOADING],
        )
    else:
        modules, methods = [*modules, "tasks.generators"], [*methods, "generate"]
    return value_hash(
        {
            "sources": source_hash(task_file, leave_out=modules, methods=methods),
            "task": task,
            "length": length,
            "rows": rows,
            "rules": rules,
            "parameters": dict(parameters),
            "content": content,
        }
    )


def _refuse_unread(source: str, kind: str, task: str) -> None:
    read = _READ.get(task, (kind,))
    if not read:
        raise DataError(
            f"{task} reads no real data yet (asked for '{source}'); "
            f"leave out --data to use its generator"
        )
    if kind not in read:
        raise DataError(f"{task} is not read from the hub ('{source}'); give a file or a folder")
