"""The run's side of the fork server and its workers. Never torch."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType

from lra.core.errors import LraError
from lra.core.paths import real_path
from lra.engine.process.error_text import whole_lines
from lra.engine.process.fork_server import STATUS, kill_group
from lra.engine.process.temporary import TemporaryFolder, sweep

ENTRY = "lra.engine.process.worker"
"""Module that a worker runs; imported by name, so that the run never imports torch."""
_TAIL = 16_384
"""Bytes read from the end of a log: four times as much as a record keeps, since masking shortens
it."""


class Worker:
    """One process of the fork server, from request to end."""

    def __init__(self, connection: Connection, status_fd: int, log: Path) -> None:
        self.connection: Connection = connection
        self.log = log
        self.pid: int | None = None
        """Process id; None until the server has forked."""
        self.forked_at = 0.0
        """Time of the fork by time.monotonic()."""
        self.ended_at = 0.0
        self.exit_code: int | None = None
        """Exit code; negative: killed by that signal. None while it runs, and where the server
        died."""
        self.ended = False
        self._status_fd = status_fd

    def fileno(self) -> int:
        """Descriptor that is ready to read when there is news for `poll`."""
        return self._status_fd

    def poll(self) -> None:
        """Read the server's news; call when `fileno` is ready."""
        data = os.read(self._status_fd, STATUS.size)
        if len(data) < STATUS.size:
            self.ended = True
            self.ended_at = time.monotonic()
            self.kill()
        elif self.pid is None:
            self.pid, self.forked_at = STATUS.unpack(data)
        else:
            self.exit_code, self.ended_at = STATUS.unpack(data)
            self.ended = True

    def stop(self) -> None:
        """Ask the worker to save its checkpoint and end."""
        if self.pid is not None and not self.ended:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the worker and all processes that it started, but for those that left its process
        group."""
        if self.pid is not None and self.exit_code is None:
            kill_group(self.pid)

    def written(self) -> int:
        """Return how many bytes it wrote to its standard output and error."""
        with suppress(OSError):
            return self.log.stat().st_size
        return 0

    def tail(self, size: int = _TAIL, *, after: int = 0) -> str:
        """Return the end of its output, in whole lines, without its first `after` bytes."""
        with suppress(OSError), self.log.open("rb") as stream:
            start = max(after, stream.seek(0, os.SEEK_END) - size)
            stream.seek(start)
            text = stream.read().decode(errors="replace")
            return text if start == after else whole_lines(text)
        return ""

    def close(self) -> None:
        """Give back descriptors and log."""
        self.connection.close()
        os.close(self._status_fd)
        self.log.unlink(missing_ok=True)


class ForkServer:
    """A process that imports what workers need, never computes, and forks workers.

    It imports in the background: make it early, and start workers later. Close it, or use it as a
    context; when its maker dies in any way, it ends with all its workers.
    """

    def __init__(self, entry: str = ENTRY) -> None:
        self._entry = entry
        self._started = 0
        sweep()
        self._scratch = TemporaryFolder()
        self._folder = self._scratch.path
        self._control, theirs = socket.socketpair()
        with theirs, self._log.open("wb") as log:
            call = f"serve({theirs.fileno()}, {entry!r}, {str(self._folder)!r})"
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from lra.engine.process.fork_server import serve; {call}"],
                # Files that a worker leaves among temporary ones go with this folder.
                env=environment() | {"TMPDIR": str(self._folder)},
                # The server removes the folder where this process is killed.
                pass_fds=[theirs.fileno(), self._scratch.mark],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start(self, payload: bytes) -> Worker:
        """Ask for a worker and send it its first message; returns before it has been forked."""
        self._started += 1
        log = self._folder / f"{self._started}.log"
        ours, theirs = socket.socketpair()
        status_read, status_write = os.pipe()
        worker = Worker(Connection(ours.detach()), status_read, log)
        try:
            stream = log.open("wb")
        except OSError:
            # The fault of this worker alone: the server lives on.
            worker.close()
            theirs.close()
            os.close(status_write)
            raise
        try:
            with theirs, stream:
                fds = [theirs.fileno(), status_write, stream.fileno()]
                socket.send_fds(self._control, [b"f"], fds)
            worker.connection.send_bytes(payload)
        except OSError as error:
            worker.close()
            raise self.lost() from error
        finally:
            os.close(status_write)
        return worker

    def lost(self) -> LraError:
        """Return the error for a fork server that died, with the end of its output."""
        self._process.wait()
        with suppress(OSError):
            lines = self._log.read_text(errors="replace").strip().splitlines()
            if lines:
                return LraError(
                    f"the process that starts workers ended: {lines[-1]}; "
                    "run `python -m lra doctor` and mend the installation"
                )
        return LraError("the process that starts workers was killed; run the same command again")

    def close(self) -> None:
        """End the server and all its workers."""
        self._control.close()
        if not self._started:
            # Nothing to end, and while it imports it would not see the closed socket.
            self._process.kill()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._scratch.close()

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _log(self) -> Path:
        return self._folder / "server.log"


def environment() -> dict[str, str]:
    """Return the environment of the server and its workers.

    The same modules as here, whatever lies in the current folder; no threads started by libraries
    at import, which a fork would lose (a worker sets torch's own); nothing that touches CUDA at
    import; GPUs in the order in which the run names them; the same order of sets; output without
    delay.
    """
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(real_path(Path(entry))) for entry in sys.path),
        "PYTHONSAFEPATH": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    }
