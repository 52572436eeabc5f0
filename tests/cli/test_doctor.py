"""The doctor names what is to be mended, and does not call a broken installation well."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lra.cli import doctor
from lra.engine.machine import host


def test_a_whole_installation_without_a_gpu(lra, monkeypatch: pytest.MonkeyPatch) -> None:
    # Hidden where there is one.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    ran = lra("doctor")
    assert ran.returncode == 0 and "all well" in ran.stdout
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith("gpu "))
    assert "none" in line


@pytest.mark.parametrize("store", ["taken", "taken/below", "closed/store"])
def test_a_store_that_cannot_be_is_a_problem(store: str, lra, tmp_path: Path, closed: Path) -> None:
    (tmp_path / "taken").write_text("")
    ran = lra("doctor", "--store", store)
    assert ran.returncode == 2 and "\n1 problem\n" in ran.stdout
    assert f"problem: the store '{store}' " in ran.stdout


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that the driver shows, hidden from torch; torch says that it can use one."""
    card = {"name": "GPU model 0", "memory_bytes": 2**30, "driver": "570.12"}
    monkeypatch.setattr(host, "gpus", lambda: [card])
    monkeypatch.setattr(host, "library_version", lambda name: "2.13.0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def test_a_gpu_that_torch_cannot_use_is_to_be_mended(gpu: None, lra) -> None:
    ran = lra("doctor")
    assert ran.returncode == 2 and "all well" not in ran.stdout
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith("problem: "))
    why = line.removeprefix("problem: the GPU cannot be used: ").partition("; ")[0]
    assert "CUDA" in why or "NVIDIA" in why
    assert "--device cpu" in line


def test_a_gpu_that_computes_is_well(gpu: None, lra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "TRIAL", "print('4.0')")
    ran = lra("doctor")
    assert ran.returncode == 0 and "all well" in ran.stdout


@pytest.mark.parametrize(
    ("trial", "why"),
    [
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
        ("import warnings; warnings.warn('old'); raise SystemExit('no kernel')", "no kernel"),
        ("import time; time.sleep(60)", "no answer in 1 s"),
    ],
)
def test_however_a_gpu_fails_it_is_a_line(
    trial: str, why: str, gpu: None, lra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "TRIAL", trial)
    monkeypatch.setattr(doctor, "PATIENCE", 1 if "sleep" in trial else 60)
    assert f"the GPU cannot be used: {why}; " in lra("doctor").stdout


def test_a_gpu_beside_a_torch_for_cpus_is_a_note_and_no_fault(
    gpu: None, lra, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("nothing to try")

    monkeypatch.setattr(host, "library_version", lambda name: "2.13.0+cpu")
    monkeypatch.setattr(subprocess, "run", refuse)
    ran = lra("doctor")
    assert ran.returncode == 0 and "note: torch is a CPU-only build" in ran.stdout


@pytest.mark.parametrize(
    ("cores", "told"),
    [({0: "0-1", 1: "0-1"}, True), ({0: "0", 1: "1"}, False), ({0: "0-1"}, False), ({}, False)],
)
def test_threads_that_share_a_core_are_a_note(
    cores: dict[int, str], told: bool, lra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for thread, siblings in cores.items():
        (tmp_path / f"cpu{thread}").write_text(f"{siblings}\n")
    monkeypatch.setattr(doctor, "SIBLINGS", f"{tmp_path}/cpu{{}}")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    ran = lra("doctor")
    assert ran.returncode == 0 and ("note: the 2 processors" in ran.stdout) == told
