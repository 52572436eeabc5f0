"""The fork server: one group per worker, every ending told, nothing outlives its maker."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path

import pytest
from processes import alive, gone, wait_until

from lra.core.errors import LraError
from lra.engine.process.launch import ForkServer, Worker

ENTRY = "light_entry"


@pytest.fixture(scope="module")
def light() -> Iterator[ForkServer]:
    with ForkServer(ENTRY) as server:
        yield server


def follow(worker: Worker) -> Worker:
    """Wait for a worker's end."""
    while not worker.ended:
        assert wait([worker.fileno()], timeout=20), "the worker does not end"
        worker.poll()
    return worker


def forked(worker: Worker) -> int:
    """Wait for a worker's pid."""
    while worker.pid is None:
        assert wait([worker.fileno()], timeout=20)
        worker.poll()
    return worker.pid


def test_a_worker_answers_and_ends_with_zero(light: ForkServer) -> None:
    worker = light.start(b"echo hello there")
    assert worker.connection.recv_bytes() == b"hello there"
    assert follow(worker).exit_code == 0
    assert 0.0 < worker.ended_at - worker.forked_at < 20.0
    worker.close()


def test_a_worker_leads_a_group_of_its_own(light: ForkServer) -> None:
    worker = light.start(b"facts")
    group, parent, default_sigterm = worker.connection.recv_bytes().decode().split()
    pid = forked(worker)
    assert int(group) == pid
    assert int(parent) not in (os.getpid(), 1)
    assert default_sigterm == "True"
    follow(worker).close()


@pytest.mark.parametrize(
    ("order", "code"),
    [
        (b"exit 0", 0),
        (b"exit 7", 7),
        (b"raise trouble", 1),
        (b"kill 9", -signal.SIGKILL),
        (b"kill 11", -signal.SIGSEGV),
        (b"kill 15", -signal.SIGTERM),
    ],
)
def test_every_ending_comes_with_its_code(light: ForkServer, order: bytes, code: int) -> None:
    worker = follow(light.start(order))
    assert worker.exit_code == code
    worker.close()


def test_what_a_worker_prints_is_in_its_tail_and_only_there(
    light: ForkServer, capfd: pytest.CaptureFixture[str]
) -> None:
    worker = follow(light.start(b"print words"))
    assert worker.tail() == "words\nWORDS\n"
    assert worker.tail(size=8) == "WORDS\n", "no half of a line"
    assert worker.tail(size=6, after=6) == "WORDS\n"
    assert capfd.readouterr() == ("", "")
    worker.close()
    assert worker.tail() == ""


def test_killing_a_worker_kills_its_group(light: ForkServer) -> None:
    worker = light.start(b"child")
    child = int(worker.connection.recv_bytes())
    pid = forked(worker)
    worker.kill()
    assert follow(worker).exit_code == -signal.SIGKILL
    assert gone([pid, child])
    worker.close()


def test_what_a_worker_leaves_behind_ends_with_it(light: ForkServer) -> None:
    worker = light.start(b"orphan")
    child = int(worker.connection.recv_bytes())
    assert follow(worker).exit_code == 0
    assert gone([child])
    worker.close()


def test_closing_the_server_ends_everything_and_leaves_no_files() -> None:
    with ForkServer(ENTRY) as server:
        worker = server.start(b"child")
        pids = [int(worker.connection.recv_bytes()), forked(worker)]
        folder = worker.log.parent
        assert folder.is_dir()
    assert gone(pids)
    assert not folder.exists()
    worker.close()


def test_temporary_files_of_a_killed_worker_go_with_the_server() -> None:
    with ForkServer(ENTRY) as server:
        worker = server.start(b"temporary")
        left = Path(worker.connection.recv_bytes().decode())
        forked(worker)
        worker.kill()
        follow(worker)
        assert left.is_dir()
    assert not left.exists()
    worker.close()


def test_workers_end_with_a_server_that_is_killed() -> None:
    with ForkServer(ENTRY) as server:
        worker = server.start(b"sleep")
        assert worker.connection.recv_bytes() == b"asleep"
        pid = forked(worker)
        os.kill(server._process.pid, signal.SIGKILL)
        assert follow(worker).exit_code is None
        assert gone([pid])
        worker.close()
        with pytest.raises(LraError, match="was killed"):
            server.start(b"sleep")


MAKER = """
import sys
sys.path[:0] = sys.argv[1:]
from lra.engine.process.launch import ForkServer
server = ForkServer("light_entry")
worker = server.start(b"child")
child = worker.connection.recv_bytes().decode()
worker.poll()
print(server._process.pid, worker.pid, child, worker.log.parent, flush=True)
input()
"""


def make() -> subprocess.Popen[str]:
    folders = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
    return subprocess.Popen(
        [sys.executable, "-c", MAKER, *folders],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to its parent")
def test_a_worker_ends_with_its_server_though_nobody_is_left_to_kill_it() -> None:
    with make() as maker:
        assert maker.stdout is not None
        server, worker, child, folder = maker.stdout.readline().split()
        # A maker that cannot react, as if both had been killed at once.
        os.kill(maker.pid, signal.SIGSTOP)
        os.kill(int(server), signal.SIGKILL)
        ended = gone([int(worker)])
        maker.kill()
        os.kill(int(child), signal.SIGKILL)
        shutil.rmtree(folder)
    assert ended


def test_nothing_outlives_a_maker_that_is_killed() -> None:
    with make() as maker:
        assert maker.stdout is not None
        *pids, folder = maker.stdout.readline().split()
        assert all(alive(int(pid)) for pid in pids)
        maker.kill()
        assert gone(int(pid) for pid in pids)
    assert wait_until(lambda: not Path(folder).exists())


def test_an_entry_that_cannot_be_imported_says_why() -> None:
    words = r"No module named 'no_such_entry'.*lra doctor"
    with ForkServer("no_such_entry") as server, pytest.raises(LraError, match=words):
        # Where the server is quick to die, asking it raises; where it is slow, the worker never is.
        worker = server.start(b"sleep")
        follow(worker).close()
        assert worker.pid is None
        raise server.lost()


def test_closing_a_server_that_still_imports_does_not_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imports_long.py").write_text("import time\ntime.sleep(5)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    server = ForkServer("imports_long")
    server.close()
    # Had it been waited for, it would have ended by itself.
    assert server._process.returncode == -signal.SIGKILL


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="Linux only")
def test_the_real_server_has_one_thread_so_that_forking_it_is_safe(server: ForkServer) -> None:
    # A worker starts only after all imports: it fails at once on what is no job.
    worker = follow(server.start(b"no job"))
    assert worker.exit_code == 1
    assert "DecodeError" in worker.tail() or "ValidationError" in worker.tail()
    worker.close()
    threads = list(Path(f"/proc/{server._process.pid}/task").iterdir())
    assert len(threads) == 1


def test_the_parents_side_never_imports_torch() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import lra.store, lra.engine.process.pool\n"
        "import lra.engine.plan.describe, lra.engine.machine.host\n"
        "print(sorted({'torch', 'numpy', 'pandas', 'datasets'} & set(sys.modules)))"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code, root], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done
