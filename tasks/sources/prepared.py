"""Prepared sets: a task's data as Arrow files on disk, read back without a copy.

A set lies in a folder: train.arrow, validation.arrow and test.arrow (Arrow IPC, one record batch
each: `tokens` and `label`, lists of labels where each token has one) and facts.json. The trainer's
arrays are views of the memory-mapped files, so a set is loaded in milliseconds and shared by all
workers of a machine.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lra.core.dataset import SPLITS, UNASKED, Dataset, Split, SplitName
from lra.core.hashing import checksum, value_hash
from lra.core.protocol import Rules
from tasks.sources.facts import Facts, damaged, read_facts, refuse_changed, split_file


def write_set(data: Dataset, task: str, folder: Path) -> Facts:
    """Write the files of a set into an empty folder, all but facts.json; return its facts."""
    for name, split in data:
        _write(split, split_file(folder, name))
    return Facts(
        task=task,
        classes=data.classes,
        vocabulary=data.vocabulary,
        length=data.length,
        inputs=data.inputs,
        by_token=data.test.by_token,
        parts=data.parts,
        rows={name: len(split) for name, split in data},
        bytes={name: split_file(folder, name).stat().st_size for name in SPLITS},
        checksums={name: checksum(split_file(folder, name)) for name in SPLITS},
    )


def open_kept(folder: Path) -> Dataset:
    """Map a set of the cache into memory, where folders are called by the key of their set.

    Raises `DataError` as `open_prepared` does, and where the set is that of another folder.
    """
    if read_facts(folder).key not in ("", folder.name):
        raise damaged(folder, "it holds another set")
    return open_prepared(folder)


def open_prepared(folder: Path) -> Dataset:
    """Map a prepared set into memory; `DataError` if a file is missing, cut short or unreadable, is
    not the one that was written, or holds what no model of the set can take."""
    facts = read_facts(folder)
    refuse_changed(facts, folder)
    splits = {name: _read(folder, facts, name) for name in SPLITS}
    data = Dataset(
        **splits,
        classes=facts.classes,
        vocabulary=facts.vocabulary,
        length=facts.length,
        inputs=facts.inputs,
        parts=facts.parts,
    )
    for name, split in data:
        if what := misfit(data, split):
            raise damaged(folder, f"{split_file(folder, name).name} {what}")
    return data


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def buffers_hash(data: Dataset, task: str, rules: Rules) -> str:
    """Return a hash of what a set holds, whatever wrote its files."""
    told: list[object] = [task, rules]
    for name, split in data:
        for array in (split.tokens, split.starts, split.labels):
            told.append((name, str(array.dtype), hashlib.sha256(array.data).hexdigest()))
    return value_hash(told)


def misfit(data: Dataset, split: Split) -> str:
    """Return in words what a split holds that no model of its set can take; empty if nothing.

    Out of bounds, a row would ask for memory that no machine has, and a token or a label would
    read beside a table.
    """
    starts = split.starts
    if len(starts) and (starts[0] or np.any(np.diff(starts) < 0)):
        return "has rows that do not follow each other"
    if len(split) and int(split.lengths.max()) > data.length:
        return (
            f"has a row of {split.lengths.max()} tokens, longer than the {data.length} of the set"
        )
    token = _outside(split.tokens, 0, data.vocabulary)
    if token is not None:
        return f"has the token {token}, outside 0 to {data.vocabulary - 1}"
    label = _outside(split.labels, UNASKED if split.by_token else 0, data.classes)
    if label is not None:
        return f"has the label {label}, outside 0 to {data.classes - 1}"
    if split.has_source and _asks_of_sources(split):
        return "has a label at a token of a source, where nothing is asked"
    return ""


def _asks_of_sources(split: Split) -> bool:
    """Whether the first sequence of an example has a label."""
    asked = np.append(0, np.cumsum(split.labels != UNASKED))
    return bool(np.any(asked[split.starts[1::2]] > asked[split.starts[:-1:2]]))


def _outside(values: npt.NDArray[np.integer], lowest: int, end: int) -> int | None:
    """The lowest or highest value that is below `lowest` or not below `end`; None if none is."""
    if not len(values):
        return None
    # Nothing to read where the type has no such values.
    kind = np.iinfo(values.dtype)
    if kind.min < lowest and (least := int(values.min())) < lowest:
        return least
    if kind.max >= end and (most := int(values.max())) >= end:
        return most
    return None


def _write(split: Split, path: Path) -> None:
    tokens, labels = _by_sequence(split, split.tokens), pa.array(split.labels)
    if split.by_token:
        labels = _by_sequence(split, split.labels)
    batch = pa.record_batch({"tokens": tokens, "label": labels})
    with pa.OSFile(os.fspath(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _by_sequence(split: Split, values: npt.NDArray[np.integer]) -> pa.Array:
    """One value for each token as lists, one for each example."""
    lists = pa.LargeListArray.from_arrays(pa.array(split.starts), pa.array(values))
    if split.inputs == 1:
        return lists
    return pa.FixedSizeListArray.from_arrays(lists, split.inputs)


def _read(folder: Path, facts: Facts, name: SplitName) -> Split:
    """Views of one file's buffers; they keep the mapping open as long as they live."""
    path = split_file(folder, name)
    try:
        with pa.memory_map(os.fspath(path)) as source:
            batch = pa.ipc.open_file(source).get_batch(0)
        tokens, labels = batch.column("tokens"), batch.column("label")
        if pa.types.is_fixed_size_list(tokens.type) != (facts.inputs > 1):
            raise damaged(folder, f"facts.json says another number of inputs than {path.name} has")
        if pa.types.is_integer(labels.type) == facts.by_token:
            raise damaged(folder, f"facts.json says other labels than {path.name} has")
        if len(batch) != facts.rows[name]:
            raise damaged(folder, f"{path.name} has {len(batch)} of {facts.rows[name]} rows")
        if facts.inputs > 1:
            tokens = tokens.values
        if facts.by_token:
            labels = (labels.values if facts.inputs > 1 else labels).values
        return Split(
            tokens.values.to_numpy(zero_copy_only=True),
            tokens.offsets.to_numpy(zero_copy_only=True),
            labels.to_numpy(zero_copy_only=True),
            facts.inputs,
            facts.by_token,
        )
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise damaged(folder, f"{path.name} is missing or unreadable") from error
