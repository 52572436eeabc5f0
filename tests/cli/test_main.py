"""How the command line ends when it is not a verb that ends it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lra.engine.machine import host

INTERRUPTED = 130


def test_ctrl_c_outside_the_pool_is_one_line_and_exit_130(
    lra, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(host, "gpus", interrupted)
    ran = lra("doctor")
    assert ran.returncode == INTERRUPTED
    # The empty line ends the one on which the terminal has shown ^C.
    assert ran.stderr.startswith("\nlra: ") and ran.stderr.count("\n") == 2


@pytest.mark.parametrize("arguments", [("list", "scales"), ("--help",)])
def test_a_reader_that_has_seen_enough_ends_it_without_a_word(
    arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    unread, out = os.pipe()
    ran = subprocess.Popen(
        [sys.executable, "-m", "lra", *arguments],
        stdout=out,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    )
    os.close(out)
    os.close(unread)
    assert ran.communicate()[1] == ""
    assert ran.returncode == 128 + signal.SIGPIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    "arguments", [("list", "scales"), ("list", "tasks", "--json"), ("--help",)]
)
def test_a_full_disk_under_the_output_is_one_line(
    arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "lra", *arguments],
            stdout=full, stderr=subprocess.PIPE, env=environment, text=True,
        )  # fmt: skip
    assert ran.returncode == 2 and ran.stderr.startswith("lra: ")
    assert "no space left" in ran.stderr and ran.stderr.count("\n") == 1


def test_what_else_the_system_refuses_keeps_its_traceback(
    lra, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(host, "gpus", broken)
    with pytest.raises(OSError, match="Input/output"):
        lra("doctor")


@pytest.mark.parametrize("verb", ["data", "baseline"])
def test_a_verb_of_several_alone_shows_what_there_is(lra, verb: str) -> None:
    ran = lra(verb)
    assert (ran.returncode, ran.stdout) == (2, "")
    lines = ran.stderr.splitlines()
    assert lines[0].startswith(f"Usage: python -m lra {verb} [OPTIONS] COMMAND")
    assert "Commands:" in lines


@pytest.mark.filterwarnings("default::lra.store.StoreWarning")
def test_a_name_with_a_line_break_does_not_break_the_line(lra, tmp_path: Path) -> None:
    ran = lra("report", "--store", "no\nwhere")
    assert r"'no\nwhere'" in ran.stderr
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "two\nlines.json").write_text("{")
    ran = lra("report", "--store", "store")
    assert r"two\nlines.json" in ran.stderr and len(ran.stderr.splitlines()) == 1
