"""A disk that is full or read-only: one line that names the file and what to do."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lra.core.errors import StoreError
from lra.store import Store


@contextmanager
def no_room() -> Iterator[None]:
    """Every write to a file fails, really; Python ignores the signal that comes with it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_store_that_cannot_be_locked_for_want_of_room(tmp_path: Path) -> None:
    with (
        no_room(),
        pytest.raises(StoreError, match=r"\.lock .*: file too large; "),
        Store(tmp_path).locked(),
    ):
        raise AssertionError("it is held")
    # Nobody else is kept from it.
    with Store(tmp_path).locked():
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "make room"),
        (errno.EDQUOT, "make room"),
        (errno.EROFS, "mend its permissions"),
        (errno.EACCES, "mend its permissions"),
    ],
)
@pytest.mark.parametrize("call", ["open", "mkdir", "unlink"])
def test_whatever_the_disk_refuses_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, remedy: str
) -> None:
    half = tmp_path / f"{'a' * 20}.json.7.tmp"
    half.touch()

    def refuse(path: Path, *_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(path))

    name = {"open": ".lock", "mkdir": "checkpoints", "unlink": half.name}[call]
    with monkeypatch.context() as patched:
        patched.setattr(Path, call, refuse)
        says = rf"cannot write {name} to the store '.*': {os.strerror(number).lower()}; .*{remedy}$"
        with pytest.raises(StoreError, match=says), Store(tmp_path).locked():
            raise AssertionError("it is held")
