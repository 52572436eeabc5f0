"""Data sets of the Hugging Face hub, through `datasets`, which is imported only here."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lra.core.dataset import SPLITS, SplitName
from lra.core.errors import DataError
from tasks.sources.files import HUB, SPLIT_WORDS

if TYPE_CHECKING:
    import pyarrow as pa

_PATIENCE = 10.0
"""Seconds in which a hub must begin to answer."""
_PROXY_REFUSES = HTTPStatus.PROXY_AUTHENTICATION_REQUIRED


def load_hub(reference: str, task: str) -> dict[str, pa.Table]:
    """Return the splits of `hub:NAME` or `hub:NAME@REVISION` as Arrow tables, by the hub's names.

    Downloads go to the cache of `datasets`. Raises `DataError` when nothing is named, the hub
    cannot be reached, or has no such data set or one that is a script or cannot be parsed; `task`
    is the one that `--data` named.
    """
    name, _, revision = reference.removeprefix(HUB).partition("@")
    if not name.strip():
        raise DataError(
            f"'{reference}' names no data set; write hub:NAME or hub:NAME@REVISION", reached=False
        )

    import datasets

    try:
        with _asked_once(name):
            loaded = datasets.load_dataset(name, revision=revision or None)
    except ConnectionError as error:
        raise DataError(
            f"{reference}: the hub cannot be reached; give a local file with --data {task}=PATH "
            f"or leave --data out for the stand-in",
            reached=False,
        ) from error
    except RuntimeError as error:
        if not str(error).startswith("Dataset scripts"):
            raise
        raise DataError(
            f"{reference}: the set is a script, which 'datasets' no longer runs; "
            f"try {HUB}{name}@refs/convert/parquet, or give a local file with --data {task}=PATH",
            reached=False,
        ) from error
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        # Where a set does not parse, `datasets` says why in the error's cause alone.
        reason = (str(error.__cause__ or error).splitlines() or ["no reason given"])[0]
        raise DataError(
            f"{reference}: {reason}; check the name, or give a local file with --data {task}=PATH",
            reached=False,
        ) from error
    return {str(split): data.with_format("arrow")[:] for split, data in loaded.items()}


def hub_splits(reference: str, task: str) -> dict[SplitName, dict[str, pa.Table]]:
    """Return the tables with rows of each split by what errors call them; raises as `load_hub`
    does, and `DataError` where train or test has none."""
    tables = load_hub(reference, task)
    found: dict[SplitName, dict[str, pa.Table]] = {}
    for name, table in tables.items():
        if name in SPLIT_WORDS and table.num_rows:
            found.setdefault(SPLIT_WORDS[name], {})[f"{reference}, split {name}"] = table
    for needed in ("train", "test"):
        if needed not in found:
            raise DataError(
                f"{reference} has no {needed} split, only {', '.join(sorted(tables))}; "
                f"choose a data set with train and test"
            )
    return {split: found[split] for split in SPLITS if split in found}


@contextmanager
def _asked_once(name: str) -> Iterator[None]:
    """Leave out the retries of a hub that does not answer, and the lines about them.

    Sets in its library's cache are found all the same. All is as it was after the call. Raises
    `ConnectionError` where the way to the hub breaks off.
    """
    from datasets import config
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError

    # From the client that this version has: requests, httpx or their like.
    client_error: type[Exception] = HfHubHTTPError.__mro__[1]
    logger = logging.getLogger("huggingface_hub")
    before = logger.level, constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE
    try:
        logger.setLevel(logging.ERROR)
        if not (constants.HF_HUB_OFFLINE or Path(name).exists() or _answers(constants.ENDPOINT)):
            constants.HF_HUB_OFFLINE = config.HF_HUB_OFFLINE = True
        yield
    except client_error as error:
        # The hub's own refusals are an OSError.
        if isinstance(error, OSError):
            raise
        raise ConnectionError(str(error)) from error
    finally:
        logger.setLevel(before[0])
        constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE = before[1:]


def _answers(address: str) -> bool:
    """Whether the hub answers at all, by the library's own way there (proxies, certificates); a
    server or a proxy that says it cannot ask the hub is no answer."""
    from huggingface_hub import get_session

    try:
        status = get_session().head(address, timeout=_PATIENCE).status_code
    except Exception:
        # Which exceptions there are depends on the version: of requests, httpx or their like.
        return False
    return bool(status < HTTPStatus.INTERNAL_SERVER_ERROR and status != _PROXY_REFUSES)


def content_hash(reference: str, task: str) -> str:
    """Return a hash of all rows of a data set of the hub, whatever its revision is called."""
    digest = hashlib.sha256()
    for split, table in sorted(load_hub(reference, task).items()):
        digest.update(msgspec.json.encode([split, table.schema.names]))
        for batch in table.to_batches(max_chunksize=1024):
            for row in batch.to_pylist():
                digest.update(msgspec.json.encode(row))
    return digest.hexdigest()
