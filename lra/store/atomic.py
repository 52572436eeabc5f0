"""Atomic writes: files that are whole or absent, even where the writer is killed."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(file: Path, data: bytes) -> None:
    """Write a file in its folder under a temporary name, sync it, rename it and sync the folder.

    Raises `OSError`; the file is then as before.
    """
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
        _sync_folder(file.parent)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _sync_folder(path: Path) -> None:
    """Make a rename survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
