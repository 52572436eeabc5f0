"""The data of a run: mapped from where it lies, or made first."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import msgspec

from lra.core import catalogue, loading
from lra.core.dataset import SPLITS, Dataset
from lra.core.errors import DataError, UsageError
from lra.core.protocol import DataSpec
from tasks.contract import Task
from tasks.sources.data_hash import level
from tasks.sources.facts import refuse_unfit, whole_set
from tasks.sources.files import expanded
from tasks.sources.prepared import open_kept, open_prepared
from tasks.sources.preparing import (
    QUIET,
    Watch,
    cut_pieces,
    generated_pieces,
    make_set,
    read_pieces,
    stretches,
)


def built(reference: str, spec: DataSpec) -> Task:
    """Return the task of a set; `reference` is as `lra.core.catalogue.find` knows it.

    Raises `UsageError` for parameters that it has not.
    """
    kind = cast(type[Task], loading.load(catalogue.find("task", reference)))
    try:
        config = msgspec.convert(spec.parameters, kind.Config)
    except msgspec.ValidationError as error:
        raise UsageError(f"task '{spec.task}': {error}; fix its parameters") from error
    return kind(config, length=spec.length, rules=spec.rules)


def open_or_prepare(
    task: Task, spec: DataSpec, source: str | None, folder: Path, watch: Watch = QUIET
) -> Dataset:
    """Return the data that `spec` describes, from `folder` if it lies there already.

    `source` is what `--data` said, None for generated data. A prepared real set is mapped where it
    lies, unless its sequences have to be cut. Where two processes want the same set, one makes it
    and the other waits. Raises `DataError` where the input or the prepared set is damaged.
    """
    if folder.is_dir():
        try:
            return open_kept(folder)
        except DataError as error:
            # A record keeps no path, so that its reader has to be told where to look.
            raise DataError(f"{error}; 'lra doctor' says where the cache is") from error
    facts = None if source is None else whole_set(source)
    if source is not None and facts is not None:
        asked = level(spec.task, spec.parameters)
        refuse_unfit(facts, source, spec.task, spec.rules, task.length, asked)
        there = _share(open_prepared(expanded(source)), spec, task.length)
        _refuse_other_classes(task, there, source)
        if all(split.lengths.max() <= task.length for _, split in there):
            return there
        pieces = partial(cut_pieces, task, there)
    elif source is not None:
        pieces = partial(read_pieces, task, source, spec.rows)
    else:
        due = stretches(task, spec.rows)
        pieces = partial(generated_pieces, due, lambda number: due[number].made(task))
    what, real = f"'{source}'", source is not None
    make_set(task, spec.task, folder, folder.name, pieces, what=what, real=real, watch=watch)
    return open_prepared(folder)


def _refuse_other_classes(task: Task, data: Dataset, source: str) -> None:
    """Raise `DataError` where a prepared set was made for other classes than the task asks for."""
    due = task.real_dataset(dict(data)).classes
    if data.classes != due:
        raise DataError(
            f"'{source}' was prepared for {data.classes} classes, not for {due}; prepare it again "
            f"with the parameters of the task and --out ANOTHER_FOLDER"
        )


def _share(data: Dataset, spec: DataSpec, length: int) -> Dataset:
    """The first rows of each split, views of what is there."""

    train, validation, test = (data.split(name).first(spec.rows.of(name)) for name in SPLITS)
    return replace(data, length=length, train=train, validation=validation, test=test)
