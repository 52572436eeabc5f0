"""The command line as a person uses it: in an empty folder, with a cache of its own."""

from __future__ import annotations

import errno
import os
import pty
import subprocess
import sys
import termios
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from lra.core.records import Record
from lra.engine.gate import check
from lra.identity import edits

from .gate import Taken, command, take
from .warm import Warm

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
TINY = ["--suite", str(HERE / "tiny_suite.toml"), "--scale", str(HERE / "tiny.toml")]
SHORT = """
title = "short"
[[efficiency]]
scale = "mini"
lengths = [16]
modes = ["forward"]
heads = [1]
head_widths = [4]
seconds = 0.02
"""
"""A suite of one timing a mechanism."""
SAME_AGAIN = """
title = "a training, and errors: the same every time"
[[quality]]
scale = "tiny"
tasks = ["listops"]
[[error]]
scale = "mini"
lengths = [16, 32]
heads = [1]
head_widths = [4]
input_scales = [0.5, 1.0]
"""
TIMED = """
title = "timed"
[[efficiency]]
scale = "mini"
lengths = [32, 64, 128]
modes = ["forward"]
heads = [2]
head_widths = [8]
seconds = 0.02
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "LRA_CACHE": str(cache), "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """Processes that commands in this one fork instead of starting processes."""
    warm = Warm()
    yield warm
    warm.end()


@pytest.fixture
def lra(
    tmp_path: Path,
    warm: Warm,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run the command line in an empty folder and in this process, where a test can put things in
    its way."""
    _settle(monkeypatch, tmp_path, cache, warm)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = command(*arguments)
        told = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, told.out, told.err)

    return run


def _settle(patch: pytest.MonkeyPatch, folder: Path, cache: Path, warm: Warm) -> None:
    """Be where commands run, as `python -m lra` has it."""
    patch.chdir(folder)
    patch.syspath_prepend(folder)
    patch.setattr(sys, "argv", [str(ROOT / "lra" / "__main__.py")])
    patch.setenv("LRA_CACHE", str(cache))
    patch.setattr(warnings, "showwarning", warnings.showwarning)
    # Nor may it matter that somebody is about to edit the code.
    patch.setattr(edits, "unchecked_edits", lambda root: {})
    warm.put(patch)


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder `closed` that nobody may look into, the superuser included."""
    folder = tmp_path / "closed"
    folder.mkdir()
    stat, access = os.stat, os.access

    def inside(path: object, *, or_itself: bool) -> bool:
        if not isinstance(path, str | Path):
            return False
        place = Path(os.path.abspath(path))  # noqa: PTH100  Path's own asks the system
        return folder in place.parents or (or_itself and place == folder)

    def refusing_stat(path: object, *arguments: object, **more: object) -> object:
        if inside(path, or_itself=False):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, *arguments, **more)  # type: ignore[arg-type, call-overload]

    monkeypatch.setattr(os, "stat", refusing_stat)
    monkeypatch.setattr(
        os, "access", lambda path, mode: not inside(path, or_itself=True) and access(path, mode)
    )
    return folder


@dataclass(frozen=True)
class Finished:
    """A run of `linear` that went well, watched on a terminal."""

    folder: Path
    """It has been the current one."""
    shown: str
    """All that the terminal got, with its control characters."""

    @property
    def store(self) -> Path:
        return self.folder / "results/runs/default"


@pytest.fixture(scope="session")
def finished(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("finished")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    process = subprocess.Popen(
        [sys.executable, "-m", "lra", "run", "--impl", "linear", *TINY],
        cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    # Linux ends a terminal without a writer with an error.
    with suppress(OSError):
        while some := os.read(ours, 4096):
            shown += some
    os.close(ours)
    assert process.wait() == 0, shown
    return Finished(folder, shown.decode())


@pytest.fixture(scope="session")
def taken(warm: Warm, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Taken:
    folder = tmp_path_factory.mktemp("taken")
    with pytest.MonkeyPatch.context() as patch:
        _settle(patch, folder, cache, warm)
        return take(folder)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Record]], None]:
    """Let checks and updates find these records, and run nothing."""

    def give(records: list[Record]) -> None:
        monkeypatch.setattr(check, "measure", lambda *_, **__: (records, 0))

    return give
