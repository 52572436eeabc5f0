"""A disk that is full or read-only: one line that names the file and what to do."""

import errno
import os
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest

from lra.core.errors import StoreError
from lra.store import Store


@contextmanager
def no_room():
    """Every write to a file fails, really; Python ignores the signal that comes with it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def refuses_to_hold(folder, says):
    with pytest.raises(StoreError, match=says), Store(folder).writing():
        raise AssertionError("it is held")


def test_a_store_that_cannot_be_locked_for_want_of_room(tmp_path):
    with no_room():
        refuses_to_hold(
            tmp_path, r"cannot write \.lock to the store '.*': file too large; .*make room$"
        )
    # Nobody else is kept from it.
    with Store(tmp_path).writing():
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("call", ["open", "mkdir", "unlink"])
def test_whatever_the_disk_refuses_is_a_line(tmp_path, monkeypatch, call, number):
    def refuse(path, *_, **__):
        raise OSError(number, os.strerror(number), str(path))

    half = tmp_path / f"{'a' * 20}.json.7.tmp"
    half.touch()
    name = {"open": ".lock", "mkdir": "checkpoints", "unlink": half.name}[call]
    full = number in (errno.ENOSPC, errno.EDQUOT)
    remedy, reason = "make room" if full else "mend its permissions", os.strerror(number).lower()
    monkeypatch.setattr(Path, call, refuse)
    refuses_to_hold(tmp_path, rf"cannot write {name} to the store '.*': {reason}; .*{remedy}$")
    monkeypatch.undo()
