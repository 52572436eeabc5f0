"""The folder that all machines share: the store, where checkpoints and logs lie."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lra.core.errors import StoreError, system_reason
from lra.core.protocol import Frozen


class Shared(Frozen, frozen=True):
    """A store's folder as a worker is told of it, and the token by which it knows that folder."""

    folder: str
    """Absolute path, the same on all machines."""
    token: str

    def problem(self) -> str:
        """Return why this machine cannot use the folder, in words that follow a worker's name;
        empty where it can."""
        folder = Path(self.folder)
        try:
            found = (folder / _name(self.token)).read_text()
        except OSError:
            found = ""
        if found != self.token:
            return f"does not see the store '{folder}'; mount it there, or choose a shared --store"
        trial = folder / "checkpoints" / f".{uuid.uuid4().hex}.tmp"
        try:
            trial.parent.mkdir(exist_ok=True)
            trial.touch()
            trial.unlink()
        except OSError as error:
            why = system_reason(error)
            return f"cannot write to the store '{folder}': {why}; mend its permissions"
        return ""

    def log(self, name: str) -> Path:
        """Return the file that a worker of this name writes what it does to."""
        plain = "".join(sign if sign.isalnum() else "-" for sign in name).strip("-")
        return Path(self.folder) / "logs" / f"{plain}.log"


@contextmanager
def shared(store: Path) -> Iterator[Shared]:
    """Put a token into a store's folder, made where there is none, while the context lasts.

    Raises `StoreError` where that cannot be.
    """
    found = Shared(str(store.resolve()), uuid.uuid4().hex)
    file = Path(found.folder) / _name(found.token)
    try:
        found.log("").parent.mkdir(parents=True, exist_ok=True)
        file.write_text(found.token)
        with file.open() as stream:
            os.fsync(stream.fileno())
    except OSError as error:
        raise StoreError(
            f"cannot write to the store '{store}': {system_reason(error)}; "
            "choose another --store or mend its permissions"
        ) from error
    try:
        yield found
    finally:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def _name(token: str) -> str:
    return f".cluster-{token}"
