"""Batches of CIFAR-10 as its makers publish them: records of bytes, or pickles; and in an archive.

A record of the binary version has 3073 bytes: the label, then 1024 red, 1024 green and 1024 blue
values, row by row. A batch of the Python version is a dictionary with `data`, (N, 3072) uint8 in
that order, and `labels`. See https://www.cs.toronto.edu/~kriz/cifar.html.
"""

from __future__ import annotations

import gzip
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np

from lra.core.dataset import SplitName
from lra.core.errors import DataError
from tasks.contract import OnDefect
from tasks.sources.cifar10_pickle import unpickled
from tasks.sources.cifar10_pixels import PIXELS, Pictures, grey, labelled
from tasks.sources.files import unreadable

BATCHES: dict[SplitName, tuple[str, ...]] = {
    "train": tuple(f"data_batch_{number}" for number in range(1, 6)),
    "test": ("test_batch",),
}
"""The official files, in their order."""

BATCH = re.compile(r"(?P<batch>data_batch_[1-5]|test_batch)(?P<binary>\.bin)?(?:\.gz|\.xz)?")
"""The name of one of them; without `.bin` it is a pickle."""

_RECORD = 1 + 3 * PIXELS


def batch_pictures(name: str, content: bytes, binary: bool, on_defect: OnDefect) -> Pictures:
    """Return the pictures of a batch; `name` is what errors call it."""
    return (_records if binary else _pickle)(name, content, on_defect)


def archived_pictures(path: Path, split: SplitName, on_defect: OnDefect) -> Iterator[Pictures]:
    """Yield the batches of a split from a tar archive, in their order.

    The archive is read once from its beginning to its end, in whose order batches are not. Raises
    `DataError` where it is cut short or lacks one.
    """
    found: dict[str, list[Pictures]] = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                match = BATCH.fullmatch(PurePosixPath(member.name).name)
                # Not a link, which may lead nowhere.
                stream = archive.extractfile(member) if match and member.isreg() else None
                if match is None or stream is None or match["batch"] not in BATCHES[split]:
                    continue
                name, binary = f"{path}/{member.name}", match["binary"] is not None
                pictures = _member(name, match["batch"] in found, stream, binary, on_defect)
                found[match["batch"]] = [*found.get(match["batch"], []), *pictures]
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"'{path}' is cut short or damaged; download it again") from error
    except OSError as error:
        raise unreadable(path, error) from error
    for batch in BATCHES[split]:
        if batch not in found:
            on_defect(DataError(f"'{path}' holds no {batch}; download the official archive again"))
        yield from found.get(batch, [])


def _member(
    name: str, again: bool, stream: IO[bytes], binary: bool, on_defect: OnDefect
) -> list[Pictures]:
    """The batch of one file in an archive; none where the file is of no use."""
    try:
        if again:
            raise DataError(f"'{name}' is there twice; download the official archive again")
        return [batch_pictures(name, stream.read(), binary, on_defect)]
    except DataError as defect:
        on_defect(defect)
        return []


def _records(name: str, content: bytes, on_defect: OnDefect) -> Pictures:
    if not content or len(content) % _RECORD:
        raise DataError(
            f"'{name}' has {len(content)} bytes, which is no number of records of {_RECORD}; "
            f"copy or download it again"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, _RECORD)
    pixels = grey(records[:, 1:].reshape(-1, 3, PIXELS))
    return labelled(name, pixels, records[:, 0], on_defect)


def _pickle(name: str, content: bytes, on_defect: OnDefect) -> Pictures:
    batch = unpickled(name, content)
    data, labels = batch.get("data"), batch.get("labels")
    if (
        not isinstance(data, np.ndarray)
        or data.dtype != np.uint8
        or data.shape[1:] != (3 * PIXELS,)
        or not isinstance(labels, list)
        or not all(type(label) is int for label in labels)
    ):
        raise DataError(
            f"'{name}' has no 'data' of uint8 (N, {3 * PIXELS}) with a list of whole numbers "
            f"'labels'; download the official archive again"
        )
    if len(data) != len(labels) or not labels:
        raise DataError(
            f"'{name}' has {len(data)} pictures and {len(labels)} labels; copy or download it again"
        )
    pixels = grey(data.reshape(-1, 3, PIXELS))
    return labelled(name, pixels, np.array(labels), on_defect)
