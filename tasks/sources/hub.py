"""Data sets of the Hugging Face hub, through `datasets`, which is imported only here."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from lra.core.errors import DataError
from tasks.sources.files import HUB

if TYPE_CHECKING:
    import pyarrow as pa


def load_hub(reference: str, task: str) -> dict[str, pa.Table]:
    """Return the splits of `hub:NAME` or `hub:NAME@REVISION` as Arrow tables, by the hub's names.

    Downloads go to the cache of `datasets`. Raises `DataError` when nothing is named, the hub
    cannot be reached, or has no such data set or one that is a script or cannot be parsed; `task`
    is the one that `--data` named.
    """
    name, _, revision = reference.removeprefix(HUB).partition("@")
    if not name.strip():
        raise DataError(f"'{reference}' names no data set; write hub:NAME or hub:NAME@REVISION")

    import datasets

    try:
        loaded = datasets.load_dataset(name, revision=revision or None)
    except ConnectionError as error:
        raise DataError(
            f"{reference}: the hub cannot be reached; give a local file with --data {task}=PATH "
            f"or leave --data out for the stand-in"
        ) from error
    except RuntimeError as error:
        if not str(error).startswith("Dataset scripts"):
            raise
        raise DataError(
            f"{reference}: the set is a script, which 'datasets' no longer runs; "
            f"try {HUB}{name}@refs/convert/parquet, or give a local file with --data {task}=PATH"
        ) from error
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        # Of a set that does not parse, `datasets` says why in the error's cause alone.
        reason = (str(error.__cause__ or error).splitlines() or ["no reason given"])[0]
        raise DataError(
            f"{reference}: {reason}; check the name, or give a local file with --data {task}=PATH"
        ) from error
    return {str(split): data.with_format("arrow")[:] for split, data in loaded.items()}


def content_hash(reference: str, task: str) -> str:
    """Return a hash of all rows of a data set of the hub, whatever its revision is called."""
    digest = hashlib.sha256()
    for split, table in sorted(load_hub(reference, task).items()):
        digest.update(msgspec.json.encode([split, table.schema.names]))
        for batch in table.to_batches(max_chunksize=1024):
            for row in batch.to_pylist():
                digest.update(msgspec.json.encode(row))
    return digest.hexdigest()
