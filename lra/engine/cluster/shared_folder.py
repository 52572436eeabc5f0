"""The folder that all machines share: the store, with its checkpoints and logs."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lra.core.errors import StoreError, system_reason
from lra.core.protocol import Frozen

_LOGGERS = ("distributed", "tornado", "asyncio", "lra.cluster")


class SharedFolder(Frozen, frozen=True):
    """A store's folder, with a token in it that shows a worker that it sees the same one."""

    path: str
    """Absolute path, the same on all machines."""
    token: str

    @property
    def token_file(self) -> Path:
        """File that is there while a run uses the folder."""
        return Path(self.path) / f".cluster-{self.token}"

    def problem(self) -> str:
        """Return why this machine cannot use the folder, to follow a worker's name; empty if it
        can."""
        if not self.token_file.is_file():
            return (
                f"does not see the store '{self.path}'; mount it there, or choose another --store"
            )
        trial = Path(self.path) / "checkpoints" / f".{uuid.uuid4().hex}.tmp"
        try:
            trial.parent.mkdir(exist_ok=True)
            trial.touch()
            trial.unlink()
        except OSError as error:
            why = system_reason(error)
            return f"cannot write to the store '{self.path}': {why}; mend its permissions"
        return ""

    def log(self, name: str) -> Path:
        """Return the log file of a worker, or of the scheduler."""
        plain = "".join(sign if sign.isalnum() else "-" for sign in name).strip("-")
        return Path(self.path) / "logs" / f"{plain}.log"


@contextmanager
def share(store: Path) -> Iterator[SharedFolder]:
    """Make a store's folder, and keep a token in it while the context lasts.

    Raises `StoreError` where the folder cannot be made or written.
    """
    folder = SharedFolder(str(store.resolve()), uuid.uuid4().hex)
    try:
        folder.log("").parent.mkdir(parents=True, exist_ok=True)
        with folder.token_file.open("x") as stream:
            os.fsync(stream.fileno())
    except OSError as error:
        raise StoreError(
            f"cannot write to the store '{store}': {system_reason(error)}; "
            "choose another --store or mend its permissions"
        ) from error
    try:
        yield folder
    finally:
        with suppress(OSError):
            folder.token_file.unlink(missing_ok=True)


@contextmanager
def log_to(file: Path) -> Iterator[None]:
    """Send this process's log, Dask's and the cells', to a file alone, while the context lasts."""
    handler = logging.FileHandler(file, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [(one.handlers[:], one.propagate) for one in loggers]
    for one in loggers:
        one.handlers, one.propagate = [handler], False
    try:
        yield
    finally:
        for one, (handlers, propagate) in zip(loggers, before, strict=True):
            one.handlers, one.propagate = handlers, propagate
        handler.close()
