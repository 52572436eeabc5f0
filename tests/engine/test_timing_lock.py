"""The timing lock: one holder on a machine, first come, first served; free again however its holder
or whoever waits ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from lra.core.errors import LraError
from lra.engine.machine import timing_lock
from lra.engine.machine.timing_lock import TimingLock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@pytest.fixture
def locks(path: Path) -> list[TimingLock]:
    """The same lock, of three runs."""
    return [TimingLock(path) for _ in range(3)]


def test_one_holder_at_a_time_and_the_first_refusal_is_news(locks: list[TimingLock]) -> None:
    first, second, _ = locks
    assert first.acquire() and first.acquire()
    assert not second.acquire() and second.news
    assert not second.acquire() and not second.news
    first.release()
    assert second.acquire() and not second.news
    second.release()
    second.release()


def test_a_file_that_may_only_be_read_can_be_locked(path: Path) -> None:
    # As another user's in a shared folder.
    path.touch(mode=0o444)
    lock = TimingLock(path)
    assert lock.acquire()
    lock.release()


def test_a_place_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LraError, match=r"timing lock.*TMPDIR") as refused:
        TimingLock(tmp_path / "none" / "lock").acquire()
    assert "\n" not in str(refused.value)


def test_tmpdir_makes_no_second_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Path("/tmp", f"lra-{uuid4().hex}.lock")
    monkeypatch.setattr(timing_lock, "_NAME", shared.name)
    first = TimingLock()
    try:
        assert first.acquire()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        second = TimingLock()
        assert not second.acquire()
    finally:
        first.release()
        shared.unlink(missing_ok=True)
    # Where /tmp cannot be used, the temporary folder is taken.
    folder = tmp_path / shared.stem
    folder.mkdir()
    monkeypatch.setattr(timing_lock, "_NAME", f"{folder.name}/lock")
    third = TimingLock()
    assert third.acquire()
    assert (folder / "lock").is_file()
    third.release()


WAITS = """
import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from lra.core.errors import LraError
from lra.engine.machine.timing_lock import TimingLock
lock = TimingLock(Path(sys.argv[2]))
try:
    print(lock.acquire(), flush=True)
except LraError as error:
    print(error, flush=True)
    sys.exit(2)
