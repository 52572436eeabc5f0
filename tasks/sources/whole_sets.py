"""Preparing a whole real source once, uncut: what runs at any length then share."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from lra.core.dataset import Dataset
from lra.core.errors import DataError
from lra.core.hashing import value_hash
from tasks.contract import Task
from tasks.sources.data_hash import readers_hash, source_content, source_kind, source_level
from tasks.sources.draft import writing
from tasks.sources.facts import (
    Facts,
    Origin,
    read_facts,
    split_file,
    whole_set,
)
from tasks.sources.files import readable
from tasks.sources.prepared import buffers_hash, file_sha256, open_prepared
from tasks.sources.preparing import QUIET, Watch, make_set, read_pieces


def prepare_whole(
    task: Task, named: str, task_file: Path, source: str, folder: Path, watch: Watch = QUIET
) -> bool:
    """Make the set of all rows of a real source in `folder`, or go on making it.

    `named` is the task's name. Returns False where the same set was there already. Raises
    `DataError` where the source is wrong, the disk is full, or the folder holds something else.
    """
    if whole_set(source) is not None:
        raise DataError(f"'{source}' is prepared already; give it to --data as it is")
    kind: Literal["file", "hub"] = "hub" if source_kind(source) == "hub" else "file"
    parameters = msgspec.to_builtins(task.config)
    content = source_content(source, named, task.length, parameters)
    asked: list[object] = [named, task.rules]
    if not task.cuttable:
        # Elsewhere they are of the generator alone, and of no account here.
        asked += [task.length, parameters]
    made_of, readers = value_hash([*content, *asked]), readers_hash(task_file)
    with writing(folder):
        is_folder, is_there = folder.is_dir(), folder.exists()
    if is_folder:
        _refuse_other(folder, named, made_of, readers)
        open_prepared(folder)
        return False
    if is_there:
        raise DataError(f"'{folder}' is a file; give --out a folder that is not there yet")

    def finish(data: Dataset, facts: Facts, files: Path) -> Facts:
        origin = Origin(
            rules=task.rules,
            source=kind,
            one_length=not task.cuttable,
            level=source_level(source, named, task.length, parameters),
            hash=buffers_hash(data, named, task.rules),
            made_of=made_of,
            readers=readers,
            sha256={name: file_sha256(split_file(files, name)) for name, _ in data},
        )
        longest = max(int(split.lengths.max()) for _, split in data)
        length = longest if task.cuttable else task.length
        return msgspec.structs.replace(facts, length=length, origin=origin)

    make_set(
        task,
        named,
        folder,
        value_hash([made_of, readers]),
        partial(read_pieces, task, source, None),
        what=f"'{source}'",
        real=True,
        finish=finish,
        watch=watch,
    )
    # Another process, for which this one waited, may have put another set there.
    _refuse_other(folder, named, made_of, readers)
    return True


def _refuse_other(folder: Path, task: str, made_of: str, readers: str) -> None:
    """Refuse a folder that does not hold the very set that is asked for."""
    with readable(folder):
        there = any(folder.iterdir())
        known = (folder / "facts.json").is_file()
    facts = read_facts(folder) if known else None
    if facts is None or facts.origin is None:
        what = "is no prepared set" if there else "is empty"
        raise DataError(f"'{folder}' {what}; give --out a folder that is not there yet")
    if facts.task != task:
        other = f"a set of {facts.task}"
    elif facts.origin.made_of != made_of:
        other = "a set of another source or other rules"
    elif facts.origin.readers != readers:
        other = "a set that other code has read"
    else:
        return
    raise DataError(
        f"'{folder}' holds {other}; remove it to prepare this one there, or give --out FOLDER"
    )
