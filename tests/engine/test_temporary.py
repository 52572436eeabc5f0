"""Folders of temporary files: whatever ends their owner, the next run of the user removes them."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import gone

from lra.engine.process.launch import ForkServer
from lra.engine.process.temporary import TemporaryFolder, sweep


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


ROOT = Path(__file__).parents[2]
OF_WORKERS = {
    "lra/engine/process/torchrun.py",
    "lra/identity/data.py",
    "lra/identity/outcomes.py",
    "lra/measure/compiled.py",
    "lra/verify/made_again.py",
}
"""Files whose temporary folders lie in the folder of the server that started their process, or in
a process of `lra identity check`."""

OWNER = """
import sys
sys.path[:0] = sys.argv[1:]
from lra.engine.process.temporary import TemporaryFolder
from lra.engine.process.launch import ForkServer
other = TemporaryFolder("lra-cluster-")
server = ForkServer("light_entry")
worker = server.start(b"temporary")
compiled = worker.connection.recv_bytes()
worker.poll()
print(server._process.pid, worker.pid, flush=True)
input()
"""


@contextmanager
def owner(place: Path) -> Iterator[subprocess.Popen[str]]:
    folders = [str(ROOT), str(Path(__file__).parent)]
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", OWNER, *folders]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_what_a_kill_of_everything_leaves_goes_with_the_next_run(place: Path) -> None:
    with owner(place) as run:
        assert run.stdout is not None
        pids = [int(word) for word in run.stdout.readline().split()]
        # Both live.
        sweep()
        assert len(list(place.iterdir())) == 2
        # The maker cannot react, as if all had been killed at once.
        os.kill(run.pid, signal.SIGSTOP)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        run.kill()
    assert gone(pids)
    left = list(place.iterdir())
    assert len(left) == 2 and any(list(folder.glob("tmp*")) for folder in left)
    with ForkServer("light_entry") as server:
        (one,) = place.iterdir()
        assert one == server._folder
    assert not list(place.iterdir())


def test_nothing_of_a_run_makes_folders_that_no_run_would_sweep() -> None:
    made = {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "lra").rglob("*.py")
        if "TemporaryDirectory" in file.read_text(encoding="utf-8")
    }
    assert made == OF_WORKERS


def test_only_what_is_ours_and_left_is_removed(place: Path, tmp_path: Path) -> None:
    alive, left = TemporaryFolder(), TemporaryFolder()
    os.close(left.mark)
    (left.path / "beyond").symlink_to(tmp_path)
    (tmp_path / "kept").write_text("words")
    # A name alone, a link to a folder that was left, marks that are none.
    for name in ("lra-notes", "lra-linked-mark", "lra-piped-mark", "lra-new-one"):
        (place / name).mkdir()
    (place / "lra-a-file").touch()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".lra-owner").touch()
    (place / "lra-link").symlink_to(elsewhere)
    (place / "lra-linked-mark" / ".lra-owner").symlink_to(elsewhere / ".lra-owner")
    os.mkfifo(place / "lra-piped-mark" / ".lra-owner")
    (place / "lra-new-one" / ".lra-owner.new").touch()
    before = {entry.name for entry in place.iterdir()}
    sweep()
    assert {entry.name for entry in place.iterdir()} == before - {left.path.name}
    assert (elsewhere / ".lra-owner").is_file() and (tmp_path / "kept").is_file()
    alive.close()
    assert not alive.path.exists()


def test_anothers_folder_is_left(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = TemporaryFolder()
    os.close(left.mark)
    monkeypatch.setattr(os, "geteuid", lambda: left.path.stat().st_uid + 1)
    sweep()
    assert left.path.is_dir()
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    sweep()
    assert not left.path.exists()


def test_two_that_sweep_at_once_do_not_meet(place: Path) -> None:
    left = TemporaryFolder()
    os.close(left.mark)
    other = os.open(left.path / ".lra-owner", os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    sweep()
    assert left.path.is_dir()
    os.close(other)
    sweep()
    assert not left.path.exists()