input()
"""


@contextmanager
def asks(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that asks for the lock once, tells whether it has it, and lives on; it ends
    with the test."""
    command = [sys.executable, "-c", WAITS, str(Path(__file__).parents[2]), str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_dead_holder_holds_nothing(path: Path) -> None:
    lock = TimingLock(path)
    with asks(path) as other:
        assert answer(other) == "True" and not lock.acquire()
        other.kill()
    assert lock.acquire()
    lock.release()


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps the order")


@on_linux
def test_who_came_first_is_served_first(locks: list[TimingLock]) -> None:
    served = []
    for _ in range(6):
        (holder,) = (lock for lock in locks if lock.acquire())
        served.append(locks.index(holder))
        holder.release()
        # It asks again at once, and before the others, as a run with many timings does.
        assert not holder.acquire()
    assert served == [0, 1, 2, 0, 1, 2]


@on_linux
def test_who_steps_aside_keeps_its_place_and_is_in_nobodys_way(locks: list[TimingLock]) -> None:
    first, second, third = locks
    assert first.acquire() and not second.acquire() and not third.acquire()
    second.yield_turn()
    assert second.waited == 0.0 < third.waited and second.is_contended
    first.release()
    assert not second._queues and third.acquire()
    assert not first.acquire() and not second.acquire()
    third.release()
    assert not first.acquire() and second.acquire()
    first.release()
    assert not second.is_contended
    second.release()
    assert not second.is_contended


@on_linux
def test_a_dead_waiter_is_in_nobodys_way(path: Path, locks: list[TimingLock]) -> None:
    first, second, _ = locks
    assert first.acquire()
    with asks(path) as other:
        assert answer(other) == "False"
        first.release()
        assert not second.acquire()
        other.kill()
    assert second.acquire()


@on_linux
def test_a_suspended_waiter_is_passed(
    path: Path, locks: list[TimingLock], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, _ = locks
    assert first.acquire()
    with asks(path) as other:
        assert answer(other) == "False"
        os.kill(other.pid, signal.SIGSTOP)
        assert not second.acquire()
        monkeypatch.setattr(timing_lock, "IDLE", 0.05)
        time.sleep(0.1)
        # It has not been free for so long.
        assert not second.acquire()
        first.release()
        assert not second.acquire()
        time.sleep(0.1)
        assert second.acquire()


@on_linux
def test_who_waits_is_told_for_whom_and_how_long(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = TimingLock(path)
    with asks(path) as other:
        assert answer(other) == "True"
        assert not lock.acquire()
        assert f"process {other.pid}" in lock.news and " 0 s ago" in lock.news
        assert not lock.acquire() and not lock.news
        monkeypatch.setattr(timing_lock, "TOLD_EVERY", 0.0)
        time.sleep(1.1)
        assert not lock.acquire()
        assert re.search(r" [1-9]\d* s ago.* [1-9]\d* s", lock.news)
    assert lock.acquire() and not lock.news
    # With others about, not for each of many timings.
    lock.release()
    monkeypatch.setattr(timing_lock, "TOLD_EVERY", 60.0)
    with asks(path) as other:
        assert answer(other) == "True"
        assert not lock.acquire() and not lock.news


def test_nothing_is_written_and_only_a_new_file_gets_its_mode(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("words")
    (tmp_path / "old").chmod(0o600)
    for name, mode in (("old", 0o600), ("new", 0o644)):
        first, second = TimingLock(tmp_path / name), TimingLock(tmp_path / name)
        assert first.acquire() and not second.acquire()
        assert (tmp_path / name).stat().st_mode & 0o777 == mode
    assert (tmp_path / "old").read_text() == "words" and not (tmp_path / "new").read_bytes()


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "dangling link", "link"])
def test_no_file_is_one_line_at_once_and_nothing_is_made(
    path: Path, tmp_path: Path, kind: str
) -> None:
    lock, target = path, tmp_path / "target"
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "folder":
        lock.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(lock))
    else:
        lock.symlink_to(target)
        if kind == "link":
            target.touch()
    with asks(lock) as other:
        other.wait(20)
        told = answer(other)
    assert other.returncode == 2 and f"'{lock}' is a {kind.split()[-1]}" in told
    assert target.exists() == (kind == "link")


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_file_that_is_exchanged_while_it_is_opened_is_refused(
    kind: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = timing_lock._check_safe
    path.touch()

    def exchanged(place: Path, found: os.stat_result) -> None:
        check(place, found)
        place.unlink()
        if kind == "pipe":
            os.mkfifo(place)
        else:
            place.symlink_to(tmp_path / "target")
        monkeypatch.setattr(timing_lock, "_check_safe", check)

    monkeypatch.setattr(timing_lock, "_check_safe", exchanged)
    (tmp_path / "target").touch()

    def waited(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, waited)
    signal.alarm(20)
    try:
        with pytest.raises(LraError, match=f"is a {kind}"):
            TimingLock(path).acquire()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_anothers_file_is_taken_only_where_nobody_can_replace_it(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = path
    file.touch()
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
        monkeypatch.setattr(os, "getegid", lambda: file.stat().st_gid + 1)
        monkeypatch.setattr(os, "getgroups", list)
    with pytest.raises(LraError, match="may replace it"):
        TimingLock(file).acquire()
    tmp_path.chmod(0o1777)
    assert TimingLock(file).acquire()


@on_linux
def test_a_file_that_was_removed_under_a_waiter_is_no_second_lock(
    path: Path, locks: list[TimingLock]
) -> None:
    first, second, third = locks
    assert first.acquire() and not second.acquire()
    path.unlink()
    assert third.acquire()
    first.release()
    assert not second.acquire()
    third.release()
    assert second.acquire()
