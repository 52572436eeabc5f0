"""What is freed between steps is kept, where the allocator can be told so."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import lra
from lra.training import memory

FAULTS = """
import resource
import torch
from lra.training.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(1 << 24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
given_back = faults()
keep_freed_memory()
faults()
print(given_back, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's malloc alone is told")
def test_what_is_freed_is_kept_for_the_next_tensor_of_its_size() -> None:
    """64 MiB, of which each page is a fault where it is new."""
    told = subprocess.run(
        [sys.executable, "-c", FAULTS],
        env={**os.environ, "PYTHONPATH": str(Path(lra.__file__).parents[1])},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    given_back, kept = map(int, told.stdout.split())
    assert kept < given_back / 10


@pytest.mark.parametrize("lacking", [OSError, AttributeError])
def test_where_there_is_no_glibc_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, lacking: type[Exception]
) -> None:
    asked: list[str] = []

    def refuse(name: str) -> object:
        asked.append(name)
        raise lacking(name)

    monkeypatch.setattr(memory.ctypes, "CDLL", refuse)
    memory.keep_freed_memory()
    assert asked == ["libc.so.6"]
