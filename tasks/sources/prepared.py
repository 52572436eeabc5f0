"""Prepared sets: a task's data as Arrow files on disk, read back without a copy.

A set lies in a folder named by its hash: train.arrow, validation.arrow and test.arrow (Arrow IPC,
one record batch each: `tokens` and `label`, a list of labels where each token has one) and
facts.json. The trainer's arrays are views of the memory-mapped files, so a set is loaded in
milliseconds and shared by all workers of a machine.
"""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

import msgspec
import pyarrow as pa

from lra.core.dataset import SPLITS, Dataset, Split, SplitName
from lra.core.errors import DataError
from lra.core.protocol import DataSpec
from tasks.contract import Task

FORMAT = 2
"""Raised when the layout of the files changes."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What stands beside the buffers."""

    format: int = FORMAT
    task: str
    classes: int
    vocabulary: int
    length: int
    inputs: int
    by_token: bool
    rows: dict[SplitName, int]
    bytes: dict[SplitName, int]
    """Size of each split's file."""


def open_or_prepare(task: Task, spec: DataSpec, source: str | None, cache: Path) -> Dataset:
    """Return the data that `spec` describes, from `cache`/`spec.hash` if it lies there already.

    `source` is what `--data` said, None for generated data. Two processes may prepare the same set
    at once: each writes a folder of its own and the first to finish names it. Raises `DataError`
    where the input or the prepared set is damaged.
    """
    folder = cache / spec.hash
    if not folder.is_dir():
        data = task.generated(spec.rows) if source is None else task.load(source, spec.rows)
        prepare(data, spec.task, folder)
    return open_prepared(folder)


def prepare(data: Dataset, task: str, folder: Path) -> None:
    """Write a set under a temporary name and rename it; leave `folder` alone if it has appeared."""
    draft = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    try:
        draft.mkdir(parents=True)
        for name, split in data:
            _write(split, _file(draft, name))
        facts = Facts(
            task=task,
            classes=data.classes,
            vocabulary=data.vocabulary,
            length=data.length,
            inputs=data.inputs,
            by_token=data.test.by_token,
            rows={name: len(split) for name, split in data},
            bytes={name: _file(draft, name).stat().st_size for name in SPLITS},
        )
        (draft / "facts.json").write_bytes(msgspec.json.format(msgspec.json.encode(facts)))
        try:
            draft.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    except OSError as error:
        raise DataError(
            f"cannot write the prepared set '{folder}': {error.strerror or error}; free space "
            f"or choose another folder for prepared data"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def open_prepared(folder: Path) -> Dataset:
    """Map a prepared set into memory; `DataError` if a file is missing, cut short or unreadable."""
    try:
        facts = msgspec.json.decode((folder / "facts.json").read_bytes(), type=Facts)
    except (OSError, msgspec.DecodeError) as error:
        raise _damaged(folder, "facts.json is missing or unreadable") from error
    if facts.format != FORMAT:
        raise _damaged(folder, f"it has format {facts.format}, not {FORMAT}")
    splits = {name: _read(folder, facts, name) for name in SPLITS}
    return Dataset(
        **splits,
        classes=facts.classes,
        vocabulary=facts.vocabulary,
        length=facts.length,
        inputs=facts.inputs,
    )


def _file(folder: Path, name: SplitName) -> Path:
    return folder / f"{name}.arrow"


def _damaged(folder: Path, what: str) -> DataError:
    return DataError(f"prepared set '{folder}': {what}; delete this folder and run again")


def _write(split: Split, path: Path) -> None:
    tokens = pa.LargeListArray.from_arrays(pa.array(split.starts), pa.array(split.tokens))
    if split.inputs > 1:
        tokens = pa.FixedSizeListArray.from_arrays(tokens, split.inputs)
    labels = pa.array(split.labels)
    if split.by_token:
        labels = pa.LargeListArray.from_arrays(pa.array(split.starts), labels)
    batch = pa.record_batch({"tokens": tokens, "label": labels})
    with pa.OSFile(os.fspath(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _read(folder: Path, facts: Facts, name: SplitName) -> Split:
    """Views of one file's buffers; they keep the mapping open as long as they live."""
    path = _file(folder, name)
    try:
        size = path.stat().st_size
        if size != facts.bytes[name]:
            raise _damaged(folder, f"{path.name} has {size} of {facts.bytes[name]} bytes")
        with pa.memory_map(os.fspath(path)) as source:
            batch = pa.ipc.open_file(source).get_batch(0)
        tokens = batch.column("tokens")
        if facts.inputs > 1:
            tokens = tokens.values
        labels = batch.column("label")
        if facts.by_token:
            labels = labels.values
        return Split(
            tokens.values.to_numpy(zero_copy_only=True),
            tokens.offsets.to_numpy(zero_copy_only=True),
            labels.to_numpy(zero_copy_only=True),
            facts.inputs,
            facts.by_token,
        )
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise _damaged(folder, f"{path.name} is missing or unreadable") from error
