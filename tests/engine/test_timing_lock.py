"""The timing lock: one holder on a machine, free again however its holder ends."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

import pytest

from lra.core.errors import LraError
from lra.engine import timing_lock
from lra.engine.timing_lock import TimingLock


def test_one_holder_at_a_time_and_the_first_refusal_is_news(tmp_path: Path) -> None:
    first, second = TimingLock(tmp_path / "lock"), TimingLock(tmp_path / "lock")
    assert first.acquire() and first.acquire()
    assert not second.acquire() and second.news
    assert not second.acquire() and not second.news
    first.release()
    assert second.acquire() and not second.news
    second.release()
    second.release()


def test_a_dead_holder_holds_nothing(tmp_path: Path) -> None:
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from lra.engine.timing_lock import TimingLock\n"
        "assert TimingLock(Path(sys.argv[2])).acquire(); os.kill(os.getpid(), 9)"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code, root, str(tmp_path / "lock")])
    assert done.returncode == -9
    assert TimingLock(tmp_path / "lock").acquire()


def test_a_file_that_may_only_be_read_can_be_locked(tmp_path: Path) -> None:
    # As another user's in a shared folder.
    (tmp_path / "lock").touch(mode=0o444)
    lock = TimingLock(tmp_path / "lock")
    assert lock.acquire()
    lock.release()


def test_a_place_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LraError, match=r"cannot open the timing lock.*TMPDIR") as refused:
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
    try:
        # Where /tmp refuses, the temporary folder is taken.
        shared.symlink_to(tmp_path / "none" / "lock")
        assert second.acquire()
        assert (tmp_path / shared.name).is_file()
    finally:
        second.release()
        shared.unlink(missing_ok=True)
