"""One warm process for the commands of these tests: `import torch` was most of what they took.

Its forks run cells and describe modules as the processes do that a command starts itself.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from lra.engine.plan import describe, introspect
from lra.engine.process import launch, worker
from lra.engine.process.launch import ForkServer, Worker


class _Where(msgspec.Struct):
    """State that a fork takes over from the test that wants it."""

    folder: str
    path: list[str]
    describes: bool
    """Or else runs a cell."""


class Warm(ForkServer):
    """A fork server that outlives the commands which close it."""

    def __init__(self) -> None:
        super().__init__(__name__)

    def start(self, payload: bytes) -> Worker:
        """Fork a worker for a job."""
        found = self._fork(describes=False)
        found.connection.send_bytes(payload)
        return found

    def describing(self, *_: object, **__: object) -> Fork:
        """Fork a child of a `Describer`."""
        return Fork(self._fork(describes=True))

    def _fork(self, *, describes: bool) -> Worker:
        where = _Where(str(Path.cwd()), sys.path, describes)
        return super().start(msgspec.json.encode(where))

    def close(self) -> None:
        """Stay; `end` ends it."""

    def end(self) -> None:
        """End the server and all that it has forked."""
        super().close()

    def put(self, patch: pytest.MonkeyPatch) -> None:
        """Take the place of the processes that commands start."""
        patch.setattr(launch, "ForkServer", lambda: self)
        popen = SimpleNamespace(**{**vars(subprocess), "Popen": self.describing})
        patch.setattr(describe, "subprocess", popen)


class Fork:
    """A fork with as much of `subprocess.Popen` as a `Describer` asks for."""

    def __init__(self, forked: Worker) -> None:
        self._forked = forked
        ends = forked.connection.fileno()
        self.stdin = os.fdopen(os.dup(ends), "wb")
        self.stdout = os.fdopen(os.dup(ends), "rb")
        # The child sees the end of its questions when both are closed.
        forked.connection.close()

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit code; raises `subprocess.TimeoutExpired`."""
        while not self._forked.ended:
            self._hear(timeout)
        return self._forked.exit_code

    def kill(self) -> None:
        """Kill it."""
        while self._forked.pid is None and not self._forked.ended:
            self._hear(None)
        self._forked.kill()

    def _hear(self, timeout: float | None) -> None:
        if not select.select([self._forked], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
        self._forked.poll()
        if self._forked.ended:
            self._forked.close()


def main(connection: Connection) -> None:
    """Run a cell, or describe modules, where the test is."""
    where = msgspec.json.decode(connection.recv_bytes(), type=_Where)
    os.chdir(where.folder)
    sys.path[:] = where.path
    if not where.describes:
        worker.main(connection)
        return
    for standard in (0, 1):
        os.dup2(connection.fileno(), standard)
    introspect.main()
