"""Commands on a disk without room end in a line, whatever they were writing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from .conftest import HERE

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
from lra.cli.main import run_command_line
sys.argv[:2] = ["lra"]
sys.exit(run_command_line(sys.argv[1:]))
"""
"""No file grows past a limit; Python ignores the signal that comes with it."""


@pytest.mark.parametrize(
    ("limit", "command", "says"),
    [
        (0, "data prepare listops --scale {scale}", "file too large"),
        (3000, "data prepare listops --scale {scale}", "prepared set"),
        (0, "run --impl linear --suite {suite} --scale {scale} --store store", "temporary"),
        (0, "pack store", ".lock to the store"),
        (0, "report --store . --out out", "make room or choose another folder"),
    ],
)
def test_a_file_that_cannot_grow(environment, tmp_path, limit, command, says):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / f"{'a' * 20}.json").write_text("{}")
    words = command.format(scale=HERE / "tiny.toml", suite=HERE / "tiny_suite.toml").split()
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), *words],
        cwd=tmp_path, env={**environment, "LRA_CACHE": str(tmp_path / "cache")},
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert ran.returncode == 2, ran.stderr[-2000:]
    (told,) = [line for line in ran.stderr.splitlines() if line.startswith("lra: ")]
    assert "Traceback" not in ran.stderr
    assert says in told


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_place_that_nobody_thought_of(lra, monkeypatch, number):
    from lra.core import scales

    def refuse(reference: str) -> None:
        raise OSError(number, os.strerror(number), "some/file")

    monkeypatch.setattr(scales, "load_suite", refuse)
    monkeypatch.setattr(scales, "load_scale", refuse)
    ran = lra("data", "show", "--task", "listops")
    assert ran.returncode == 2
    assert f"cannot write 'some/file': {os.strerror(number).lower()}; make room" in ran.stderr
