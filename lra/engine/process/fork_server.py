"""The fork server's own process: imports what workers need, computes nothing, forks on request.

A fork of a process that has computed hangs in the thread pools it inherits; one that has only
imported is safe, and starts in hundredths of a second instead of the seconds of `import torch`.

Requests come over a socket as three descriptors: the worker's connection, a status pipe and a log.
The status pipe gets two (integer, time) pairs: the pid at the fork, the exit code at the end. When
the other end of the socket closes, however its process died, all workers' groups are killed.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib
import os
import select
import shutil
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

STATUS = struct.Struct("qd")
"""Message of two numbers: pid or exit code (negative: killed by that signal), and CLOCK_MONOTONIC
in seconds."""

_PR_SET_PDEATHSIG = 1


def serve(control_fd: int, entry: str, folder: str) -> None:
    """Fork a worker for each request until the control socket closes, then remove `folder`.

    A worker runs `main(connection)` of the module `entry`.
    """
    control = socket.socket(fileno=control_fd)
    # Signals for a whole terminal, process group or cgroup are for the run, which tells its
    # workers; if this process ended, they would be killed before they have saved anything.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # The collector never writes to frozen objects, so that forks go on sharing them.
    gc.disable()
    importlib.import_module(entry)
    gc.freeze()
    _serve(control, entry)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _serve(control: socket.socket, entry: str) -> None:
    status_of: dict[int, int] = {}
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write)
    while True:
        ready, _, _ = select.select([control.fileno(), wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
            _reap(status_of)
        if control.fileno() not in ready:
            continue
        request, fds, _, _ = socket.recv_fds(control, 1, 3)
        if not request:
            break
        connection_fd, status_fd, log_fd = fds
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            for fd in (control.detach(), wake_read, wake_write, status_fd, *status_of.values()):
                os.close(fd)
            _become_worker(server, entry, connection_fd, log_fd)
        # Here and in the worker: whoever is first, it is never seen outside its group.
        with suppress(OSError):
            os.setpgid(pid, pid)
        os.close(connection_fd)
        os.close(log_fd)
        status_of[pid] = status_fd
        _send_event(status_fd, pid)
    for pid in status_of:
        kill_group(pid)


def _reap(status_of: dict[int, int]) -> None:
    for pid in list(status_of):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            # Processes that a worker left behind in its group end with it.
            kill_group(pid)
            status_fd = status_of.pop(pid)
            _send_event(status_fd, os.waitstatus_to_exitcode(status))
            os.close(status_fd)


def _send_event(status_fd: int, number: int) -> None:
    with suppress(BrokenPipeError):
        os.write(status_fd, STATUS.pack(number, time.monotonic()))


def kill_group(pid: int) -> None:
    """Kill a worker and all processes that it started, but for those that left its process
    group."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _become_worker(server: int, entry: str, connection_fd: int, log_fd: int) -> None:
    """Run the entry's `main` in this forked process, and end the process."""
    code = 1
    try:
        os.setpgid(0, 0)
        die_with_parent(server)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
        os.close(log_fd)
        faulthandler.enable()
        _prefer_for_oom_kill()
        gc.enable()
        importlib.import_module(entry).main(Connection(connection_fd))
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        # No interpreter shutdown: a crash there would count as the cell's.
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies; only Linux can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _prefer_for_oom_kill() -> None:
    """Let the kernel, short of memory, kill this process rather than the run."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
